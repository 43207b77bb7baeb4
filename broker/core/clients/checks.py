"""What a subscriber decides by itself: of documents, since brokers compare filters, and of what it reads from logs."""

from __future__ import annotations

from typing import Any

from headgate.matching import Tree, deltas, event_part, to_text
from headgate.matching.dynamic import band_of, precision_of
from headgate.matching.structure import parse_twig
from headgate.matching.tree import TRUE, twigs

__all__ = ["checks_of", "moves_of"]


def checks_of(condition: Tree | None) -> list[Any]:
    """For each XPATH of a condition its text in XPath 1.0 and its items, as SUBACK carries them."""
    return [] if condition is None else [parse_twig(twig).check() for twig in twigs(condition)]


def moves_of(condition: Tree, schema: object) -> dict[str, object]:
    """What it takes to move, of each DELTA of a condition, and the text of the rest; empty without DELTA."""
    found = deltas(condition)
    if not found:
        return {}
    moves: list[list[object]] = []
    for delta in found:
        precision = precision_of(schema, delta.attribute)
        band = band_of(delta, precision)
        silence, unit = band.heartbeat_seconds or 0, precision or 0
        moves.append([delta.attribute, delta.side, band.width, band.percent, band.inclusive, silence, unit])
    rest = event_part(condition)
    return {"moves": moves, "rest": "" if rest == TRUE else to_text(rest)}
