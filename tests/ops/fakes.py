"""A client that answers from a table and notes what was asked of it, in place of the one that would need a broker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, ClassVar

import pytest

from headgate.protocol.client import Event, LogInfo, Survey
from headgate.protocol.data import LogName
from headgate.protocol.errors import CannotConnect, HeadgateError
from headgate.protocol.messages import Gap

__all__ = ["FakeClient", "event", "no_broker", "ring", "use_client"]


def event(number: int = 0, **details: Any) -> Event:
    """An event with what a test cares about."""
    known = {"topic": "quotes/NYSE/OTE", "attributes": {"price": 8.45}, "body": b"", "time": 1_700_000_000.5}
    known |= {"content_type": "text/plain" if details.get("body") else ""} | details
    names = ("time", "topic", "attributes", "body", "content_type")
    return Event("ab-1", number, *(known[name] for name in names), 1)


def ring(*names: str, down: Sequence[str] = (), away: Sequence[str] = ()) -> dict[str, Any]:
    """What the first of these brokers answers to `ring`; of those away only the address is remembered."""
    brokers = [{"name": name, "address": f"{name}:7401", "state": "up"} for name in names]
    brokers += [{"name": name, "address": f"{name}:7401", "state": "down"} for name in down]
    return {"broker": names[0], "brokers": brokers, "away": [{"name": "", "address": one} for one in away]}


class FakeSubscription:
    """Batches from a list; then the end."""

    lost = 0
    false_positives: ClassVar[dict[str, int]] = {}
    false_positives_by_topic: ClassVar[dict[str, dict[str, int]]] = {}

    def __init__(self, batches: Sequence[Sequence[Event]]) -> None:
        self._batches = batches
        self.begins: dict[str, int] = {}
        self.acknowledged: list[str] = []
        self.is_confirmed = True
        self.stale = 0

    async def ack_all(self, upto: Event) -> bool:
        self.acknowledged.append(upto.id)
        return True

    async def acked(self) -> bool:
        return self.is_confirmed

    async def batches(self) -> AsyncIterator[Sequence[Event]]:
        for batch in self._batches:
            yield batch


class FakeClient:
    """`answers`: verb -> value, error, or a function of the arguments."""

    def __init__(self, answers: dict[str, Any] | None = None, batches: Sequence[Sequence[Event]] = ()) -> None:
        self.answers = {"ring": ring("b1")} | (answers or {})
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.published: list[tuple[str, dict[str, Any], bytes | str, str, str]] = []
        self.subscribed: list[tuple[str, str | None, dict[str, Any]]] = []
        self.held: list[LogInfo] = []
        self.stored = True
        self.begins: dict[str, int] = {}
        self.failure_count = 0
        self.failures: list[HeadgateError] = []
        self.refusal: HeadgateError | None = None
        self.hindrance: HeadgateError | None = None
        self.refuse_from = 0
        self.gap: Gap | None = None
        self.closed = False
        self.stale = 0
        self.subscription: FakeSubscription | None = None
        self.connected = True
        self.positions: dict[str, int] = {}
        self.address = self.name = ""
        self.waits: tuple[float, float] = (0.0, 0.0)
        self._batches = batches

    async def __aenter__(self) -> FakeClient:
        return self

    async def __aexit__(self, *details: object) -> None:
        self.closed = True

    async def ask(self, verb: str, **arguments: Any) -> Any:
        self.asked.append((verb, arguments))
        answer = self.answers[verb]
        if isinstance(answer, Exception):
            raise answer
        return answer(**arguments) if callable(answer) else answer

    async def survey_logs(self, stream: str) -> Survey:
        self.asked.append(("survey", {"stream": stream}))
        return Survey(await self.logs(stream), (), 1, self.stored)

    async def logs(self, stream: str) -> list[LogInfo]:
        return [info for info in self.held if info.name.stream == stream]

    async def log_at(self, name: LogName, time: int) -> int:
        self.asked.append(("log.at", {"name": name, "time": time}))
        return self.positions[name.partition]

    async def ready(self) -> None:
        pass

    async def publish(
        self, topic: str, attributes: Any = None, body: Any = b"", *, content_type: str = "", mode: str = "accepted"
    ) -> None:
        self.publish_soon(topic, attributes, body, content_type=content_type, mode=mode)
        await self.flush()

    def publish_soon(self, topic: str, attributes: Any, body: Any, *, content_type: str, mode: str) -> None:
        self.published.append((topic, attributes, body, content_type, mode))
        if self.refusal is not None and len(self.published) > self.refuse_from:
            self.failure_count += 1
            self.failures.append(self.refusal)

    async def flush(self) -> None:
        if self.failure_count and self.refusal is not None:
            raise self.refusal

    async def subscribe(
        self, pattern: str, where: str | None, *, on_gap: Callable[[Gap], None], **options: Any
    ) -> FakeSubscription:
        self.subscribed.append((pattern, where, options))
        if self.refusal is not None:
            raise self.refusal
        if self.gap is not None:
            on_gap(self.gap)
        subscription = self.subscription = FakeSubscription(self._batches)
        subscription.is_confirmed, subscription.stale = not self.stale, self.stale
        subscription.begins = self.begins
        return subscription


def use_client(monkeypatch: pytest.MonkeyPatch, client: FakeClient) -> FakeClient:
    """Let every verb of this test find this client."""

    async def connect(
        address: str, *, name: str, shuffle: bool, wait_seconds: float, retry_seconds: float, **files: str
    ) -> FakeClient:
        client.address, client.name, client.waits = address, name, (wait_seconds, retry_seconds)
        return client

    monkeypatch.setattr("headgate.protocol.aio.client.connect", connect)
    return client


def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every verb of this test find nobody."""

    async def connect(address: str, **options: object) -> FakeClient:
        raise CannotConnect(address, "connection refused")

    monkeypatch.setattr("headgate.protocol.aio.client.connect", connect)
