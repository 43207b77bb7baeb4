"""The proof: what each subscriber should have received, by brute force, against what it did receive.

What may be missing says an `Excuse`: only what somebody was told of. Nothing here is shared with the broker's index:
the quotes are made again from the seed, and every one of them is shown to the plain meaning of every condition
(`matching.evaluate`).
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat

from .accident import NOTHING_EXCUSED, Excuse
from .audience import Listener, Wish
from .feed import QuoteFeed
from .limits import BATCH_EVENTS, EXAMPLES_MAX, PROOF_PROCESSES

__all__ = ["Verdict", "expected_numbers", "judge", "wanted_by"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one subscription. The examples are numbers of quotes."""

    wish: Wish
    expected: int
    delivered: int
    missing: int
    unexpected: int
    repeated: int
    misordered: int
    missing_examples: tuple[int, ...]
    unexpected_examples: tuple[int, ...]
    in_gap: int = 0
    """Missing, and it was told so."""
    doubtful: int = 0
    """Missing, and the publisher was told that nobody knows of them."""
    in_force: bool = True
    misordered_examples: tuple[int, ...] = ()
    overtaken: int = 0
    """Out of order where order is not promised: no fault, but said."""

    @property
    def exact(self) -> bool:
        """Everything that was asked for, nothing else, once each, in order; but for what somebody was told of."""
        return self.in_force and not (self.missing or self.unexpected or self.repeated or self.misordered)

    @property
    def text(self) -> str:
        """The verdict in words."""
        if self.exact:
            told = [f"{self.in_gap:,} missing in its announced gap"] if self.in_gap else []
            told += [f"{self.doubtful:,} missing of unknown outcome"] if self.doubtful else []
            told += [f"{self.overtaken:,} out of order where order is not promised"] if self.overtaken else []
            return f"exact, with {' and '.join(told)}" if told else "exact"
        parts = [] if self.in_force else ["it was not told that its subscription is in force again"]
        if self.missing:
            parts.append(f"{self.missing:,} missing (quotes {_some(self.missing_examples)})")
        if self.unexpected:
            parts.append(f"{self.unexpected:,} unexpected (quotes {_some(self.unexpected_examples)})")
        if self.repeated:
            parts.append(f"{self.repeated:,} more than once")
        if self.misordered:
            parts.append(f"{self.misordered:,} out of order (quotes {_some(self.misordered_examples)})")
        return ", ".join(parts)


def wanted_by(wishes: Sequence[Wish], seed: int, count: int) -> list[bytes]:
    """For each wish one byte a quote: 1 where it should have been delivered. Uses processes of its own."""
    # Forking a process whose event loop runs would copy its sockets and its loop.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PROOF_PROCESSES, context) as pool:
        return list(pool.map(expected_numbers, wishes, repeat(seed), repeat(count)))


def expected_numbers(wish: Wish, seed: int, count: int) -> bytes:
    """One byte a quote: 1 where the pattern matches and the condition is true."""
    from headgate.matching import evaluate, parse_condition, parse_pattern

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


def judge(listener: Listener, wanted: bytes, excuse: Excuse = NOTHING_EXCUSED, ordered: bool = True) -> Verdict:
    """Compare. Whether order was promised is the caller's to say."""
    seen = listener.seen.ljust(len(wanted), b"\0")
    missing, unexpected, repeated, in_gap, doubtful = [], [], 0, 0, 0
    for number, (have, want) in enumerate(zip(seen, wanted.ljust(len(seen), b"\0"), strict=True)):
        if have == want:
            continue
        if want and not have:
            if excuse.told(number):
                in_gap += 1
            elif excuse.doubtful(number):
                doubtful += 1
            else:
                missing.append(number)
        elif have and not want:
            unexpected.append(number)
        if have > 1:
            repeated += 1
    misordered = [number for number in listener.misordered if number not in excuse.around] if ordered else []
    return Verdict(
        listener.wish,
        sum(wanted),
        listener.delivered,
        len(missing),
        len(unexpected),
        repeated,
        len(misordered),
        tuple(missing[:EXAMPLES_MAX]),
        tuple(unexpected[:EXAMPLES_MAX]),
        in_gap,
        doubtful,
        excuse.in_force,
        tuple(misordered[:EXAMPLES_MAX]),
        len(listener.misordered) - len(misordered),
    )


def _some(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers)) + (", …" if len(numbers) == EXAMPLES_MAX else "")
