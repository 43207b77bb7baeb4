"""`--nodes`: swarm options, seed, digest and verdict are printed; a broken promise is exit code 1."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from headgate.broker.simulator import main
from headgate.broker.simulator.cluster_command import cluster_campaign, command_of_cluster
from headgate.broker.simulator.scenarios import ClusterRunOptions, run_cluster

ROOT = Path(__file__).resolve().parents[3]
QUICK = ("--nodes", "3", "--seed", "7", "--seconds", "3", "--clients", "3", "--faults", "crash")
OPTIONS = ClusterRunOptions(7, 3, 3.0, 3, ("crash",))


def run(*arguments: str) -> tuple[int, str]:
    lines: list[str] = []
    return main(arguments, lines.append), "".join(lines)


def test_a_run_tells_what_it_was_and_how_it_ended() -> None:
    code, text = run(*QUICK)
    assert code == 0
    assert "swarm    crash every" in text and "every promise was kept" in text
    assert run_cluster(OPTIONS).digest in text


def test_the_command_it_prints_runs_the_same(tmp_path: Path) -> None:
    command = command_of_cluster(OPTIONS).split()
    assert command[:3] == ["python", "-m", "headgate.broker.simulator"]
    trace = tmp_path / "trace"
    code, text = run(*command[3:], "--trace", str(trace))
    assert code == 0 and run_cluster(OPTIONS).digest in text
    assert trace.stat().st_size > 10_000


def test_a_broken_promise_is_exit_code_one() -> None:
    arguments = ("--nodes=5", "--seed", "1", "--seconds", "5", "--faults", "none", "--ablate", "allowing")
    code, text = run(*arguments)
    assert code == 1 and "NoDuplicates" in text and "--ablate allowing" in text
    code, text = run(*arguments, "--campaign", "2", "--first-seed", "4")
    assert code == 1 and "2 seeds, 2 failed" in text and "NoDuplicates" in text


def test_a_campaign_adds_up() -> None:
    summary = cluster_campaign(OPTIONS, range(2))
    assert summary.failures == [] and summary.runs == 2
    assert summary.lines()[0] == "2 seeds, 0 failed"
    assert summary.counts["events"]


@pytest.mark.parametrize(
    "arguments", [("--faults", "fire"), ("--seconds", "0"), ("--nodes", "0"), ("--ablate", "x"), ("--placement", "x")]
)
def test_nonsense_is_refused(arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as caught:
        run("--nodes", "3", *arguments)
    assert caught.value.code == 2


def test_the_digest_does_not_depend_on_the_hash_seed() -> None:
    texts = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-m", "headgate.broker.simulator", *QUICK]
        texts.append(subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True).stdout)
    assert texts[0] == texts[1]


def test_a_run_with_counted_streams_is_another_run_and_says_so() -> None:
    options = replace(OPTIONS, placement="counting")
    code, text = run(*QUICK, "--placement", "counting")
    assert code == 0 and "--placement counting" in text
    assert run_cluster(options).digest in text and run_cluster(OPTIONS).digest not in text
    assert "--placement" not in command_of_cluster(OPTIONS)
