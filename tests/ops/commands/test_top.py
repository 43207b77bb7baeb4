"""`top`: rates are differences of two looks; slow clients first; a broker that is new, or gone, has none."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest

from headgate.ops.cli import main
from headgate.ops.commands import top
from tests.ops.fakes import FakeClient, ring, use_client

SLOW = {"client": "lazy", "address": "192.0.2.7:5", "subscriptions": 1, "pace": "no credit", "waiting_events": 9}
SIZES = {"outbox_events": 9, "outbox_bytes": 900, "sessions": 2, "subscriptions": 3, "log_bytes": 0}


class Cluster:
    """Two brokers; each look finds more in the counts, and at the third the second one has been started anew."""

    def __init__(self) -> None:
        self.looks = 0

    def ring(self) -> dict[str, Any]:
        self.looks += 1
        return ring("b0", "b1", down=["b2"]) | {"role": "mesh", "settled": True, "replicas": 2}

    def status(self, at: str) -> dict[str, Any]:
        is_new = at == "b1" and self.looks == 3
        counts = {"events_received": 100 * self.looks, "events_delivered": 300 * self.looks}
        told = {"broker": at, "origin": f"{at}-{is_new}", "settled": True, "uptime_seconds": 5.0, **SIZES}
        return told | counts | {"drops": {"slow": 10 * self.looks, "lost": 0}}

    def slowest(self, at: str) -> list[dict[str, Any]]:
        return [SLOW | {"waiting_bytes": 100 if at == "b0" else 800, "dropped": 10}]


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """No time passes but by hand: a look is two seconds after the one before."""
    waited: list[float] = []
    seconds = count(0, 2)

    async def pause(interval: float) -> None:
        waited.append(interval)

    monkeypatch.setattr(top, "_pause", pause)
    monkeypatch.setattr(top, "_clock", lambda: float(next(seconds)))
    cluster = Cluster()
    use_client(monkeypatch, FakeClient({"ring": cluster.ring, "status": cluster.status, "slowest": cluster.slowest}))
    return waited


def test_one_object_a_look(pauses: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "--json", "--count", "2", "--interval", "0.5"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    b0 = first["brokers"][0]
    assert (b0["broker"], b0["in_per_second"], b0["out_per_second"], b0["dropped_per_second"]) == ("b0", 50, 150, 5)
    assert (first["seconds"], first["total"]["in_per_second"], first["total"]["waiting_events"]) == (2, 100, 18)
    assert [(row["broker"], row["waiting_bytes"]) for row in first["slow"]] == [("b1", 800), ("b0", 100)]
    assert [row["broker"] for row in first["missing"]] == ["b2"]
    assert [row["in_per_second"] for row in second["brokers"]] == [50, None], "who was started anew counts from 0"
    assert pauses == [0.5, 0.5]


def test_away_from_a_terminal_it_is_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "--count", "1"]) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    lines = [line.split() for line in text.splitlines()]
    assert "3 brokers form a mesh" in text
    assert ["b0", "50", "150", "5", "9", "900", "2", "3", "0", "yes"] in lines
    assert ["all", "100", "300", "10", "18", "1800", "4", "6", "0", "yes"] in lines
    assert "lazy" in text and "no credit" in text and "b2 is missing" in text


@pytest.mark.parametrize("words", [["--interval", "0"], ["--interval", "nan"], ["--count", "0"], ["--count", "x"]])
def test_numbers_that_make_no_sense(words: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["top", *words])
    assert caught.value.code == 2


def test_ctrl_c_is_how_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    async def interrupted(interval: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(top, "_pause", interrupted)
    assert main(["top"]) == 0
