"""One run of a cluster: all phases, the verdict, and the same digest every time."""

from __future__ import annotations

from headgate.broker.simulator.scenarios import ClusterRun, ClusterRunOptions, run_cluster

QUICK = ClusterRunOptions(3, 3, 5.0, 4, ("crash", "pause", "link"))


def test_a_run_is_the_same_every_time_and_another_seed_is_another_run() -> None:
    first, again = run_cluster(QUICK), run_cluster(QUICK)
    assert first.failure == "" and first.digest == again.digest
    assert first.counts["events"] and first.counts["deliveries"]
    assert run_cluster(ClusterRunOptions(4, 3, 5.0, 4)).digest != first.digest


def test_the_trace_is_written_and_changes_nothing() -> None:
    lines: list[str] = []
    assert run_cluster(QUICK, lines.append).digest == run_cluster(QUICK).digest
    assert any("Suback" in line for line in lines) and any("Letter" in line for line in lines)


def test_what_a_node_raises_is_a_verdict() -> None:
    run = ClusterRun(QUICK)
    assert run.counts()["steps"] == 0

    def fail() -> None:
        raise ZeroDivisionError("broken")

    ClusterRun.play, play = lambda self: fail(), ClusterRun.play  # type: ignore[method-assign]
    try:
        verdict = run_cluster(QUICK)
    finally:
        ClusterRun.play = play  # type: ignore[method-assign]
    assert verdict.failure == "Crash: ZeroDivisionError: broken"
    assert "ZeroDivisionError" in verdict.details
