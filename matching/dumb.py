"""The dumb twin of the index: every subscription is evaluated on every row by the plain meaning.

It is what "the right answer" means. Tests compare the index with it, and the demonstration compares deliveries with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headgate.matching.index import Matches
from headgate.matching.meaning import evaluate
from headgate.matching.structure import Asked
from headgate.matching.topics import Pattern
from headgate.matching.tree import Tree, XPath, attributes, conjuncts
from headgate.matching.values import Value

__all__ = ["DumbIndex"]


class DumbIndex:
    """The verbs of `Index`, without any structure."""

    def __init__(self) -> None:
        self._subscriptions: dict[int, tuple[Pattern, Tree | None]] = {}

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __contains__(self, subscription: int) -> bool:
        return subscription in self._subscriptions

    def add(self, subscription: int, pattern: Pattern, condition: Tree | None = None) -> None:
        """Add a subscription; KeyError when the number is taken."""
        if subscription in self._subscriptions:
            raise KeyError(f"subscription {subscription} is there already")
        self._subscriptions[subscription] = pattern, condition

    def remove(self, subscription: int) -> None:
        """Remove a subscription; KeyError when there is none of that number."""
        del self._subscriptions[subscription]

    def attributes(self) -> tuple[str, ...]:
        """The attributes that some condition reads, sorted."""
        conditions = [condition for _, condition in self._subscriptions.values() if condition is not None]
        return tuple(sorted({name for condition in conditions for name in attributes(condition)}))

    def match(self, topics: Sequence[str], count: int, columns: Mapping[str, Sequence[Value]]) -> Matches:
        """The subscriptions that each row satisfies, one group for each distinct set of them."""
        groups: dict[tuple[int, ...], list[int]] = {}
        for row in range(count):
            topic = topics[0] if len(topics) == 1 else topics[row]
            values = {name: column[row] for name, column in columns.items()}
            ids = [
                subscription
                for subscription, (pattern, condition) in self._subscriptions.items()
                if pattern.matches(topic) and (condition is None or _matches(condition, values))
            ]
            if ids:
                groups.setdefault(tuple(sorted(ids)), []).append(row)
        return list(groups.items())

    def validate(self) -> None:
        """There is nothing that could be wrong."""


def _matches(condition: Tree, values: Mapping[str, Value]) -> bool:
    """Its static part is true, and no filter says that the document lacks a twig."""
    twigs = [part.twig for part in conjuncts(condition) if isinstance(part, XPath)]
    return evaluate(condition, values) is True and Asked.of(*twigs).passes(values)
