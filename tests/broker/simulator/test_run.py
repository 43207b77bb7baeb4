"""One run: a verdict that repeats, in both modes; crashes are verdicts; the farewell finds what was left behind."""

from __future__ import annotations

import pytest

from headgate.broker.core.inputs import Drain, Received, WallClock
from headgate.broker.simulator.engine import Violation
from headgate.broker.simulator.faults import FAULTS
from headgate.broker.simulator.limits import QUIET_SECONDS
from headgate.broker.simulator.scenarios import ABLATIONS, Options, Run, run_seed
from headgate.protocol.messages import Hello


def test_a_seed_has_one_digest_and_another_seed_another() -> None:
    first, again, other = (run_seed(Options(seed, steps=400)) for seed in (1, 1, 2))
    assert first.digest == again.digest != other.digest
    assert first.counts == again.counts


def test_the_trace_is_what_the_digest_is_of() -> None:
    lines: list[str] = []
    verdict = run_seed(Options(1, steps=200), lines.append)
    assert verdict.digest == run_seed(Options(1, steps=200)).digest
    assert "seed=1" in lines[0]
    assert any(" < Received(" in line for line in lines)
    assert any(" > Send(" in line for line in lines)


@pytest.mark.parametrize("faults", [(), ("cuts",), ("pauses",), ("slow",), FAULTS])
@pytest.mark.parametrize("checked", [True, False])
def test_every_promise_is_kept_whatever_the_faults(faults: tuple[str, ...], checked: bool) -> None:
    verdict = run_seed(Options(3, steps=600, faults=faults, checked=checked))
    assert verdict.failure == ""
    assert verdict.counts["deliveries"] > 0
    assert not verdict.counts["cuts"] or "cuts" in faults
    assert not verdict.counts["pauses"] or "pauses" in faults


def test_without_faults_nothing_is_lost_and_nobody_waits_for_ever() -> None:
    verdict = run_seed(Options(5, steps=1_000, faults=()))
    assert verdict.failure == ""
    assert [verdict.counts[f"dropped {reason}"] for reason in ("slow", "lost", "expired")] == [0, 0, 0]
    assert "dropped gone" not in verdict.counts, "there is no other broker"


def test_one_run_of_four_ends_in_a_shutdown() -> None:
    run = Run(Options(4, steps=300))
    seen: list[type] = []
    run.host._watchers = (*run.host._watchers, lambda host, happened, effects: seen.append(type(happened)))
    run.play()
    assert Drain in seen
    assert WallClock in seen


def test_a_crash_of_the_node_is_a_verdict_with_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ABLATIONS, "speech", lambda node: node.clients.table.clear())
    verdict = run_seed(Options(1, steps=400, ablation="speech"))
    assert verdict.failure.startswith("Crash: KeyError")
    assert "node.py" in verdict.details


def test_what_the_broker_still_holds_at_the_end_is_found() -> None:
    run = Run(Options(1, steps=200, faults=()))
    run.world.after(QUIET_SECONDS + 1.0, lambda: run.host.feed(Received(999, [Hello(name="stays")])))
    with pytest.raises(Violation, match="EmptyAtTheEnd: everybody left"):
        run.play()


def test_a_session_that_finds_fault_is_a_violation() -> None:
    run = Run(Options(1, steps=300))
    for _ in range(100):
        run.world.step()
    with pytest.raises(Violation, match="CleanProtocol"):
        connection = run.network.dial(run.host, run.clients[0])
        connection._down.write(b"\x00\x00\x00\x02\x91\x02")
        run.world.run_for(1.0)
