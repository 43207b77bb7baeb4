"""Writes that an owner has stored and not confirmed yet: who is still to acknowledge them."""

from __future__ import annotations

from dataclasses import dataclass, field

from .keyed_arcs import Stretch
from .keyed_limits import PENDING_MAX
from .keyed_messages import Item

__all__ = ["Pending", "Pendings"]


@dataclass(slots=True)
class Pending:
    """One put, as far as it concerns one owner."""

    number: int
    origin: int
    ticket: int
    part: int
    stretch: Stretch
    items: list[Item]
    waiting: dict[int, None] = field(default_factory=dict)
    """Siblings that have not acknowledged it."""


class Pendings:
    """See the head of this file."""

    def __init__(self) -> None:
        self._by_number: dict[int, Pending] = {}
        self._by_put: dict[tuple[int, int, int, int], int] = {}
        self._siblings: tuple[int, ...] = ()
        self._number = 0
        self.look_at = float("inf")
        """When time alone may have made one ripe."""
        self.dropped = 0

    def __len__(self) -> int:
        """How many."""
        return len(self._by_number)

    def begin(self, origin: int, ticket: int, part: int, stretch: Stretch, items: list[Item]) -> Pending | None:
        """A new one; None when it is here already, or when there are too many."""
        key = (origin, ticket, part, stretch.after)
        former = self._by_put.get(key)
        if former is not None:
            if self._by_number[former].stretch == stretch:
                return None
            self.end(self._by_number[former])
        if len(self._by_number) >= PENDING_MAX:
            self.dropped += 1
            return None
        self._number += 1
        pending = Pending(self._number, origin, ticket, part, stretch, items)
        self._by_number[self._number] = pending
        self._by_put[key] = self._number
        return pending

    def end(self, pending: Pending) -> None:
        """Confirmed, or of no concern any more."""
        if self._by_number.pop(pending.number, None) is not None:
            del self._by_put[(pending.origin, pending.ticket, pending.part, pending.stretch.after)]

    def acknowledge(self, number: int, sibling: int) -> Pending | None:
        """A sibling has it."""
        pending = self._by_number.get(number)
        if pending is not None:
            pending.waiting.pop(sibling, None)
        return pending

    def acknowledged(self) -> list[Pending]:
        """Those that all siblings have."""
        return [pending for pending in self._by_number.values() if not pending.waiting]

    def waiting_for(self, sibling: int) -> list[tuple[list[Item], int]]:
        """What this sibling has not acknowledged: items and number."""
        return [(one.items, one.number) for one in self._by_number.values() if sibling in one.waiting]

    def set_siblings(self, siblings: tuple[int, ...]) -> None:
        """Those gone are waited for no longer, new ones are."""
        new = [one for one in siblings if one not in self._siblings]
        self._siblings = siblings
        for pending in self._by_number.values():
            kept = [one for one in pending.waiting if one in siblings]
            pending.waiting = dict.fromkeys([*kept, *new])

    def validate(self) -> None:
        """Asserts what must always hold."""
        assert len(self._by_number) <= PENDING_MAX
        assert sorted(self._by_put.values()) == sorted(self._by_number)
