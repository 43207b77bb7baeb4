"""The whole play with a real broker, short; and with a fault, which it must find."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from headgate.ops.demo import Plot, play
from headgate.ops.demo.audience import Listener, Wish
from headgate.ops.demo.host import BrokerProcess
from headgate.ops.demo.scene import Scene
from headgate.ops.demo.secure import OPEN, Realm
from headgate.protocol.errors import HeadgateError

pytestmark = pytest.mark.slow


def alone(seconds: float, rate: int, **waits: float) -> Plot:
    return Plot(seconds, rate, 7, 1, kill=True, **waits)  # type: ignore[arg-type]  # names of Plot


@asynccontextmanager
async def strangers(count: int, secure: bool = False) -> AsyncIterator[tuple[list[BrokerProcess], Realm]]:
    """Brokers that know nothing of each other."""
    brokers = [BrokerProcess(f"demo-{number}", "127.0.0.1:0", []) for number in range(1, count + 1)]
    with TemporaryDirectory() as folder:
        try:
            for broker in brokers:
                await broker.start(Path(folder))
            yield brokers, OPEN
        finally:
            for broker in brokers:
                await broker.stop()


def all_begin_with_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = Scene._connect
    monkeypatch.setattr("headgate.ops.demo.scene.running_brokers", strangers)
    monkeypatch.setattr(Scene, "_connect", lambda self, addresses, place, name: connect(self, addresses, 0, name))


def test_a_cluster_outlives_the_broker_that_is_killed(capsys: pytest.CaptureFixture[str]) -> None:
    assert play(Plot(14.0, 3000, 7, 3, kill=True, durable=True), plain=True, as_json=True) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["exact"] and told["killed"]["moved"] == ["one symbol", "big in London"]
    assert told["killed"]["in_force_seconds"] < 10 and told["killed"]["feed_seconds"] < 10
    assert {one["broker"] for one in told["subscribers"]} == {"demo-2", "demo-3"}
    orders = told["orders"]
    assert orders["killed"] and orders["published"] == orders["taken"] > 100
    assert orders["missing"] == orders["repeated"] == 0


def test_a_killed_broker_costs_only_what_is_announced(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    all_begin_with_the_first(monkeypatch)
    assert play(Plot(3.0, 2000, 7, 2, kill=True), plain=True, as_json=True) == 0
    captured = capsys.readouterr()
    told = json.loads(captured.out)
    assert told["exact"] and told["killed"]["broker"] == "demo-1" and len(told["killed"]["moved"]) == 6
    assert told["killed"]["in_force_seconds"] < 3
    assert all((one["broker"], one["gaps"]) == ("demo-2", 1) for one in told["subscribers"])
    assert "is killed with SIGKILL, on purpose" in captured.err


def test_a_loss_that_nobody_was_told_of_is_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    all_begin_with_the_first(monkeypatch)
    monkeypatch.setattr(Scene, "_tell", lambda *details: None)
    assert play(Plot(3.0, 5000, 7, 2, kill=True, arrival_seconds=0.2), plain=True, as_json=False) == 1
    assert "NOT EXACT" in capsys.readouterr().out


def test_nobody_is_killed_when_told_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    all_begin_with_the_first(monkeypatch)
    assert play(Plot(1.0, 2000, 7, 2, kill=False), plain=True, as_json=True) == 0
    assert json.loads(capsys.readouterr().out)["killed"] is None


def test_a_short_play_is_exact(capsys: pytest.CaptureFixture[str]) -> None:
    assert play(alone(1.0, 3000), plain=True, as_json=True) == 0
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
    assert play(alone(0.5, 3000, arrival_seconds=0.2), plain=True, as_json=False) == 1
    assert "NOT EXACT" in capsys.readouterr().out


def test_a_broker_that_dies_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    started = BrokerProcess.start

    async def start(self: BrokerProcess, folder: Path) -> None:
        await started(self, folder)
        assert self._process is not None
        asyncio.get_running_loop().call_later(0.7, self._process.kill)

    monkeypatch.setattr(BrokerProcess, "start", start)
    with pytest.raises(HeadgateError):
        play(alone(20.0, 1000, retry_seconds=0.2), plain=True, as_json=False)


def test_a_wish_that_the_broker_reads_differently_is_found(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def other(wishes: Sequence[Wish], seed: int, count: int) -> list[bytes]:
        return [bytes(count) for _ in wishes]

    monkeypatch.setattr("headgate.ops.demo.scene.wanted_by", other)
    assert play(alone(0.5, 3000), plain=True, as_json=False) == 1
    assert "unexpected" in capsys.readouterr().out


def test_with_names_each_gets_what_its_right_allows(capsys: pytest.CaptureFixture[str]) -> None:
    plot = Plot(1.0, 2000, 7, 1, kill=False, secure=True, durable=True)
    assert play(plot, plain=True, as_json=True) == 0
    captured = capsys.readouterr()
    told = json.loads(captured.out)
    assert told["exact"] and told["orders"]["published"] == told["orders"]["taken"] > 0
    assert "user desk may read quotes WHERE" in captured.err
