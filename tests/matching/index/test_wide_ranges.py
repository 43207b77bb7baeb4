"""matching/index/wide_ranges.py: rays and segments. That it finds what a list would find: test_ranges.py."""

from __future__ import annotations

from math import inf, nan
from random import Random

import pytest

from headgate.matching.index import Span
from headgate.matching.index.wide_ranges import WideRanges
from headgate.matching.limits import RAYS_PER_CHUNK_MAX

VALUES = (-inf, -1e300, -7.5, -0.0, 0, 3, 3.0, 499.5, 500, 2**53, inf, nan)


def found(wide: WideRanges[Span, Span], value: float) -> list[Span]:
    hits: list[tuple[Span, ...]] = []
    wide.find(value, hits)
    return [span for answer in hits for span in answer]


def holds(span: Span, value: float) -> bool:
    return not value < span.low and (span.high == inf or value < span.high)


@pytest.mark.parametrize("seed", range(6))
def test_it_finds_what_a_list_would_find_while_spans_come_and_go(seed: int) -> None:
    rng = Random(seed)
    wide: WideRanges[Span, Span] = WideRanges(tuple)
    present: list[Span] = []
    for turn in range(900):
        if present and rng.random() < (0.2 if turn < 600 else 0.8):
            wide.remove(present.pop(rng.randrange(len(present))))
        else:
            low = float(rng.randrange(500))
            ends = [(low, inf), (-inf, low), (low, low + rng.choice((5e-324, 0.25, 3.0, 100.0, 2.0**52)))]
            span = Span(*rng.choice(ends))
            if span.low < span.high:
                wide.add(span)
                present.append(span)
        if turn % 50 == 0:
            wide.validate()
            for value in (*VALUES, rng.uniform(-10, 510), float(rng.randrange(500))):
                expected = {id(span) for span in present if holds(span, value)}
                got = [id(span) for span in found(wide, value)]
                assert len(got) == len(expected) and set(got) == expected, value
    assert wide.size == len(present)


def test_rays_are_answered_by_whole_chunks_that_stay_ready() -> None:
    wide: WideRanges[Span, Span] = WideRanges(tuple)
    for low in range(RAYS_PER_CHUNK_MAX * 10):
        wide.add(Span(float(low), inf))
    first: list[tuple[Span, ...]] = []
    wide.find(700.5, first)
    again: list[tuple[Span, ...]] = []
    wide.find(700.5, again)
    assert sum(map(len, first)) == 701 and len(first) < 15
    assert all(a is b for a, b in zip(first[:-1], again[:-1], strict=True))
    changed = first[0][0]
    wide.touch(changed)
    wide.find(700.5, again)
    assert again[len(first)] is not first[0] and again[len(first) + 1] is first[1]


def test_a_segment_has_three_entries_at_most_whatever_its_width() -> None:
    for width in (1e-300, 0.1, 1.0, 1000.0, 2.0**53):
        wide: WideRanges[Span, Span] = WideRanges(tuple)
        wide.add(Span(0.3, 0.3 + max(width, 5e-17 * 2)))
        assert sum(len(grid) for grid in wide._grids.values()) <= 3


def test_removing_a_stranger_is_an_error() -> None:
    wide: WideRanges[Span, Span] = WideRanges(tuple)
    wide.add(Span(1.0, inf))
    with pytest.raises(KeyError):
        wide.remove(Span(1.0, inf))


@pytest.mark.parametrize("value", [inf, nan, 1e300])
def test_what_is_above_all_numbers_is_in_every_upward_ray(value: float) -> None:
    wide: WideRanges[Span, Span] = WideRanges(tuple)
    for low in range(RAYS_PER_CHUNK_MAX * 3):
        wide.add(Span(float(low), inf))
        wide.add(Span(-inf, float(low)))
    assert len(found(wide, value)) == RAYS_PER_CHUNK_MAX * 3
    assert len(found(wide, -inf)) == RAYS_PER_CHUNK_MAX * 3
