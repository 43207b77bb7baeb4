"""The proof: what each subscriber should have received, by brute force, against what it did receive.

Nothing here is shared with the broker's index. The quotes are made again from the seed, and every one of them is
shown to the plain meaning of every condition (`matching.evaluate`).
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat

from .audience import Listener, Wish
from .feed import QuoteFeed
from .limits import BATCH_EVENTS, EXAMPLES_MAX, PROOF_PROCESSES

__all__ = ["Verdict", "expected_numbers", "judge", "wanted_by"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one wish. The examples are numbers of quotes."""

    wish: Wish
    expected: int
    delivered: int
    missing: int
    unexpected: int
    repeated: int
    misordered: int
    missing_examples: tuple[int, ...]
    unexpected_examples: tuple[int, ...]

    @property
    def exact(self) -> bool:
        """Everything that was asked for, nothing else, once each, in order."""
        return not (self.missing or self.unexpected or self.repeated or self.misordered)

    @property
    def text(self) -> str:
        """The verdict in words."""
        if self.exact:
            return "exact"
        parts = []
        if self.missing:
            parts.append(f"{self.missing:,} missing (quotes {_some(self.missing_examples)})")
        if self.unexpected:
            parts.append(f"{self.unexpected:,} unexpected (quotes {_some(self.unexpected_examples)})")
        if self.repeated:
            parts.append(f"{self.repeated:,} more than once")
        if self.misordered:
            parts.append(f"{self.misordered:,} out of order")
        return ", ".join(parts)


def wanted_by(wishes: Sequence[Wish], seed: int, count: int) -> list[bytes]:
    """For each wish one byte a quote: 1 where it should have been delivered. Uses processes of its own."""
    # Forking a process whose event loop runs would copy its sockets and its loop.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PROOF_PROCESSES, context) as pool:
        return list(pool.map(expected_numbers, wishes, repeat(seed), repeat(count)))


def expected_numbers(wish: Wish, seed: int, count: int) -> bytes:
    """One byte a quote: 1 where the pattern matches and the condition is true."""
    from matching import evaluate, parse_condition, parse_pattern

    pattern = parse_pattern(wish.pattern)
    condition = parse_condition(wish.where) if wish.where else None
    feed = QuoteFeed(seed)
    wanted = bytearray()
    while len(wanted) < count:
        quotes = feed.take(min(BATCH_EVENTS, count - len(wanted)))
        for place, topic in enumerate(quotes.topics):
            matches = pattern.matches(topic) and (condition is None or evaluate(condition, quotes.row(place)) is True)
            wanted.append(matches)
    return bytes(wanted)


def judge(listener: Listener, wanted: bytes) -> Verdict:
    """Compare."""
    seen = listener.seen.ljust(len(wanted), b"\0")
    missing, unexpected, repeated = [], [], 0
    for number, (have, want) in enumerate(zip(seen, wanted.ljust(len(seen), b"\0"), strict=True)):
        if have == want:
            continue
        if want and not have:
            missing.append(number)
        elif have and not want:
            unexpected.append(number)
        if have > 1:
            repeated += 1
    return Verdict(
        listener.wish,
        sum(wanted),
        listener.delivered,
        len(missing),
        len(unexpected),
        repeated,
        listener.misordered,
        tuple(missing[:EXAMPLES_MAX]),
        tuple(unexpected[:EXAMPLES_MAX]),
    )


def _some(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers)) + (", …" if len(numbers) == EXAMPLES_MAX else "")
