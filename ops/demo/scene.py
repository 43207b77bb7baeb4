"""The whole play: a broker starts, subscribers subscribe, quotes are published, everything arrives, and is proved."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from array import array
from collections.abc import Sequence

from protocol.aio.client import Client, connect
from protocol.aio.subscription import Subscription
from protocol.aio.tasks import Tasks
from protocol.errors import HeadgateError

from ..exits import DONE, INTERRUPTED, REFUSED
from .audience import WISHES, Listener
from .feed import QuoteFeed
from .host import running_broker
from .limits import ARRIVAL_SECONDS, BATCH_EVENTS, RETRY_SECONDS, TICK_SECONDS
from .proof import Verdict, judge, wanted_by
from .view import Picture, View, summary

__all__ = ["Scene", "play"]


def play(seconds: float, rate: int, seed: int, plain: bool, as_json: bool) -> int:
    """Play it; 0 when every subscriber got exactly what it asked for, 1 when not."""
    try:
        import uvloop
    except ImportError:
        factory = None
    else:
        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        try:
            return runner.run(_play(seconds, rate, seed, plain, as_json))
        except asyncio.CancelledError:
            return INTERRUPTED


async def _play(seconds: float, rate: int, seed: int, plain: bool, as_json: bool) -> int:
    with View(plain, sys.stderr if as_json else sys.stdout) as view:
        scene = Scene(seed, view)
        _stop_on_signals(scene.stop)
        async with running_broker() as broker:
            view.say(f"a broker listens on {broker.address}, its metrics are at http://{broker.admin}/metrics")
            verdicts = await scene.play(broker.address, seconds, rate)
    if as_json:
        print(json.dumps(summary(scene.picture(), verdicts)))
    return DONE if all(verdict.exact for verdict in verdicts) else REFUSED


class Scene:
    """The feed, the listeners, and what was published when."""

    def __init__(self, seed: int, view: View) -> None:
        self.stop = asyncio.Event()
        self.listeners = [Listener(wish) for wish in WISHES]
        self._seed = seed
        self._view = view
        self._feed = QuoteFeed(seed)
        self._sent_at = array("d")
        self._began = self._ended = 0.0
        self._tasks = Tasks()

    def picture(self) -> Picture:
        """The state of the play now."""
        return Picture(len(self._sent_at), (self._ended or time.perf_counter()) - self._began, self.listeners)

    async def play(self, address: str, seconds: float, rate: int) -> list[Verdict]:
        """Subscribe, publish until it is time or `stop` is set, wait for the rest, prove."""
        clients: list[Client] = []
        try:
            publisher = await connect(address, name="demo feed", retry_seconds=RETRY_SECONDS)
            clients.append(publisher)
            for listener in self.listeners:
                clients.append(await self._listen(address, listener))
            await self._publish(publisher, seconds, rate)
            self._view.show_last(self.picture())
            published = len(self._sent_at)
            self._view.say(f"evaluating {len(WISHES)} conditions on all {published:,} quotes by brute force …")
            wanted = await asyncio.to_thread(wanted_by, WISHES, self._seed, published)
            await self._wait_arrival(clients[1:], wanted)
            verdicts = [judge(*pair) for pair in zip(self.listeners, wanted, strict=True)]
            self._view.verdict(verdicts)
            return verdicts
        finally:
            await self._tasks.stop()
            for client in clients:
                await client.close()

    async def _listen(self, address: str, listener: Listener) -> Client:
        """Each subscriber is a client of its own, as in life."""
        client = await connect(address, name=f"demo {listener.wish.name}", retry_seconds=RETRY_SECONDS)
        subscription = await client.subscribe(listener.wish.pattern, listener.wish.where or None)
        self._tasks.start(self._take(subscription, listener), f"demo {listener.wish.name}")
        return client

    async def _take(self, subscription: Subscription, listener: Listener) -> None:
        try:
            async for events in subscription.batches():
                listener.take(events, self._sent_at, time.perf_counter())
                listener.lost = subscription.lost
        except HeadgateError:
            # The connection is gone for good: the feed's own client says so, and the verdict what is missing.
            return

    async def _publish(self, client: Client, seconds: float, rate: int) -> None:
        """Publish what is due, tick by tick; what cannot be published in time is published later."""
        self._began = now = time.perf_counter()
        while not self.stop.is_set() and now < self._began + seconds:
            due = int((now - self._began) * rate) - len(self._sent_at)
            if due > 0:
                await self._publish_some(client, min(due, BATCH_EVENTS))
            if due < BATCH_EVENTS:
                await _wait_for(self.stop, TICK_SECONDS)
            self._view.show(self.picture())
            now = time.perf_counter()
        self._ended = time.perf_counter()

    async def _publish_some(self, client: Client, count: int) -> None:
        quotes = self._feed.take(count)
        self._sent_at.extend([time.perf_counter()] * count)
        await client.publish_batch(quotes.topics, quotes.columns, quotes.bodies)

    async def _wait_arrival(self, clients: Sequence[Client], wanted: Sequence[bytes]) -> None:
        """Until every listener has as many as it should, or nothing has come for a while."""
        for client in clients:
            # The answer comes behind whatever the broker had sent before.
            await client.ask("status")
        before = -1
        while any(one.delivered < sum(want) for one, want in zip(self.listeners, wanted, strict=True)):
            delivered = sum(one.delivered for one in self.listeners)
            if delivered == before:
                return
            before = delivered
            await asyncio.sleep(ARRIVAL_SECONDS)


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
