"""The logs of a cluster through an asyncio client: a connection to each broker that has to be asked, made when it is.

A log is read from the broker that wrote it, or from one that has a copy; which ones those are is asked once, and again
when none of them has it any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
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

if TYPE_CHECKING:
    from .client import Client

__all__ = ["Logs"]


class Logs:
    """Asks `client` for what its broker has, and others, dialled by `dial`, for what they have."""

    def __init__(self, client: Client, dial: Callable[[str], Awaitable[Client]]) -> None:
        self._client = client
        self._dial = dial
        self._addresses: dict[str, str] = {}
        self._others: dict[str, Client] = {}
        self._one_at_a_time = asyncio.Lock()
        self._holders: dict[LogName, tuple[str, ...]] = {}

    async def find(self, stream: str | None, kind: int) -> list[LogInfo]:
        """Every log of that kind, of that stream or of all, that some broker within reach has."""
        return catalogue((await self._look_round(stream, kind))[1])

    async def survey(self, stream: str, kind: int = LogKind.EVENTS) -> Survey:
        """The logs of one kind of a stream, and what is to be known beside."""
        ring, answers = await self._look_round(stream, kind)
        found = catalogue(answers)
        away = brokers_away(ring, found, answers)
        return Survey(found, away, copies_of(ring), await self._is_stored(stream, kind))

    async def read(self, name: LogName, position: int, events: int, pattern: str, condition: str) -> Chunk:
        """A chunk of a log, from whoever has it. Raises Refused with NOT_FOUND when nobody does."""
        message = ReadLog(0, *name, position, events, pattern, condition)
        return open_chunk(await self._of_a_holder(name, lambda client: client.request_log(message)))

    async def position_at(self, name: LogName, time: int) -> int:
        """The first position of a log at or after that time in microseconds."""
        question = {**name._asdict(), "kind": kind_word(name.kind), "time": time}
        answer = await self._of_a_holder(name, lambda client: client.ask("log.at", **question))
        return int(answer["position"])

    async def close(self) -> None:
        """Leave every broker that was asked beside the client's own."""
        for broker in list(self._others):
            await self._forget(broker)

    # --- Inside ------------------------------------------------------------------------------------------------------

    async def _of_a_holder(self, name: LogName, ask: Callable[[Client], Awaitable[Any]]) -> Any:
        last: HeadgateError = Refused(ErrorCode.NOT_FOUND, f"no broker within reach has the log {name.partition}")
        async for broker in self._candidates(name):
            try:
                return await self._asked(broker, ask)
            except (CannotConnect, ConnectionLost) as error:
                last = error
            except Refused as error:
                if error.code != ErrorCode.NOT_FOUND:
                    raise
                last = error
        raise last

    async def _asked(self, broker: str, ask: Callable[[Client], Awaitable[Any]]) -> Any:
        """What this broker says. A connection from before may have grown old, so it is made anew once."""
        is_old = broker in self._others or broker == self._client.broker
        for may_fail in (is_old, False):
            try:
                return await ask(await self._at(broker))
            except (CannotConnect, ConnectionLost):
                await self._forget(broker)
                if not may_fail:
                    raise
        raise AssertionError("the second attempt returns or raises")

    async def _candidates(self, name: LogName) -> AsyncIterator[str]:
        """Who is known to have it, and then whoever has it now."""
        before = self._holders.get(name, ())
        for broker in before:
            yield broker
        await self.find(name.stream, name.kind)
        for broker in self._holders.get(name, ()):
            if broker not in before:
                yield broker
        if before:
            for broker in self._holders.get(name, ())[:1]:
                yield broker

    async def _look_round(self, stream: str | None, kind: int) -> tuple[Any, dict[str, list[Any]]]:
        """What the ring is, and what each broker within reach says of its logs."""
        try:
            ring = await self._asked(self._client.broker, lambda client: client.ask("ring"))
        except Refused:
            ring = None
        self._addresses = client_addresses(ring)
        self._addresses[self._client.broker] = self._client.address
        answers = {}
        for broker in list(self._addresses):
            # A broker that cannot be reached has nothing to tell; others may have copies.
            with suppress(CannotConnect, ConnectionLost):
                answers[broker] = await self._asked(broker, lambda client: self._told(client, stream, kind))
        found = catalogue(answers)
        told_anew = {name for name in self._holders if name.kind == kind and stream in (None, name.stream)}
        self._holders = {name: holders for name, holders in self._holders.items() if name not in told_anew}
        self._holders |= {info.name: info.holders for info in found}
        return ring, answers

    async def _is_stored(self, stream: str, kind: int) -> bool:
        """As far as is known: what a gap is about may be in a log, unless nothing is kept."""
        try:
            answer = await self._asked(self._client.broker, lambda client: client.ask("schema.get", stream=stream))
        except Refused as error:
            return error.code != ErrorCode.NOT_FOUND
        return is_stored(answer, kind)

    async def _told(self, client: Client, stream: str | None, kind: int) -> list[Any]:
        arguments = {"kind": kind_word(kind), **({} if stream is None else {"stream": stream})}
        rows: list[Any] = []
        while page := await client.ask("logs", **arguments, after=len(rows)):
            rows += page
        return rows

    async def _at(self, broker: str) -> Client:
        if broker == self._client.broker:
            return self._client
        async with self._one_at_a_time:
            client = self._others.get(broker)
            if client is None:
                if broker not in self._addresses:
                    raise CannotConnect(broker, "no broker of that name is known")
                client = self._others[broker] = await self._dial(self._addresses[broker])
            return client

    async def _forget(self, broker: str) -> None:
        client = self._others.pop(broker, None)
        if client is not None:
            # What it could complain of is why it is forgotten.
            with suppress(HeadgateError):
                await client.close()
