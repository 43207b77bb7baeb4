"""Reading a range of a log: chunk by chunk, cut to the range, with an eye on what retention took away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from headgate.protocol.client import Chunk
from headgate.protocol.data import LogName

from ..errors import DataLoss
from ..options import ReadOptions
from .decoding import Decoder, Portion
from .positions import LogRange

__all__ = ["LogReading", "fetch"]


class LogReading(Protocol):
    """What is asked of a client; `protocol.blocking` has it."""

    def read_log(self, name: LogName, position: int, events: int = 0, pattern: str = "", where: str = "") -> Chunk:
        """Rows from a position on."""


def fetch(client: LogReading, wanted: LogRange, options: ReadOptions, decoder: Decoder) -> Iterator[Any]:
    """The record batches of a range. Raises DataLoss when positions in it are gone, unless told to go on."""
    position = wanted.start
    while position < wanted.end:
        chunk = client.read_log(
            wanted.name,
            position,
            wanted.end - position,
            pattern=options.patterns[wanted.name.stream],
            where=options.condition,
        )
        found = min(chunk.first, wanted.end)
        if position < found:
            _lost(wanted, position, found, options)
            position = found
        rows = [row for row in chunk.rows if row.first < wanted.end]
        yield from decoder.batches([Portion(wanted.name, wanted.rank, row, position, wanted.end) for row in rows])
        if chunk.next <= position and position < wanted.end:
            # The log ends before what was promised: its broker lost it, and who has the copy never had the rest.
            _lost(wanted, position, wanted.end, options)
            return
        position = chunk.next


def _lost(wanted: LogRange, position: int, found: int, options: ReadOptions) -> None:
    if options.fail_on_data_loss:
        raise DataLoss(wanted.name.partition, position, found)
