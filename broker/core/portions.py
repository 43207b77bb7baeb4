"""Portions that wait for their connection: what they hold, what it takes to send them, and what is cut out of them."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from headgate.protocol.batch import Batch, Portion, join_u32
from headgate.protocol.messages import Deliver

__all__ = ["effort_of", "only", "size_of", "without"]

_OVERHEAD_BYTES = 400
"""What a queued portion costs beside its columns: the objects around it."""

_NUMBER_BYTES = 64
"""Looking at one number of a route takes as long as sending so many bytes."""


def size_of(portion: Portion) -> int:
    """Memory that a waiting portion may hold: its records, and all else twice, for it may have been encoded as well."""
    columns = len(portion.topics) + len(portion.lengths) + len(portion.offsets)
    return len(portion.records) + 2 * columns + _OVERHEAD_BYTES


def effort_of(message: Deliver, withdrawn: bool) -> int:
    """What it takes to send a waiting portion, as bytes; looking through its numbers costs more than copying them."""
    effort = len(message.portion.records)
    if withdrawn:
        effort += sum(len(numbers) for numbers, _ in message.runs()) * _NUMBER_BYTES
    return effort


def without(message: Deliver, ended: Set[int]) -> Deliver | None:
    """The same without some subscriptions, and without the events that were for them alone; None for nothing left."""
    routes: list[Any] = []
    rows: list[int] = []
    first = 0
    for numbers, count in message.runs():
        left = [number for number in numbers if number not in ended]
        if left:
            routes += (left, count)
            rows += range(first, first + count)
        first += count
    return Deliver(routes, _cut(message.portion, rows)) if rows else None


def only(message: Deliver, number: int) -> Deliver:
    """What of it is for this subscription, which is named in it."""
    rows: list[int] = []
    first = 0
    for numbers, count in message.runs():
        if number in numbers:
            rows += range(first, first + count)
        first += count
    return Deliver([number, len(rows)], _cut(message.portion, rows))


def _cut(portion: Portion, rows: list[int]) -> Portion:
    """Some rows of a portion (ascending, at least one), at their places in the broker's sequence."""
    if len(rows) == portion.count:
        return portion
    batch = Batch(portion.topics, portion.count, portion.lengths, portion.records)
    part = batch.portion(rows, portion.origin, 0, portion.time)
    places = portion.rows()
    first, last = places[rows[0]], places[rows[-1]]
    part.base = portion.base + first
    in_a_row = last - first + 1 == len(rows)
    part.offsets = b"" if in_a_row else join_u32([places[row] - first for row in rows])
    return part
