"""What a subscriber asks of the documents that come: brokers compare filters, which prove that one lacks a twig."""

from __future__ import annotations

from headgate.matching import Tree, XPath, extensions
from headgate.matching.structure import parse_twig

__all__ = ["checks_of"]


def checks_of(condition: Tree | None) -> list[list[object]]:
    """For each XPATH of a condition its text in XPath 1.0 and its items, as SUBACK carries them."""
    twigs = [parse_twig(part.twig) for part in extensions(condition) if isinstance(part, XPath)] if condition else []
    return [[twig.xpath(), sorted(twig.items() | twig.values())] for twig in twigs]
