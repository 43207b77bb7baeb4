"""A short share of chaos: three brokers, one of them stopped, one killed, and every promise kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ops.bench.chaos import Plan, storm
from ops.jobs.audit_session import missing_parts
from tests.support.asynchronous import asynchronous

pytestmark = pytest.mark.slow

PLAN = Plan(
    seconds=20.0,
    seed=1,
    brokers=3,
    subscriptions=60,
    rate=200,
    kill_every_seconds=20.0,
    stop_seconds=8.0,
    calm_seconds=5.0,
)


@asynchronous
async def test_every_promise_is_kept(tmp_path: Path) -> None:
    report = await storm(PLAN, tmp_path)
    assert (len(report.deaths), len(report.stops)) == (1, 1)
    assert report.kept, (report.account, report.gave_up, report.faults)
    assert report.account.calm_wanted > 100
    assert report.account.delivered > 0.7 * report.account.wanted, "what is excused is not most of it"


@pytest.mark.timeout(900)
@asynchronous
async def test_spark_tells_the_same_story_from_the_logs(tmp_path: Path) -> None:
    if missing := missing_parts():
        pytest.skip(f"needs {missing}")
    report = await storm(replace(PLAN, audit=True), tmp_path)
    assert report.kept, (report.disagreements, report.account, report.gave_up, report.faults)
    assert report.ruling is not None and report.ruling.expected > 100
    assert (report.ruling.wrong, report.ruling.duplicate, report.ruling.calm_lost) == (0, 0, 0)
