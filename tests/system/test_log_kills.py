"""A short share of `make log-kills`: real brokers, killed while they store; every acknowledged event is there, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.ops.bench.log.kills import kill_and_read
from headgate.ops.bench.log.ledger import Plan

pytestmark = pytest.mark.slow


async def test_one_broker(tmp_path: Path) -> None:
    report = await kill_and_read(Plan(kills=5, seed=1), tmp_path)
    assert report.kills == 5
    assert report.kept, (str(report), report.wrong)


async def test_three_brokers(tmp_path: Path) -> None:
    report = await kill_and_read(Plan(kills=4, seed=1, brokers=3, deleted_share=0.7), tmp_path)
    assert report.kills == 4 and report.deleted.total() >= 1
    assert report.kept, (str(report), report.wrong)
