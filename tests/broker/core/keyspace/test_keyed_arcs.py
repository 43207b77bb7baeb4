"""Stretches of the ring against counting keys on a small one, and what a scope covers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.keyspace import NOTHING, RING_SIZE, Arc, Scope

EDGE = 6
keys = st.one_of(st.integers(0, EDGE), st.integers(RING_SIZE - EDGE, RING_SIZE - 1))
stretches = st.builds(Arc, keys, keys)
PROBES = [*range(EDGE + 2), *range(RING_SIZE - EDGE - 1, RING_SIZE), RING_SIZE // 2]


def walked(first: int, last: int) -> set[int]:
    """The probes from first to last, by walking."""
    span = (last - first) % RING_SIZE
    return {probe for probe in PROBES if (probe - first) % RING_SIZE <= span}


@given(stretches)
def test_a_stretch_covers_what_lies_after_its_beginning_up_to_its_end(stretch: Arc) -> None:
    expected = set(PROBES) if stretch.after == stretch.last else walked(stretch.first, stretch.last)
    assert {probe for probe in PROBES if stretch.covers(probe)} == expected


@given(stretches, keys, keys)
def test_touching_is_having_a_key_in_common(stretch: Arc, low: int, high: int) -> None:
    own = {probe for probe in PROBES if stretch.covers(probe)}
    assert stretch.touches(low, high) == bool(own & walked(low, high))


@given(stretches, stretches)
def test_containing_is_covering_every_key_of_the_other(one: Arc, other: Arc) -> None:
    assert one.contains(other) == all(one.covers(probe) for probe in PROBES if other.covers(probe)) or one == other


@given(stretches, stretches)
def test_overlapping_is_symmetric(one: Arc, other: Arc) -> None:
    assert one.overlaps(other) == other.overlaps(one)


@given(st.lists(stretches, max_size=4))
def test_a_scope_covers_what_one_of_its_stretches_covers(parts: list[Arc]) -> None:
    scope = Scope(parts, 1.0, 1)
    for probe in PROBES:
        assert scope.covers(probe) == any(part.covers(probe) for part in parts)
    assert scope.everything == (all(map(scope.covers, PROBES)) and sum(map(Arc.size.fget, parts)) >= RING_SIZE)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ([Arc(1, 9)], [Arc(1, 5), Arc(5, 9)], True),
        ([Arc(7, 7)], [Arc(1, 5), Arc(5, 1)], True),
        ([Arc(1, 9)], [Arc(1, 8)], False),
    ],
)
def test_scopes_are_compared_by_their_keys(one: list[Arc], other: list[Arc], same: bool) -> None:
    assert Scope(one, 1.0, 1).same_keys(Scope(other, 2.0, 2)) is same


def test_nothing_covers_nothing() -> None:
    assert not any(map(NOTHING.covers, PROBES))
    assert not NOTHING.everything
