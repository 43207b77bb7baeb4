"""Strangers beside a client: what must not be makes the bench fail, and a small crowd of every kind loses nothing."""

from __future__ import annotations

import argparse
import json

import pytest

from headgate.ops.bench.kit import Cores, MeasurementFailed
from headgate.ops.bench.wire import strangers
from headgate.ops.bench.wire.strangers import WAYS, Outcome, Times


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    strangers.add_arguments(parser)
    return parser.parse_args(list(words))


def test_what_must_not_be_makes_it_fail(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    alone, beside = Times(10, 0.001, 0.002), Times(20, 0.002, 0.008)
    outcomes = {
        "2": Outcome(alone, beside, {"refused": 2}, ()),
        "3": Outcome(alone, beside, {"let in": 1, "refused": 2}, ("1 strangers: let in",)),
    }

    def measure(count: int, seconds: float, cores: Cores) -> Outcome:
        if str(count) not in outcomes:
            raise MeasurementFailed("strangers", "event 7 is missing")
        return outcomes[str(count)]

    monkeypatch.setattr(strangers, "measure", measure)
    assert strangers.run(arguments("--strangers", "2", "--json")) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["middle_ratio"], row["slow_ratio"], row["strangers"]) == (2.0, 4.0, {"refused": 2})
    assert strangers.run(arguments("--strangers", "3")) == 1
    told = capsys.readouterr()
    assert "1 strangers: let in" in told.err and "4.00" in told.out
    assert strangers.run(arguments()) == 1
    assert "event 7 is missing" in capsys.readouterr().err


def test_times_are_the_median_and_the_slow_end() -> None:
    assert Times.of([float(number) for number in range(1, 100)]) == Times(99, 50.0, 99.0)


@pytest.mark.slow
def test_a_small_crowd_of_every_kind_gets_nowhere_and_the_client_misses_nothing() -> None:
    outcome = strangers.measure(6 * len(WAYS), 0.2, Cores.chosen())
    assert outcome.wrong == ()
    assert outcome.strangers == {"cut": 12, "refused": 30}
    assert outcome.beside.events > 2
