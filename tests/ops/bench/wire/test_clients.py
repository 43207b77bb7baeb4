"""The clients' own rates: a cell is a median, and a real measurement covers every verb of both clients."""

from __future__ import annotations

import argparse

import pytest

from headgate.ops.bench.kit import Cores, MeasurementFailed
from headgate.ops.bench.peers import Headgate
from headgate.ops.bench.wire import clients


def test_a_cell_is_a_median_with_the_brokers_share(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = iter([(300.0, 0.1), (300.0, 0.1), (500.0, 0.3), (500.0, 0.3), (400.0, 0.2), (400.0, 0.2)])
    monkeypatch.setattr(clients, "measure", lambda world, seconds, cores: {"publish": next(rates)})
    parser = argparse.ArgumentParser()
    clients.add_arguments(parser)
    assert clients.run(parser.parse_args(["--rounds", "3"])) == 0
    assert "400 (20%)" in capsys.readouterr().out


def test_a_client_that_fails_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def measure(world: str, seconds: float, cores: Cores) -> clients.ClientRates:
        if world == "blocking":
            raise MeasurementFailed("blocking client", "refused")
        return {"publish": (300.0, 0.1)}

    monkeypatch.setattr(clients, "measure", measure)
    parser = argparse.ArgumentParser()
    clients.add_arguments(parser)
    assert clients.run(parser.parse_args(["--rounds", "1"])) == 1
    shown = capsys.readouterr()
    assert "blocking client: refused" in shown.err
    assert "not measured" in shown.out


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("world", ["asyncio", "blocking"])
def test_every_verb_of_a_real_client(world: str) -> None:
    if Headgate().version() is None:
        pytest.skip("the daemon is not in this tree")
    rates = clients.measure(world, 0.1, Cores.chosen())
    assert len(rates) == 4
    assert all(rate > 0 for rate, _ in rates.values())
