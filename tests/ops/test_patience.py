"""Patience: a reason is told once, while the context lasts and not behind it."""

from __future__ import annotations

import asyncio

import pytest

from headgate.ops import patience as module
from headgate.ops.patience import Patience
from headgate.protocol.errors import HeadgateError, LocalError
from tests.support.waiting import wait_until


class Client:
    def __init__(self) -> None:
        self.hindrance: HeadgateError | None = None


def test_a_reason_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    client = Client()
    patience = Patience(client)
    for hindrance in (None, LocalError("bob is away"), LocalError("bob is away"), None, LocalError("ann as well")):
        client.hindrance = hindrance
        patience.look()
    told = capsys.readouterr().err.splitlines()
    assert told == ["headgate pub: still trying: bob is away", "headgate pub: still trying: ann as well"]


def test_it_looks_by_itself_and_stops(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.001)
    client, told = Client(), ""

    def is_told() -> bool:
        nonlocal told
        told += capsys.readouterr().err
        return "away" in told

    async def publish() -> None:
        with Patience(client) as patience:
            client.hindrance = LocalError("bob is away")
            await wait_until(is_told)
            timer = patience._timer
        assert timer is not None and patience._timer is not None and patience._timer.cancelled()

    asyncio.run(publish())
