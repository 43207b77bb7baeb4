"""The command with --log: one seed, a campaign, what to type to see a failure again, and wrong words."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.broker.simulator.command import main
from headgate.broker.simulator.log_command import command_of_log, log_campaign
from headgate.broker.simulator.scenarios import LogRunOptions

SHORT = ["--log", "--seconds", "2", "--producers", "1"]


def test_one_seed_prints_its_verdict_and_can_be_traced(tmp_path: Path) -> None:
    said: list[str] = []
    trace = tmp_path / "trace.txt"
    assert main([*SHORT, "--faults", "none", "--trace", str(trace)], said.append) == 0
    assert "verdict  every promise was kept" in "".join(said)
    assert (
        "python -m headgate.broker.simulator --log --nodes 3 --seed 1 --seconds 2 --producers 1 --faults none"
        in said[0]
    )
    assert trace.read_text()


def test_a_broken_promise_is_told_with_the_command_that_shows_it() -> None:
    said: list[str] = []
    assert main([*SHORT, "--ablate", "sync", "--campaign", "2"], said.append) == 1
    assert "OnEnoughDisks" in said[0]
    assert "--ablate sync" in said[0]
    assert "2 seeds, 2 failed" in said[-1]
    assert main([*SHORT, "--ablate", "sync"], said.append) == 1


def test_a_campaign_adds_up_what_happened() -> None:
    failures, counts = log_campaign(LogRunOptions(0, seconds=2.0, producers=1, faults=("cut",)), range(2))
    assert failures == []
    assert counts["acknowledged"] > 0


@pytest.mark.parametrize("argv", [["--faults", "fire"], ["--nodes", "0"], ["--ablate", "everything"]])
def test_wrong_words_are_usage_errors(argv: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--log", *argv])
    assert caught.value.code == 2


def test_what_to_type_names_everything() -> None:
    text = command_of_log(LogRunOptions(7, 5, 3.5, 2, ("crash", "cut"), "epoch"))
    assert text.endswith("--nodes 5 --seed 7 --seconds 3.5 --producers 2 --faults crash,cut --ablate epoch")
