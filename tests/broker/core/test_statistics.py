"""NodeStatistics: a snapshot that counts what happened and does not move afterwards."""

from __future__ import annotations

import dataclasses

import pytest

from headgate.broker.core.inputs import Drain
from headgate.protocol import make_batch
from tests.support.builders import make_publish, quote_batch
from tests.support.node_world import NodeWorld


def test_everything_that_happened_is_counted() -> None:
    world = NodeWorld()
    subscriber, publisher = world.subscriber(), world.connect()
    world.say(publisher, make_publish(1, quote_batch(bodies=["a", "b"])), make_publish(1), make_publish(2))
    world.say(publisher, make_publish(3, make_batch(["a//b"], {}, [b"x"])))
    world.now += 2.5
    statistics = world.node.statistics(world.now)
    assert statistics.uptime_seconds == 2.5
    assert (statistics.connections, statistics.sessions, statistics.subscriptions) == (2, 2, 1)
    assert statistics.batches_received == 3
    assert statistics.events_received == 3
    assert statistics.events_duplicate == 1
    assert statistics.events_refused == 1
    assert statistics.events_delivered == len(world.delivered(subscriber)) == 3
    assert statistics.drops == {"slow": 0, "lost": 0, "expired": 0, "gone": 0, "shutdown": 0, "conflated": 0}
    assert not statistics.draining


def test_what_waits_is_counted() -> None:
    world = NodeWorld(outbox_bytes_total=1_000_000)
    world.subscriber(credit=0)
    world.publish(world.connect(), "a", "b", "c")
    statistics = world.node.statistics(world.now)
    assert statistics.outbox_events == 3
    assert 0 < statistics.outbox_bytes < statistics.outbox_bytes_max == 1_000_000
    assert statistics.events_delivered == 0


def test_a_snapshot_stands_still_and_reads_as_a_map() -> None:
    world = NodeWorld()
    before = world.node.statistics(world.now)
    world.connect()
    world.feed(Drain())
    assert before.sessions == 0
    assert before.as_map()["broker"] == "broker-1"
    assert world.node.statistics(world.now).draining
    with pytest.raises(dataclasses.FrozenInstanceError):
        before.sessions = 3  # type: ignore[misc]
