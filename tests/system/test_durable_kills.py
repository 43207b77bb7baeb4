"""A short share of `make durable-kills`: real brokers and clients, killed while durable subscriptions are used."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.ops.bench.durable.kills import Plan, campaign

pytestmark = pytest.mark.slow


async def test_each_event_is_acknowledged_over_the_death_of_brokers_and_clients(tmp_path: Path) -> None:
    report = await campaign(Plan(events=3000, kills=4, seed=1, brokers=3, subscriptions=12), tmp_path)
    assert report.broker_kills and report.client_kills and report.all_kills == 1
    assert report.kept, (str(report), report.examples)
    assert report.confirmed > report.owed // 2
