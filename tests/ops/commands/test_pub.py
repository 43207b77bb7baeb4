"""`pub`: one event, lines as they come, and where it stops."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from headgate.ops.cli import main
from headgate.ops.commands.pub import Publishing
from headgate.ops.exits import UsageError
from headgate.protocol.errors import ErrorCode, LocalError, Refused, UnknownOutcome
from headgate.protocol.limits import RECORD_LENGTH_MAX
from tests.ops.fakes import FakeClient, use_client


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    return use_client(monkeypatch, FakeClient())


async def chunks(*lines: Sequence[bytes]) -> AsyncIterator[list[bytes]]:
    for some in lines:
        yield list(some)


def test_one_event(client: FakeClient, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pub", "quotes/OTE", "--attr", "price=8.5", "--attr", 'code="7"', "--body", "é"]) == 0
    assert client.published == [("quotes/OTE", {"price": 8.5, "code": "7"}, "é", "", "accepted")]
    assert capsys.readouterr().err == "published 1 event\n"


@pytest.mark.parametrize(
    "words",
    [
        ["quotes/OTE", "--attr", "a=1", "b=2"],
        ["--attr", "a=1", "b=2", "quotes/OTE"],
        ["--attr", "a=1", "--attr", "b=2", "quotes/OTE"],
    ],
)
def test_several_attributes_behind_one_flag_and_the_topic_on_either_side(words: list[str], client: FakeClient) -> None:
    assert main(["pub", *words]) == 0
    assert client.published == [("quotes/OTE", {"a": 1, "b": 2}, b"", "", "accepted")]


@pytest.mark.parametrize(
    ("name", "words", "text", "content_type", "attributes"),
    [
        ("a.xml", [], "<a/>", "application/xml", {}),
        ("a.JSON", [], '{"a": {"b": 1}, "c": [2]}', "application/json", {"body.a.b": 1}),
        ("a", ["--content-type", "image/svg+xml"], "<svg/>", "image/svg+xml", {}),
        ("a", [], "<a", "", {}),
        ("a.xml", ["--content-type", "text/plain"], "<a", "text/plain", {}),
    ],
)
def test_a_body_from_a_file(
    name: str,
    words: list[str],
    text: str,
    content_type: str,
    attributes: dict[str, int],
    client: FakeClient,
    tmp_path: Path,
) -> None:
    (tmp_path / name).write_text(text)
    assert main(["pub", "library", "--attr", "n=1", "--body-file", str(tmp_path / name), *words]) == 0
    assert client.published == [("library", {"n": 1, **attributes}, text.encode(), content_type, "accepted")]


def test_a_body_from_standard_input_and_a_text_with_a_type(client: FakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b"<a/>")))
    assert main(["pub", "a", "--body-file", "-", "--content-type", "text/xml"]) == 0
    assert main(["pub", "a", "--body", "<b/>", "--content-type", "text/xml"]) == 0
    assert [one[2:4] for one in client.published] == [(b"<a/>", "text/xml"), ("<b/>", "text/xml")]


@pytest.mark.parametrize(
    ("name", "body", "text"),
    [
        ("a.xml", b"<a", "this is no XML that can be read"),
        ("a.json", b"{", "another --content-type publishes it as it is"),
        ("a.txt", bytes(RECORD_LENGTH_MAX + 1), "over the limit of 1048576 bytes"),
    ],
)
def test_a_file_that_is_no_body_is_refused(
    name: str, body: bytes, text: str, client: FakeClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(body)
    assert main(["pub", "a", "--body-file", str(tmp_path / name)]) == 2
    assert text in capsys.readouterr().err and client.published == []


def test_quiet_and_mode(client: FakeClient, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pub", "a", "-q", "--mode", "fire"]) == 0
    assert client.published == [("a", {}, b"", "", "fire")]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["pub"], "name a TOPIC"),
        (["pub", "a", "--attr", "x"], "name=value"),
        (["pub", "--jsonl", "-", "--body", "x"], "leave --body out"),
        (["pub", "--jsonl", "-", "--body-file", "x"], "leave --body-file out"),
        (["pub", "--jsonl", "-", "--content-type", "x"], "leave --content-type out"),
        (["pub", "a", "--body-file", "no/such/file"], "--body-file: cannot read no/such/file: No such file"),
        (["pub", "a", "--skip-bad"], "lines of --jsonl"),
        (["pub", "--jsonl", "no/such/file"], "cannot read no/such/file: No such file"),
    ],
)
def test_usage(words: list[str], text: str, client: FakeClient, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert text in capsys.readouterr().err
    assert client.published == []


def test_a_folder_is_no_file(client: FakeClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pub", "--jsonl", str(tmp_path)]) == 2
    assert "directory" in capsys.readouterr().err


def test_a_file_of_lines(client: FakeClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "events.jsonl"
    file.write_bytes(b'{"topic":"a/b","attrs":{"x":1},"body":"one"}\n\n  \r\n{"xml":"<x/>"}')
    assert main(["pub", "quotes", "--attr", "y=2", "--jsonl", str(file)]) == 0
    assert client.published == [
        ("a/b", {"y": 2, "x": 1}, b"one", "text/plain", "accepted"),
        ("quotes", {"y": 2}, b"<x/>", "application/xml", "accepted"),
    ]
    assert capsys.readouterr().err == "published 2 events\n"


def test_a_bad_line_stops_after_those_before_it(
    client: FakeClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text('{"topic":"a"}\n\n{"topic"}\n{"topic":"b"}\n')
    assert main(["pub", "--jsonl", str(file)]) == 2
    assert [published[0] for published in client.published] == ["a"]
    summary, complaint = capsys.readouterr().err.splitlines()
    assert summary == "published 1 event"
    assert complaint.startswith(f"headgate pub: {file}, line 3: this is not JSON")


def test_a_list_as_attribute_is_named_with_its_line(
    client: FakeClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text('{"topic":"a","json":{"tags":["x"]}}\n{"topic":"a","attrs":{"tags":["x"]}}\n')
    assert main(["pub", "--jsonl", str(file)]) == 2
    assert [published[1:3] for published in client.published] == [({}, b'{"tags":["x"]}')]
    complaint = capsys.readouterr().err.splitlines()[1]
    assert complaint.startswith(f"headgate pub: {file}, line 2: attribute 'tags' is a list")


def test_bad_lines_may_be_passed_over_and_are_counted(
    client: FakeClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text('{"topic":"a"}\n{"topic"}\n{"topic":"b"}\n7\n')
    assert main(["pub", "--jsonl", str(file), "--skip-bad"]) == 4
    assert [published[0] for published in client.published] == ["a", "b"]
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1] == "published 2 events, skipped 2 bad lines"
    assert "line 2" in lines[0]
    assert "line 4" in lines[1]
    file.write_text('{"topic":"a"}\n')
    assert main(["pub", "--jsonl", str(file), "--skip-bad"]) == 0


def test_what_the_client_would_not_take_is_a_bad_line_too() -> None:
    class Picky(FakeClient):
        def publish_soon(self, *details: object, **more: object) -> None:
            raise LocalError("a topic has no control characters")

    publishing = Publishing(Picky(), "lines")
    with pytest.raises(UsageError, match="lines, line 1: a topic has no"):
        asyncio.run(publishing.publish(chunks([b'{"topic":"a"}'])))
    assert publishing.sent == 0


def test_a_refusal_ends_it(client: FakeClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    client.refusal = Refused(ErrorCode.UNSUPPORTED, "this broker keeps no log yet")
    file = tmp_path / "events.jsonl"
    file.write_text('{"topic":"a"}\n')
    assert main(["pub", "--jsonl", str(file), "--mode", "stored"]) == 1
    assert capsys.readouterr().err == "published 0 events\nheadgate pub: this broker keeps no log yet\n"


def test_after_a_refusal_no_more_lines_are_read() -> None:
    client = FakeClient()
    client.refusal, client.refuse_from = Refused(ErrorCode.LIMIT, "full"), 1
    publishing = Publishing(client, "lines")
    asyncio.run(publishing.publish(chunks([b'{"topic":"a"}', b'{"topic":"b"}'], [b'{"topic":"c"}'])))
    assert [published[0] for published in client.published] == ["a", "b"]
    assert publishing.summary() == "published 1 event"


def test_it_may_keep_going_and_is_no_success_at_the_end(
    client: FakeClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    client.refusal, client.refuse_from = UnknownOutcome(1, "the broker died"), 1
    file = tmp_path / "events.jsonl"
    file.write_text('{"topic":"a"}\n{"topic":"b"}\n')
    assert main(["pub", "--jsonl", str(file), "--keep-going"]) == 1
    assert [published[0] for published in client.published] == ["a", "b"]
    told, summary, last = capsys.readouterr().err.splitlines()
    assert told.startswith("headgate pub: 1 not published for certain: the outcome of 1 event(s) is unknown")
    assert summary == "published 1 event" and "the broker died" in last
    publishing = Publishing(client, "lines")
    publishing.keep_going = True
    asyncio.run(publishing.publish(chunks([b'{"topic":"c"}'], [b'{"topic":"d"}'])))
    assert [published[0] for published in client.published] == ["a", "b", "c", "d"]
    assert main(["pub", "a", "--keep-going"]) == 2


def test_an_unknown_outcome_is_told_and_is_no_success(client: FakeClient, capsys: pytest.CaptureFixture[str]) -> None:
    client.refusal = UnknownOutcome(1, "the connection broke")
    assert main(["pub", "a"]) == 1
    assert "outcome of 1 event(s) is unknown" in capsys.readouterr().err


def test_standard_input_is_published_as_it_comes() -> None:
    from headgate.ops.lines import read_lines

    client = FakeClient()
    publishing = Publishing(client, "standard input")
    reading, writing = os.pipe()

    async def talk() -> None:
        async def feed() -> AsyncIterator[list[bytes]]:
            async for lines in read_lines(reading):
                yield lines
                assert client.published, "the line was published while the pipe is open"
                os.close(writing)

        os.write(writing, b'{"topic":"a"}\n')
        await publishing.publish(feed())

    asyncio.run(talk())
    os.close(reading)
    assert publishing.summary() == "published 1 event"
