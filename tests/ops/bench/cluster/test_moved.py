"""`headgate bench moved`, small: everything that is due arrives, and the table says what DELTA spares."""

from __future__ import annotations

import argparse

import pytest

from headgate.ops.bench.cluster import moved


def test_what_is_useful_is_counted_symbol_by_symbol() -> None:
    ticks = moved.Ticks(("a", "b", "a", "b", "a"), (1.0, 9.0, 1.04, 9.06, 1.06))
    assert moved.useful_of(ticks) == 4, "1.04 is within five cents of 1.0"


@pytest.mark.slow
@pytest.mark.skipif(not moved.real_ticks(), reason="the ticks are not there: set HEADGATE_DATA")
def test_a_small_run_prints_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    moved.add_arguments(parser)
    words = "--brokers 1 --subscribers 20 --connections 4 --events 1000 --without-peers"
    assert moved.run(parser.parse_args(words.split())) == 0
    shown = capsys.readouterr().out
    assert "without" in shown and "Suppressed: " in shown and "1,000" in shown
