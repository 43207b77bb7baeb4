"""The command: seeds in, digest and verdict out, and the same under every hash seed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headgate.broker.simulator import main
from headgate.broker.simulator.report import command_of
from headgate.broker.simulator.scenarios import ABLATIONS, Options, run_seed

ROOT = Path(__file__).resolve().parents[3]


def run(*arguments: str) -> tuple[int, str]:
    lines: list[str] = []
    return main(arguments, lines.append), "".join(lines)


def test_one_seed_prints_its_digest_and_verdict() -> None:
    code, text = run("--seed", "7", "--steps", "300")
    assert code == 0
    assert run_seed(Options(7, steps=300)).digest in text
    assert "every promise was kept" in text


def test_a_broken_promise_is_exit_code_one() -> None:
    code, text = run("--seed", "1", "--steps", "600", "--ablate", "grace", "--faults", "cuts")
    assert code == 1
    assert "AllAnswered" in text


def test_a_campaign_prints_a_line_for_each_failing_seed_and_the_sums() -> None:
    code, text = run("--campaign", "3", "--first-seed", "5", "--steps", "300")
    assert (code, text.splitlines()[0]) == (0, "3 seeds, 0 failed")
    code, text = run("--campaign", "3", "--steps", "600", "--ablate", "grace", "--faults", "cuts")
    assert code == 1
    assert "--seed 1 --steps 600" in text
    assert "3 seeds, 3 failed" in text


def test_the_command_that_a_report_prints_is_understood() -> None:
    options = Options(2, steps=100, clients=2, faults=("cuts",), checked=False)
    verdict = run_seed(options)
    code, text = run(*command_of(verdict).split()[3:])
    assert code == 0
    assert verdict.digest in text


def test_a_trace_is_written_where_it_was_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "trace.txt"
    assert run("--seed", "1", "--steps", "100", "--trace", str(file))[0] == 0
    assert "broker-1 < WallClock" in file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "arguments",
    [("--faults", "fire"), ("--steps", "0"), ("--clients", "1001"), ("--ablate", "all"), ("--seed", "x"), ("--what",)],
)
def test_a_wrong_command_line_is_exit_code_two(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        run(*arguments)
    assert stopped.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_help_names_every_ablation_and_fault(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run("--help")
    text = capsys.readouterr().out
    assert all(name in text for name in (*ABLATIONS, "cuts", "pauses", "slow"))


def test_two_hash_seeds_give_one_digest() -> None:
    texts = []
    for hash_seed in ("1", "2"):
        command = [sys.executable, "-m", "headgate.broker.simulator", "--seed", "9", "--steps", "1500"]
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        ended = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=True
        )
        texts.append(ended.stdout)
    assert texts[0] == texts[1]
    assert "digest" in texts[0]
