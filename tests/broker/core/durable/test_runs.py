"""Runs of positions: what they are to a set of integers, and as bytes."""

from __future__ import annotations

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.durable import (
    Waiting,
    count_of,
    intersect,
    join_runs,
    runs_of,
    split_runs,
    subtract,
    union,
)
from headgate.broker.core.limits import POSITIONS_MAX
from headgate.protocol.errors import ProtocolViolation

positions = st.sets(st.integers(0, 40), max_size=30)


def runs(some: set[int]) -> list[tuple[int, int]]:
    return runs_of(sorted(some))


def test_runs_are_of_positions_in_a_row() -> None:
    assert runs_of([]) == []
    assert runs_of([0]) == [(0, 1)]
    assert runs_of([3, 4, 5, 7, 9, 10]) == [(3, 6), (7, 8), (9, 11)]
    assert count_of([(3, 6), (7, 8)]) == 4


@given(positions, positions)
def test_algebra_is_that_of_sets(left: set[int], right: set[int]) -> None:
    assert union([*runs(left), *runs(right)]) == runs(left | right)
    assert intersect(runs(left), runs(right)) == runs(left & right)
    assert subtract(runs(left), runs(right)) == runs(left - right)


def test_runs_are_little_endian_pairs() -> None:
    assert join_runs([(1, 3), (2**40, 2**40 + 1)]) == pack("<4Q", 1, 3, 2**40, 2**40 + 1)
    assert split_runs(b"") == []


@given(positions)
def test_runs_come_back_from_bytes(some: set[int]) -> None:
    assert split_runs(join_runs(runs(some))) == runs(some)


@pytest.mark.parametrize(
    "data",
    [
        b"1234567",
        pack("<Q", 1),
        pack("<2Q", 3, 3),
        pack("<2Q", 4, 3),
        pack("<4Q", 5, 6, 1, 2),
        pack("<4Q", 1, 5, 4, 6),
        pack("<2Q", 1, POSITIONS_MAX + 1),
    ],
)
def test_what_is_no_runs_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        split_runs(data)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), positions),
        st.tuples(st.just("pop"), st.integers(0, 20), st.integers(0, 300)),
        st.tuples(st.just("drop"), st.integers(0, 300)),
        st.tuples(st.just("clear")),
    ),
    max_size=30,
)


@given(steps)
def test_waiting_is_a_queue_of_positions(taken: list[tuple[object, ...]]) -> None:
    waiting, twin, end = Waiting(), list[int](), 0
    for step in taken:
        match step:
            case ("append", set() as some):
                added = [end + position for position in sorted(some)]
                end = added[-1] + 1 if added else end
                waiting.append(runs_of(added))
                twin += added
            case ("pop", int(count), int(before)):
                expected = [position for position in twin if position < before][:count]
                assert waiting.pop(count, before) == runs_of(expected)
                del twin[: len(expected)]
            case ("drop", int(before)):
                kept = [position for position in twin if position >= before]
                assert waiting.drop(before) == len(twin) - len(kept)
                twin = kept
            case _:
                waiting.clear()
                twin = []
        waiting.validate()
        assert waiting.count == len(twin)
        assert waiting.first == (twin[0] if twin else None)
        assert waiting.runs() == runs_of(twin)
        assert len(waiting) == len(runs_of(twin))


def test_a_long_queue_gives_its_memory_back() -> None:
    waiting = Waiting()
    waiting.append([(2 * at, 2 * at + 1) for at in range(10_000)])
    assert waiting.pop(9_000)[-1] == (17_998, 17_999)
    waiting.append([(30_000, 30_010)])
    assert waiting.drop(19_990) == 995
    waiting.validate()
    assert waiting.runs()[0] == (19_990, 19_991)
    assert waiting.count == 15
