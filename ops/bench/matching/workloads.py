"""Subscriptions and events for the matching benches, as trees and columns; drawn from one seed."""

from __future__ import annotations

import csv
import io
import os
import re
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from headgate.matching import Pattern, Tree, parse_condition
from headgate.matching.topics import parse_pattern
from headgate.matching.tree import Attribute, Between, Compare, Literal, conjunction

from ..kit import SOURCES
from .measure import Batch

__all__ = [
    "PADRES_MIX",
    "Quote",
    "batches_of",
    "mixed",
    "padres",
    "quote_batch",
    "quotes",
    "selective",
    "topic_patterns",
    "topics",
]

STREAM = parse_pattern("q")
Subscriptions = list[tuple[Pattern, Tree | None]]

PADRES_MIX = ((10, "high"), (10, "low"), (20, "volume"), (39, "symbol"), (20, "volume alone"), (1, "class"))
"""Per cent of each template in padres-generator.cfg."""

_TOPIC_LEVELS, _TOPIC_VALUES = 7, 50
_MIXED = (
    "symbol = 'S{n}' AND price BETWEEN {x} AND {y}",
    "symbol = 'S{n}' AND volume > {v}",
    "price BETWEEN {x} AND {x}.5 AND volume < {v}",
    "venue LIKE 'V{n}%' AND price > {x}",
    "venue LIKE 'V{n}-{k}%'",
    "symbol IN ('S{n}', 'S{k}', 'S{v}') AND price < {y}",
    "(symbol = 'S{n}' AND price < {x}) OR (venue = 'V{n}-{k}' AND volume > {v})",
    "flag IS NULL AND symbol = 'S{n}' AND volume % {k} = 1",
    "NOT (price < {x} OR price > {x}.25) AND flag",
    "price >= {x} AND price < {x}.75 AND symbol <> 'S{n}'",
)


def selective(count: int, symbols: int, matches: float, rng: Random) -> Subscriptions:
    """`symbol = ? AND price BETWEEN ? AND ?`, prices from 0 to 100, about so many matches an event."""
    width = min(100.0, 100.0 * matches / max(1.0, count / symbols))
    found: Subscriptions = []
    for number in range(count):
        low = rng.random() * (100 + width) - width
        inside = Between(Attribute("price"), Literal(low), Literal(low + width))
        equal = Compare("=", Attribute("symbol"), Literal(f"S{number % symbols}"))
        found.append((STREAM, conjunction((equal, inside))))
    return found


def mixed(count: int, rng: Random) -> Subscriptions:
    """Equality, ranges, LIKE prefixes, IN, OR, IS NULL, NOT and arithmetic, in equal parts."""
    found: Subscriptions = []
    for number in range(count):
        x = rng.randrange(1000)
        values = {"n": rng.randrange(200), "k": rng.randrange(2, 50), "x": x, "y": x + 20, "v": rng.randrange(1000)}
        found.append((STREAM, parse_condition(_MIXED[number % len(_MIXED)].format(**values))))
    return found


def batches_of(events: int, batch: int, symbols: int, rng: Random, price: float = 100.0) -> list[Batch]:
    """Events that fit `selective` (price up to 100) and `mixed` (up to 1000)."""
    size = min(batch, events)
    return [
        {
            "symbol": [f"S{rng.randrange(symbols)}" for _ in range(size)],
            "price": [rng.random() * price for _ in range(size)],
            "volume": [rng.randrange(1000) for _ in range(size)],
            "venue": [f"V{rng.randrange(200)}-{rng.randrange(50)}x" for _ in range(size)],
            "flag": [rng.choice((None, True, False)) for _ in range(size)],
        }
        for _ in range(events // size)
    ]


@dataclass(frozen=True, slots=True)
class Quote:
    """One row of the PADRES quotes."""

    symbol: str
    high: float
    low: float
    volume: int


def quotes(rng: Random, limit: int = 20_000) -> tuple[list[Quote], bool]:
    """Quotes of the PADRES data, or drawn ones where the data is not; and whether they are real."""
    root = Path(os.environ.get("HEADGATE_DATA", SOURCES.parent / "shared" / "data"))
    archive = root / "stock" / "padres-stockquotes.tar.gz"
    if not archive.exists():
        drawn = [
            Quote(f"S{rng.randrange(30)}", rng.uniform(5, 100), rng.uniform(4, 99), rng.randrange(10**8))
            for _ in range(limit)
        ]
        return drawn, False
    found: list[Quote] = []
    with tarfile.open(archive) as files:
        for member in files:
            content = files.extractfile(member)
            if content is not None:
                found += map(_quote, content.read().decode().splitlines())
    rng.shuffle(found)
    return found[:limit], True


def _quote(line: str) -> Quote:
    """`[class,'STOCK'],[symbol,'MSFT'],[open,27.00],...` as a quote."""
    fields = dict(row for row in csv.reader(io.StringIO("\n".join(re.findall(r"\[([^\]]*)\]", line)))) if len(row) == 2)
    return Quote(fields["symbol"].strip("'"), float(fields["high"]), float(fields["low"]), int(fields["volume"]))


def quote_batch(rows: Sequence[Quote]) -> Batch:
    """Quotes as the columns of one batch."""
    names = ("symbol", "high", "low", "volume")
    return {"class": ["STOCK"] * len(rows), **{name: [getattr(row, name) for row in rows] for name in names}}


def padres(count: int, known: Sequence[Quote], rng: Random) -> Subscriptions:
    """Subscriptions of the PADRES template mix, their constants taken from quotes."""
    weights, kinds = zip(*PADRES_MIX, strict=True)
    return [(STREAM, _padres_tree(kind, rng.choice(known))) for kind in rng.choices(kinds, weights, k=count)]


def _padres_tree(kind: str, quote: Quote) -> Tree:
    parts: list[Tree] = [Compare("=", Attribute("class"), Literal("STOCK"))]
    if kind not in ("volume alone", "class"):
        parts.append(Compare("=", Attribute("symbol"), Literal(quote.symbol)))
    if kind == "high":
        parts.append(Compare(">", Attribute("high"), Literal(quote.high)))
    if kind == "low":
        parts.append(Compare("<", Attribute("low"), Literal(quote.low)))
    if kind.startswith("volume"):
        parts.append(Compare(">", Attribute("volume"), Literal(quote.volume)))
    return conjunction(parts)


def topic_patterns(count: int, rng: Random) -> list[Pattern]:
    """HIER IV-B: 7 attributes of 50 values, a wildcard at one of them but the first; all different."""
    found: dict[Pattern, None] = {}
    while len(found) < count:
        levels = [f"v{rng.randrange(_TOPIC_VALUES)}" for _ in range(_TOPIC_LEVELS)]
        levels[rng.randrange(1, _TOPIC_LEVELS)] = "*"
        found[Pattern(tuple(levels))] = None
    return list(found)


def topics(count: int, patterns: Sequence[Pattern], rng: Random) -> list[str]:
    """Topics of the same kind, half of which some pattern matches."""
    found = []
    for turn in range(count):
        levels = [f"v{rng.randrange(_TOPIC_VALUES)}" for _ in range(_TOPIC_LEVELS)]
        if turn % 2:
            levels = [a if b == "*" else b for a, b in zip(levels, rng.choice(patterns).levels, strict=True)]
        found.append("/".join(levels))
    return found
