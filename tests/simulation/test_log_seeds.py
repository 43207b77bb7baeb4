"""Logs over many seeds: a small share at every run of the tests, the full number when time does not matter."""

from __future__ import annotations

import pytest

from broker.simulator.log_command import log_campaign
from broker.simulator.log_run import LogRunOptions, run_log

PINNED = [
    (LogRunOptions(2), "after a lost connection PUBACK passed a batch whose refusal had not been heard"),
    (LogRunOptions(36), "who sent again what still waited was never answered, for an old refusal stood before it"),
    (LogRunOptions(100), "who opened a producer was told of batches that came while others were asked"),
    (LogRunOptions(134), "a disk that had lost its newest rows was believed about producers"),
    (LogRunOptions(21, faults=("harm", "cut", "link")), "a backup from before the first row went on in its epoch"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("options", "story"), PINNED)
def test_a_seed_that_found_something_stays_mended(options: LogRunOptions, story: str) -> None:
    assert run_log(options).failure == "", story


def test_a_few_seeds_of_everything_keep_every_promise() -> None:
    failures, _ = log_campaign(LogRunOptions(0, seconds=8.0), range(5000, 5003))
    assert failures == []


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("nodes", [2, 3, 5])
def test_many_seeds_of_everything_keep_every_promise(nodes: int) -> None:
    failures, counts = log_campaign(LogRunOptions(0, nodes), range(6000, 6100))
    assert failures == []
    assert all(counts[f"harm: {how}"] for how in ("all", "newest", "rot", "backup"))
