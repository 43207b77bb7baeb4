"""The cases that must stay bounded: what each costs, and what bounds it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from headgate.matching import Index, Pattern, Tree, Value, parse_condition
from headgate.matching.limits import TOPIC_LEVELS_MAX, TOPIC_MASKS_MAX
from headgate.matching.topics import TopicHash, TopicMasks, TopicTable
from headgate.matching.tree import Attribute, Compare, Literal

from .measure import frozen, seconds
from .workloads import STREAM

__all__ = ["CASES", "worst_rows"]

_EVENTS = 20


def _cost(index: Index, columns: dict[str, Value]) -> float:
    """Microseconds of one event."""
    row = {name: (value,) for name, value in columns.items()}

    def act() -> None:
        for _ in range(_EVENTS):
            index.match(("q",), 1, row)

    with frozen():
        return seconds(act) / _EVENTS * 1e6


def _filled(trees: list[Tree]) -> Index:
    index = Index()
    for number, tree in enumerate(trees):
        index.add(number, STREAM, tree)
    return index


def _all_match(size: int, rng: Random) -> float:
    trees: list[Tree] = [Compare("<>", Attribute("a"), Literal(number + 10)) for number in range(size)]
    return _cost(_filled(trees), {"a": 1})


def _all_match_untyped(size: int, rng: Random) -> float:
    trees: list[Tree] = [Compare("<>", Attribute("a"), Literal(f"x{number}")) for number in range(size)]
    return _cost(_filled(trees), {"a": "y"})


def _many_attributes(size: int, rng: Random) -> float:
    trees = [
        parse_condition(f"a{rng.randrange(64)} = {number % 1000} AND a{rng.randrange(64)} > {rng.randrange(1000)}")
        for number in range(min(size, 10_000))
    ]
    return _cost(_filled(trees), {f"a{place}": rng.randrange(1000) for place in range(64)})


def _same_range(size: int, rng: Random) -> float:
    trees = [parse_condition(f"p BETWEEN 1 AND 5 AND q + {number} = 1") for number in range(min(size, 10_000))]
    return _cost(_filled(trees), {"p": 3.0, "q": 0})


def _long_like(size: int, rng: Random) -> float:
    patterns = ["%" + "%".join(rng.choice("ab") * 7 for _ in range(100)) + "%" for _ in range(100)]
    trees = [parse_condition(f"a LIKE '{pattern}_'") for pattern in patterns]
    return _cost(_filled(trees), {"a": "ab" * 2000})


def _wildcards(make: Callable[[], TopicTable[int]], size: int, rng: Random) -> float:
    """Every combination of wildcards, as many as there may be."""
    table = make()
    for number in range(min(size, 10_000)):
        levels = ["x", *("*" if number >> place % 14 & 1 else "x" for place in range(TOPIC_LEVELS_MAX - 1))]
        pattern = Pattern(tuple(levels[: 14 + number % 18]))
        if table.get(pattern) is None:
            table.put(pattern, number)
    topic = "/".join(["x"] * TOPIC_LEVELS_MAX)
    with frozen():
        return seconds(lambda: table.resolve(topic)) * 1e6


CASES: dict[str, tuple[Callable[[int, Random], float], str]] = {
    "all match: a <> number": (_all_match, "the answer is ready; its length"),
    "all match: a <> string": (_all_match_untyped, "one compiled test each"),
    "64 attributes an event": (_many_attributes, "a lookup for each attribute, tests of candidates only"),
    "one range for all, with tests": (_same_range, "one compiled test each"),
    "LIKE of 800 characters x 100": (_long_like, "linear in pattern and text"),
    "2^14 masks of wildcards, ours": (
        lambda size, rng: _wildcards(TopicMasks, size, rng),
        f"{TOPIC_MASKS_MAX} lookups, then nodes that exist (all match)",
    ),
    "2^14 masks of wildcards, hash": (
        lambda size, rng: _wildcards(TopicHash, size, rng),
        "HASH_LOOKUPS_MAX, or the stream's patterns (all match)",
    ),
}
"""Name -> (microseconds an event for a size, what bounds it)."""


def worst_rows(size: int, rng: Random) -> list[tuple[str, ...]]:
    """The lines of the table."""
    return [(name, f"{size:,}", f"{case(size, rng):.1f}", bound) for name, (case, bound) in CASES.items()]
