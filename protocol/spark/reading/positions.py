"""Positions in logs: offsets as users and checkpoints write them, what is read in one step, how tasks share it.

There is one log for each broker and epoch of a stream, and it is a partition to Spark: `ann@1763492000`, or
`quotes/ann@1763492000` when several streams are read. Offsets are JSON by that name, `{"ann@1763492000": 23}`; a number
in its place is the rank of the log by epoch and broker, which is also what column `partition` says. Positions count
events, from 0, without holes, and never mean another event later.

A log that offsets do not name began after they were written: it is read from its beginning. When brokers were away as
a query began at the end of all logs, its offsets also say when that was, `{"@since": 1763492000000000}`: a log that
they do not name is then read from that time on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from headgate.protocol.client import LogInfo
from headgate.protocol.data import LogName

from ..errors import BadOffsets
from ..limits import PARTITIONS_MAX, RANGE_EVENTS_MAX, RANGE_EVENTS_MIN

__all__ = ["SINCE", "LogRange", "by_partition", "capped", "name_of", "offsets_from", "ranges_between", "ranks"]

EARLIEST, LATEST = -2, -1

SINCE = "@since"
"""Among offsets: the time, in microseconds, from which logs are read that the offsets do not name."""


@dataclass(frozen=True, slots=True)
class LogRange:
    """What one task reads: positions from `start` up to, and without, `end`. `rank` is the column `partition`."""

    name: LogName
    rank: int
    start: int
    end: int


def by_partition(logs: Iterable[LogInfo], several: bool = False) -> dict[str, LogInfo]:
    """The logs of one kind by partition, in the order of their ranks; of several streams with the stream's name."""
    known = {f"{log.name.stream}/{log.partition}" if several else log.partition: log for log in logs}
    return {partition: known[partition] for partition in ranks(known)}


def ranks(partitions: Iterable[str]) -> dict[str, int]:
    """Partition -> its rank by epoch, then broker."""
    return {partition: rank for rank, partition in enumerate(sorted(set(partitions) - {SINCE}, key=_order))}


def _order(partition: str) -> tuple[int, str]:
    broker, _, epoch = partition.rpartition("@")
    return (int(epoch) if epoch.isdecimal() else 0), broker


def offsets_from(option: str, text: str, logs: Mapping[str, LogInfo], missing: int) -> dict[str, int]:
    """Partition -> position, as the option says; `missing` (EARLIEST or LATEST) for logs it does not name.

    Raises BadOffsets.
    """
    word = {"earliest": EARLIEST, "latest": LATEST}.get(text.lower())
    named = {} if word is not None else _named(option, text, logs)
    chosen: dict[str, int] = {}
    for partition, log in logs.items():
        position = named.get(partition, missing if word is None else word)
        if position == EARLIEST:
            position = log.first
        elif position == LATEST:
            position = log.next
        elif position > log.next:
            raise BadOffsets(option, text, f"log {partition} ends at {log.next}")
        chosen[partition] = position
    return chosen


def _named(option: str, text: str, logs: Mapping[str, LogInfo]) -> dict[str, int]:
    try:
        given = json.loads(text)
    except ValueError:
        raise BadOffsets(option, text, "this is neither a word nor JSON") from None
    if not isinstance(given, dict):
        raise BadOffsets(option, text, "this is not a map of logs to positions")
    by_rank = list(logs)
    named: dict[str, int] = {}
    for key, position in given.items():
        partition = by_rank[int(key)] if key.isdecimal() and int(key) < len(by_rank) else key
        if partition not in logs:
            raise BadOffsets(option, text, f"there is no log {key!r}, only {', '.join(logs) or 'none at all'}")
        if type(position) is not int or position < EARLIEST:
            raise BadOffsets(option, text, f"{position!r} is no position of log {key}")
        named[partition] = position
    return named


def capped(start: Mapping[str, int], end: Mapping[str, int], events_max: int | None) -> dict[str, int]:
    """`end`, or less of it: at most so many events behind `start`, each log its share of what is waiting.

    Never behind `start`, and a log that is in `start` alone stays where it is: its broker may be away.
    """
    begin = {partition: start.get(partition, 0) for partition in (*start, *end)}
    waiting = {partition: max(0, end.get(partition, 0) - place) for partition, place in begin.items()}
    total = sum(waiting.values())
    shares = waiting
    if events_max is not None and total > events_max:
        shares = {partition: count * events_max // total for partition, count in waiting.items()}
        left = events_max - sum(shares.values())
        for partition, count in waiting.items():
            more = min(left, count - shares[partition])
            shares[partition] += more
            left -= more
    return {partition: place + shares[partition] for partition, place in begin.items()}


def ranges_between(
    kind: int, stream: str, start: Mapping[str, int], end: Mapping[str, int], pieces_min: int = 1
) -> list[LogRange]:
    """What to read between two offsets, in at least so many pieces if there are events enough for them.

    A large log is read in pieces of a task's size, whatever is asked for, but never in more than a driver can plan.
    """
    order = ranks((*start, *end))
    whole = [
        LogRange(name_of(partition, kind, stream), order[partition], start.get(partition, 0), end[partition])
        for partition in order
        if end.get(partition, 0) > start.get(partition, 0)
    ]
    total = sum(one.end - one.start for one in whole)
    size = max(RANGE_EVENTS_MAX, -(-total // PARTITIONS_MAX))
    if pieces_min > len(whole):
        size = min(size, max(RANGE_EVENTS_MIN, -(-total // pieces_min)))
    return [piece for one in whole for piece in _split(one, size)]


def name_of(partition: str, kind: int, stream: str) -> LogName:
    """The log behind a partition's name, of this stream unless the name has another."""
    named, slash, log = partition.rpartition("/")
    broker, _, epoch = log.rpartition("@")
    return LogName(broker, int(epoch), kind, named if slash else stream)


def _split(whole: LogRange, size: int) -> list[LogRange]:
    count = -(-(whole.end - whole.start) // size)
    bounds = [whole.start + (whole.end - whole.start) * piece // count for piece in range(count + 1)]
    return [LogRange(whole.name, whole.rank, low, high) for low, high in pairwise(bounds)]
