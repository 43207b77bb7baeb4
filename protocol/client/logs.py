"""The logs of a cluster: what they are and who has them, put together from what each broker tells; and reading them.

What there is one broker says, which asks all others (`survey`); each row of the answer is what one of them has.

A log is best read from the broker that writes it. When that one cannot be reached, the one with most of a copy stands
in; and so it is with a log that is no longer written: its broker may have been given an older disk since.

`Logs` asks through one client: a broker whose log is to be read is dialled when it is. Who has a log is asked once, and
again when none of them has it any more. Each question is work for a task (`task.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..data import LogKind, LogName, Row, decode_row
from ..errors import (
    CannotConnect,
    ConnectionLost,
    ErrorCode,
    HeadgateError,
    LocalError,
    ProtocolViolation,
    Refused,
)
from ..messages import LogChunk, ReadLog
from .task import Close, Dial, Work

if TYPE_CHECKING:
    from .core import ClientCore

__all__ = [
    "Chunk",
    "LogInfo",
    "Logs",
    "Survey",
    "catalogue",
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


def open_chunk(message: LogChunk) -> Chunk:
    """A LOG_CHUNK with its rows open. Raises ProtocolViolation when one is none."""
    rows = [decode_row(row) for row in message.rows]
    return Chunk(rows, message.first, message.next, message.end)


def kind_number(kind: str | int) -> int:
    """A kind's number, from its word or from the number itself."""
    number = _WORDS.get(kind) if isinstance(kind, str) else kind
    if number not in tuple(LogKind):
        raise LocalError(f"a kind of log is {', '.join(_WORDS)}, not {kind!r}")
    return number


def kind_word(kind: int) -> str:
    """A kind as questions and people say it."""
    return LogKind(kind).name.lower()


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


_FACTS = {"logs": list, "total": int, "away": list, "copies": int, "stored": bool, "brokers": dict}


def _opened(answer: Any) -> tuple[list[dict[str, Any]], int, tuple[str, ...], int, bool, dict[str, str]]:
    """A page of the answer to `survey`. Raises ProtocolViolation when it is none."""
    facts: list[Any] = [answer.get(name) if isinstance(answer, dict) else None for name in _FACTS]
    if [type(fact) for fact in facts] != list(_FACTS.values()):
        raise ProtocolViolation(f"the answer to survey is a map of {', '.join(_FACTS)}")
    rows, total, away, copies, is_stored, brokers = facts
    if not all(isinstance(row, dict) and isinstance(row.get("holder"), str) for row in rows):
        raise ProtocolViolation("each of the logs of a survey is a map, and names its holder")
    addresses = {str(name): str(address) for name, address in brokers.items() if address}
    return rows, total, tuple(sorted(map(str, away))), copies, is_stored, addresses


Question = Callable[["ClientCore"], Work[Any]]


def _question(verb: str, arguments: dict[str, Any]) -> Question:
    return lambda client: client.asking(verb, arguments)


