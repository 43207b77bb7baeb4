"""Logs over many seeds: a small share at every run of the tests, the full number when time does not matter."""

from __future__ import annotations

import pytest

from headgate.broker.simulator.scenarios import CORES, LogOptions, campaign, play

PINNED = [
    (LogOptions(2), "after a lost connection PUBACK passed a batch whose refusal had not been heard"),
    (LogOptions(36), "who sent again what still waited was never answered, for an old refusal stood before it"),
    (LogOptions(100), "who opened a producer was told of batches that came while others were asked"),
    (LogOptions(134), "a disk that had lost its newest rows was believed about producers"),
    (LogOptions(21, faults=("harm", "cut", "link")), "a backup from before the first row went on in its epoch"),
    (LogOptions(6095, nodes=2), "a backup went on where a copy was about to be, that waited for a slow disk"),
    (LogOptions(6092, nodes=2), "an empty disk that had met nobody said that there was nothing"),
    (LogOptions(6030), "an empty disk counted as one that was heard, before everybody was"),
    (LogOptions(6172, nodes=2), "a full disk made a doubtful producer a certain one"),
    (LogOptions(6077, nodes=2), "two disks that had lost something waited for each other for ever"),
    (LogOptions(6, nodes=2), "what was sent again elsewhere was in two logs"),
    (LogOptions(6068), "a copy was taken of a row whose producer had been opened elsewhere meanwhile"),
    (LogOptions(6051), "who opened a producer was not told of copies that waited for a slow disk"),
    (LogOptions(6010), "a doubtful producer was opened as if it had no rows on the disk that doubts it"),
    (LogOptions(6244, nodes=2), "what waited for a slow disk was taken for safe, and read"),
    (LogOptions(6121, nodes=2), "a new epoch was begun and not written down"),
    (LogOptions(6018, nodes=2), "who was owed copies forgot what he knew himself"),
    (LogOptions(6279), "rows that had gone on in a later epoch came back with a backup, and went on once more"),
    (LogOptions(7044, nodes=5), "of all brokers that came back one by one only the first was asked"),
    (LogOptions(6011, nodes=5), "a link that broke took an answer along, and it was not asked for again"),
    (LogOptions(6133, nodes=5), "a row that others have was kept because somebody who is gone may have it too"),
    (LogOptions(6038, nodes=2), "copies that a full disk had refused were taken for rows on it"),
    (LogOptions(6086, nodes=1), "a simulated producer went on in a session that had a hole"),
    (
        LogOptions(282, faults=("apart", "link", "slow", "cut")),
        "a copy was taken because its owner would tell who opened the producer, and the owner's link broke before that",
    ),
    (LogOptions(77006, nodes=5, seconds=40.0, producers=8), "a simulated producer believed an answer of before"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("options", "story"), PINNED)
def test_a_seed_that_found_something_stays_mended(options: LogOptions, story: str) -> None:
    assert play(options).failure == "", story


def test_a_few_seeds_of_everything_keep_every_promise() -> None:
    summary = campaign(LogOptions(0, seconds=8.0), range(5000, 5003))
    assert summary.failures == []


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("nodes", [2, 3, 5])
def test_many_seeds_of_everything_keep_every_promise(nodes: int) -> None:
    summary = campaign(LogOptions(0, nodes), range(6000, 6010), jobs=CORES)
    assert summary.failures == []
    assert all(summary.counts[f"harm: {how}"] for how in ("all", "newest", "rot", "backup"))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_many_seeds_of_a_broker_without_company_keep_every_promise() -> None:
    summary = campaign(LogOptions(0, nodes=1), range(6000, 6010), jobs=CORES)
    assert summary.failures == []
    assert not summary.counts["harm"], "there is no copy of what is on its disk"


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [1, 3])
def test_disks_that_take_some_writes_and_not_others_break_no_promise(nodes: int) -> None:
    summary = campaign(LogOptions(0, nodes, faults=("brim", "cut", "crash")), range(8000, 8005), jobs=CORES)
    assert summary.failures == [] and summary.counts["brim"]


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [3, 5])
def test_one_full_disk_hinders_nobody_elsewhere(nodes: int) -> None:
    summary = campaign(LogOptions(0, nodes, faults=("follower",)), range(8100, 8105), jobs=CORES)
    assert summary.failures == [] and summary.counts["follower"]
