"""Spans: which numbers of a producer were seen, as a few intervals, so that an event that is in two logs is shown once.

It is in two when its broker wrote it, died before anybody had a copy, and its publisher, who had no answer, sent it to
another one. Numbers mostly follow one another, so a producer costs one interval; both counts are bounded, and what is
forgotten is what is oldest.
"""

from __future__ import annotations

from .limits import PRODUCERS_KNOWN_MAX, SPANS_MAX

__all__ = ["Spans"]

Span = tuple[int, int]


class Spans:
    """Numbers from `start` up to `stop`, by producer."""

    def __init__(self) -> None:
        self._seen: dict[str, list[Span]] = {}

    def take(self, producer: str, start: int, stop: int) -> list[Span]:
        """Those of these numbers that were not seen before, as spans. From now on all are seen."""
        spans = self._seen.get(producer)
        if spans is None:
            if len(self._seen) >= PRODUCERS_KNOWN_MAX:
                del self._seen[next(iter(self._seen))]
            spans = self._seen[producer] = []
        if spans and spans[-1][1] == start:
            spans[-1] = (spans[-1][0], stop)
            return [(start, stop)]
        fresh = _gaps(spans, start, stop)
        self._seen[producer] = _joined([*spans, (start, stop)])[-SPANS_MAX:]
        return fresh


def _gaps(spans: list[Span], start: int, stop: int) -> list[Span]:
    """What of it lies between these spans, which ascend."""
    fresh: list[Span] = []
    for first, last in spans:
        if first >= stop:
            break
        if start < first:
            fresh.append((start, first))
        start = max(start, last)
    if start < stop:
        fresh.append((start, stop))
    return fresh


def _joined(spans: list[Span]) -> list[Span]:
    """The same numbers in ascending spans that do not touch."""
    joined: list[Span] = []
    for start, stop in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((start, stop))
    return joined
