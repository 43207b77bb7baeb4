"""Clients of a chaos run: readers with their subscriptions, publishers with numbered events. Real clients, as shipped.

Each has a broker that it calls home, and knows all of them. Who has lost its home goes to another broker by itself;
when home is back, `come_home` takes it there again, so that the load stays on all of them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

from headgate.protocol.aio import Client, Subscription, Tasks, connect
from headgate.protocol.errors import HeadgateError, Refused, UnknownOutcome
from headgate.protocol.messages import Gap

from .content import Wish, occurrence
from .ledger import Fate, Published, Told, Watch

__all__ = ["Books", "Publisher", "Reader"]

_SUBSCRIBE_AGAIN_SECONDS = 0.2
_NOTICE_SECONDS = 0.05


class Books:
    """Record that all clients share: the events, and the errors of clients."""

    def __init__(self, seed: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.seed = seed
        self.clock = clock
        self.events: list[Published] = []
        self.refused_subscriptions = 0
        self.gave_up: list[str] = []
        self.faults: dict[str, tuple[float, str]] = {}
        """Broker -> when it was last killed or stopped, and which."""
        self.moves: list[tuple[str, float]] = []
        """After what, "kill", "stop" or "nothing", and how long it lasted: from the fault to being in force again."""

    def fault(self, broker: str, kind: str) -> None:
        """Note that a broker is killed or paused now."""
        self.faults[broker] = self.clock(), kind

    def lost_at(self, broker: str, since: float, noticed_at: float) -> tuple[float, str]:
        """When and by what a client lost its broker, which it had since then: by a fault, or when it noticed."""
        at, kind = self.faults.get(broker, (since, ""))
        return (at, kind) if at > since else (noticed_at, "nothing")


class Reader:
    """One client with some subscriptions."""

    def __init__(self, name: str, home: str, addresses: str, heartbeat_seconds: float, books: Books) -> None:
        self.name = name
        self.home = home
        self.watches: list[Watch] = []
        self.client: Client | None = None
        self._addresses = addresses
        self._heartbeat_seconds = heartbeat_seconds
        self._books = books
        self._wishes: list[Wish] = []
        self._tasks = Tasks()
        self._busy = False
        self._noticed_at = books.clock()
        self._leaving = False

    def wants(self, wishes: Sequence[Wish]) -> list[Watch]:
        """Take these subscriptions on."""
        self._wishes = list(wishes)
        self.watches = [Watch(f"{self.name}.{place}") for place in range(len(wishes))]
        return self.watches

    @property
    def away(self) -> bool:
        """Whether it is connected to another broker than its home."""
        client = self.client
        return not self._busy and client is not None and client.connected and client.broker != self.home

    @property
    def in_force(self) -> bool:
        """Whether every subscription is."""
        return all(watch.since is not None for watch in self.watches)

    async def begin(self) -> None:
        """Connect and subscribe; returns when everything is in force."""
        self._leaving = False
        self.client = await connect(
            self._addresses,
            name=self.name,
            shuffle=False,
            wait_seconds=30.0,
            retry_seconds=60.0,
            heartbeat_seconds=self._heartbeat_seconds,
        )
        self._tasks.start(self._notice(self.client), f"connection of {self.name}")
        await asyncio.gather(
            *(self._subscribe(self.client, *pair) for pair in zip(self._wishes, self.watches, strict=True))
        )

    async def come_home(self) -> None:
        """Disconnect, and connect to its home again."""
        self._busy = True
        await self.end()
        await self.begin()
        self._busy = False

    async def end(self) -> None:
        """Disconnect: no event is owed to its subscriptions from now on."""
        self._leaving = True
        now = self._books.clock()
        for watch in self.watches:
            watch.ends(now)
        await self._tasks.stop()
        if self.client is not None:
            await self.client.close()
            self.client = None

    async def _subscribe(self, client: Client, wish: Wish, watch: Watch) -> None:
        """Subscribe until it is in force, however often the cluster refuses for now."""
        while not self._leaving:
            follower: list[Subscription] = []
            try:
                subscription = await client.subscribe(wish.pattern, wish.where, on_gap=self._teller(follower, watch))
            except Refused:
                self._books.refused_subscriptions += 1
                await asyncio.sleep(_SUBSCRIBE_AGAIN_SECONDS)
                continue
            follower.append(subscription)
            watch.begins(self._books.clock(), client.broker)
            self._tasks.start(self._read(client, subscription, wish, watch), f"reader {watch.name}")
            return

    async def _read(self, client: Client, subscription: Subscription, wish: Wish, watch: Watch) -> None:
        seen = watch.seen
        try:
            async for events in subscription.batches():
                for event in events:
                    seen[event.attributes["number"]] += 1  # type: ignore[index]  # the publishers number their events
        except Refused:
            # the client subscribed again at another broker, which refused for now: ask again
            self._books.refused_subscriptions += 1
            await self._subscribe(client, wish, watch)
        except HeadgateError as error:
            if not self._leaving:
                self._books.gave_up.append(f"{watch.name}: {error}")

    def _teller(self, follower: list[Subscription], watch: Watch) -> Callable[[Gap], None]:
        """What hears the gaps of a subscription that is yet to be made, and will then be in `follower`."""
        return lambda gap: self._told(follower[0] if follower else None, watch, gap)

    def _told(self, subscription: Subscription | None, watch: Watch, gap: Gap) -> None:
        if self._leaving:
            return
        if gap.count or subscription is None or subscription.confirmed:
            watch.told.append(Told(self._books.clock(), gap.count))
            return
        if watch.since is not None:
            lost_at, kind = self._books.lost_at(watch.broker, watch.since, self._noticed_at)
            watch.ends(lost_at)
            self._tasks.start(self._until_confirmed(subscription, watch, lost_at, kind), f"move of {watch.name}")

    async def _until_confirmed(self, subscription: Subscription, watch: Watch, lost_at: float, kind: str) -> None:
        try:
            await subscription.until_confirmed()
        except HeadgateError:
            # It ended instead; whoever reads from it hears why.
            return
        now = self._books.clock()
        watch.begins(now, "" if self.client is None else self.client.broker)
        self._books.moves.append((kind, now - lost_at))

    async def _notice(self, client: Client) -> None:
        """When the connection was lost last; the client itself does not say."""
        connected = True
        while True:
            if connected and not client.connected:
                self._noticed_at = self._books.clock()
            connected = client.connected
            await asyncio.sleep(_NOTICE_SECONDS)


class Publisher:
    """One client that publishes numbered events, each awaited, many at a time."""

    def __init__(self, name: str, home: str, addresses: str, heartbeat_seconds: float, books: Books) -> None:
        self.name = name
        self.home = home
        self.client: Client | None = None
        self.waiting = 0
        self._addresses = addresses
        self._heartbeat_seconds = heartbeat_seconds
        self._books = books
        self._busy = False
        self._tasks = Tasks()

    @property
    def away(self) -> bool:
        """Whether it is connected to another broker than its home."""
        client = self.client
        return not self._busy and client is not None and client.connected and client.broker != self.home

    async def begin(self) -> None:
        """Connect."""
        self.client = await connect(
            self._addresses,
            name=self.name,
            shuffle=False,
            wait_seconds=30.0,
            retry_seconds=60.0,
            heartbeat_seconds=self._heartbeat_seconds,
        )

    async def come_home(self) -> None:
        """Wait for what is under way, disconnect, and connect to its home again."""
        self._busy = True
        former, self.client = self.client, None
        if former is not None:
            await _close(former)
        await self.begin()
        self._busy = False

    async def end(self) -> None:
        """Wait for what is under way, and disconnect."""
        while self.waiting:
            await asyncio.sleep(0.05)
        if self.client is not None:
            await _close(self.client)

    def publish(self) -> None:
        """Publish the next event, without waiting for its answer."""
        if self.client is None:
            return
        number = len(self._books.events)
        event = Published(self._books.clock())
        self._books.events.append(event)
        self.waiting += 1
        self._tasks.start(self._publish(self.client, number, event), f"event {number}")

    async def _publish(self, client: Client, number: int, event: Published) -> None:
        what = occurrence(self._books.seed, number)
        attributes: dict[str, Any] = dict(what.attributes)
        try:
            await client.publish(what.topic, attributes)
            event.fate = Fate.ACCEPTED
            event.broker = client.broker
        except UnknownOutcome:
            event.fate = Fate.UNKNOWN
        except HeadgateError:
            event.fate = Fate.REFUSED
        finally:
            event.decided_at = self._books.clock()
            self.waiting -= 1


async def _close(client: Client) -> None:
    try:
        await client.close()
    except HeadgateError:
        # the publisher of these gets the error itself
        return
