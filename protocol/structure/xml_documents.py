"""XML: who publishes reads it with the parser that Python has, who subscribes with lxml, which knows XPath.

No DTD is loaded, no entity resolved and nothing fetched by either, and a document that declares an entity is none: what
it stands for may be a thousand times as long, or somewhere else.

**Theory.** In a tree of lxml each element that Python looks at is made anew, which takes longer than parsing it. The
elements of Python's own tree are there already; the names of all children of one element are taken in one call, by the
element's name, so that the walk takes a quarter of the time that parsing does.
"""

from __future__ import annotations

import re
from functools import cache
from operator import attrgetter
from typing import Any

from ..errors import LocalError
from .items import Pair, value_item

__all__ = ["XmlDocument", "needs_lxml", "xml_tree"]

_tag = attrgetter("tag")
_UNDEFINED_ENTITY = 11
_ENTITY = re.compile(rb"&([A-Za-z_][A-Za-z0-9._-]*);")
_WIDE = (b"\xff\xfe", b"\xfe\xff", b"\x00", b"<\x00")
"""How a document begins whose encoding hides what is looked for in its bytes."""


class XmlDocument:
    """An XML document that was read. Raises ValueError when it is none, or declares entities."""

    def __init__(self, body: bytes) -> None:
        python = _python_parser()
        if b"<!ENTITY" in body or body.startswith(_WIDE):
            _refuse_entities(body)
        try:
            try:
                self.root = python.fromstring(body)
            except python.ParseError as error:
                if error.code != _UNDEFINED_ENTITY:
                    raise
                # A DTD that is not loaded may declare them: they stand for nothing, as for lxml.
                parser = python.XMLParser()
                parser.entity.update(dict.fromkeys(map(bytes.decode, _ENTITY.findall(body.replace(b"\0", b""))), ""))
                self.root = python.fromstring(body, parser)
        except (python.ParseError, LookupError) as error:
            raise ValueError(str(error)) from None

    def pairs(self) -> set[Pair]:
        """Its parents and names; a name with @ is an attribute."""
        children: dict[str, set[str]] = {}
        attributes: dict[str, set[str]] = {}
        for element in self.root.iter():
            if len(element):
                below = children.get(element.tag)
                if below is None:
                    below = children[element.tag] = set()
                below.update(map(_tag, element))
            keys = element.keys()
            if keys:
                names = attributes.get(element.tag)
                if names is None:
                    names = attributes[element.tag] = set()
                names.update(keys)
        found: set[Pair] = {("", self.root.tag)}
        for tag, below in children.items():
            found.update([(tag, name) for name in below])
        for tag, names in attributes.items():
            found.update([(tag, f"@{name}") for name in names])
        return found

    def values(self) -> set[str]:
        """The items of the texts of its leaves and attributes."""
        items: set[str | None] = set()
        for element in self.root.iter():
            for name, value in element.items():
                items.add(value_item(f"@{name}", value))
            if not len(element):
                items.add(value_item(element.tag, element.text or ""))
        return {item for item in items if item is not None}


def xml_tree(body: bytes) -> Any:
    """The document as an element of lxml. Raises ValueError when it is none, or declares entities."""
    from lxml import etree

    try:
        root = etree.fromstring(body, _parser())
    except etree.XMLSyntaxError as error:
        raise ValueError(str(error)) from None
    declared = root.getroottree().docinfo.internalDTD
    if declared is not None and any(True for _ in declared.iterentities()):
        raise ValueError(_ENTITIES)
    return root


def needs_lxml(what: str) -> None:
    """Raises LocalError unless XPath can be evaluated here."""
    try:
        _parser()
    except ImportError:
        raise LocalError(f"{what} needs lxml: pip install 'headgate[xml]'") from None


_ENTITIES = "it declares entities: write what they stand for"


def _refuse_entities(body: bytes) -> None:
    """Raises ValueError at the first declaration, before anything is made of it."""
    from xml.parsers import expat

    def refuse(*declaration: object) -> None:
        raise ValueError(_ENTITIES)

    parser = expat.ParserCreate()
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(body, True)
    except (expat.ExpatError, LookupError) as error:
        raise ValueError(str(error)) from None


@cache
def _python_parser() -> Any:
    """Imported when it is first needed, and looked up for less than what a small document costs."""
    from xml.etree import ElementTree

    return ElementTree


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
