"""XML as lxml reads it: no DTD is loaded, no entity resolved, nothing fetched; a document that declares one is refused.

**Theory.** Visiting every element of a tree from Python takes longer than parsing it. So a document is parsed, which
says that it is well-formed, and written out again, both in C; in that text every `<` begins a tag and every `>` ends
one, comments, CDATA and declarations are gone, and one regular expression lists the tags in a fifth of the time. A
stack of names over that list gives the pairs.

Example: `<a x="1"><b/></a>` is the tags `a x="1"`, `b/`, `/a`, and the pairs (root, a), (a, @x), (a, b).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from ..errors import LocalError
from .items import Pair, value_item

__all__ = ["XmlDocument", "has_lxml", "needs_lxml"]

_TAG = re.compile(r"<([^\s>]+)([^>]*)>")
_ATTRIBUTE = re.compile(r'\s([^\s=]+)="[^"]*"')


class XmlDocument:
    """An XML document that was read. Raises ValueError when it is none, or declares entities."""

    def __init__(self, body: bytes) -> None:
        from lxml import etree

        try:
            self._root = etree.fromstring(body, _parser())
        except etree.XMLSyntaxError as error:
            raise ValueError(str(error)) from None
        declared = self._root.getroottree().docinfo.internalDTD
        if declared is not None and any(True for _ in declared.iterentities()):
            raise ValueError("it declares entities: write what they stand for")

    def pairs(self) -> set[Pair]:
        """Its parents and names; a name with @ is an attribute."""
        from lxml import etree

        text = etree.tostring(self._root, encoding="unicode", with_tail=False)
        found: set[tuple[str, str]] = set()
        above: list[str] = []
        add, parent = found.add, ""
        push, pop = above.append, above.pop
        for tag, rest in _TAG.findall(text):
            if tag[0] == "/":
                parent = pop()
                continue
            add((parent, tag))
            if rest:
                for name in _ATTRIBUTE.findall(rest):
                    add((tag, f"@{name}"))
                if rest[-1] == "/":
                    continue
            elif tag[-1] == "/":
                continue
            push(parent)
            parent = tag
        return {(_local(one), _local(name)) for one, name in found if not _is_declaration(name)}

    def values(self) -> set[str]:
        """The items of the texts of its leaves and attributes."""
        items: set[str | None] = set()
        for element in self._root.iter("*"):
            for name, value in element.attrib.items():
                items.add(value_item(f"@{name.rpartition('}')[2]}", value))
            if next(element.iterchildren("*"), None) is None:
                # What is below it then are references to entities that nobody declared here: XPath has their text.
                text = element.xpath("string()") if len(element) else element.text or ""
                items.add(value_item(element.tag.rpartition("}")[2], text))
        return {item for item in items if item is not None}

    def trees(self) -> Iterator[Any]:
        """Its root, as an element of lxml."""
        yield self._root


def _local(name: str) -> str:
    """The part of a tag or attribute that counts."""
    name = name.rstrip("/")
    if ":" not in name:
        return name
    return ("@" if name[0] == "@" else "") + name.rpartition(":")[2]


def _is_declaration(name: str) -> bool:
    return name == "@xmlns" or name.startswith("@xmlns:")


def has_lxml() -> bool:
    """Whether XML can be read here."""
    try:
        _parser()
    except ImportError:
        return False
    return True


def needs_lxml(what: str) -> None:
    """Raises LocalError unless XML can be read here."""
    if not has_lxml():
        raise LocalError(f"{what} needs lxml: pip install 'headgate[xml]'")


@cache
def _parser() -> Any:
    from lxml import etree

    return etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
