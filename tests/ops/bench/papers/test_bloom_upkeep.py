"""Upkeep: what a ring at rest says is counted whole, and heartbeats as sessions send them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.ops.bench.papers import __main__ as papers
from headgate.ops.bench.papers.bloom_upkeep import heartbeats, upkeep
from headgate.protocol.messages import Letter
from headgate.protocol.wire import Role, Session
from tests.support.pair import PEER

WORD = Letter([1, 1, 0, "a:1"], None, 1, [])


def pings_of_sessions(times: list[tuple[float, int]], stop: float) -> dict[int, int]:
    """How often two sessions ping one another, when they are woken at their deadlines and bytes take no time."""
    ends = {number: Session(Role.PEER, 0.0) for number in (1, 2)}

    def carry(now: float) -> None:
        for number in (1, 2, 1):
            for data in ends[number].take():
                ends[3 - number].receive(data, now)

    for session in ends.values():
        session.send(PEER)
    carry(0.0)
    sent = dict.fromkeys(ends, 0)
    for time, receiver in [*times, (stop, 1)]:
        while (first := min(session.next_deadline() for session in ends.values())) < time:
            number = min(ends, key=lambda one: ends[one].next_deadline())
            ends[number].wake(first)
            sent[number] += 1
            carry(first)
        ends[3 - receiver].send(WORD)
        carry(time)
    assert not any(session.closed for session in ends.values())
    return sent


@given(
    st.lists(st.tuples(st.integers(0, 90).map(lambda tenths: tenths / 10), st.sampled_from([1, 2])), max_size=20).map(
        sorted
    )
)
def test_heartbeats_are_those_of_sessions(times: list[tuple[float, int]]) -> None:
    found = heartbeats(times, (1, 2), 0.0, 9.45)
    assert found.total() == sum(pings_of_sessions(times, 9.45).values()), (
        "which of two goes first where both are silent"
    )


@pytest.mark.slow
def test_a_ring_at_rest_is_counted_and_filters_make_no_difference() -> None:
    bare, with_filters = (upkeep(6, "ring", length, 4, 5.0) for length in (0, 1024))
    assert all(bare.kinds[kind] > 0 for kind in ("ring", "keys"))
    every = sum(bare.kinds.values())
    assert bare.in_max >= every <= bare.out_max
    assert with_filters.overlay == pytest.approx(bare.overlay, rel=0.1)
    assert with_filters.kinds["keys"] > bare.kinds["keys"], "subscriptions are put again before they lapse"


@pytest.mark.slow
def test_the_table_is_printed() -> None:
    assert papers.main(["bloom-upkeep"], upkeep_sizes={"mesh": (6,), "ring": (6,)}, upkeep_seconds=5.0) == 0
