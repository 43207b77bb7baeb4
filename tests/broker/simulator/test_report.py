"""The report: a failing run says how to see it again, a campaign says what never happened."""

from __future__ import annotations

from dataclasses import replace

from headgate.broker.simulator.report import Summary, command_of, verdict_lines
from headgate.broker.simulator.scenarios import Options, Verdict

FINE = Verdict(Options(7), "d" * 64, "", "", 12.5, {"events": 1_000, "cuts": 0})
BROKEN = replace(FINE, failure="NothingLost: 3 missing", details="Traceback\n  line")


def test_a_good_run_says_so() -> None:
    text = "\n".join(verdict_lines(FINE))
    assert "seed     7" in text
    assert "d" * 64 in text
    assert "1,000 events" in text
    assert "every promise was kept" in text
    assert "again" not in text


def test_a_bad_run_says_how_to_see_it_again() -> None:
    lines = verdict_lines(BROKEN)
    assert "verdict  NothingLost: 3 missing" in lines
    assert f"again    {command_of(BROKEN)}" in lines
    assert lines[-2:] == ["Traceback", "  line"]


def test_the_command_has_every_option_that_made_the_run() -> None:
    options = Options(3, steps=50, clients=2, faults=(), checked=False, ablation="gap")
    assert command_of(replace(FINE, options=options)) == (
        "python -m headgate.broker.simulator --seed 3 --steps 50 --clients 2 --faults none --ablate gap --fast"
    )


def test_a_campaign_adds_up_and_names_what_never_happened() -> None:
    lines = Summary().add_all([FINE, BROKEN, FINE]).lines()
    assert lines == ["3 seeds, 1 failed", "happened: 3,000 events", "never happened: cuts"]
    assert Summary().lines() == ["0 seeds, 0 failed", "happened: "]
