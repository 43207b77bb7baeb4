"""The cost of clustering: the arithmetic, the tables and the exit code; measured for real in tests/system."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from headgate.ops.bench.cluster import cluster
from headgate.ops.bench.cluster.cluster import Cost
from headgate.ops.bench.kit import Cores, MeasurementFailed, Want
from headgate.ops.bench.peers import headgate

COST = Cost(3, 1000, 800, 0, 2.0, (0.1, 0.2, 0.1), 0.4, 0.5)


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    cluster.add_arguments(parser)
    return parser.parse_args(words)


def test_rates_are_for_the_time_of_all_brokers() -> None:
    assert COST.rate == 400
    assert COST.useful_of_core == pytest.approx(2000)
    assert COST.events_of_core == pytest.approx(2500)
    assert COST.microseconds == pytest.approx(400)


def test_subscribers_are_shared_out_among_the_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    ports: list[int] = []
    monkeypatch.setattr(headgate.Headgate, "subscriber", lambda self, port, wants: ports.append(port))
    peer = cluster._Spread([1, 2, 3], 30)
    for _ in range(30):
        peer.subscriber(9, [Want("a")])
    assert sorted(ports) == [1] * 10 + [2] * 10 + [3] * 10
    assert len(set(ports[::3])) == 3, "whatever repeats among them is at all of the brokers"


@pytest.mark.parametrize(("lost", "code"), [(0, 0), (5, 1)])
def test_everything_is_measured_and_a_loss_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, lost: int, code: int
) -> None:
    def measure(brokers: int, seconds: float, cores: Cores, profile_in: Path | None = None) -> Cost:
        return replace(COST, brokers=brokers, lost=lost, cpu_seconds=(0.1 * brokers,))

    monkeypatch.setattr(cluster, "measure", measure)
    monkeypatch.setattr(cluster, "read", lambda files: Counter({"matching": 3, "codec": 1}))
    place = tmp_path / "cost.json"
    assert cluster.run(arguments("--brokers", "1,5", "--rounds", "2", "--json", str(place))) == code
    out = capsys.readouterr().out
    assert "0.20" in out, "five brokers that take five times as long reach a fifth"
    assert "matching" in out and "375.00" in out, "three quarters of 500 us an event"
    numbers = json.loads(place.read_text())
    assert [len(numbers["costs"][size]) for size in ("1", "5")] == [2, 2]
    assert numbers["layers"]["5"]["codec"] == 1


def test_the_profile_can_be_left_out(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(cluster, "measure", lambda *given: COST)
    assert cluster.run(arguments("--brokers", "3", "--rounds", "1", "--no-profile")) == 0
    assert "where it goes" not in capsys.readouterr().out


def test_a_cluster_that_fails_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def measure(*given: object) -> Cost:
        raise MeasurementFailed("b1", "does not listen")

    monkeypatch.setattr(cluster, "measure", measure)
    assert cluster.run(arguments()) == 1
    assert "b1: does not listen" in capsys.readouterr().err
