"""Spans: which events of a producer are in rows of other logs, and whether a row of ours shares one with them.

Rows of many producers stand mixed in a log, and a producer may write to several streams in turn. So a row goes on the
last span of its own producer in that log, and where its numbers leave one out a new span begins: what stands between
may be elsewhere, acknowledged, and a span that covered it would take that back. Rows that are doubted are spans of
their own, for each is compared by its time.

There may be as many spans as rows, so what shares an event with a row is found by halving.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from headgate.protocol.log_rows import LogName, Row

__all__ = ["GatheredSpans", "Span", "Spans"]


@dataclass(slots=True)
class Span:
    """Events `start` to `end - 1` of a producer are in rows of one log of that broker, the first one of this time."""

    producer: str
    start: int
    end: int
    time: int
    doubted: bool
    broker: str
    digest: bytes = b""
    here: bool = False


class GatheredSpans:
    """What rows make, as they come in the order of their logs."""

    def __init__(self) -> None:
        self.all: list[Span] = []
        self._last: dict[tuple[str, LogName], Span] = {}

    def take(self, name: LogName, row: Row, doubted: bool) -> None:
        """A row of that log."""
        end, last = row.number + row.count, self._last.get((row.producer, name))
        if last is not None and last.end == row.number and not (doubted or last.doubted):
            last.end, last.digest = end, row.digest
            return
        span = Span(row.producer, row.number, end, row.time, doubted, name.broker, row.digest)
        self.all.append(span)
        self._last[row.producer, name] = span


class Spans:
    """All that was found, to be looked into."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._of: dict[str, dict[str, _Ascending]] = {}
        of: dict[tuple[str, str], list[Span]] = {}
        for span in spans:
            of.setdefault((span.producer, span.broker), []).append(span)
        for (producer, broker), some in of.items():
            self._of.setdefault(producer, {})[broker] = _Ascending(some)

    def __bool__(self) -> bool:
        return bool(self._of)

    def of(self, producer: str) -> Iterator[Span]:
        """All of that producer."""
        for some in self._of.get(producer, {}).values():
            yield from some.spans

    def sharing(self, producer: str, start: int, end: int) -> Iterator[Span]:
        """Those that have one of these events of a producer."""
        for some in self._of.get(producer, {}).values():
            yield from some.sharing(start, end)


class _Ascending:
    """Spans of one producer that one broker told of. Few of them share an event, so few are looked at."""

    def __init__(self, spans: list[Span]) -> None:
        self.spans = sorted(spans, key=lambda span: span.start)
        self._starts = [span.start for span in self.spans]
        self._ends = list(accumulate((span.end for span in self.spans), max))  # the largest up to there

    def sharing(self, start: int, end: int) -> Iterator[Span]:
        place = bisect_left(self._starts, end) - 1
        while place >= 0 and self._ends[place] > start:
            if self.spans[place].end > start:
                yield self.spans[place]
            place -= 1
