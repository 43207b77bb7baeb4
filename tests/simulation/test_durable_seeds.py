"""Durable subscriptions over many seeds: a few at every run of the tests, many when there is time."""

from __future__ import annotations

import pytest

from headgate.broker.simulator.scenarios import CORES, DurableOptions, campaign, play

PINNED = [
    (DurableOptions(114), "two brokers took one generation, and a disk forgot over a restart whose it keeps"),
    (DurableOptions(130), "what a change had added came again without a flag when the change was on no disk"),
    (DurableOptions(40), "a cumulative acknowledgement took what was still on its way to the client"),
    (DurableOptions(1019), "a fence held although a newer coordinator was heard of while it was written"),
    (
        DurableOptions(1180),
        "what a coordinator wrote after it was fenced off counted more than what was confirmed since",
    ),
    (DurableOptions(7005, 2), "what retention had taken before a subscription began was owed to it"),
    (DurableOptions(30013, 2), "a newcomer that had met nobody said that a producer had published nothing"),
    (DurableOptions(40072, 1), "a removal that another coordinator fenced off left the subscription without one"),
    (DurableOptions(40106, 1), "`from now` began at the start of a log that nobody had copied yet"),
    (DurableOptions(40188, 1), "a follower counted rows that were taken back while its disk was full"),
    (DurableOptions(40230, 1), "`from now` began at the high watermark of a broker that had just started, which was 0"),
    (DurableOptions(41027), "a cumulative acknowledgement took what was sent behind it, under lower numbers"),
    (DurableOptions(43203, 3), "a coordinator that was cut off let a client into a subscription that had been removed"),
    (DurableOptions(47143, 2), "nobody was told that retention had taken all of a log, until the next event came"),
    (DurableOptions(43118, 2), "a log stood still: retention took at its leader what a follower was to get next"),
    (
        DurableOptions(30011, 1),
        "a newcomer that had met nobody registered a name that there was, and handed out from its start",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("options", "story"), PINNED)
def test_a_seed_that_found_something_stays_mended(options: DurableOptions, story: str) -> None:
    assert play(options).failure == "", story


def test_a_few_seeds_without_faults_keep_every_promise() -> None:
    summary = campaign(DurableOptions(0, seconds=8.0, faults=()), range(1, 4))
    assert summary.failures == []
    for what in ("conditions changed", "flagged", "acks refused", "events owed", "order compared"):
        assert summary.counts[what], f"{what} never happened"


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("nodes", [1, 3, 5])
def test_many_seeds_without_faults_keep_every_promise(nodes: int) -> None:
    # So short that slow clients are through with all of it before the run ends.
    summary = campaign(DurableOptions(0, nodes, seconds=10.0, faults=()), range(100, 106), jobs=CORES)
    assert summary.failures == []
