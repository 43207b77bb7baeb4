"""A scenario of each kind: one seed is one run, its promises are kept, and what goes wrong is a verdict."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from headgate.broker.core.inputs import Drain, Received, WallClock
from headgate.broker.simulator.engine import RingHost, Violation
from headgate.broker.simulator.faults import FAULTS
from headgate.broker.simulator.limits import QUIET_SECONDS
from headgate.broker.simulator.scenarios import (
    KINDS,
    BrokerOptions,
    BrokerScenario,
    ClusterOptions,
    DurableOptions,
    LogOptions,
    Options,
    RingOptions,
    RingScenario,
    Summary,
    Verdict,
    campaign,
    play,
)
from headgate.protocol.messages import Hello

ROOT = Path(__file__).resolve().parents[3]
QUICK: tuple[Options, ...] = (
    BrokerOptions(1, steps=400),
    ClusterOptions(3, 3, 5.0, 4, ("crash", "pause", "link")),
    LogOptions(3, seconds=5.0, producers=2),
    DurableOptions(3, seconds=5.0, producers=2, names=2, faults=()),
    RingOptions(4, steps=100),
)
of_each_kind = pytest.mark.parametrize("options", QUICK, ids=lambda options: type(options).__name__)


@of_each_kind
def test_a_seed_is_the_same_run_every_time_and_another_seed_another_one(options: Options) -> None:
    first, other = play(options), play(replace(options, seed=options.seed + 1))
    assert play(options) == first
    assert first.failure == "" == other.failure and first.digest != other.digest


@of_each_kind
def test_a_trace_is_written_and_changes_nothing(options: Options) -> None:
    lines: list[str] = []
    assert play(options, lines.append) == play(options)
    assert lines[0] == f"{options}\n"
    assert any(" < " in line for line in lines) and any(" > " in line for line in lines)


@of_each_kind
def test_what_the_product_raises_is_a_verdict_with_its_traceback(
    options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(options.scenario(None)), "safety", lambda scenario: 1 / 0)
    verdict = play(options)
    assert verdict.failure == "Crash: ZeroDivisionError: division by zero"
    assert "Traceback" in verdict.details


@pytest.mark.slow
def test_no_digest_depends_on_the_hash_seed() -> None:
    program = (
        "from headgate.broker.simulator.scenarios import *\n"
        "kinds = [RingOptions(4, kind=kind, steps=100) for kind in KINDS]\n"
        "kinds += [BrokerOptions(9, steps=1500), ClusterOptions(7, 3, 3.0, 3), LogOptions(1, seconds=3.0)]\n"
        "print([play(options).digest for options in kinds])"
    )
    digests = set()
    for hash_seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
        )
        digests.add(done.stdout)
    assert len(digests) == 1


def test_a_campaign_adds_up_and_tells_failures_at_once() -> None:
    said: list[str] = []
    summary = campaign(RingOptions(0, ablation="notify"), range(1, 3), said.append)
    assert summary.runs == 2 and summary.broken["BecomesIdeal"] == len(summary.failures) > 0
    assert "BecomesIdeal" in said[0] and "ring --seed 1" in said[0]


def test_a_campaign_in_several_processes_comes_to_the_same() -> None:
    said: list[str] = []
    options = RingOptions(0, ablation="notify")
    alone, together = campaign(options, range(1, 6)), campaign(options, range(1, 6), said.append, jobs=2)
    assert [one.options for one in together.failures] == [one.options for one in alone.failures]
    assert [one.digest for one in together.failures] == [one.digest for one in alone.failures] and said
    assert (together.runs, together.counts, together.broken) == (alone.runs, alone.counts, alone.broken)


def test_a_campaign_names_what_never_happened() -> None:
    fine = Verdict(BrokerOptions(7), "calm", "d" * 64, "", "", 12.5, {"events": 1_000, "cuts": 0})
    summary = Summary()
    for verdict in (fine, replace(fine, failure="NothingLost: 3 missing"), fine):
        summary.add(verdict)
    expected = ["3 seeds, 1 failed", "happened: 3,000 events", "never happened: cuts", "broken: 1 NothingLost"]
    assert summary.lines() == expected


# --- one broker ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("faults", [(), ("cuts",), ("pauses",), ("slow",), FAULTS])
@pytest.mark.parametrize("fast", [True, False])
def test_every_promise_is_kept_whatever_the_faults(faults: tuple[str, ...], fast: bool) -> None:
    verdict = play(BrokerOptions(3, steps=600, faults=faults, fast=fast))
    assert verdict.failure == ""
    assert verdict.counts["deliveries"] > 0
    assert [kind for kind in ("cuts", "pauses") if kind in verdict.counts] == [
        kind for kind in faults if kind != "slow"
    ]


def test_without_faults_nothing_is_lost_and_nobody_waits_for_ever() -> None:
    verdict = play(BrokerOptions(5, steps=1_000, faults=()))
    assert verdict.failure == ""
    assert [verdict.counts[f"dropped {reason}"] for reason in ("slow", "lost", "expired")] == [0, 0, 0]
    assert "dropped gone" not in verdict.counts, "there is no other broker"


def test_one_run_of_four_ends_in_a_shutdown() -> None:
    lines: list[str] = []
    play(BrokerOptions(4, steps=300), lines.append)
    for kind in (Drain, WallClock):
        assert any(f" < {kind.__name__}(" in line for line in lines)


class Deaf(BrokerOptions):
    def scenario(self, write: Callable[[str], object] | None) -> BrokerScenario:
        run = BrokerScenario(self, write)
        run.host.node.clients.table.clear()
        return run


def test_a_node_that_is_deaf_is_a_crash() -> None:
    assert play(Deaf(1, steps=400)).failure.startswith("Crash: KeyError")


def test_what_the_broker_still_holds_at_the_end_is_found() -> None:
    run = BrokerScenario(BrokerOptions(1, steps=200, faults=()))
    run.world.after(QUIET_SECONDS + 1.0, lambda: run.host.feed(Received(999, [Hello(name="stays")])))
    with pytest.raises(Violation, match="EmptyAtTheEnd: everybody left"):
        run.play()


def test_a_session_that_finds_fault_is_a_violation() -> None:
    run = BrokerScenario(BrokerOptions(1, steps=300))
    with pytest.raises(Violation, match="CleanProtocol"):
        connection = run.network.dial(run.host, run.clients[0])
        connection.client.incoming.write(b"\x00\x00\x00\x02\x91\x02")
        run.world.run_for(1.0)


# --- the ring --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_of_each_kind_of_ring_keeps_its_promises(kind: str) -> None:
    run = RingScenario(RingOptions(3, kind=kind, steps=150))
    run.play()
    assert run.settle_seconds > 0.0


def test_steps_are_counted_and_faults_happened() -> None:
    counts = play(RingOptions(1)).counts
    assert counts["steps"] >= 300
    assert counts["crashes"] > 5 and counts["joins"] > 2 and counts["restarts"] > 2


def test_what_fails_in_a_ring_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = play(RingOptions(1, ablation="repeat-last"))
    assert verdict.failure.startswith("InvariantHolds:") and "SufficientPrincipals" in verdict.failure
    monkeypatch.setattr(RingHost, "crash", lambda host: 1 / 0)
    assert play(RingOptions(1)).failure.startswith("Crash: ZeroDivisionError")


def test_a_world_without_brokers_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        RingOptions(1, nodes=0)


def test_brokers_too_few_for_a_ring_become_a_mesh_that_knows_all() -> None:
    run = RingScenario(RingOptions(2, nodes=3, list_length=4, kind="start"))
    run.play()
    assert [host.machine is not None and host.machine.ring is None for host in run.world.living()] == [True] * 3


def test_enough_brokers_open_one_ring() -> None:
    run = RingScenario(RingOptions(2, nodes=6, list_length=4, kind="start"))
    run.play()
    assert len(run.world.snapshot().members) == 6
