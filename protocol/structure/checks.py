"""The last word on a twig: XPath, evaluated by the subscriber on what the filters let through.

What does not have a twig is a false positive. It is of a hash when the document lacks an item, whose bits it has by
chance; else it is of the structure: all names and pairs are there, and do not hang together as the twig asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ..errors import LocalError, ProtocolViolation
from .documents import DocumentError, read_document, trees_of
from .xml_documents import needs_lxml

__all__ = ["Check", "Checks", "Finding"]


class Finding(Enum):
    """What the checks of a subscription say of an event."""

    TRUE = "true"
    HASH = "hash"
    STRUCTURE = "structure"
    NO_DOCUMENT = "no document"


@dataclass(frozen=True, slots=True)
class Check:
    """One twig: XPath 1.0 that is true of its documents, and the items that these have."""

    xpath: str
    items: tuple[str, ...]


class Checks:
    """The twigs of one subscription, all of which a document must have. Raises LocalError without lxml."""

    def __init__(self, checks: Iterable[Check]) -> None:
        needs_lxml("a subscription with XPATH")
        from lxml import etree

        self._items: list[tuple[Any, frozenset[str]]] = []
        for check in checks:
            try:
                self._items.append((etree.XPath(check.xpath), frozenset(check.items)))
            except etree.XPathSyntaxError as error:
                raise ProtocolViolation(f"a check of a subscription is XPath 1.0: {error}") from error

    def find(self, body: bytes, content_type: str) -> Finding:
        """What they say of a body."""
        trees = trees_of(body, content_type)
        if not trees:
            return Finding.NO_DOCUMENT
        failed = [items for xpath, items in self._items if not _is_true(xpath, trees)]
        if not failed:
            return Finding.TRUE
        try:
            present = read_document(body, content_type).items()
        except DocumentError:  # lxml reads encodings that others do not
            return Finding.STRUCTURE
        return Finding.STRUCTURE if all(items <= present for items in failed) else Finding.HASH


def _is_true(xpath: Any, trees: Sequence[Any]) -> bool:
    from lxml import etree

    try:
        return any(xpath(tree) is True for tree in trees)
    except etree.XPathEvalError as error:
        raise LocalError(f"the XPath of a subscription cannot be evaluated: {error}") from error
