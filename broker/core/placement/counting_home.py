"""Counting placement: a subscription is on lists, and its home checks the events that meet it on enough of them.

At the owner of a key, and wherever a copy is held, a counted subscription is on the list of that key
(`counting_lists.py`), and in no index. Who accepted an event asks for its lists and counts (`forwarding/counted.py`):
that makes *candidates*. A candidate has its attributes in the right cells. Whether the topic fits the pattern, and
whether all of the condition is true (the rest of it, and a value between two multiples of the precision), its home
finds out, for the rows it is a candidate of: one evaluation, wherever the event was published.

Since no list says what the condition is, versions of an amended subscription that are counted by the same attributes
stand under one number: a candidate is checked for each of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from headgate.matching import Compiled, Pattern, Tree, compile_condition
from headgate.protocol.data import Batch

from ..config import NodeConfig
from ..keyspace import Dimension, parse_dimension
from ..kv import Item
from ..safeguards import Safeguard
from .counting import SubscriptionId
from .counting_lists import CountingLists
from .counting_plan import Counted, plan_counted
from .placement import Placement, Runs, Wish
from .planner import Anchor

__all__ = ["COUNTED", "Counting", "read_counted"]

COUNTED = "count"
"""First part of the name of an item."""


def read_counted(item: Item) -> tuple[str, Dimension, SubscriptionId]:
    """Stream, dimension and subID of such an item. Raises ProtocolViolation, ValueError or TypeError when it is
    none."""
    _, home, life, number, _ = item.name
    stream, dimension, attributes = item.value if item.value is not None else (None, None, None)
    match home, life, number, attributes, stream:
        case int(), int(), int(), int(), str() if attributes > 0:
            return stream, parse_dimension(dimension), SubscriptionId(home, number, attributes, life)
    raise TypeError("a counted subscription is three numbers, a stream, a dimension and how many attributes it has")


@dataclass(frozen=True, slots=True)
class _Check:
    """What a counted subscription asks for, or one version of it."""

    identity: int
    pattern: Pattern
    condition: Compiled

    def holds(self, batch: Batch, row: int) -> bool:
        """Whether a row of a batch is what was asked for. Raises ProtocolViolation when the batch cannot be read."""
        topics = batch.topic_list()
        if not self.pattern.matches(topics[0] if len(topics) == 1 else topics[row]):
            return False
        columns = [batch.column(name) for name in self.condition.attributes]
        return self.condition.test(*[None if column is None else column[row] for column in columns])


class Counting(Placement):
    """Keeps the lists of this broker's keys, and what our clients' counted subscriptions ask for."""

    name = "counting"
    kind = COUNTED
    keeps = True

    def __init__(self, config: NodeConfig) -> None:
        super().__init__(config)
        self._is_checked = Safeguard.CANDIDATES_CHECKED in config.safeguards
        self.lists = CountingLists()
        self.checks: dict[int, tuple[_Check, ...]] = {}
        """Our clients' subscriptions that are counted, by the number under which they are on lists."""

    def plan(self, wish: Wish) -> Counted | Anchor:
        """Its lists; what cannot be counted is anchored."""
        return plan_counted(wish)

    def enter(self, number: int, identity: int, pattern: Pattern, condition: Tree | None) -> None:
        """What it asks for as a whole is kept here."""
        assert condition is not None, "without a condition nothing is counted"
        check = _Check(identity, pattern, compile_condition(condition))
        self.checks[number] = (*self.checks.get(number, ()), check)

    def leave(self, number: int, identity: int) -> None:
        """A candidate for it is wanted no more."""
        left = tuple(check for check in self.checks.get(number, ()) if check.identity != identity)
        if left:
            self.checks[number] = left
        else:
            self.checks.pop(number, None)

    def add(self, item: Item) -> None:
        """On its lists; one of ours that is of a former life, or withdrawn meanwhile, goes on none."""
        stream, dimension, identity = read_counted(item)
        if identity.broker != self._me or (identity.life == self._life and identity.number in self.checks):
            self.lists.add(stream, dimension, item.low, item.high, identity)

    def remove(self, item: Item) -> None:
        """Off its lists."""
        stream, dimension, identity = read_counted(item)
        self.lists.remove(stream, dimension, item.low, item.high, identity)

    def confirmed(self, batch: Batch, runs: Runs) -> Runs:
        """Candidates are checked, row by row; what was matched where it rests needs no check."""
        if not self.checks:
            return runs
        return self._confirmed(batch, runs)

    def _confirmed(self, batch: Batch, runs: Runs) -> Runs:
        row = 0
        for numbers, count in runs:
            if self.checks.keys().isdisjoint(numbers):
                yield numbers, count
            else:
                for one in range(row, row + count):
                    yield self.true_of(batch, one, numbers), 1
            row += count

    def true_of(self, batch: Batch, row: int, numbers: Iterable[int]) -> tuple[int, ...]:
        """Those of our clients' subscriptions that want this row. Raises ProtocolViolation."""
        wanting: list[int] = []
        for number in numbers:
            checks = self.checks.get(number)
            if checks is None:
                wanting.append(number)
            else:
                wanting += [one.identity for one in checks if not self._is_checked or one.holds(batch, row)]
        return tuple(wanting)

    def resting(self, stream: str) -> int:
        """Those on any of its lists."""
        return self.lists.subscriptions(stream)

    def subid(self, number: int | None, attributes: int) -> dict[str, Any]:
        """The broker (c1), the number there (c2), how many attributes (c3)."""
        return {"c1": f"{self._me:016x}", "c2": number, "c3": attributes}

    def validate(self) -> None:
        """Asserts that no list is empty."""
        self.lists.validate()
