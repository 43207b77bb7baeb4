"""Lines come through files and pipes as they come; output waits for its reader and survives a stop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from headgate.ops.exits import UsageError
from headgate.ops.limits import LINE_BYTES_MAX, PIPE_WRITE_BYTES
from headgate.ops.lines import Output, read_lines


@pytest.fixture
def pipe() -> Iterator[list[int]]:
    ends = list(os.pipe())
    yield ends
    for descriptor in ends:
        if descriptor >= 0:
            os.close(descriptor)


def close(pipe: list[int], end: int) -> None:
    os.close(pipe[end])
    pipe[end] = -1


async def all_lines(descriptor: int) -> list[bytes]:
    return [line async for lines in read_lines(descriptor) for line in lines]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (b"", []),
        (b"one", [b"one"]),
        (b"one\n", [b"one"]),
        (b"one\n\ntwo", [b"one", b"", b"two"]),
        (b"x" * 200_000 + b"\ny\n", [b"x" * 200_000, b"y"]),
    ],
)
def test_lines_of_a_file(tmp_path: Path, text: bytes, lines: list[bytes]) -> None:
    file = tmp_path / "lines"
    file.write_bytes(text)
    with file.open("rb") as stream:
        assert asyncio.run(all_lines(stream.fileno())) == lines


def test_lines_of_a_pipe_come_before_it_closes(pipe: list[int]) -> None:
    async def talk() -> None:
        lines = read_lines(pipe[0])
        asyncio.get_running_loop().call_soon(os.write, pipe[1], b"one\ntw")
        assert await anext(lines) == [b"one"]
        os.write(pipe[1], b"o\nthree")
        assert await anext(lines) == [b"two"]
        close(pipe, 1)
        assert await anext(lines) == [b"three"]
        with pytest.raises(StopAsyncIteration):
            await anext(lines)

    asyncio.run(talk())


def test_a_line_without_end_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"x" * (LINE_BYTES_MAX + 70_000))
    with file.open("rb") as stream, pytest.raises(UsageError, match="longer than"):
        asyncio.run(all_lines(stream.fileno()))


def test_output_into_a_full_pipe_waits_and_keeps_what_a_stop_leaves(pipe: list[int]) -> None:
    text = "é" * 100_000
    taken = bytearray()

    async def talk() -> None:
        output = Output(pipe[1])
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await output.write(text)

        def take() -> None:
            taken.extend(os.read(pipe[0], 65_536))

        asyncio.get_running_loop().add_reader(pipe[0], take)
        await output.flush()

    asyncio.run(talk())
    close(pipe, 1)
    while chunk := os.read(pipe[0], 65_536):
        taken.extend(chunk)
    assert taken.decode() == text


def test_output_to_a_file(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as stream:
        asyncio.run(Output(stream.fileno()).write("x" * 10_000))
    assert (tmp_path / "out").read_bytes() == b"x" * 10_000


def test_output_to_nobody_says_so(pipe: list[int]) -> None:
    close(pipe, 0)
    with pytest.raises(BrokenPipeError):
        asyncio.run(Output(pipe[1]).write("x"))


def test_output_is_copied_once_however_long_it_is(pipe: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(os, "write", lambda _, piece: sizes.append(len(output._pending)) or len(piece))
    output = Output(pipe[1])
    asyncio.run(output.write("x" * 100_000))
    assert len(sizes) == -(-100_000 // PIPE_WRITE_BYTES)
    assert set(sizes) == {100_000}, "what is left was not copied for each piece"
