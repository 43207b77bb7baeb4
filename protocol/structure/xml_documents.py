"""XML: who publishes reads it with the parser that Python has, who subscribes with lxml, which knows XPath.

No DTD is loaded, no entity resolved and nothing fetched by either, and a document that declares an entity is none: what
it stands for may be a thousand times as long, or somewhere else.

**Theory.** A filter needs no tree: the parser tells where each element begins and ends, and pairs of names are noted as
it does. That takes less time than making the tree, and no more memory than there are different pairs. The tree is made
for texts alone, when somebody asks for the filter of values, and for whoever evaluates twigs.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from ..errors import LocalError
from .items import Pair, value_item

__all__ = ["XmlDocument", "needs_lxml", "xml_element", "xml_tree"]

_UNDEFINED_ENTITY = 11
_ENTITY = re.compile(rb"&([^\s&;#<][^\s&;<]*);")
_WIDE = (b"\xff\xfe", b"\xfe\xff", b"\x00", b"<\x00")
"""How a document begins whose encoding hides what is looked for in its bytes."""


class XmlDocument:
    """An XML document that was read. Raises ValueError when it is none, or declares entities."""

    def __init__(self, body: bytes) -> None:
        _check_entities(body)
        self._body = body
        self._pairs = _read_pairs(body)

    def pairs(self) -> set[Pair]:
        """Its parents and names; a name with @ is an attribute."""
        return self._pairs

    def values(self) -> set[str]:
        """The items of the texts of its leaves and attributes. Raises ValueError when there is no tree of it."""
        items: set[str | None] = set()
        for element in xml_element(self._body).iter():
            for name, value in element.items():
                items.add(value_item(f"@{name}", value))
            if not len(element):
                items.add(value_item(element.tag, element.text or ""))
        return {item for item in items if item is not None}


def _read_pairs(body: bytes) -> set[Pair]:
    """Which names stand directly below which."""
    expat = _expat()
    found: set[Pair] = set()
    above = [""]
    note, push, pop = found.add, above.append, above.pop

    def begin(name: str, attributes: list[str]) -> None:
        note((above[-1], name))
        for key in attributes[::2]:
            note((name, f"@{key}"))
        push(name)

    def end(name: str) -> None:
        pop()

    parser = expat.ParserCreate(None, "}")  # what stands between a namespace and a name
    parser.ordered_attributes = True  # one list of names and values
    parser.StartElementHandler, parser.EndElementHandler = begin, end
    try:
        parser.Parse(body, True)
    except (expat.ExpatError, LookupError) as error:
        raise ValueError(str(error)) from None
    return found


def xml_element(body: bytes) -> Any:
    """The document as an element of Python's own library. Raises ValueError when it is none, or declares entities."""
    from xml.etree import ElementTree as python

    _check_entities(body)
    try:
        try:
            return python.fromstring(body)
        except python.ParseError as error:
            if error.code != _UNDEFINED_ENTITY:
                raise
            # A DTD that is not loaded may declare them: they stand for nothing, as for lxml.
            parser = python.XMLParser()
            names = _ENTITY.findall(body.replace(b"\0", b""))
            parser.entity.update({name.decode("utf-8", "replace"): "" for name in names})
            return python.fromstring(body, parser)
    except (python.ParseError, LookupError) as error:
        raise ValueError(str(error)) from None


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


def _check_entities(body: bytes) -> None:
    """Raises ValueError at the first declaration of an entity, before anything is made of it."""
    if b"<!ENTITY" not in body and not body.startswith(_WIDE):
        return
    expat = _expat()

    def refuse(*declaration: object) -> None:
        raise ValueError(_ENTITIES)

    parser = expat.ParserCreate()
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(body, True)
    except (expat.ExpatError, LookupError) as error:
        raise ValueError(str(error)) from None


@cache
def _expat() -> Any:
    """Imported when it is first needed, and looked up for less than what a small document costs."""
    from xml.parsers import expat

    return expat


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
