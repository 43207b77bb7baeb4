"""What a read covers: where it starts and ends in every log, asked of the brokers on the driver."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Protocol

from headgate.protocol.client import LogInfo, Survey
from headgate.protocol.data import LogName

from ..errors import LogsUnreachable, NotKept
from ..options import KINDS, ReadOptions
from .positions import EARLIEST, LATEST, SINCE, LogRange, by_partition, name_of, offsets_from, ranges_between

__all__ = ["LogFinding", "end_of", "kind_number", "plan_batch", "ranges_of", "resolved", "start_of"]


class LogFinding(Protocol):
    """What is asked of a client; `protocol.blocking` has it."""

    def survey_logs(self, stream: str, kind: str | int = "events") -> Survey:
        """The logs there are, and the brokers that could not be asked."""

    def log_at(self, name: LogName, time: int) -> int:
        """The first position at or after a time."""


def kind_number(options: ReadOptions) -> int:
    """The kind of log that is read, as a number."""
    return KINDS.index(options.kind)


def start_of(client: LogFinding, options: ReadOptions, now: int) -> dict[str, int]:
    """Where a stream starts in each log there is; `now` is the time in microseconds."""
    logs, missing = _logs(client, options)
    start = _start(client, options, logs)
    if missing:
        _warn(missing)
        if options.starting_time is not None:
            start[SINCE] = options.starting_time
        elif options.starting == "latest":
            start[SINCE] = now
    return start


def end_of(client: LogFinding, options: ReadOptions) -> dict[str, int]:
    """Where each log ends now."""
    return {partition: log.next for partition, log in _logs(client, options)[0].items()}


def resolved(
    client: LogFinding, options: ReadOptions, start: Mapping[str, int], end: Mapping[str, int]
) -> dict[str, int]:
    """`start` with the logs that only `end` names, from the time that `start` says. The same answer each time."""
    since = start.get(SINCE)
    found = dict(start)
    if since is not None:
        for partition in end.keys() - start.keys():
            found[partition] = client.log_at(name_of(partition, kind_number(options), _first(options)), since)
    return found


def plan_batch(client: LogFinding, options: ReadOptions) -> list[LogRange]:
    """The ranges of a batch read. Raises LogsUnreachable when some log may be out of reach, unless told to go on."""
    logs, missing = _logs(client, options)
    if missing and options.fail_on_data_loss:
        raise LogsUnreachable(missing)
    if missing:
        _warn(missing)
    start = _start(client, options, logs)
    if options.ending_time is not None:
        end = {partition: client.log_at(log.name, options.ending_time) for partition, log in logs.items()}
    else:
        end = offsets_from("endingOffsets", options.ending, logs, LATEST)
    return ranges_of(options, start, end)


def ranges_of(options: ReadOptions, start: Mapping[str, int], end: Mapping[str, int]) -> list[LogRange]:
    """What to read between two offsets."""
    return ranges_between(kind_number(options), _first(options), start, end, options.partitions_min)


def _start(client: LogFinding, options: ReadOptions, logs: Mapping[str, LogInfo]) -> dict[str, int]:
    if options.starting_time is not None:
        return {partition: client.log_at(log.name, options.starting_time) for partition, log in logs.items()}
    return offsets_from("startingOffsets", options.starting, logs, EARLIEST)


def _logs(client: LogFinding, options: ReadOptions) -> tuple[dict[str, LogInfo], tuple[str, ...]]:
    """The logs within reach, and the brokers that may have others: none while fewer are away than keep an event.

    Raises NotKept.
    """
    logs: list[LogInfo] = []
    missing: dict[str, None] = {}
    for stream in options.patterns:
        survey = client.survey_logs(stream, options.kind)
        away = survey.away if len(survey.away) >= survey.copies else ()
        if not survey.logs and not survey.stored and not away:
            raise NotKept(stream, options.kind)
        logs += survey.logs
        missing |= dict.fromkeys(away)
    return by_partition(logs, len(options.patterns) > 1), tuple(missing)


def _first(options: ReadOptions) -> str:
    """The stream of partitions that name none: there is one alone."""
    return next(iter(options.patterns))


def _warn(missing: tuple[str, ...]) -> None:
    logging.getLogger("headgate.spark").warning("%s cannot be reached: their logs are left out", ", ".join(missing))
