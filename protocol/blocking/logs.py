"""The logs of a cluster through a blocking client: a connection to each broker that has to be asked, made when it is.

A log is read from the broker that wrote it, or from one that has a copy; which ones those are is asked once, and again
when none of them has it any more. Each question is the work of an errand (`errand.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..client import (
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
from ..data import LogKind, LogName
from ..errors import CannotConnect, ConnectionLost, ErrorCode, HeadgateError, Refused
from ..messages import ReadLog
from .errand import Work

if TYPE_CHECKING:
    from .client import BlockingClient

__all__ = ["Logs"]


class Logs:
    """Asks `client` for what its broker has, and others, dialled by `dial`, for what they have."""

    def __init__(self, client: BlockingClient, dial: Callable[[str], BlockingClient]) -> None:
        self._client = client
        self._dial = dial
        self._one_at_a_time = threading.Lock()
        self._addresses: dict[str, str] = {}
        self._others: dict[str, BlockingClient] = {}
        self._holders: dict[LogName, tuple[str, ...]] = {}
        self._ids_were_at = ""

    def find(self, stream: str | None, kind: int) -> Work[list[LogInfo]]:
        """Every log of that kind, of that stream or of all, that some broker within reach has."""
        _, answers = yield from self._look_round(stream, kind)
        return catalogue(answers)

    def survey(self, stream: str, kind: int = LogKind.EVENTS) -> Work[Survey]:
        """The logs of one kind of a stream, and what is to be known beside."""
        ring, answers = yield from self._look_round(stream, kind)
        found = catalogue(answers)
        away = brokers_away(ring, found, answers)
        stored = yield from self._is_stored(stream, kind)
        return Survey(found, away, copies_of(ring), stored)

    def read(self, name: LogName, position: int, events: int, pattern: str, condition: str) -> Work[Chunk]:
        """A chunk of a log, from whoever has it. Raises Refused with NOT_FOUND when nobody does."""
        message = ReadLog(0, *name, position, events, pattern, condition)
        chunk = yield from self._of_a_holder(name, lambda client: client.requesting_log(message))
        return open_chunk(chunk)

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
            try:
                page = yield from self._asked(broker, lambda client: client.asking("producer.ids", question))
            except (CannotConnect, ConnectionLost) as error:
                last = error
                continue
            except Refused as error:
                if error.code != ErrorCode.NOT_FOUND:
                    raise
                last = error
                continue
            if page["ids"] and page["first"] == after:
                self._ids_were_at = broker
                return list(page["ids"])
        raise last

    def close(self) -> None:
        """Leave every broker that was asked beside the client's own."""
        for broker in list(self._others):
            self._forget(broker)

    # --- Inside ------------------------------------------------------------------------------------------------------

    def _of_a_holder(self, name: LogName, ask: Callable[[BlockingClient], Work[Any]]) -> Work[Any]:
        """What one says who is known to have it, or then whoever has it now."""
        last: HeadgateError = Refused(ErrorCode.NOT_FOUND, f"no broker within reach has the log {name.partition}")
        before = self._holders.get(name, ())
        for brokers in (before, None):
            if brokers is None:
                yield from self.find(name.stream, name.kind)
                now = self._holders.get(name, ())
                brokers = (*(broker for broker in now if broker not in before), *now[: 1 if before else 0])
            for broker in brokers:
                try:
                    return (yield from self._asked(broker, ask))
                except (CannotConnect, ConnectionLost) as error:
                    last = error
                except Refused as error:
                    if error.code != ErrorCode.NOT_FOUND:
                        raise
                    last = error
        raise last

    def _asked(self, broker: str, ask: Callable[[BlockingClient], Work[Any]]) -> Work[Any]:
        """What this broker says. A connection from before may have grown old, so it is made anew once."""
        is_old = broker in self._others or broker == self._client.broker
        for may_fail in (is_old, False):
            try:
                return (yield from ask(self._at(broker)))
            except (CannotConnect, ConnectionLost):
                self._forget(broker)
                if not may_fail:
                    raise
        raise AssertionError("the second attempt returns or raises")

    def _look_round(self, stream: str | None, kind: int) -> Work[tuple[Any, dict[str, list[Any]]]]:
        """What the ring is, and what each broker within reach says of its logs."""
        ring = yield from self._find_brokers()
        answers = {}
        for broker in list(self._addresses):
            # A broker that cannot be reached has nothing to tell; others may have copies.
            with suppress(CannotConnect, ConnectionLost):
                answers[broker] = yield from self._asked(broker, lambda client: self._told(client, stream, kind))
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
        self._addresses = client_addresses(ring)
        self._addresses[self._client.broker] = self._client.address
        return ring

    def _is_stored(self, stream: str, kind: int) -> Work[bool]:
        """As far as is known: what a gap is about may be in a log, unless nothing is kept."""
        try:
            question = {"stream": stream}
            answer = yield from self._asked(self._client.broker, lambda client: client.asking("schema.get", question))
        except Refused as error:
            return error.code != ErrorCode.NOT_FOUND
        return is_stored(answer, kind)

    def _told(self, client: BlockingClient, stream: str | None, kind: int) -> Work[list[Any]]:
        arguments = {"kind": kind_word(kind), **({} if stream is None else {"stream": stream})}
        rows: list[Any] = []
        while page := (yield from client.asking("logs", {**arguments, "after": len(rows)})):
            rows += page
        return rows

    def _at(self, broker: str) -> BlockingClient:
        if broker == self._client.broker:
            return self._client
        with self._one_at_a_time:
            client = self._others.get(broker)
            if client is None:
                if broker not in self._addresses:
                    raise CannotConnect(broker, "no broker of that name is known")
                client = self._others[broker] = self._dial(self._addresses[broker])
            return client

    def _forget(self, broker: str) -> None:
        client = self._others.pop(broker, None)
        if client is not None:
            # What it could complain of is why it is forgotten.
            with suppress(HeadgateError):
                client.close()
