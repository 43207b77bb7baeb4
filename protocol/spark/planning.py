"""What a read covers: where it starts and ends in every log, asked of the brokers on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ..log_catalogue import LogInfo
from ..log_rows import LogName
from .options import KINDS, ReadOptions
from .positions import EARLIEST, LATEST, LogRange, by_partition, offsets_from, ranges_between

__all__ = ["LogFinding", "end_of", "kind_number", "plan_batch", "start_of"]


class LogFinding(Protocol):
    """What is asked of a client; `protocol.blocking` has it."""

    def logs(self, stream: str | None = None, kind: str | int = "events") -> list[LogInfo]:
        """The logs there are."""

    def log_at(self, name: LogName, time: int) -> int:
        """The first position at or after a time."""


def kind_number(options: ReadOptions) -> int:
    """The kind of log that is read, as a number."""
    return KINDS.index(options.kind)


def start_of(client: LogFinding, options: ReadOptions) -> dict[str, int]:
    """Where a read starts in each log there is."""
    logs = _logs(client, options)
    if options.starting_time is not None:
        return {partition: client.log_at(log.name, options.starting_time) for partition, log in logs.items()}
    return offsets_from("startingOffsets", options.starting, logs, EARLIEST)


def end_of(client: LogFinding, options: ReadOptions) -> dict[str, int]:
    """Where each log ends now."""
    return {partition: log.next for partition, log in _logs(client, options).items()}


def plan_batch(client: LogFinding, options: ReadOptions) -> list[LogRange]:
    """The ranges of a batch read."""
    logs = _logs(client, options)
    start = start_of(client, options)
    if options.ending_time is not None:
        end = {partition: client.log_at(log.name, options.ending_time) for partition, log in logs.items()}
    else:
        end = offsets_from("endingOffsets", options.ending, logs, LATEST)
    return ranges_of(options, start, end)


def ranges_of(options: ReadOptions, start: Mapping[str, int], end: Mapping[str, int]) -> list[LogRange]:
    """What to read between two offsets."""
    return ranges_between(kind_number(options), options.stream, start, end, options.partitions_min)


def _logs(client: LogFinding, options: ReadOptions) -> dict[str, LogInfo]:
    return by_partition(client.logs(options.stream, options.kind))
