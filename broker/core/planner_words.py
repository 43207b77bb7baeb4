"""An anchor in words: where a subscription lives and why, as `headgate explain` shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matching import Value, to_text
from matching.tree import Literal

from .keys import Domain
from .multicast import Segment
from .planner import Anchor
from .shelves import EQUAL, TOPIC

__all__ = ["explain_anchor"]


def explain_anchor(anchor: Anchor, owner_of: Callable[[int], str]) -> dict[str, Any]:
    """Where a subscription lives and why, as `headgate explain` shows it; `owner_of` names the broker of a key."""
    owners = [owner_of(key) for segment in anchor.segments for key in (segment.low, segment.high)]
    return {
        "shelf": anchor.shelf.kind,
        "shelf_in_words": str(anchor.shelf),
        "keys": [_keys_text(segment) for segment in anchor.segments],
        "owners": list(dict.fromkeys(owners)),
        "because": _because(anchor),
    }


def _keys_text(segment: Segment) -> str:
    low, high = f"{segment.low:016x}", f"{segment.high:016x}"
    return low if low == high else f"{low}..{high}"


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
    ends = [int(cell or 0) for cell in anchor.about]
    stretches = list(zip(ends[::2], ends[1::2], strict=True))
    texts = [_stretch_text(domain, first, last) for first, last in stretches]
    share = sum(last - first + 1 for first, last in stretches) / domain.cells
    asked = " or ".join(f"{shelf.attribute} {text}" for text in texts)
    return f"it asks {asked}, so it rests along that part of the arc of {name}: {share:.2%} of the ring"


def _value_text(value: Value) -> str:
    return repr(value) if isinstance(value, float) else to_text(Literal(value))


def _stretch_text(domain: Domain, first: int, last: int) -> str:
    """The numbers of some cells, as round as the precision is."""
    low, high = (f"{domain.minimum + cell * domain.precision:.12g}" for cell in (first, last))
    if first == last:
        return f"about {low}"
    if first == 0:
        return f"up to {high}"
    return f"from {low} up" if last == domain.cells - 1 else f"from {low} to {high}"
