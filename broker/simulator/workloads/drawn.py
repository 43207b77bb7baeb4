"""The workload: what clients subscribe to and publish, drawn from the seed.

Few topics and values, so that subscriptions and events meet often; all types, NULLs and absent attributes, so that
three-valued logic has something to decide. Now and then something that the broker must refuse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any

from headgate.matching.structure import DEFAULT_SHAPE, filter_of, pack
from headgate.protocol import Batch, make_batch
from headgate.protocol.data import Scalar, encode_column
from headgate.protocol.structure import Check, Checks, Finding

__all__ = ["STREAMS", "Traits", "Workload", "document_of", "event_name", "has"]

STREAMS = ("quotes", "alerts")
_LEVELS = (("NYSE", "ATHEX"), ("OTE", "IBM", "ΔΕΗ"))
_SYMBOLS = ("OTE", "IBM", "it's", "", "ΔΕΗ")
_NUMBERS = (0, 1, -1, 7, 8.3, 8.5, 9.0, -0.0, 2**53 + 1, float("nan"), 1e300)
_ATTRIBUTES = ("symbol", "price", "volume", "live", "body.order.qty")
_NAMES = ("a", "b", "c", "d", "e")
_BAD_CONDITIONS = ("price >", "price BETWEEN 1", "(a = 1", "DELTA(price) > -1", "XPATH '/a/*'", "a = 'x")
_BAD_PATTERNS = ("", "/", "*/x", "quotes//x", "quotes/#", "quotes/a*", "quotes/+")
_BAD_TOPICS = ("", "quotes/", "quotes/*", "quotes/\x00", "/quotes")


@dataclass(frozen=True, slots=True)
class Traits:
    """Traits of one client: how it behaves."""

    credit: int = 65_536
    grant_seconds: float = 0.0
    think_seconds: float = 0.05
    batch_events_max: int = 8
    body_bytes_max: int = 120
    forgetful: bool = False
    """Sends everything unacknowledged again after a reconnect, whatever WELCOME said the broker has."""
    publishes: bool = True
    subscriptions_max: int = 6
    bad_probability: float = 0.02

    @classmethod
    def drawn(cls, random: Random, slow_probability: float) -> Traits:
        """Draw the traits of one client."""
        slow = random.random() < slow_probability
        return cls(
            credit=random.choice((1, 3, 10, 40)) if slow else random.choice((20, 200, 65_536)),
            grant_seconds=random.choice((0.05, 0.5, 2.0)) if slow else 0.0,
            think_seconds=random.choice((0.01, 0.05, 0.3)),
            batch_events_max=random.choice((1, 4, 12, 40)),
            body_bytes_max=random.choice((10, 120, 600)),
            forgetful=random.random() < 0.5,
            publishes=random.random() < 0.8,
            subscriptions_max=random.choice((2, 6, 12)),
        )


def event_name(body: bytes) -> str:
    """The name of an event, `client:batch:row`: the first word of its body."""
    return body.partition(b" ")[0].decode("utf-8", "replace")


def document_of(body: bytes) -> bytes:
    """The document of an event: what stands behind its name."""
    return body.partition(b" ")[2]


@lru_cache(4096)
def has(checks: tuple[Check, ...], document: bytes) -> bool:
    """Whether a document has all twigs of these checks: what the library of a client asks of it."""
    return _checks(checks).find(document, "application/xml") is Finding.TRUE


@lru_cache(1024)
def _checks(checks: tuple[Check, ...]) -> Checks:
    return Checks(checks)


class Workload:
    """Draws subscriptions and batches."""

    def __init__(self, random: Random, structure: bool = False) -> None:
        self.random = random
        self._structure = structure
        """Events have documents, and some conditions ask for twigs of them."""

    def batch_name(self, client: str, session: int, batch: int) -> str:
        """What a batch is called: the name of its publisher before the colon."""
        return f"{client}:{batch}"

    def pattern(self) -> tuple[str, bool]:
        """Draw a pattern: (pattern, exact)."""
        random = self.random
        levels = [random.choice(STREAMS)]
        for names in _LEVELS[: random.randint(0, len(_LEVELS))]:
            levels.append("*" if random.random() < 0.4 else random.choice(names))
        return "/".join(levels), random.random() < 0.2

    def topic(self) -> str:
        """Draw the topic of an event."""
        random = self.random
        depth = random.choice((0, 1, 2, 2, 2))
        return self._topic_in(random.choice(STREAMS), depth)

    def condition(self, depth: int = 2) -> str:
        """Draw a condition that parses."""
        random = self.random
        kind = random.randrange(9 if depth else 6)
        name = random.choice(_ATTRIBUTES)
        if kind == 0:
            return f"symbol = {_text(random.choice(_SYMBOLS))}"
        if kind == 1:
            return f"{name} {random.choice(('=', '<>', '<', '<=', '>', '>='))} {random.choice((1, 8.3, 8.5, -1, 7))}"
        if kind == 2:
            low = random.choice((-1, 0, 8.3))
            return f"price BETWEEN {low} AND {low + random.choice((0, 1, 8.2))}"
        if kind == 3:
            return f"symbol {random.choice(('', 'NOT '))}IN ('OTE', 'it''s')"
        if kind == 4:
            return f"symbol LIKE {_text(random.choice(('O%', '%_M', '%', 'its')))}"
        if kind == 5:
            return random.choice((f"{name} IS NULL", f"{name} IS NOT NULL", "live", "price * 2 > volume + 1"))
        if kind == 6:
            return f"NOT ({self.condition(depth - 1)})"
        word = " AND " if kind == 7 else " OR "
        return f"({self.condition(depth - 1)}{word}{self.condition(depth - 1)})"

    def subscription(self, bad_probability: float) -> tuple[str, str, bool, bool]:
        """Draw a subscription: (pattern, condition, exact, whether the broker must refuse it)."""
        random = self.random
        pattern, exact = self.pattern()
        condition = self.condition() if random.random() < 0.7 else ""
        if self._structure and random.random() < 0.7:
            condition = self.twig() if not condition or random.random() < 0.7 else f"{self.twig()} AND ({condition})"
        if random.random() < bad_probability:
            if random.random() < 0.5:
                return random.choice(_BAD_PATTERNS), condition, exact, True
            return pattern, random.choice(_BAD_CONDITIONS), exact, True
        return pattern, condition, exact, False

    def twig(self) -> str:
        """Draw an XPATH of few names."""
        one, other, third = (self.random.choice(_NAMES) for _ in range(3))
        return f"XPATH '{self.random.choice((f'/{one}', f'{one}/{other}', f'{one}[{other}]/{third}'))}'"

    def _document(self) -> tuple[bytes, bytes | None]:
        """Draw a document and its filter; or no document, of which the column says that there is none, or nothing."""
        random = self.random
        if random.random() < 0.1:
            return b"", random.choice((b"", None))
        names = [random.choice(_NAMES) for _ in range(random.randint(1, 6))]
        above = {place + 1: random.choice(names[: place + 1]) for place in range(len(names) - 1)}
        items = {f"r/{names[0]}", *(f"n/{name}" for name in names)}
        items |= {f"s/{name}/{names[place]}" for place, name in above.items()}
        below: dict[int, list[int]] = {}
        for place, name in above.items():
            below.setdefault(random.choice([at for at in range(place) if names[at] == name]), []).append(place)
        made = filter_of(items, DEFAULT_SHAPE.length, DEFAULT_SHAPE.hashes)
        return _xml(names, below, 0).encode(), pack(made, DEFAULT_SHAPE.length)

    def batch(self, name: str, traits: Traits, interest: dict[str, list[str] | None]) -> Batch:
        """Draw a batch of events named `name:0`, `name:1`, … of one stream, with some or all match columns."""
        random = self.random
        stream, count = random.choice(STREAMS), random.randint(1, traits.batch_events_max)
        if random.random() < 0.5:
            topics = [self._topic_in(stream, 2)]
        else:
            topics = [self._topic_in(stream, random.choice((0, 1, 2))) for _ in range(count)]
        present = [attribute for attribute in _ATTRIBUTES if random.random() < 0.8]
        columns = {attribute: [self._value(attribute) for _ in range(count)] for attribute in present}
        padding = [b"x" * random.randint(0, traits.body_bytes_max) for _ in range(count)]
        sent = self._sent_columns(interest.get(stream), present)
        filters: list[Any] = []
        if self._structure:
            for row in range(count):
                document, packed = self._document()
                filters.append(packed)
                padding[row] = document or padding[row]
        bodies = [f"{name}:{row} ".encode() + padding[row] for row in range(count)]
        batch = make_batch(topics, columns, bodies, sent)
        if filters and random.random() < 0.9:
            batch.columns[DEFAULT_SHAPE.column] = encode_column(filters)
        return batch

    def spoil(self, batch: Batch) -> Batch:
        """The same batch with a topic, or a column, that the broker must refuse if it looks at it."""
        random = self.random
        if not batch.columns or random.random() < 0.5:
            return Batch(random.choice(_BAD_TOPICS), batch.count, batch.lengths, batch.records, batch.columns)
        name = random.choice(list(batch.columns))
        columns = batch.columns | {name: random.choice((b"", b"m\x91\x90", b"q123", b"m\xc1", b"z"))}
        return Batch(batch.topics, batch.count, batch.lengths, batch.records, columns, batch.complete)

    def _topic_in(self, stream: str, depth: int) -> str:
        return "/".join([stream, *(self.random.choice(names) for names in _LEVELS[:depth])])

    def _value(self, attribute: str) -> Scalar:
        random = self.random
        if random.random() < 0.15:
            return None
        if random.random() < 0.1:
            return random.choice((True, "8.3", 1, 8.3))
        if attribute == "symbol":
            return random.choice(_SYMBOLS)
        if attribute == "live":
            return random.random() < 0.5
        return random.choice(_NUMBERS)

    def _sent_columns(self, interest: Sequence[str] | None, present: Sequence[str]) -> list[str] | None:
        """The match columns to send: those in use, all, or too few, so that the broker must derive the rest."""
        random = self.random
        choice = random.randrange(4)
        if choice == 0 or interest is None:
            return None
        if choice == 1:
            return [name for name in present if random.random() < 0.5]
        return list(interest)


def _xml(names: Sequence[str], below: Mapping[int, Sequence[int]], place: int) -> str:
    inside = "".join(_xml(names, below, one) for one in below.get(place, ()))
    return f"<{names[place]}>{inside}</{names[place]}>"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
