"""Audit history: which subscriptions the log of them leaves open, read chunk by chunk after a start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from headgate.protocol.columns import decode_column
from headgate.protocol.errors import ProtocolViolation
from headgate.protocol.limits import LOG_CHUNK_BYTES_MAX
from headgate.protocol.log_rows import Row, decode_row

from .inputs import RowsRead
from .log import HeldLog, Log

__all__ = ["Left", "open_subscriptions"]

Left: TypeAlias = dict[tuple[str, int], tuple[Any, ...]]
"""(origin of its home, identity) of a subscription -> its line in the log."""

_COLUMNS = ("subscription", "subscriber", "pattern", "exact", "condition", "spark", "action")


def open_subscriptions(log: Log, held: HeldLog, tell: Callable[[HeldLog, Left], None]) -> None:
    """Read that log of subscriptions to where it ends now, and tell which have no end in it."""
    left: Left = {}
    end = held.next

    def came(read: RowsRead, now: float) -> None:
        for data in read.rows:
            try:
                _follow(left, decode_row(data))
            except ProtocolViolation:
                continue  # a damaged line: what it said is unknown, and the rest still counts
        if (read.rows or read.damage) and read.next < end:
            log.read_rows(held.name, read.next, LOG_CHUNK_BYTES_MAX, came)
        else:
            tell(held, left)

    log.read_rows(held.name, held.first, LOG_CHUNK_BYTES_MAX, came)


def _follow(left: Left, row: Row) -> None:
    """What a row changes. Raises ProtocolViolation."""
    columns = [decode_column(row.columns.get(name, b""), row.count) for name in _COLUMNS]
    for line in zip(*columns, strict=True):
        identity, action = line[0], line[6]
        if action == "subscribe" and type(identity) is int:
            left[row.topics, identity] = line[:6]
        elif action == "unsubscribe":
            left.pop((row.topics, identity), None)
