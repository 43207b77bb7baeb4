"""A feed of quotes by random walk: the same seed gives the same quotes, in whatever portions they are taken.

Some quotes have no volume (it is not known yet), so that conditions meet NULL; some symbols are halted.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from headgate.protocol.data import Scalar

from .limits import SYMBOLS

__all__ = ["EXCHANGES", "QuoteFeed", "Quotes"]

EXCHANGES = ("NYSE", "NASDAQ", "LSE", "XETRA", "ATHEX")
_NAMED = ("IBM", "AAPL", "BP", "SAP", "OTE", "GE", "MSFT", "VOD", "BMW", "OPAP")
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NO_VOLUME_SHARE = 0.02
_HALTED_SHARE = 0.01


@dataclass(slots=True)
class Quotes:
    """Some quotes as columns, as `publish_batch` takes them."""

    topics: list[str] = field(default_factory=list)
    columns: dict[str, list[Scalar]] = field(default_factory=dict)
    bodies: list[bytes] = field(default_factory=list)

    def row(self, place: int) -> dict[str, Scalar]:
        """The attributes of one quote."""
        return {name: values[place] for name, values in self.columns.items()}


class QuoteFeed:
    """Quotes of 200 symbols on five exchanges. Each quote has a number of its own, counted from 0."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._symbols = _symbols(self._random)
        self._exchanges = [EXCHANGES[place % len(EXCHANGES)] for place in range(SYMBOLS)]
        pairs = zip(self._exchanges, self._symbols, strict=True)
        self._topics = [f"quotes/{exchange}/{symbol}" for exchange, symbol in pairs]
        self._bodies = [f"a quote of {symbol}".encode() for symbol in self._symbols]
        self._prices = [round(10 + 190 * self._random.random(), 2) for _ in self._symbols]
        self._number = 0

    def take(self, count: int) -> Quotes:
        """The next quotes."""
        draw, prices = self._random.random, self._prices
        places: list[int] = []
        price_column: list[Scalar] = []
        changes: list[Scalar] = []
        volumes: list[Scalar] = []
        halted: list[Scalar] = []
        for _ in range(count):
            place = int(draw() * SYMBOLS)
            before = prices[place]
            price = prices[place] = round(max(1.0, before * (1 + (draw() - 0.5) / 100)), 2)
            chance = draw()
            places.append(place)
            price_column.append(price)
            changes.append(round(price - before, 2))
            # From a hundred to ten thousand, small ones as often as large ones by their logarithm.
            volumes.append(None if chance < _NO_VOLUME_SHARE else int(100 * 100**chance))
            halted.append(draw() < _HALTED_SHARE)
        numbers: list[Scalar] = list(range(self._number, self._number + count))
        self._number += count
        columns: dict[str, list[Scalar]] = {
            "number": numbers,
            "symbol": [self._symbols[place] for place in places],
            "exchange": [self._exchanges[place] for place in places],
            "price": price_column,
            "change": changes,
            "volume": volumes,
            "halted": halted,
        }
        return Quotes([self._topics[place] for place in places], columns, [self._bodies[place] for place in places])


def _symbols(chance: random.Random) -> list[str]:
    """The well-known ones, and made-up ones of four letters until there are enough."""
    names = dict.fromkeys(_NAMED)
    while len(names) < SYMBOLS:
        names["".join(chance.choice(_LETTERS) for _ in range(4))] = None
    return list(names)
