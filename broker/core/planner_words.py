"""An anchor, or lists, in words: where a subscription lives and why, as `headgate explain` shows it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from headgate.matching import Value, to_text
from headgate.matching.tree import Literal

from .counting_plan import Counted, CountedPart, Resting
from .keys import Domain
from .multicast import Segment
from .planner import Anchor
from .shelves import EQUAL, TOPIC

__all__ = ["explain_resting"]


def explain_resting(resting: Resting, owner_of: Callable[[int], str], uncounted: str = "") -> dict[str, Any]:
    """Where a subscription lives and why, as `headgate explain` shows it; `owner_of` names the broker of a key, and
    `uncounted` says why it is anchored although the stream's placement is counting."""
    owners = [owner_of(key) for segment in resting.segments for key in (segment.low, segment.high)]
    because = _because_counted(resting) if isinstance(resting, Counted) else _because(resting)
    if uncounted:
        because += f"; the placement of {resting.stream} is counting, which it cannot be: {uncounted}"
    return {
        "shelf": resting.shelves[0].kind,
        "shelf_in_words": ", ".join(map(str, resting.shelves)),
        "keys": [_keys_text(segment) for segment in resting.segments],
        "owners": list(dict.fromkeys(owners)),
        "because": because,
    }


def _keys_text(segment: Segment) -> str:
    low, high = f"{segment.low:016x}", f"{segment.high:016x}"
    return low if low == high else f"{low}..{high}"


def _because_counted(counted: Counted) -> str:
    lists = " and ".join(_asked(counted.stream, part) for part in counted.parts)
    often = "on this list" if len(counted.parts) == 1 else f"on {len(counted.parts)} of these lists"
    return (
        f"the placement of {counted.stream} is counting, so it is on the lists of {lists}; an event that meets it "
        f"{often} is brought to its home, which looks at the topic and all of the condition"
    )


def _asked(stream: str, part: CountedPart) -> str:
    """What one attribute has to be."""
    name = f"{stream}.{part.shelf.attribute}"
    if part.shelf.is_arc:
        return _stretches_text(name, part.shelf.domain(stream), part.about)
    values = [_value_text(value) for value in part.about]
    return f"{name} = {values[0]}" if len(values) == 1 else f"{name} IN ({', '.join(values)})"


def _because(anchor: Anchor) -> str:
    shelf, name = anchor.shelf, f"{anchor.stream}.{anchor.shelf.attribute}"
    if shelf.kind == TOPIC:
        return f"{anchor.because}, so it rests where the topics at and below {anchor.about[0]} meet"
    if shelf.kind == EQUAL:
        values = [_value_text(value) for value in anchor.about]
        if len(values) == 1:
            return f"it asks {shelf.attribute} = {values[0]}, so it rests where {name} = {values[0]} meets"
        listed = ", ".join(values)
        return f"it asks {shelf.attribute} IN ({listed}), so it rests where each of these values of {name} meets"
    domain = shelf.domain(anchor.stream)
    share = sum(last - first + 1 for first, last in _stretches(anchor.about)) / domain.cells
    asked = _stretches_text(shelf.attribute, domain, anchor.about)
    return f"it asks {asked}, so it rests along that part of the arc of {name}: {share:.2%} of the ring"


def _stretches(about: tuple[Value, ...]) -> list[tuple[int, int]]:
    ends = [int(cell or 0) for cell in about]
    return list(zip(ends[::2], ends[1::2], strict=True))


def _stretches_text(name: str, domain: Domain, about: tuple[Value, ...]) -> str:
    return " or ".join(f"{name} {_stretch_text(domain, first, last)}" for first, last in _stretches(about))


def _value_text(value: Value) -> str:
    return repr(value) if isinstance(value, float) else to_text(Literal(value))


def _stretch_text(domain: Domain, first: int, last: int) -> str:
    """The numbers of some cells, as round as the precision is."""
    digits = max(0, 1 - math.floor(math.log10(domain.precision)))
    low, high = (f"{round(domain.minimum + cell * domain.precision, digits):.12g}" for cell in (first, last))
    if first == last:
        return f"about {low}"
    if first == 0:
        return f"up to {high}"
    return f"from {low} up" if last == domain.cells - 1 else f"from {low} to {high}"
