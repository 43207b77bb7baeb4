"""One run: rates count what arrived, the brake holds, the bottleneck is named; and real runs lose nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from headgate.ops.bench.kit import Cores, MeasurementFailed, Want, build
from headgate.ops.bench.peers import PEERS, Chunk, Headgate, HeadgateSubscriber, Peer
from headgate.ops.bench.peers.headgate import Line
from headgate.ops.bench.wire import load
from headgate.ops.bench.wire.load import Outcome, Shares, bottleneck, measure
from headgate.protocol.messages import Subscribe

OUTCOME = Outcome(1000, 50_000, 50_000, 50_000, 2.0, Shares(1.0, 0.2, 0.3), 1 << 20)
INSTALLED = [peer for peer in (Headgate(), Headgate(1), *(kind() for kind in PEERS.values())) if peer.version()]


def chunk(events: int, arrivals: int) -> Chunk:
    return Chunk(bytearray(), events, arrivals, arrivals)


def test_a_rate_is_what_was_useful_and_arrived() -> None:
    assert OUTCOME.rate == 25_000
    assert OUTCOME.lost == 0
    half = replace(OUTCOME, arrivals=25_000)
    assert half.rate == 12_500
    assert replace(OUTCOME, shares=Shares(0.5, 0.2, 0.3, 0.5)).rate_of_core == 50_000
    assert half.lost == 25_000
    flood = replace(OUTCOME, useful=50)
    assert flood.rate == 25
    assert replace(OUTCOME, expected=0, arrivals=0).rate == 0


@pytest.mark.parametrize(
    ("shares", "shared", "name"),
    [
        (Shares(0.99, 0.2, 0.3), True, "server"),
        (Shares(0.85, 0.1, 0.2), True, "server"),
        (Shares(0.99, 0.5, 0.49), True, "server and load"),
        (Shares(0.5, 0.3, 0.6), True, "sink"),
        (Shares(0.5, 0.7, 0.25), True, "generator"),
        (Shares(0.5, 0.5, 0.6), False, "waiting"),
        (Shares(0.5, 0.95, 0.6), False, "generator"),
        (Shares(0.5, 0.1, 0.1), True, "waiting"),
        (Shares(0.5, 0.1, 0.1, 0.45), True, "core shared"),
        (Shares(0.95, 0.1, 0.1, 0.02), True, "server"),
    ],
)
def test_the_bottleneck_is_who_had_a_full_core(shares: Shares, shared: bool, name: str) -> None:
    assert bottleneck(shares, shared) == name


def test_the_brake_waits_for_arrivals(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [0, 0, 0, 0]
    totals = load.Totals(cells, [chunk(100, 100)], 1.0, 250)
    waits: list[float] = []

    def arrive(seconds: float) -> None:
        waits.append(seconds)
        cells[load.ARRIVED] += 50

    monkeypatch.setattr(load.time, "sleep", arrive)
    for _ in range(2):
        totals.add(chunk(100, 100))
    assert not waits
    totals.add(chunk(100, 100))
    assert len(waits) == 1
    assert (totals.events, totals.expected, totals.useful) == (300, 300, 300)
    totals.drain()
    assert cells[load.ARRIVED] == 300


def test_stalled_connections_are_not_expected_to_take_anything() -> None:
    totals = load.Totals([10_000, 0, 0, 0], [chunk(100, 5000)], 0.98, 1_000_000)
    totals.add(chunk(100, 5000))
    assert totals.expected == 4900


def test_draining_ends_when_nothing_arrives_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [0, 0, 0, 0]
    totals = load.Totals(cells, [chunk(1, 1)], 1.0, 10)
    totals.add(chunk(1, 1))
    clock = iter(range(100))
    monkeypatch.setattr(load.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(load.time, "perf_counter", lambda: float(next(clock)))
    assert not totals.drain()
    assert not totals.add(chunk(20, 20))
    assert cells[load.ARRIVED] == 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("key", ["a", "c", "e"])
@pytest.mark.parametrize("peer", INSTALLED, ids=lambda peer: peer.label)
def test_a_real_run_loses_nothing(peer: Peer, key: str) -> None:
    outcome = measure(peer, build(key), 0.1, Cores.chosen())
    assert outcome.lost == 0
    assert outcome.events > 0
    assert outcome.rate > 0
    assert outcome.shares.server > 0


class Deserting(Headgate):
    """Its subscriber fails at the first bytes, while the generator still waits for arrivals."""

    def subscriber(self, port: int, wants: Sequence[Want]) -> HeadgateSubscriber:
        return DesertingSubscriber(Line(port))


class DesertingSubscriber(HeadgateSubscriber):
    def __init__(self, line: Line) -> None:
        super().__init__(line)
        line.send(Subscribe(1, 1, "bench"))

    def feed(self, view: memoryview) -> int:
        raise MeasurementFailed("subscriber", "saw nonsense")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_the_failure_of_the_sink_is_the_one_that_is_told() -> None:
    if Headgate().version() is None:
        pytest.skip("the daemon is not in this tree")
    with pytest.raises(MeasurementFailed, match="saw nonsense"):
        measure(Deserting(), build("a"), 0.2, Cores.chosen())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_those_who_read_get_everything_beside_one_who_does_not() -> None:
    if Headgate().version() is None:
        pytest.skip("the daemon is not in this tree")
    outcome = measure(Headgate(), build("b"), 0.2, Cores.chosen(), stalled=1)
    assert outcome.lost == 0
    assert outcome.arrivals == outcome.events * 49
