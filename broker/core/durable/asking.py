"""What clients of a durable subscription look for in documents, by where an event stands.

Brokers compare filters, which let some through; the client has the last word on XPATH. It has to say it by what an
event was selected by: the condition of now, and before the ends of a section that one's condition as well. So what is
handed out is cut at those ends, and the client is told anew where it is to look for something else.

    condition XPATH 'b', a section XPATH 'a' up to 40:   ... 39 | 40 ...
                                                  a and b     |  b
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headgate.matching import parse_condition
from headgate.matching.limits import CANONICAL_BYTES_MAX
from headgate.matching.tree import twigs
from headgate.protocol.limits import CHECKS_MAX

from ..limits import POSITIONS_MAX
from .limits import ASKED_BYTES_MAX
from .messages import Place
from .runs import Run, intersect
from .state import DurableState

__all__ = ["Asking"]


class Asking:
    """The twigs of a state: of its condition, and of its sections."""

    def __init__(self, state: DurableState) -> None:
        self.now = _twigs_of(state.condition)
        """Behind all sections."""
        asked = ((_twigs_of(one.condition), one.ends) for one in state.sections)
        self._sections = [(twigs, ends) for twigs, ends in asked if twigs]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Asking) and (self.now, self._sections) == (other.now, other._sections)

    __hash__ = None  # type: ignore[assignment]  # nobody looks it up

    @property
    def is_any(self) -> bool:
        """Whether anything is asked of any document."""
        return bool(self.now or self._sections)

    @property
    def fits(self) -> bool:
        """Whether a client can be told all of it."""
        every = dict.fromkeys((*self.now, *(twig for twigs, _ in self._sections for twig in twigs)))
        return len(every) <= CHECKS_MAX and sum(map(len, every)) <= ASKED_BYTES_MAX

    def parts(self, place: Place, runs: Sequence[Run]) -> Iterator[tuple[tuple[str, ...], Sequence[Run]]]:
        """Positions of a log, ascending, by what is looked for there."""
        ends = sorted({ends[place]: None for _, ends in self._sections if place in ends})
        if not ends:
            yield self.now, runs
            return
        start = 0
        for end in (*ends, POSITIONS_MAX + 1):
            part = intersect(runs, [(start, end)])
            if part:
                before = [twig for twigs, ends_of in self._sections if ends_of.get(place, 0) > start for twig in twigs]
                yield tuple(dict.fromkeys((*self.now, *before))), part
            start = end


def _twigs_of(condition: str) -> tuple[str, ...]:
    if "xpath" not in condition.lower():
        return ()
    return twigs(parse_condition(condition, CANONICAL_BYTES_MAX))
