"""Numbers that were seen: the dumb twin is a set."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.protocol.client import ClientLimits
from headgate.protocol.client.replay import ProducerRanges

ranges = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 40), st.integers(1, 8)), max_size=20)


@given(ranges)
def test_what_is_fresh_is_what_a_set_has_not(steps: list[tuple[str, int, int]]) -> None:
    seen, twin = ProducerRanges(), {"a": set[int](), "b": set[int]()}
    for producer, start, count in steps:
        numbers = set(range(start, start + count))
        fresh = seen.take(producer, start, start + count)
        assert {number for first, last in fresh for number in range(first, last)} == numbers - twin[producer]
        assert all(first < last for first, last in fresh) and fresh == sorted(fresh)
        twin[producer] |= numbers


def test_numbers_that_follow_one_another_cost_one_span() -> None:
    seen = ProducerRanges()
    for number in range(0, 1000, 10):
        assert seen.take("a", number, number + 10) == [(number, number + 10)]
    assert seen._seen == {"a": [(0, 1000)]}
    assert seen.take("a", 995, 1005) == [(1000, 1005)]


def test_what_is_oldest_is_forgotten() -> None:
    seen = ProducerRanges(ClientLimits(producer_spans=2, producers_known=2))
    for start in (0, 10, 20):
        seen.take("a", start, start + 1)
    assert seen._seen == {"a": [(10, 11), (20, 21)]}
    seen.take("b", 0, 1)
    seen.take("c", 0, 1)
    assert list(seen._seen) == ["b", "c"]
