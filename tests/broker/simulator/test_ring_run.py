"""One run: the kinds of runs, their verdicts, and that a seed decides everything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headgate.broker.simulator.engine import RingHost
from headgate.broker.simulator.scenarios import KINDS, RingOptions, RingRun, run_ring

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_of_each_kind_keeps_its_promises(kind: str) -> None:
    verdict = run_ring(RingOptions(3, kind=kind, steps=150))
    assert verdict.failure == "" and verdict.settle_seconds > 0.0


def test_steps_are_counted_and_faults_happened() -> None:
    counts = run_ring(RingOptions(1, calm=False)).counts
    assert counts["steps"] >= 300
    assert counts["crashes"] > 5 and counts["joins"] > 2 and counts["restarts"] > 2


def test_what_fails_is_named_and_a_crash_is_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = run_ring(RingOptions(1, ablation="repeat-last"))
    assert verdict.failure.startswith("InvariantHolds: SufficientPrincipals")
    monkeypatch.setattr(RingHost, "crash", lambda host: 1 / 0)
    verdict = run_ring(RingOptions(1))
    assert verdict.failure.startswith("Crash: ZeroDivisionError") and "Traceback" in verdict.details


def test_a_world_without_brokers_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        RingOptions(1, nodes=0)


def test_brokers_too_few_for_a_ring_become_a_mesh_that_knows_all() -> None:
    run = RingRun(RingOptions(2, nodes=3, list_length=4, kind="start"))
    run.play()
    machines = [host.machine for host in run.world.living()]
    assert [machine is not None and machine.status(0.0).role for machine in machines] == ["mesh"] * 3


def test_enough_brokers_open_one_ring() -> None:
    run = RingRun(RingOptions(2, nodes=6, list_length=4, kind="start"))
    run.play()
    assert len(run.world.snapshot().members) == 6


def test_one_seed_tells_one_story_and_another_another() -> None:
    lines: list[str] = []
    first = run_ring(RingOptions(4, steps=100), lines.append)
    assert run_ring(RingOptions(4, steps=100)) == first != run_ring(RingOptions(5, steps=100))
    assert len(lines) > 100


@pytest.mark.slow
def test_a_seed_tells_the_same_story_under_every_hash_seed() -> None:
    program = (
        "from headgate.broker.simulator.ring_run import *\n"
        "print([run_ring(RingOptions(4, kind=kind, steps=100)).digest for kind in KINDS])"
    )
    digests = set()
    for hash_seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
        )
        digests.add(done.stdout)
    assert len(digests) == 1
