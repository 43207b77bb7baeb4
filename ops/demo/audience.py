"""The demo's subscribers: the subscription of each, and what each has received so far."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from headgate.protocol.client import Event

from .limits import LATENCY_SAMPLES

__all__ = ["WISHES", "Listener", "Told", "Wish"]


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
class Told:
    """A gap that a subscriber was told of: when, how many (0: nobody knows), and when its subscription was whole."""

    at: float
    count: int
    until: int | None = None
    """From this quote on everything is seen again; None: it is not in force yet."""
    whole_at: float | None = None
    served_at: float | None = None


@dataclass(slots=True)
class Listener:
    """Record of one subscriber: how often each quote came, in what order, how late, and its gaps."""

    wish: Wish
    home: str = ""
    """The broker that it began with."""
    broker: str = ""
    """The broker that it has now."""
    told: list[Told] = field(default_factory=list)
    seen: bytearray = field(default_factory=bytearray)
    delivered: int = 0
    misordered: list[int] = field(default_factory=list)
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
                self.misordered.append(number)
            last = number
        self._last = last
        self.delivered += len(events)
        for told in self.told:
            if told.whole_at is not None and told.served_at is None:
                told.served_at = now
        # One sample a batch: that of its oldest quote, which waited longest.
        oldest = events[0].attributes["number"]
        self.latencies.append(now - sent_at[int(oldest or 0)])

    def latency(self, share: float) -> float:
        """The latency within which this share of the newest samples lies, in seconds; 0 when there are none."""
        samples = sorted(self.latencies)
        return samples[min(len(samples) - 1, int(share * len(samples)))] if samples else 0.0
