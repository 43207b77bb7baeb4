"""Purging a stream: its logs empty themselves under a short retention, and then its schema goes, whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from headgate.broker.core.delivery import check_settings
from headgate.ops.limits import PURGE_SECONDS_MAX
from headgate.ops.purge import purge
from headgate.protocol.client import LogInfo
from headgate.protocol.data import LogKind, LogName
from headgate.protocol.errors import ErrorCode, Refused


class Cluster:
    """Logs of one stream, by kind, how many entries each has at each look; and a clock that moves by sleeping."""

    def __init__(self, *looks: dict[LogKind, int]) -> None:
        self.looks = list(looks)
        self.asked: list[tuple[str, Any]] = []
        self.refuses = ""
        self.now = 0.0
        self.on_sleep: Callable[[], None] = lambda: None

    async def logs(self, stream: str, kind: LogKind) -> list[LogInfo]:
        count = self.looks[0].get(kind, 0)
        if kind == max(LogKind) and len(self.looks) > 1:
            self.looks.pop(0)
        return [LogInfo(LogName("ann", 1, kind, stream), 10, 10 + count, 0, 0, 0, ("ann",))] if count else []

    async def ask(self, verb: str, **arguments: Any) -> None:
        self.asked.append((verb, arguments.get("schema")))
        if verb == self.refuses:
            raise Refused(ErrorCode.NOT_FOUND, "no")

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.on_sleep()

    def purge(self) -> tuple[int, int]:
        return asyncio.run(purge(self, "quotes", self.sleep, lambda: self.now))

    @property
    def verbs(self) -> list[str]:
        return [verb for verb, _ in self.asked]


def test_the_logs_are_let_run_empty_and_the_schema_goes_last() -> None:
    cluster = Cluster({LogKind.EVENTS: 5, LogKind.DELIVERIES: 7}, {LogKind.EVENTS: 2}, {})
    assert cluster.purge() == (12, 0)
    assert cluster.verbs == ["schema.put", "schema.rm", "producers.forget"]
    check_settings(cluster.asked[0][1])
    assert 2 * 6 <= cluster.now < 20, "retention has looked at every log twice"


def test_a_stream_without_logs_just_loses_its_schema() -> None:
    cluster = Cluster({})
    assert cluster.purge() == (0, 0)
    assert (cluster.verbs, cluster.now) == (["schema.rm", "producers.forget"], 0.0)


def test_logs_that_fill_again_all_the_time_are_given_up() -> None:
    cluster = Cluster({LogKind.EVENTS: 5}, {LogKind.EVENTS: 6})
    assert cluster.purge() == (0, 6)
    assert cluster.verbs == ["schema.put", "schema.rm"], "what is left is still known"
    assert PURGE_SECONDS_MAX <= cluster.now < PURGE_SECONDS_MAX + 10


def test_a_refusal_changes_nothing() -> None:
    cluster = Cluster({LogKind.EVENTS: 5})
    cluster.refuses = "schema.put"
    with pytest.raises(Refused):
        cluster.purge()
    assert cluster.verbs == ["schema.put"]


def test_who_stops_it_leaves_no_stream_that_forgets() -> None:
    def stop() -> None:
        raise asyncio.CancelledError

    cluster = Cluster({LogKind.EVENTS: 5})
    cluster.on_sleep = stop
    with pytest.raises(asyncio.CancelledError):
        cluster.purge()
    assert cluster.verbs == ["schema.put", "schema.rm"]
