"""Lines in and text out through descriptors that may be files, pipes or terminals, without ever blocking the loop.

The loop waits until a descriptor is ready and then does one plain read or write that cannot block. The descriptor is
not made non-blocking, because it may be shared with the shell; and regular files, which no loop can wait for, are
always ready.
"""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import AsyncIterator, Callable
from typing import IO

from .exits import UsageError
from .limits import LINE_BYTES_MAX, PIPE_WRITE_BYTES, READ_BYTES

__all__ = ["Output", "descriptor_of", "read_lines"]


def descriptor_of(stream: IO[str] | None, name: str) -> int:
    """The descriptor of standard input or output. Raises UsageError where the shell has closed it.

    The number alone would not do: the next socket may have it.
    """
    if stream is None:
        raise UsageError(f"{name} is closed")
    return stream.fileno()


async def read_lines(descriptor: int) -> AsyncIterator[list[bytes]]:
    """Lists of whole lines as they come, without line ends; the last line needs none. Raises UsageError, OSError."""
    rest = b""
    while True:
        await _ready(descriptor, asyncio.get_running_loop().add_reader, asyncio.get_running_loop().remove_reader)
        chunk = os.read(descriptor, READ_BYTES)
        if not chunk:
            break
        head, end, tail = chunk.rpartition(b"\n")
        if end:
            yield (rest + head).split(b"\n")
            rest = tail
        else:
            rest += chunk
        if len(rest) > LINE_BYTES_MAX:
            raise UsageError(f"a line is longer than {LINE_BYTES_MAX} bytes: write one JSON object a line")
    if rest:
        yield [rest]


class Output:
    """Writes text to a descriptor. What a cancelled `write` left over is kept."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._pending = b""
        self._written = 0  # how much of it was written

    async def write(self, text: str) -> None:
        """Write all of it; raises BrokenPipeError when nobody reads any more."""
        # Cut off at the front when it is written out, not at each piece: a batch may have many megabytes.
        self._pending = self._pending[self._written :] + text.encode("utf-8", "replace")
        self._written = 0
        await self.flush()

    async def flush(self) -> None:
        """Write what an interrupted call left over."""
        loop = asyncio.get_running_loop()
        while self._written < len(self._pending):
            await _ready(self._descriptor, loop.add_writer, loop.remove_writer, write=True)
            piece = self._pending[self._written : self._written + PIPE_WRITE_BYTES]
            self._written += os.write(self._descriptor, piece)
        self._pending, self._written = b"", 0


async def _ready(
    descriptor: int, add: Callable[..., object], remove: Callable[[int], object], write: bool = False
) -> None:
    """Wait until the descriptor can be read from, or written to."""
    watched = [descriptor]
    if any(select.select([] if write else watched, watched if write else [], [], 0)):
        return
    ready = asyncio.get_running_loop().create_future()

    def is_ready() -> None:
        if not ready.done():
            ready.set_result(None)

    add(descriptor, is_ready)
    try:
        await ready
    finally:
        remove(descriptor)
