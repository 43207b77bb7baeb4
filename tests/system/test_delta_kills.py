"""DELTA with real brokers, of which two are killed: who asked is within the band of every source again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest

import headgate
from headgate.matching import Delta
from headgate.matching.dynamic import DumbReferences
from headgate.ops.bench.kit import fleet

pytestmark = pytest.mark.slow

BAND = 1.0
TOPICS = ("quotes/a", "quotes/b", "quotes/c")


class Source:
    """Prices that walk, and what the plain meaning makes of those that were acknowledged."""

    def __init__(self, client: headgate.Client) -> None:
        self._client = client
        self._random = Random(5)
        self._twin = DumbReferences([None])
        self._twin.add(1, [Delta("price", BAND, False)])
        self.last = dict.fromkeys(TOPICS, 100.0)
        self.expected: list[tuple[str, float]] = []

    async def publish(self, count: int) -> None:
        """So many events, each acknowledged."""
        for _ in range(count):
            topic = self._random.choice(TOPICS)
            self.last[topic] = round(self.last[topic] + self._random.uniform(-0.8, 0.8), 2)
            await self.say(topic)

    async def say(self, topic: str) -> None:
        """The last price, once more."""
        price = self.last[topic]
        await self._client.publish(topic, {"price": price})
        if self._twin.fire(topic, [price], 0.0):
            self.expected.append((topic, price))


async def taken(subscription: headgate.Subscription, least: int) -> list[tuple[str, float]]:
    """What came, when nothing more does."""
    found: list[tuple[str, float]] = []
    while True:
        try:
            event = await asyncio.wait_for(anext(subscription), 20.0 if len(found) < least else 1.5)
        except TimeoutError:
            return found
        found.append((event.topic, float(event.attributes["price"])))


@pytest.mark.parametrize("brokers", [3, 5])
async def test_brokers_are_killed_and_the_bound_is_kept(tmp_path: Path, brokers: int) -> None:
    async with fleet(brokers, tmp_path) as cluster:
        home, other, victim = cluster.members[0], cluster.members[1], cluster.members[-1]
        async with (
            await headgate.connect(f"{home.address},{other.address}", shuffle=False) as subscriber,
            await headgate.connect(other.address) as publisher,
        ):
            subscription = await subscriber.subscribe("quotes", "price > 0 AND DELTA(price) > 1")
            source = Source(publisher)
            await source.publish(60)
            victim.kill()
            await source.publish(60)
            await cluster.settled()
            await source.publish(60)
            got = await taken(subscription, len(source.expected))
            if not subscription.gaps:
                assert got == source.expected, "exactly the crossings, whoever died"
            has = dict(got)
            for topic in TOPICS:
                await source.say(topic)
            has |= dict(await taken(subscription, 0))
            assert all(abs(has[topic] - source.last[topic]) <= BAND for topic in TOPICS)

            home.kill()
            while subscriber.address != other.address or not subscription.gaps:
                await asyncio.sleep(0.05)
            await subscription.until_confirmed()
            for topic in TOPICS:
                await source.say(topic)
            fresh = dict(await taken(subscription, len(TOPICS)))
            assert fresh == source.last, "a fresh reference: the first event of each topic comes"
