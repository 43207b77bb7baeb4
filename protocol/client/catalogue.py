"""What a cluster's logs are and who has them, put together from what each broker tells; and a chunk with its rows open.

A log is best read from the broker that writes it. When that one cannot be reached, whoever has most of a copy stands
in; and so it is with a log that is no longer written: its broker may have been given an older disk since.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..data import LogKind, LogName, Row, decode_row
from ..errors import LocalError, ProtocolViolation
from ..messages import LogChunk

__all__ = [
    "Chunk",
    "LogInfo",
    "Survey",
    "brokers_away",
    "catalogue",
    "client_addresses",
    "copies_of",
    "is_stored",
    "kind_number",
    "kind_word",
    "open_chunk",
]

_WORDS = {kind.name.lower(): int(kind) for kind in LogKind}
_NUMBERS = ("first", "next", "bytes", "first_time", "last_time")


@dataclass(frozen=True, slots=True)
class LogInfo:
    """A log: its positions from `first` up to `next`, its times in microseconds, and the names of who has it."""

    name: LogName
    first: int
    next: int
    bytes: int
    first_time: int
    last_time: int
    holders: tuple[str, ...]

    @property
    def partition(self) -> str:
        """Its name among the logs of its stream."""
        return self.name.partition


@dataclass(frozen=True, slots=True)
class Survey:
    """The logs of a stream that can be had now, the brokers that could not be asked for theirs, how many disks have
    whatever was acknowledged as stored, and whether the stream is one that is stored."""

    logs: list[LogInfo]
    away: tuple[str, ...]
    copies: int
    stored: bool


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of a log; ask on from `next`. The log has positions from `first` up to `end`."""

    rows: list[Row]
    first: int
    next: int
    end: int
    covered: dict[str, int]


def open_chunk(message: LogChunk) -> Chunk:
    """A LOG_CHUNK with its rows open. Raises ProtocolViolation when one is none."""
    rows = [decode_row(row) for row in message.rows]
    return Chunk(rows, message.first, message.next, message.end, message.covered)


def kind_number(kind: str | int) -> int:
    """A kind's number, from its word or from the number itself."""
    number = _WORDS.get(kind) if isinstance(kind, str) else kind
    if number not in tuple(LogKind):
        raise LocalError(f"a kind of log is {', '.join(_WORDS)}, not {kind!r}")
    return number


def kind_word(kind: int) -> str:
    """A kind as questions and people say it."""
    return LogKind(kind).name.lower()


def brokers_away(ring: Any, logs: Sequence[LogInfo], answered: Iterable[str]) -> tuple[str, ...]:
    """Who did not answer: of those in the ring, of those who were there once, of those who wrote logs.

    A broker that has forgotten somebody's name knows the address; then it is most likely one of those who wrote.
    """
    brokers, gone = (ring.get(part, ()) if isinstance(ring, dict) else () for part in ("brokers", "away"))
    names = {row.get("name") for row in (*brokers, *gone) if isinstance(row, dict)} - {"", None}
    unnamed = [str(row.get("address")) for row in gone if isinstance(row, dict) and not row.get("name")]
    writers = {info.name.broker for info in logs} - names
    away = {str(name) for name in names | writers} - set(answered)
    return tuple(sorted(away | set(unnamed[len(writers & away) :])))


def copies_of(ring: Any) -> int:
    """How many disks have whatever was acknowledged as stored; 1 when a broker does not say."""
    copies = ring.get("log_copies") if isinstance(ring, dict) else None
    return copies if type(copies) is int and copies > 0 else 1


def is_stored(answer: Any, kind: int = LogKind.EVENTS) -> bool:
    """Whether a stream keeps logs of this kind, from the answer to `schema.get`; audited streams keep all."""
    schema = answer.get("schema") if isinstance(answer, dict) else None
    if not isinstance(schema, dict):
        return False
    return schema.get("audit") is True or (kind == LogKind.EVENTS and schema.get("durability") == "stored")


def client_addresses(ring: Any) -> dict[str, str]:
    """The name and address of every broker that is up, from the answer to `ring`."""
    brokers = ring.get("brokers", ()) if isinstance(ring, dict) else ()
    rows = [row for row in brokers if isinstance(row, dict) and row.get("state") != "down"]
    pairs = ((row.get("name"), row.get("client_address")) for row in rows)
    return {name: address for name, address in pairs if isinstance(name, str) and isinstance(address, str) and address}


def catalogue(answers: Mapping[str, Sequence[Any]]) -> list[LogInfo]:
    """Every log once, by name, from what each broker answered to `logs`. Raises ProtocolViolation for what is none."""
    told: dict[LogName, dict[str, LogInfo]] = {}
    for broker, rows in answers.items():
        for info in _infos(broker, rows):
            told.setdefault(info.name, {})[broker] = info
    closed = {
        LogName(str(row["broker"]), int(row["epoch"]), _WORDS[row["kind"]], str(row["stream"]))
        for rows in answers.values()
        for row in rows
        if row.get("own") and row.get("open") is False
    }
    return [_joined(name, told[name], name in closed) for name in sorted(told)]


def _joined(name: LogName, by_broker: dict[str, LogInfo], is_closed: bool) -> LogInfo:
    def place(broker: str) -> tuple[bool, int, bool, str]:
        is_owner = broker == name.broker
        return not is_owner or is_closed, -by_broker[broker].next, not is_owner, broker

    holders = sorted(by_broker, key=place)
    best = by_broker[holders[0]]
    return LogInfo(name, best.first, best.next, best.bytes, best.first_time, best.last_time, tuple(holders))


def _infos(broker: str, rows: Sequence[Any]) -> Iterator[LogInfo]:
    for row in rows:
        try:
            first, upcoming, size, first_time, last_time = [int(row[name]) for name in _NUMBERS]
            name = LogName(str(row["broker"]), int(row["epoch"]), _WORDS[row["kind"]], str(row["stream"]))
        except (KeyError, TypeError, ValueError) as error:
            text = f"the answer to logs is a list of maps with broker, epoch, kind, stream, {', '.join(_NUMBERS)}"
            raise ProtocolViolation(text) from error
        yield LogInfo(name, first, upcoming, size, first_time, last_time, (broker,))
