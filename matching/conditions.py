"""One distinct condition with everybody who asked for it, and the places where an index has filed it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from matching.ranges import Span

if TYPE_CHECKING:
    from matching.steps import LeafStep

__all__ = ["Condition", "Place", "merged_ids"]


class Place(Span):
    """Where a condition is filed: in which step of the index, and what is left to test there, if anything."""

    __slots__ = ("condition", "names", "step", "test")

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


@dataclass(slots=True, eq=False)
class Condition:
    """`ids` is what `match` hands out: sorted, and the same object as long as nobody comes or goes.

    Who came and went since the last match is `pending`, so that 100,000 subscriptions to one condition do not copy the
    tuple each time. A condition that is `overlapping` may be found at several of its places by one row.
    """

    text: str
    attributes: tuple[str, ...]
    places: tuple[Place, ...] = ()
    overlapping: bool = False
    ids: tuple[int, ...] = ()
    size: int = 0
    pending: dict[int, bool] | None = None

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
        kept = [identity for identity in self.ids if identity not in self.pending]
        kept += [identity for identity, present in self.pending.items() if present]
        self.ids = tuple(sorted(kept))
        self.pending = None
        for place in self.places:
            if place.step is not None:
                place.step.touch(place)


def merged_ids(places: list[Place]) -> tuple[int, ...]:
    """The ids of several conditions as one answer; of a single one its own."""
    if len(places) == 1:
        return places[0].condition.ids
    return tuple(sorted([identity for place in places for identity in place.condition.ids]))
