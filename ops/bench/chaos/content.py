"""Events and subscriptions of a chaos run: numbered events and mixed conditions, each drawn from one seed.

An event is made from its number alone, so that what should have been delivered can be computed afterwards, by brute
force and with nothing of the broker's index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from headgate.matching import evaluate, parse_condition, parse_pattern
from headgate.protocol.data import Scalar

__all__ = ["SCHEMA", "STREAMS", "Occurrence", "Wish", "occurrence", "schemas", "wanted", "wishes"]

STREAMS = ("orders", "quotes", "sensors")
_REGIONS = ("eu", "us", "asia")
_SYMBOLS = [f"S{number:02d}" for number in range(40)]
SCHEMA = {"attributes": {"price": {"type": "float", "min": 0.0, "max": 100.0, "precision": 0.01}}}
"""Makes a range of prices rest on the brokers of its stretch of the ring; the third stream has none."""


def schemas(audit: bool) -> dict[str, dict[str, Any]]:
    """What is put where. Audited streams are stored as well."""
    found: dict[str, dict[str, Any]] = {stream: dict(SCHEMA) for stream in STREAMS[:2]}
    if audit:
        found |= {stream: {"attributes": {}, **found.get(stream, {}), "audit": True} for stream in STREAMS}
    return found


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One event."""

    topic: str
    attributes: dict[str, Scalar]


@dataclass(frozen=True, slots=True)
class Wish:
    """One subscription."""

    pattern: str
    where: str


def occurrence(seed: int, number: int) -> Occurrence:
    """The event of that number."""
    random = Random(seed * 1_000_003 + number)
    symbol = random.choice(_SYMBOLS)
    topic = f"{random.choice(STREAMS)}/{random.choice(_REGIONS)}/{symbol}"
    attributes: dict[str, Scalar] = {
        "number": number,
        "symbol": symbol,
        "price": round(random.uniform(0.0, 100.0), 2),
        "volume": random.randrange(1000),
    }
    if random.random() < 0.1:
        attributes["halted"] = True
    return Occurrence(topic, attributes)


def wishes(seed: int, count: int) -> list[Wish]:
    """Subscriptions of every kind in turn: each way for a condition to find its place on the ring, and none."""
    random = Random(seed)
    return [_KINDS[number % len(_KINDS)](random) for number in range(count)]


def _equality(random: Random) -> Wish:
    return Wish(random.choice(STREAMS), f"symbol = '{random.choice(_SYMBOLS)}'")


def _list(random: Random) -> Wish:
    names = ", ".join(f"'{name}'" for name in random.sample(_SYMBOLS, 3))
    return Wish(random.choice(STREAMS), f"symbol IN ({names}) AND volume < 800")


def _narrow(random: Random) -> Wish:
    low = random.randrange(95)
    return Wish(random.choice(STREAMS), f"price BETWEEN {low}.25 AND {low + 2}.75")


def _wide(random: Random) -> Wish:
    low = random.randrange(60)
    return Wish(random.choice(STREAMS), f"price BETWEEN {low} AND {low + 40} AND volume > 950")


def _topic(random: Random) -> Wish:
    return Wish(f"{random.choice(STREAMS)}/{random.choice(_REGIONS)}/{random.choice(_SYMBOLS)}", "")


def _star(random: Random) -> Wish:
    return Wish(f"{random.choice(STREAMS)}/*/{random.choice(_SYMBOLS)}", "price * volume > 20000")


def _plain(random: Random) -> Wish:
    return Wish(f"{random.choice(STREAMS)}/{random.choice(_REGIONS)}", f"volume % 40 = {random.randrange(40)}")


def _text(random: Random) -> Wish:
    return Wish(random.choice(STREAMS), f"symbol LIKE 'S{random.randrange(4)}%' AND halted AND price > 50")


def _either(random: Random) -> Wish:
    return Wish(random.choice(STREAMS), f"price < {random.randrange(1, 3)} OR volume = {random.randrange(1000)}")


def _absent(random: Random) -> Wish:
    number = random.randrange(100)
    return Wish(random.choice(STREAMS), f"halted IS NULL AND volume BETWEEN {number} AND {number + 20}")


_KINDS = (_equality, _list, _narrow, _wide, _topic, _star, _plain, _text, _either, _absent)


def wanted(seed: int, count: int, all_wishes: Sequence[Wish]) -> list[list[int]]:
    """For each wish the numbers of the events that it should get, out of the first `count`."""
    found: list[list[int]] = [[] for _ in all_wishes]
    parsed = []
    for place, wish in enumerate(all_wishes):
        condition = parse_condition(wish.where) if wish.where else None
        parsed.append((found[place], parse_pattern(wish.pattern), condition))
    for number in range(count):
        event = occurrence(seed, number)
        for numbers, pattern, condition in parsed:
            if not pattern.matches(event.topic):
                continue
            if condition is None or evaluate(condition, event.attributes) is True:
                numbers.append(number)
    return found
