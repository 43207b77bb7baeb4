"""The whole play: brokers start, subscribers subscribe, quotes are published, a broker is killed, all is proved."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from headgate.protocol.aio import Client, Subscription, Tasks, connect
from headgate.protocol.errors import ConnectionLost, HeadgateError, UnknownOutcome
from headgate.protocol.messages import Gap

from ..exits import DONE, INTERRUPTED, REFUSED
from .accident import NOTHING_EXCUSED, Accident
from .audience import WISHES, Listener, Told
from .epilogue import play_epilogue
from .feed import QuoteFeed
from .host import BrokerProcess, running_brokers
from .limits import (
    ARRIVAL_SECONDS,
    ARRIVAL_TICK_SECONDS,
    BATCH_EVENTS,
    IN_FLIGHT_SECONDS,
    KILL_SHARE,
    ORDERED_BROKERS_MAX,
    RETRY_SECONDS,
    TICK_SECONDS,
)
from .orders import OrderDesk, OrdersTold
from .proof import Verdict, judge, wanted_by
from .secure import DESK_WHERE, OPEN, Realm, owed
from .view import Picture, View, summary

__all__ = ["Plot", "Scene", "play"]


@dataclass(frozen=True, slots=True)
class Plot:
    """Options of the demo. With one broker none is killed."""

    seconds: float
    rate: int
    seed: int
    brokers: int
    kill: bool
    audit: bool = False
    """Run an audit with Spark at the end, where Spark can run."""
    secure: bool = False
    """TLS, two users, and a right with a condition."""
    durable: bool = False
    """Publish orders as well, and take them through a durable subscription whose process is killed with its broker."""
    arrival_seconds: float = ARRIVAL_SECONDS
    retry_seconds: float = RETRY_SECONDS


def play(plot: Plot, plain: bool, as_json: bool) -> int:
    """Play it; 0 when every subscriber got exactly what it asked for, 1 when not."""
    try:
        import uvloop
    except ImportError:
        factory = None
    else:
        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        try:
            return runner.run(_play(plot, plain, as_json))
        except asyncio.CancelledError:
            return INTERRUPTED


async def _play(plot: Plot, plain: bool, as_json: bool) -> int:
    told = None
    with View(plain, sys.stderr if as_json else sys.stdout) as view:
        scene = Scene(plot, view)
        _stop_on_signals(scene.stop)
        async with running_brokers(plot.brokers, plot.secure) as (brokers, realm):
            view.brokers(brokers)
            if plot.secure:
                view.say(f"secure: TLS everywhere; user feed publishes, user desk may read quotes WHERE {DESK_WHERE}")
            verdicts = await scene.play(brokers, realm)
            if plot.audit and not scene.stop.is_set():
                told = await play_epilogue(scene.survivors(brokers), plot.seed, view)
    if as_json:
        orders = asdict(scene.orders) if scene.orders is not None else None
        print(json.dumps({**summary(scene.picture(), verdicts, scene.accident), "orders": orders, "audit": told}))
    agreed = (told is None or told["clean"]) and (scene.orders is None or scene.orders.exact)
    return DONE if agreed and all(verdict.exact for verdict in verdicts) else REFUSED


class Scene:
    """Runs the demo: the feed, the listeners, the times of publishing, and the killed broker."""

    def __init__(self, plot: Plot, view: View) -> None:
        self.stop = asyncio.Event()
        self.listeners = [Listener(wish) for wish in WISHES]
        self.accident: Accident | None = None
        self.orders: OrdersTold | None = None
        self._desk = OrderDesk() if plot.durable else None
        self._plot = plot
        self._view = view
        self._feed = QuoteFeed(plot.seed)
        self._sent_at = array("d")
        self._began = self._ended = 0.0
        self._clients: list[Client] = []
        self._tasks = Tasks()
        self._realm = OPEN

    def picture(self) -> Picture:
        """The state of the play now."""
        for listener, client in zip(self.listeners, self._clients[1:], strict=False):
            listener.broker = client.broker
        return Picture(len(self._sent_at), (self._ended or time.perf_counter()) - self._began, self.listeners)

    def survivors(self, brokers: Sequence[BrokerProcess]) -> list[str]:
        """The addresses of those that were not killed."""
        victim = self.accident.broker if self.accident is not None else ""
        return [broker.address for broker in brokers if broker.name != victim]

    async def play(self, brokers: Sequence[BrokerProcess], realm: Realm = OPEN) -> list[Verdict]:
        """Subscribe, publish until it is time or `stop` is set, wait for the rest, prove."""
        self._realm = realm
        addresses = [broker.address for broker in brokers]
        try:
            publisher = await self._connect(addresses, 0, "feed")
            for place, listener in enumerate(self.listeners):
                await self._listen(addresses, place, listener)
            if self._desk is not None:
                await self._desk.open(addresses, realm.of_client("feed"), realm.of_command("desk"))
            if self._plot.kill and len(brokers) > 1:
                self._tasks.start(self._kill_half_way(brokers, publisher), "demo accident")
            await self._publish(publisher)
            self._view.show_last(self.picture())
            published = len(self._sent_at)
            self._view.say(f"evaluating {len(WISHES)} conditions on all {published:,} quotes by brute force …")
            wishes = [owed(wish, self._plot.secure) for wish in WISHES]
            wanted = await asyncio.to_thread(wanted_by, wishes, self._plot.seed, published)
            await self._wait_arrival(wanted)
            verdicts = self._verdicts(wanted)
            if self.accident is not None:
                self._view.aftermath(self.accident, self.listeners, verdicts)
            self._view.verdict(verdicts)
            if self._desk is not None:
                self.orders = await self._desk.close()
                self._view.orders(self.orders)
            return verdicts
        finally:
            await self._tasks.stop()
            if self._desk is not None:
                await self._desk.end()
            for client in self._clients:
                await client.close()

    # --- Listening ---------------------------------------------------------------------------------------------------

    async def _connect(self, addresses: Sequence[str], place: int, name: str) -> Client:
        """A client that knows all brokers and begins with one of them, each with another one."""
        first = place % len(addresses)
        order = [*addresses[first:], *addresses[:first]]
        client = await connect(
            ",".join(order),
            name=f"demo {name}",
            retry_seconds=self._plot.retry_seconds,
            shuffle=False,
            **self._realm.of_client("feed" if name == "feed" else "desk"),
        )
        self._clients.append(client)
        return client

    async def _listen(self, addresses: Sequence[str], place: int, listener: Listener) -> None:
        """Connect one subscriber with a client of its own, and subscribe."""
        client = await self._connect(addresses, place, listener.wish.name)
        listener.home = client.broker
        subscription = await client.subscribe(
            listener.wish.pattern,
            listener.wish.where or None,
            on_gap=lambda gap: self._tell(listener, subscription, gap),
        )
        self._tasks.start(self._take(subscription, listener), f"demo {listener.wish.name}")

    async def _take(self, subscription: Subscription, listener: Listener) -> None:
        try:
            async for events in subscription.batches():
                listener.take(events, self._sent_at, time.perf_counter())
                listener.lost = subscription.lost
        except HeadgateError:
            # The connection is gone for good: the feed's own client says so, and the verdict what is missing.
            return

    def _tell(self, listener: Listener, subscription: Subscription, gap: Gap) -> None:
        told = Told(time.perf_counter(), gap.count)
        listener.told.append(told)
        self._tasks.start(self._until_whole(subscription, told), "demo gap")

    async def _until_whole(self, subscription: Subscription, told: Told) -> None:
        try:
            await subscription.until_confirmed()
        except HeadgateError:
            # It ended instead, and is told by whoever takes from it: `told` says that it did not come back.
            return
        told.until, told.whole_at = len(self._sent_at), time.perf_counter()

    # --- Publishing --------------------------------------------------------------------------------------------------

    async def _publish(self, client: Client) -> None:
        """Publish what is due, tick by tick; what cannot be published in time is published later."""
        self._began = now = time.perf_counter()
        while not self.stop.is_set() and now < self._began + self._plot.seconds:
            due = int((now - self._began) * self._plot.rate) - len(self._sent_at)
            if due > 0:
                await self._publish_some(client, min(due, BATCH_EVENTS))
            if due < BATCH_EVENTS:
                await _wait_for(self.stop, TICK_SECONDS)
            self._view.show(self.picture())
            now = time.perf_counter()
        self._ended = time.perf_counter()

    async def _publish_some(self, client: Client, count: int) -> None:
        quotes = self._feed.take(count)
        first = len(self._sent_at)
        self._sent_at.extend([time.perf_counter()] * count)
        accident = self.accident
        try:
            await client.publish_batch(quotes.topics, quotes.columns, quotes.bodies)
        except UnknownOutcome:
            # The library does not guess, and neither do we: these may have been published, or not.
            if self.accident is None:
                raise
            self.accident.unknown.append(range(first, first + count))
            return
        if accident is not None and accident.feed_back_at is None:
            accident.feed_back_at = time.perf_counter()

    async def _kill_half_way(self, brokers: Sequence[BrokerProcess], publisher: Client) -> None:
        """Kill the broker that the feed is connected to."""
        await _wait_for(self.stop, self._plot.seconds * KILL_SHARE)
        if self.stop.is_set():
            return
        victim = next(broker for broker in brokers if broker.name == publisher.broker)
        now, published = time.perf_counter(), len(self._sent_at)
        self.accident = Accident(victim.name, now, bisect_left(self._sent_at, now - IN_FLIGHT_SECONDS), published)
        victim.kill()
        self._view.killed(victim, self.accident, self.listeners, now - self._began)
        if self._desk is not None:
            await self._desk.kill()

    # --- Proving -----------------------------------------------------------------------------------------------------

    def _verdicts(self, wanted: Sequence[bytes]) -> list[Verdict]:
        published, accident = len(self._sent_at), self.accident
        ordered = self._plot.brokers <= ORDERED_BROKERS_MAX
        disturbed = accident.disturbed(self.listeners, published) if accident is not None else range(0)
        verdicts = []
        for listener, want in zip(self.listeners, wanted, strict=True):
            excuse = accident.excuse(listener, disturbed, published) if accident is not None else NOTHING_EXCUSED
            verdicts.append(judge(listener, want, excuse, ordered))
        return verdicts

    async def _wait_arrival(self, wanted: Sequence[bytes]) -> None:
        """Until every listener has what it should, or nothing has come for a while."""
        for client in self._clients[1:]:
            # The answer comes behind whatever the broker had sent before.
            await _asked(client)
        before, since = -1, time.perf_counter()
        while any(one.missing or not one.in_force for one in self._verdicts(wanted)):
            delivered = sum(one.delivered for one in self.listeners)
            if delivered != before:
                before, since = delivered, time.perf_counter()
            elif time.perf_counter() - since > self._plot.arrival_seconds:
                return
            await asyncio.sleep(ARRIVAL_TICK_SECONDS)


async def _asked(client: Client) -> None:
    try:
        await client.ask("durables")
    except ConnectionLost:
        # Its broker died with the question: it comes back by itself, and is asked by what is still missing.
        return


async def _wait_for(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return


def _stop_on_signals(stop: asyncio.Event) -> None:
    """The first Ctrl-C ends the feed, and what was published is still proved; the second ends everything."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None, "a coroutine runs in a task"

    def told() -> None:
        if stop.is_set():
            task.cancel()
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told)
