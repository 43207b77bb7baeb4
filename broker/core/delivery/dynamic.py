"""Carriers: what the broker that a client is connected to does for conditions with DELTA.

The cluster knows the static part of such a condition alone. All of this broker's subscriptions with the same pattern,
the same static part and the same watched attributes share one **carrier**: it is what rests at a key, and what other
brokers name in their DELIVERs. What matches it is decided here, row by row: which of its members does the event fire?

So a reference lives where its client's outbox lives, and nowhere else. It moves when an event is put into that outbox,
and is forgotten when one is taken out of it unsent, or was sent and did not come in: the member then gets the next
event. No copy of it can be out of date, whatever becomes of other brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from headgate.matching.dynamic import Tally, Triggers
from headgate.protocol.data import Batch, Columns, Portion

from ..limits import Limits
from .streams import Plan
from .subscribers import Subscription

if TYPE_CHECKING:
    from .amending import Amendment

__all__ = ["Carrier", "Suppression", "Undecided"]


@dataclass(slots=True, eq=False)
class Carrier(Subscription):
    """A subscription of this broker itself, on behalf of its members: those that its triggers know by identity."""

    triggers: Triggers = field(default_factory=lambda: Triggers(()))
    members: dict[int, Subscription] = field(default_factory=dict)

    def forget(self, member: int, portion: Portion, first: int, count: int) -> None:
        """A member did not get these rows of a portion."""
        topics = portion.topics.split("\n")
        for topic in dict.fromkeys(topics if len(topics) == 1 else topics[first : first + count]):
            self.triggers.forget(member, topic)


class Undecided(tuple[Any, ...]):
    """A plan to which members of carriers, and amended subscriptions, may be added, row by row."""

    carriers: tuple[Carrier, ...] = ()
    amended: tuple[tuple[Amendment, tuple[int, ...]], ...] = ()
    """And which of its versions bring the row."""

    @classmethod
    def of(
        cls,
        plan: Plan,
        carriers: Iterable[Carrier],
        amended: Iterable[tuple[Amendment, tuple[int, ...]]] = (),
    ) -> Undecided:
        """What is decided, and what is not."""
        made = cls(plan)
        made.carriers, made.amended = tuple(carriers), tuple(amended)
        return made


_Merge: TypeAlias = Callable[[Plan, Iterable[int]], Plan]


class Suppression:
    """Decides plans, and counts what was delivered and what was not."""

    def __init__(self, carriers: Mapping[int, Carrier], tally: Tally, limits: Limits) -> None:
        self._references_max = limits.references
        self.carriers = carriers
        self.tally = tally
        self.delivered = self.suppressed = 0
        """Of events that matched the static part of a member: those that it got, and those that it did not."""
        self.unread = 0
        """Events of which members got nothing because a record could not be read."""

    def decide(self, batch: Batch, plans: list[Plan], time_us: int, merged: _Merge) -> list[Plan]:
        """The plans with the members of carriers that each row fires; `merged` adds members to a plan.

        Raises ProtocolViolation, having done nothing, when a column cannot be read.
        """
        if Undecided not in map(type, plans):
            return plans
        rows_of: dict[Carrier, list[int]] = {}
        each = plans if len(plans) == batch.count else plans * batch.count
        for row, plan in enumerate(each):
            if type(plan) is Undecided:
                for carrier in plan.carriers:
                    rows_of.setdefault(carrier, []).append(row)
        columns = _columns_of(batch, rows_of)
        topics, time = batch.topic_list(), time_us / 1e6
        fired: dict[int, list[int]] = {}
        for carrier, rows in rows_of.items():
            for row, members in self._fire(carrier, topics, rows, columns, time):
                fired.setdefault(row, []).extend(members)
        return [
            plan if type(plan) is not Undecided else merged(plan, fired[row]) if row in fired else tuple(plan)
            for row, plan in enumerate(each)
        ]

    def _fire(
        self,
        carrier: Carrier,
        topics: Sequence[str],
        rows: list[int],
        columns: Mapping[str, Sequence[Any]],
        time: float,
    ) -> list[tuple[int, list[int]]]:
        triggers = carrier.triggers
        before = triggers.references
        fired = triggers.match(topics, rows, columns, time)
        count = sum(len(members) for _, members in fired)
        self.delivered += count
        self.suppressed += len(rows) * len(triggers) - count
        if triggers.references > before:
            while self.tally.references > self._references_max and triggers.forget_oldest():
                pass
        return fired

    def unreadable(self, batch: Batch, plans: list[Plan]) -> list[Plan]:
        """The plans without members of carriers."""
        self.unread += batch.count
        return [tuple(plan) if type(plan) is Undecided else plan for plan in plans]


def _columns_of(batch: Batch, carriers: Iterable[Carrier]) -> Mapping[str, Sequence[Any]]:
    """The columns that these watch, each decoded. Raises ProtocolViolation."""
    names = dict.fromkeys(name for carrier in carriers for name in carrier.triggers.attributes)
    columns = Columns(batch)
    found = {name: columns.get(name) for name in names}
    return {name: column for name, column in found.items() if column is not None}
