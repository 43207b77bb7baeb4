"""Amendments: a subscription of one of our clients asks for something else from one point of its deliveries on.

Each condition that it had lately, and the one that it is to have, is a *version*: a subscription of its own towards the
cluster, with an identity and a place where it rests, but with the session and the number of the one that the client
knows. The next version is placed while the present one goes on; once it is in force the point is passed, and the former
one rests where it was for a while longer, for what was published before.

So an event comes here by each version that wants it, at different moments and by different ways, before or after the
point. It is decided when it comes for the first time, by the version that is present at that moment, whichever version
brought it: so nothing that both want is missed, for one of them brings it. What else brings it later finds it in `due`,
and is left out: nothing comes twice.

What an XPATH asks is compared with the filters of an event's document where they are at hand. They are not when another
broker matched the event: then it may have the twig, and the client's library says whether it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from headgate.matching import Compiled, Pattern, Tree, compile_condition
from headgate.matching.structure import Asked
from headgate.matching.tree import twigs
from headgate.protocol.data import Batch

from ..limits import AMENDED_EVENTS_MAX
from .dynamic import Undecided
from .streams import Plan
from .subscribers import Subscription

__all__ = ["Amendment", "Version", "judged"]

_EventId: TypeAlias = tuple[str, int]
_Merge: TypeAlias = Callable[[Plan, Iterable[int]], Plan]


@dataclass(slots=True, eq=False)
class Version:
    """What a subscription asked for at one time, asks for, or is about to."""

    subscription: Subscription
    condition: Compiled | None
    asked: Asked | None = None
    """What its XPATHs ask of filters."""
    ends_at: float = float("inf")
    """When nothing that was published while it was present can still be on its way."""

    @classmethod
    def of(cls, subscription: Subscription, condition: Tree | None) -> Version:
        """A version that is not over."""
        if condition is None:
            return cls(subscription, None)
        texts = twigs(condition)
        return cls(subscription, compile_condition(condition), Asked.of(*texts) if texts else None)

    @property
    def pattern(self) -> Pattern:
        """Its topics."""
        return self.subscription.pattern

    def wants(self, batch: Batch, topics: Sequence[str], row: int) -> bool:
        """Whether a row is what it asks for. Raises ProtocolViolation when the batch cannot be read."""
        if not self.pattern.matches(topics[0] if len(topics) == 1 else topics[row]):
            return False
        if self.condition is None:
            return True
        columns = [batch.column(name) for name in self.condition.attributes]
        if not self.condition.test(*[None if column is None else column[row] for column in columns]):
            return False
        return self.asked is None or self.asked.passes(_filters(batch, self.asked, row))


@dataclass(slots=True, eq=False)
class Amendment:
    """The versions of one subscription, by identity."""

    present: int
    versions: dict[int, Version]
    is_decided_once: bool = True
    due: dict[_EventId, set[int]] = field(default_factory=dict)
    """Event that was decided -> the versions that may bring it once more."""

    def decide(self, event: _EventId, brought: Iterable[int], batch: Batch, topics: Sequence[str], row: int) -> bool:
        """Whether the client gets this event, which these versions bring. Raises ProtocolViolation."""
        if not self.is_decided_once:
            return self.present in brought
        due = self.due.get(event)
        if due is None:
            wanting = {one for one, version in self.versions.items() if version.wants(batch, topics, row)}
            left = wanting.difference(brought)
            if left:
                if len(self.due) >= AMENDED_EVENTS_MAX:
                    del self.due[next(iter(self.due))]
                self.due[event] = left
            return self.present in wanting
        due.difference_update(brought)
        if not due:
            del self.due[event]
        return False

    def is_over(self, identity: int) -> None:
        """This version brings nothing any more."""
        for event, due in list(self.due.items()):
            due.discard(identity)
            if not due:
                del self.due[event]


def _filters(batch: Batch, asked: Asked, row: int) -> dict[str, object]:
    """The filters of one event that came with its batch."""
    names = asked.shape.column, asked.shape.values_column
    columns = {name: batch.column(name) for name in names if name in batch.columns}
    return {name: column[row] for name, column in columns.items() if column is not None}


def judged(
    batch: Batch, plans: list[Plan], origin: str, base: int, places: Sequence[int], merged: _Merge
) -> list[Plan]:
    """The plans of a batch's rows with those of the amended subscriptions that get each; `merged` adds them to a plan.

    Raises ProtocolViolation when the batch cannot be read.
    """
    if not any(type(plan) is Undecided and plan.amended for plan in plans):
        return plans
    topics = batch.topic_list()
    each = plans if len(plans) == batch.count else plans * batch.count
    decided: list[Plan] = []
    for row, plan in enumerate(each):
        if type(plan) is Undecided and plan.amended:
            event = origin, base + places[row]
            getting = [
                amendment.present
                for amendment, brought in plan.amended
                if amendment.decide(event, brought, batch, topics, row)
            ]
            whole = merged(plan, getting) if getting else tuple(plan)
            plan = Undecided.of(whole, plan.carriers) if plan.carriers else whole
        decided.append(plan)
    return decided
