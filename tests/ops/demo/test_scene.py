"""The whole play with a real broker, short; and with a fault, which it must find."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from ops.demo.audience import Listener, Wish
from ops.demo.host import BrokerProcess
from ops.demo.scene import play
from protocol.errors import HeadgateError

pytestmark = pytest.mark.slow


def test_a_short_play_is_exact(capsys: pytest.CaptureFixture[str]) -> None:
    assert play(1.0, 3000, 7, plain=True, as_json=True) == 0
    captured = capsys.readouterr()
    told = json.loads(captured.out)
    assert told["exact"]
    assert told["published"] > 1000
    assert all(one["expected"] == one["delivered"] for one in told["subscribers"])
    assert sum(one["delivered"] for one in told["subscribers"]) > 0
    assert "every subscriber got exactly what it asked for" in captured.err


def test_a_lost_quote_is_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    taken = Listener.take

    def forgetful(self: Listener, events: Sequence[object], *details: object) -> None:
        if events[1:]:
            taken(self, events[1:], *details)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(Listener, "take", forgetful)
    monkeypatch.setattr("ops.demo.scene.ARRIVAL_SECONDS", 0.2)
    assert play(0.5, 3000, 7, plain=True, as_json=False) == 1
    assert "NOT EXACT" in capsys.readouterr().out


def test_a_broker_that_dies_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    started = BrokerProcess.start

    async def start(self: BrokerProcess, folder: Path) -> None:
        await started(self, folder)
        assert self._process is not None
        asyncio.get_running_loop().call_later(0.7, self._process.kill)

    monkeypatch.setattr(BrokerProcess, "start", start)
    monkeypatch.setattr("ops.demo.scene.RETRY_SECONDS", 0.2)
    with pytest.raises(HeadgateError):
        play(20.0, 1000, 7, plain=True, as_json=False)


def test_a_wish_that_the_broker_reads_differently_is_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def other(wishes: Sequence[Wish], seed: int, count: int) -> list[bytes]:
        return [bytes(count) for _ in wishes]

    monkeypatch.setattr("ops.demo.scene.wanted_by", other)
    assert play(0.5, 3000, 7, plain=True, as_json=False) == 1
    assert "unexpected" in capsys.readouterr().out
