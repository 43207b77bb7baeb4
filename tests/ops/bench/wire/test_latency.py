"""Latency: percentiles by nearest rank, and real measurements of whatever is installed."""

from __future__ import annotations

import argparse
import math

import pytest

from headgate.ops.bench.kit import Cores
from headgate.ops.bench.peers import PEERS, Headgate, Peer
from headgate.ops.bench.wire import latency

INSTALLED = [peer for peer in (Headgate(1), *(kind() for kind in PEERS.values())) if peer.version()]


@pytest.mark.parametrize(("fraction", "value"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.0, 1)])
def test_a_percentile_is_the_nearest_rank(fraction: float, value: float) -> None:
    assert latency.percentile(list(range(1, 101)), fraction) == value


def test_of_nothing_there_is_no_percentile() -> None:
    assert math.isnan(latency.percentile([], 0.5))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("peer", INSTALLED, ids=lambda peer: peer.label)
def test_a_real_measurement(peer: Peer) -> None:
    result = latency.measure(peer, 0.2, Cores.chosen())
    assert result.count == 200
    assert result.lost == 0
    assert 0 < result.p50 <= result.p99


def test_what_is_not_installed_is_named_and_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for kind in (Headgate, *PEERS.values()):
        monkeypatch.setattr(kind, "version", lambda self: None)
    parser = argparse.ArgumentParser()
    latency.add_arguments(parser)
    assert latency.run(parser.parse_args([])) == 1
    assert "nats: not measured, it is not installed" in capsys.readouterr().err
