"""A short share of chaos: three brokers, one of them stopped, one killed, and every promise kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headgate.ops.bench.chaos.chaos import Plan, storm
from headgate.ops.jobs import missing_parts

pytestmark = pytest.mark.slow

PLAN = Plan(
    seconds=16.0,
    seed=1,
    brokers=3,
    subscriptions=60,
    rate=200,
    kill_every_seconds=16.0,
    stop_seconds=6.0,
    calm_seconds=5.0,
)


@pytest.mark.timeout(900)
async def test_every_promise_is_kept_and_spark_tells_the_same_story(tmp_path: Path) -> None:
    """Without Java or PySpark it is the clients' story alone."""
    audit = not missing_parts()
    report = await storm(replace(PLAN, audit=audit), tmp_path)
    assert (len(report.deaths), len(report.stops)) == (1, 1)
    assert report.kept, (report.disagreements, report.account, report.gave_up, report.faults)
    assert report.account.calm_wanted > 100
    assert report.account.delivered > 0.7 * report.account.wanted, "what is excused is not most of it"
    if audit:
        assert report.ruling is not None and report.ruling.expected > 100
        assert (report.ruling.wrong, report.ruling.duplicate, report.ruling.calm_lost) == (0, 0, 0)
