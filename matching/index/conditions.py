"""One distinct condition with everybody who asked for it, and the places where an index has filed it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.matching.index.range_blocks import Answers, Span

if TYPE_CHECKING:
    from headgate.matching.index.steps import LeafStep

__all__ = ["IDS", "PLACES", "Condition", "Place", "ids_with", "ids_without", "merged_ids"]


class Place(Span):
    """Where a condition is filed: in which step of the index, and what is left to test there, if anything.

    `next` is another place of the same condition: most have one only, which is not worth a tuple for each.
    """

    __slots__ = ("condition", "names", "next", "step", "test")

    def __init__(
        self,
        condition: Condition,
        names: tuple[str, ...] = (),
        test: Callable[..., bool] | None = None,
        low: float = 0.0,
        high: float = 0.0,
    ) -> None:
        super().__init__(low, high)
        self.condition = condition
        self.names = names
        self.test = test
        self.step: LeafStep | None = None
        self.next: Place | None = None


@dataclass(slots=True, eq=False)
class Condition:
    """`ids` is what `match` hands out: sorted, and the same object as long as nobody comes or goes.

    Who came and went since the last match is `pending`, so that 100,000 subscriptions to one condition do not copy the
    tuple each time. A condition that is `overlapping` may be found at several of its places by one row.
    """

    text: str
    attributes: tuple[str, ...]
    place: Place | None = None
    overlapping: bool = False
    ids: tuple[int, ...] = ()
    size: int = 0
    pending: dict[int, bool] | None = None

    @property
    def places(self) -> Iterator[Place]:
        """All places where the condition is filed."""
        place = self.place
        while place is not None:
            yield place
            place = place.next

    def file(self, places: Sequence[Place]) -> None:
        """Say where the condition is filed now."""
        self.place = None
        for place in reversed(places):
            place.next, self.place = self.place, place

    def note(self, identity: int, present: bool) -> None:
        """Somebody came or went."""
        self.size += 1 if present else -1
        if self.size == 1 and present and self.pending is None and not self.ids:
            self.ids = (identity,)  # the first one, before any answer could hold the ids
            return
        if self.pending is None:
            self.pending = {}
        self.pending[identity] = present

    def settle(self) -> None:
        """Bring `ids` up to date, and the answers that hold them."""
        if self.pending is None:
            return
        for place in self.places:
            if place.step is not None:
                place.step.touch(place, False)
        kept = [identity for identity in self.ids if identity not in self.pending]
        kept += [identity for identity, present in self.pending.items() if present]
        self.ids = tuple(sorted(kept))
        self.pending = None
        for place in self.places:
            if place.step is not None:
                place.step.touch(place, True)


def merged_ids(places: list[Place]) -> tuple[int, ...]:
    """The ids of several conditions as one answer; of a single one its own."""
    if len(places) == 1:
        return places[0].condition.ids
    return tuple(sorted([identity for place in places for identity in place.condition.ids]))


def ids_with(ids: tuple[int, ...], place: Place) -> tuple[int, ...]:
    """An answer with the ids of one condition more."""
    more = place.condition.ids
    if not ids:
        return more
    return ids + more if ids[-1] < more[0] else tuple(sorted(ids + more))


def ids_without(ids: tuple[int, ...], place: Place) -> tuple[int, ...]:
    """An answer without the ids of one condition."""
    less = place.condition.ids
    at = ids.index(less[0])
    if len(less) == 1 or ids[at : at + len(less)] == less:
        return ids[:at] + ids[at + len(less) :]
    gone = dict.fromkeys(less)
    return tuple([identity for identity in ids if identity not in gone])


def _with(places: tuple[Place, ...], place: Place) -> tuple[Place, ...]:
    return (*places, place)


def _without(places: tuple[Place, ...], place: Place) -> tuple[Place, ...]:
    return tuple([other for other in places if other is not place])


IDS: Answers[Place, int] = Answers(merged_ids, ids_with, ids_without, lambda place: len(place.condition.ids))
"""Answers for conditions that match: their ids."""

PLACES: Answers[Place, Place] = Answers(tuple, _with, _without, lambda place: 1)
"""Answers for conditions that have to be tested."""
