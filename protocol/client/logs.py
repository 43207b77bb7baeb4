"""The logs of a cluster through one client: a connection to each broker that has to be asked, made when it is.

A log is read from the broker that wrote it, or from one that has a copy; which ones those are is asked once, and again
when none of them has it any more. Each question is work for a task (`task.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..data import LogKind, LogName
from ..errors import CannotConnect, ConnectionLost, ErrorCode, HeadgateError, Refused
from ..messages import ReadLog
from .catalogue import (
    Chunk,
    LogInfo,
    Survey,
    brokers_away,
    catalogue,
    client_addresses,
    copies_of,
    is_stored,
    kind_word,
    open_chunk,
)
from .task import Close, Dial, Work

if TYPE_CHECKING:
    from .core import ClientCore

__all__ = ["Logs"]

Question = Callable[["ClientCore"], Work[Any]]


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
        return catalogue((yield from self._look_round(stream, kind))[1])

    def survey(self, stream: str, kind: int = LogKind.EVENTS) -> Work[Survey]:
        """The logs of one kind of a stream, and what is to be known beside."""
        ring, answers = yield from self._look_round(stream, kind)
        found = catalogue(answers)
        away = brokers_away(ring, found, answers)
        return Survey(found, away, copies_of(ring), (yield from self._is_stored(stream, kind)))

    def read(self, name: LogName, position: int, events: int, pattern: str, condition: str) -> Work[Chunk]:
        """A chunk of a log, from whoever has it. Raises Refused with NOT_FOUND when nobody does."""
        message = ReadLog(0, *name, position, events, pattern, condition)
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
        yield from self._find_brokers()
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
        """What one says who is known to have it, or then whoever has it now."""
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

    def _look_round(self, stream: str | None, kind: int) -> Work[tuple[Any, dict[str, list[Any]]]]:
        """What the ring is, and what each broker within reach says of its logs."""
        ring = yield from self._find_brokers()
        answers = {}
        for broker in list(self._addresses):
            try:
                answers[broker] = yield from self._asked(broker, lambda client: self._told(client, stream, kind))
            except (CannotConnect, ConnectionLost):
                pass  # it has nothing to tell; others may have copies
        found = catalogue(answers)
        told_anew = {name for name in self._holders if name.kind == kind and stream in (None, name.stream)}
        self._holders = {name: holders for name, holders in self._holders.items() if name not in told_anew}
        self._holders |= {info.name: info.holders for info in found}
        return ring, answers

    def _find_brokers(self) -> Work[Any]:
        """Who there is, as the client's broker says: what it answers to `ring`."""
        try:
            ring = yield from self._asked(self._client.broker, lambda client: client.asking("ring", {}))
        except Refused:
            ring = None
        self._addresses = {**client_addresses(ring), self._client.broker: self._client.address}
        return ring

    def _is_stored(self, stream: str, kind: int) -> Work[bool]:
        """As far as is known: what a gap is about may be in a log, unless nothing is kept."""
        try:
            question = {"stream": stream}
            answer = yield from self._asked(self._client.broker, lambda client: client.asking("schema.get", question))
        except Refused as error:
            return error.code != ErrorCode.NOT_FOUND
        return is_stored(answer, kind)

    def _told(self, client: ClientCore, stream: str | None, kind: int) -> Work[list[Any]]:
        arguments = {"kind": kind_word(kind), **({} if stream is None else {"stream": stream})}
        rows: list[Any] = []
        while page := (yield from client.asking("logs", {**arguments, "after": len(rows)})):
            rows += page
        return rows

    def _at(self, broker: str) -> Work[ClientCore]:
        if broker == self._client.broker:
            return self._client
        client = self._others.get(broker)
        if client is None:
            if broker not in self._addresses:
                raise CannotConnect(broker, "no broker of that name is known")
            dialled: ClientCore = yield Dial(self._client, self._addresses[broker])
            client = self._others.setdefault(broker, dialled)
            if client is not dialled:
                yield Close(dialled)  # another task was quicker
        return client

    def _forget(self, broker: str) -> Work[None]:
        client = self._others.pop(broker, None)
        if client is not None:
            try:
                yield Close(client)
            except HeadgateError:
                pass  # what it could complain of is why it is forgotten
