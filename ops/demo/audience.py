"""The demo's subscribers: what each wants, and what each has received so far."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from protocol.receiving import Event

from .limits import LATENCY_SAMPLES

__all__ = ["WISHES", "Listener", "Wish"]


@dataclass(frozen=True, slots=True)
class Wish:
    """A subscription of the demo, with a name for people."""

    name: str
    pattern: str
    where: str


WISHES = (
    Wish("one symbol", "quotes/ATHEX/OTE", ""),
    Wish("price band", "quotes/*/IBM", "price BETWEEN 90 AND 110 OR change > 0.4"),
    Wish("watch list", "quotes", "symbol IN ('AAPL', 'SAP', 'BMW', 'GE') AND change <> 0"),
    Wish("big in London", "quotes/LSE", "volume > 8000 AND NOT halted"),
    Wish("turnover", "quotes", "price * volume > 1200000"),
    Wish("falling A names", "quotes", "symbol LIKE 'A%' AND change < 0 AND NOT halted"),
)
"""Six of a kind each: topic alone, range, list, topic and flag, arithmetic, text. Two of them meet NULL."""


@dataclass(slots=True)
class Listener:
    """One subscriber's notes: how often each quote came, in what order, and how late."""

    wish: Wish
    seen: bytearray = field(default_factory=bytearray)
    delivered: int = 0
    misordered: int = 0
    lost: int = 0
    latencies: deque[float] = field(default_factory=lambda: deque(maxlen=LATENCY_SAMPLES))
    _last: int = -1

    def take(self, events: Sequence[Event], sent_at: Sequence[float], now: float) -> None:
        """Note some deliveries; `sent_at` has the time at which each quote was published."""
        seen, last = self.seen, self._last
        for event in events:
            number = event.attributes["number"]
            assert isinstance(number, int), "the feed numbers its quotes"
            if number >= len(seen):
                seen.extend(bytes(max(number + 1 - len(seen), len(seen))))
            if seen[number] < 255:
                seen[number] += 1
            if number <= last:
                self.misordered += 1
            last = number
        self._last = last
        self.delivered += len(events)
        # One sample a batch: that of its oldest quote, which waited longest.
        oldest = events[0].attributes["number"]
        self.latencies.append(now - sent_at[int(oldest or 0)])

    def latency(self, share: float) -> float:
        """The latency within which this share of the newest samples lies, in seconds; 0 when there are none."""
        samples = sorted(self.latencies)
        return samples[min(len(samples) - 1, int(share * len(samples)))] if samples else 0.0
