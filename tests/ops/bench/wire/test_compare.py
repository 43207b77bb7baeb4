"""The comparison: rounds interleave, missing and failing servers are named, and a real run goes through."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from headgate.ops.bench.kit import Cores, MeasurementFailed, Workload, build
from headgate.ops.bench.peers import PEERS, Headgate, Peer
from headgate.ops.bench.wire import compare, latency, load
from headgate.ops.bench.wire.compare import Comparison, chosen_peers
from headgate.ops.bench.wire.latency import Latency
from headgate.ops.bench.wire.load import Outcome, Shares

CORES = Cores(None, None, None)


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    compare.add_arguments(parser)
    return parser.parse_args(words)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The order in which servers have their turn; redis fails and mosquitto is not installed."""
    turns: list[str] = []

    def measure(peer: Peer, workload: Workload, seconds: float, cores: Cores) -> Outcome:
        turns.append(f"{workload.key} {peer.label}")
        if peer.name == "redis":
            raise MeasurementFailed("redis", "out of memory")
        return Outcome(10, 10, 10, 10, 1.0, Shares(1.0, 0.1, 0.1), 1)

    def measure_latency(peer: Peer, seconds: float, cores: Cores) -> Latency:
        turns.append(f"d {peer.label}")
        return Latency(40.0, 60.0, 10, 0, 0.1)

    monkeypatch.setattr(load, "measure", measure)
    monkeypatch.setattr(latency, "measure", measure_latency)
    for name, kind in {"headgate": Headgate, **PEERS}.items():
        monkeypatch.setattr(kind, "version", lambda self, name=name: None if name == "mosquitto" else "1.0")
    return turns


def test_everybody_has_a_turn_before_anybody_has_a_second(measured: list[str]) -> None:
    assert compare.run(arguments("--rounds", "2", "--only", "a,d", "--peers", "nats", "--batches", "500,1")) == 0
    turn = ["a headgate", "a headgate @1", "a nats", "d headgate @1", "d nats"]
    assert measured == turn * 2


def test_cores_are_left_to_the_system_when_asked(measured: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert compare.run(arguments("--rounds", "1", "--only", "a", "--peers", "nats", "--unpinned")) == 0
    assert "no process bound to a core" in capsys.readouterr().out


def test_who_is_missing_or_fails_is_named_and_stops_nobody(
    measured: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "numbers.json"
    assert compare.run(arguments("--rounds", "1", "--only", "a", "--batches", "500", "--json", str(file))) == 0
    text = capsys.readouterr().out
    assert "mosquitto: not measured, it is not installed" in text
    assert "failed: a, redis: redis: out of memory" in text
    assert measured == ["a headgate", "a nats", "a redis"]
    value = json.loads(file.read_text())
    assert value["versions"]["mosquitto"] is None
    assert value["workloads"]["a"]["redis"]["rounds"] == []


def test_without_headgate_there_is_no_result(measured: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Headgate, "version", lambda self: None)
    assert compare.run(arguments("--rounds", "1", "--only", "a", "--peers", "nats")) == 1


def test_failures_of_latency_are_kept(measured: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(peer: Peer, seconds: float, cores: Cores) -> Latency:
        raise MeasurementFailed(peer.label, "closed")

    monkeypatch.setattr(latency, "measure", measure)
    comparison = Comparison([Headgate(), *chosen_peers("nats")], CORES, 1.0)
    comparison.round_of_latency()
    assert comparison.failures == ["d, headgate: headgate @1: closed", "d, nats: nats: closed"]


@pytest.mark.parametrize("words", [("--only", "z"), ("--peers", "kafka"), ("--batches", "7")])
def test_a_word_that_nobody_knows_is_a_usage_error(words: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        compare.run(arguments(*words))
    assert left.value.code == 2
    assert "known are" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_small_comparison_with_whatever_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two workloads, one round, a fifth of a second: the whole way, with real servers."""
    if Headgate().version() is None:
        pytest.skip("the daemon is not in this tree")
    file = tmp_path / "numbers.json"
    words = ("--rounds", "1", "--seconds", "0.2", "--only", "a,d,e", "--batches", "500,1", "--json", str(file))
    assert compare.run(arguments(*words)) == 0
    value = json.loads(file.read_text())
    installed = {name for name, version in value["versions"].items() if version}
    assert installed >= {"headgate"}
    for results in value["workloads"].values():
        assert {label.split()[0] for label in results} == installed
        assert all(one["lost"] == 0 for rounds in results.values() for one in rounds["rounds"])
    assert {name for name, rounds in value["latency"].items() if rounds} == installed
    assert build("a").key in value["workloads"]