class Logs:
    """Asks `client` for what its broker has, and clients of other brokers for what those have."""

    def __init__(self, client: ClientCore) -> None:
        self._client = client
        self._addresses: dict[str, str] = {}
        self._others: dict[str, ClientCore] = {}
        self._holders: dict[LogName, tuple[str, ...]] = {}
        self._ids_were_at = ""

    def find(self, stream: str | None, kind: int) -> Work[list[LogInfo]]:
        """Every log of that kind, of that stream or of all, that some broker within reach has."""
        return (yield from self.survey(stream, kind)).logs

    def survey(self, stream: str | None, kind: int = LogKind.EVENTS) -> Work[Survey]:
        """The logs of one kind of a stream, and what is to be known beside."""
        arguments = {"kind": kind_word(kind), **({} if stream is None else {"stream": stream})}
        told: dict[str, list[Any]] = {}
        count = total = 0
        while count < total or not count:
            page = yield from self._asked(self._client.broker, _question("survey", {**arguments, "after": count}))
            rows, total, away, copies, is_stored, addresses = _opened(page)
            for row in rows:
                told.setdefault(row["holder"], []).append(row)
            count += len(rows)
            if not rows:
                break
        self._addresses = {**addresses, self._client.broker: self._client.address}
        found = catalogue(told)
        told_anew = {name for name in self._holders if name.kind == kind and stream in (None, name.stream)}
        self._holders = {name: holders for name, holders in self._holders.items() if name not in told_anew}
        self._holders |= {info.name: info.holders for info in found}
        return Survey(found, away, copies, is_stored)

    def read(
        self, name: LogName, position: int, events: int, pattern: str, condition: str, ago: float = 0.0
    ) -> Work[Chunk]:
        """A chunk of a log, from a broker that has it. Raises Refused with NOT_FOUND when none does."""
        message = ReadLog(0, *name, position, events, pattern, condition, ago)
        return open_chunk((yield from self._of_a_holder(name, lambda client: client.requesting_log(message))))

    def position_at(self, name: LogName, time: int) -> Work[int]:
        """The first position of a log at or after that time in microseconds."""
        question = {**name._asdict(), "kind": kind_word(name.kind), "time": time}
        answer = yield from self._of_a_holder(name, lambda client: client.asking("log.at", question))
        return int(answer["position"])

    def ids(self, producer: str, after: int) -> Work[list[str]]:
        """The ids of a producer's events from its event `after` on, as many as one broker tells at a time.

        Raises Refused with NOT_FOUND when no broker within reach has the row of that event.
        """
        yield from self.survey(producer.partition("/")[0])  # who there is
        last: HeadgateError = Refused(ErrorCode.NOT_FOUND, f"no broker within reach has event {after} of {producer!r}")
        question = {"producer": producer, "after": after}
        for broker in sorted(self._addresses, key=lambda name: name != self._ids_were_at):
            page, error = yield from self._had(broker, lambda client: client.asking("producer.ids", question))
            if error is not None:
                last = error
            elif page["ids"] and page["first"] == after:
                self._ids_were_at = broker
                return list(page["ids"])
        raise last

    def close(self) -> Work[None]:
        """Leave every broker that was asked beside the client's own."""
        for broker in list(self._others):
            yield from self._forget(broker)

    # --- Inside ------------------------------------------------------------------------------------------------------

    def _of_a_holder(self, name: LogName, ask: Question) -> Work[Any]:
        """What a broker says that is known to have it, or else one that has it now."""
        last: HeadgateError = Refused(ErrorCode.NOT_FOUND, f"no broker within reach has the log {name.partition}")
        before = self._holders.get(name, ())
        for brokers in (before, None):
            if brokers is None:
                yield from self.find(name.stream, name.kind)
                now = self._holders.get(name, ())
                brokers = (*(broker for broker in now if broker not in before), *now[: 1 if before else 0])
            for broker in brokers:
                answer, error = yield from self._had(broker, ask)
                if error is None:
                    return answer
                last = error
        raise last

    def _had(self, broker: str, ask: Question) -> Work[tuple[Any, HeadgateError | None]]:
        """What this broker says, or why it does not have it: it is out of reach, or says so itself."""
        try:
            return (yield from self._asked(broker, ask)), None
        except (CannotConnect, ConnectionLost) as error:
            return None, error
        except Refused as error:
            if error.code != ErrorCode.NOT_FOUND:
                raise
            return None, error

    def _asked(self, broker: str, ask: Question) -> Work[Any]:
        """What this broker says. A connection from before may have grown old, so it is made anew once."""
        is_old = broker in self._others or broker == self._client.broker
        for may_fail in (is_old, False):
            try:
                return (yield from ask((yield from self._at(broker))))
            except (CannotConnect, ConnectionLost):
                yield from self._forget(broker)
                if not may_fail:
                    raise
        raise AssertionError("the second attempt returns or raises")

    def _at(self, broker: str) -> Work[ClientCore]:
        if broker == self._client.broker:
            return self._client
        client = self._others.get(broker)
        if client is None:
            if broker not in self._addresses:
                raise CannotConnect(broker, "no broker of that name is known")
            self._client.check_usable()  # nobody would close a connection that is made after this client was closed
            client = yield Dial(self._client, self._others, broker, self._addresses[broker])
            try:
                self._client.check_usable()
            except HeadgateError:
                yield from self._forget(broker)  # the client was closed meanwhile, and has left all others already
                raise
        return client

    def _forget(self, broker: str) -> Work[None]:
        client = self._others.pop(broker, None)
        if client is not None:
            try:
                yield Close(client)
            except HeadgateError:
                pass  # what it could complain of is why it is forgotten
