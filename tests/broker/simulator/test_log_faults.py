"""Faults of the log: each kind happens, one broker at a time, one harm in a run, and in the end all is well."""

from __future__ import annotations

from random import Random

import pytest

from headgate.broker.simulator.faults import LOG_FAULTS, LogFaults
from headgate.broker.simulator.scenarios import LogRun, LogRunOptions


@pytest.mark.parametrize("kind", LOG_FAULTS)
def test_each_kind_happens_alone_and_is_over_in_the_end(kind: str) -> None:
    run = LogRun(LogRunOptions(5, seconds=12.0, producers=2, faults=(kind,)))
    run.faults = LogFaults({kind: 0.7}, 0.5, 1)
    run.play()
    assert run.nemesis is not None
    assert run.nemesis.done[kind] > 0
    assert set(run.nemesis.done) <= {kind} | {f"harm: {how}" for how in ("all", "newest", "rot", "backup")}
    assert all(
        server.serves and not server.disk.full and not server.disk.fails for server in run.world.servers.values()
    )
    assert len(run.history.harmed) == (kind == "harm")


def test_rates_are_drawn_for_the_kinds_that_are_asked_for() -> None:
    faults = LogFaults.drawn(Random(1), ("crash", "full"))
    assert set(faults.rates) == {"crash", "full"}
    assert "crash every" in str(faults)
    assert str(LogFaults.drawn(Random(1), ())) == "no faults"
