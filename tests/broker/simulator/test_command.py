"""The command line: each kind of run is asked for, tells how it ended, and says what to type to see it again."""

from __future__ import annotations

from argparse import ArgumentTypeError
from dataclasses import replace
from pathlib import Path

import pytest

from headgate.broker.simulator import main, parsers
from headgate.broker.simulator.scenarios import (
    BROKER_ABLATIONS,
    VARIANTS,
    BrokerOptions,
    ClusterOptions,
    LogOptions,
    Options,
    RingOptions,
    command_of,
    play,
    within,
)

QUICK: tuple[Options, ...] = (
    BrokerOptions(2, steps=100, clients=2, faults=("cuts",), fast=True),
    ClusterOptions(7, 3, 3.0, 3, ("crash",)),
    ClusterOptions(7, 3, 3.0, 3, ("crash",), placement="counting"),
    LogOptions(7, 1, 2.5, 1, faults=("cut",)),
    RingOptions(3, steps=60, list_length=3, unlimited=True, churn_seconds=0.1234567),
    RingOptions(2, ablation="busy", only_invariant=True),  # fails at once when more is checked
)


def run(*arguments: str) -> tuple[int, str]:
    lines: list[str] = []
    return main(arguments, lines.append), "".join(lines)


@pytest.mark.parametrize("options", QUICK, ids=command_of)
def test_the_command_that_a_run_prints_runs_the_same(options: Options, tmp_path: Path) -> None:
    verdict = play(options)
    assert verdict.lines()[0] == command_of(options)
    words = command_of(options).split()
    assert words[:3] == ["python", "-m", "headgate.broker.simulator"]
    trace = tmp_path / "trace"
    code, text = run(*words[3:], "--trace", str(trace))
    assert code == bool(verdict.failure) and text == "".join(f"{line}\n" for line in verdict.lines())
    assert verdict.digest in text and trace.stat().st_size > 1_000


def test_what_to_type_names_everything() -> None:
    text = command_of(LogOptions(7, 5, 3.5, 2, 3, ("crash", "cut"), "epoch-check"))
    program = "python -m headgate.broker.simulator"
    rest = "--nodes 5 --seconds 3.5 --producers 2 --copies 3 --faults crash,cut --ablate epoch-check"
    assert text == f"{program} --log --seed 7 {rest}"
    options = BrokerOptions(3, steps=50, clients=2, faults=(), fast=True, ablation="gap")
    assert command_of(options) == f"{program} --seed 3 --steps 50 --clients 2 --faults none --ablate gap --fast"


@pytest.mark.parametrize(
    ("line", "promise"),
    [
        ("--seed 1 --steps 600 --ablate grace --faults cuts", "AllAnswered"),
        ("--nodes=5 --seed 3 --seconds 5 --faults none --ablate local-filter", "NoDuplicates"),
        ("--log --seconds 2 --producers 1 --ablate sync-before-ack", "OnEnoughDisks"),
        ("ring --seed 7 --ablate repeat-last", "InvariantHolds"),
    ],
)
def test_a_broken_promise_is_exit_code_one(line: str, promise: str) -> None:
    code, text = run(*line.split())
    assert code == 1 and f"verdict  {promise}" in text
    code, text = run(*line.split(), "--campaign", "2")
    assert code == 1 and text.startswith(promise) and "2 seeds, 2 failed" in text and "--ablate" in text


def test_a_campaign_says_what_happened() -> None:
    code, text = run("--campaign", "3", "--first-seed", "5", "--steps", "300")
    assert (code, text.splitlines()[0]) == (0, "3 seeds, 0 failed")
    assert "happened: " in text


def test_the_table_has_a_row_for_each_variant_of_the_ring() -> None:
    code, text = run("ring", "--seeds", "1", "--steps", "20", "--table")
    assert code == 0
    assert [line.split("  ")[0] for line in text.splitlines()[1:]] == list(VARIANTS)


def test_the_table_says_which_run_broke_the_corrected_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(VARIANTS, "corrected, r=2", {"ablation": "repeat-last", "only_invariant": True})
    code, text = run("ring", "--first-seed", "7", "--seeds", "1", "--table")
    assert code == 1
    (command,) = (line.strip() for line in text.splitlines() if "python -m" in line)
    assert all(words in command for words in ("--seed 7", "--ablate repeat-last", "--only-invariant"))
    assert run(*command.split()[3:])[0] == 1


@pytest.mark.parametrize("kind", ["", "--nodes 3", "--log", "ring"])
@pytest.mark.parametrize("line", ["--ablate everything", "--seed x", "--what", "--campaign 0"])
def test_a_wrong_command_line_is_exit_code_two(kind: str, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        run(*kind.split(), *line.split())
    assert stopped.value.code == 2
    assert "usage" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    [
        *("--faults fire", "--steps 0", "--clients 1001", "--nodes 0", "--nodes 3 --faults fire"),
        *("--nodes 3 --seconds 0", "--nodes 3 --placement x", "--log --faults fire", "--log --nodes 0"),
        *("ring --kind rain", "ring --list-length 1"),
    ],
)
def test_what_is_out_of_range_is_refused(line: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        run(*line.split())
    assert stopped.value.code == 2


def test_help_names_every_ablation_and_fault_and_the_other_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("--help")
    text = capsys.readouterr().out
    assert all(name in text for name in (*BROKER_ABLATIONS, "cuts", "pauses", "slow", "--log --help"))
    kinds = ["sim", "sim --nodes N", "sim --log", "sim --durable", "sim ring"]
    assert [parser.prog for parser in parsers("sim")] == kinds


def test_a_cluster_has_all_faults_unless_something_else_is_said() -> None:
    _, text = run("--nodes", "1", "--seconds", "0.1", "--clients", "1")
    assert "--faults crash,pause,partition" in text
    assert command_of(replace(QUICK[1], seed=1)).endswith("--faults crash")


@pytest.mark.parametrize("text", ["1", "3"])
def test_both_ends_are_inside(text: str) -> None:
    assert within(1, 3)(text) == int(text)


@pytest.mark.parametrize("text", ["0", "4", "-1"])
def test_what_is_outside_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match=f"from 1 to 3, not {text}"):
        within(1, 3)(text)
