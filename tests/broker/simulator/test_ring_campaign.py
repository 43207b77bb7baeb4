"""The command: many seeds in, sums out."""

from __future__ import annotations

import pytest

from headgate.broker.simulator.ring_campaign import VARIANTS, campaign, main
from headgate.broker.simulator.scenarios import RingOptions


def run(*arguments: str) -> tuple[int, str]:
    lines: list[str] = []
    return main(arguments, lines.append), "".join(lines)


def test_seeds_that_keep_every_promise_are_summed_up() -> None:
    code, text = run("--seeds", "2", "--steps", "60", "--list-length", "3")
    assert code == 0
    assert text.startswith("2 seeds: 0 broke safety, 0 never became ideal")


def test_a_seed_that_fails_is_named() -> None:
    code, text = run("--seeds", "1", "--first-seed", "7", "--ablate", "repeat-last")
    assert code == 1
    assert text.startswith("seed 7: InvariantHolds") and "1 broke safety" in text


def test_the_table_has_a_row_for_each_variant() -> None:
    code, text = run("--seeds", "1", "--steps", "20", "--table")
    assert code == 0
    assert [line.split("  ")[0] for line in text.splitlines()[1:]] == list(VARIANTS)


@pytest.mark.parametrize("arguments", [["--seeds", "0"], ["--kind", "rain"], ["--list-length", "1"]])
def test_a_wrong_command_line_is_code_two(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(*arguments)
    assert ended.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_safety_and_liveness_are_counted_apart() -> None:
    summary = campaign(RingOptions(0, ablation="notify"), [1])
    assert (summary.runs, summary.safety, summary.liveness) == (1, 0, 1)
