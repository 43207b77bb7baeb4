"""Retention: by age and by size, of our own logs and of copies, and never more than it has to."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.broker.core.effects import FindSize, FindTime, KeepWatermarks, TrimLog
from headgate.broker.core.inputs import Opened
from headgate.broker.core.limits import RETENTION_BYTES_MIN, RETENTION_PAUSE_SECONDS
from headgate.broker.core.log_state import LogState
from headgate.protocol.data import LogKind, LogName
from headgate.protocol.messages import Mode
from tests.support.builders import make_publish, quote_batch
from tests.support.log_disk import EPOCH
from tests.support.log_world import LogWorld


def filled(schema: dict[str, Any], count: int, size: int = 10, pause: float = 0.0) -> LogWorld:
    world = LogWorld(prompt=True, schema={"durability": "stored"} | schema)
    link = world.connect()
    for number in range(1, count + 1):
        world.say(link, make_publish(number, quote_batch(bodies=["x" * size]), Mode.STORED))
        world.now += pause
    return world


def test_what_is_older_than_asked_for_goes() -> None:
    world = filled({"retention_seconds": 3}, 10, pause=0.5)
    world.wake_at(1_000.0 + RETENTION_PAUSE_SECONDS)
    assert [row.first for row in world.rows()] == [4, 5, 6, 7, 8, 9], "of the last three seconds"
    world.wake_at(world.now + 2 * RETENTION_PAUSE_SECONDS)
    held = world.node.log.logs[world.name()]
    assert (held.first, held.next, held.bytes) == (10, 10, 0)
    assert world.node.statistics(world.now).log_events_trimmed == 10
    link = world.connect()
    world.say(link, make_publish(1, mode=Mode.STORED))
    assert [row.first for row in world.rows()] == [10], "positions are not given again"


def test_what_is_more_than_asked_for_goes_oldest_first() -> None:
    world = filled({"retention_bytes": RETENTION_BYTES_MIN}, 6, size=900_000)
    world.wake_at(world.now + RETENTION_PAUSE_SECONDS)
    assert [row.first for row in world.rows()] == [2, 3, 4, 5]
    assert world.node.log.logs[world.name()].bytes <= RETENTION_BYTES_MIN


@pytest.mark.parametrize("schema", [{}, {"retention_seconds": 3600, "retention_bytes": 1 << 40}])
def test_what_may_stay_stays_and_the_disk_is_not_asked(schema: dict[str, Any]) -> None:
    world = filled(schema, 5)
    world.prompt = False
    world.wake_at(world.now + 3 * RETENTION_PAUSE_SECONDS)
    assert [type(effect) for effect in world.disk.asked] == [KeepWatermarks]
    assert len(world.rows()) == 5


def test_every_kind_of_log_and_every_copy_is_looked_after() -> None:
    world = LogWorld(schema={"audit": True, "retention_seconds": 60})
    names = [LogName(broker, EPOCH, int(kind), "quotes") for broker in ("broker-1", "ann") for kind in LogKind]
    world.feed(Opened(EPOCH, [LogState(name, 0, 5, 100, 1, 2) for name in names]))
    world.disk.asked.clear()
    world.wake_at(world.now + RETENTION_PAUSE_SECONDS)
    asked = [effect.log for effect in world.disk.asked if isinstance(effect, FindTime)]
    assert sorted(asked) == sorted(names)


def test_rows_behind_the_high_watermark_stay() -> None:
    world = filled({"retention_seconds": 3}, 10)
    held = world.node.log.logs[world.name()]
    held.safe = 4
    world.wake_at(world.now + 2 * RETENTION_PAUSE_SECONDS)
    assert [row.first for row in world.rows()] == [4, 5, 6, 7, 8, 9]
    held.became_safe(10)
    world.wake_at(world.now + RETENTION_PAUSE_SECONDS)
    assert world.rows() == []


def test_a_disk_that_takes_its_time_is_asked_once() -> None:
    world = filled({"retention_bytes": RETENTION_BYTES_MIN}, 6, size=900_000)
    world.prompt = False
    world.wake_at(world.now + 3 * RETENTION_PAUSE_SECONDS)
    assert [type(effect) for effect in world.disk.asked] == [FindSize, KeepWatermarks]
    world.tell(world.disk.answer())
    assert [type(effect) for effect in world.disk.asked] == [TrimLog]
