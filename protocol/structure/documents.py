"""A document: the body of an event whose content type says XML or JSON, and the columns that its structure becomes."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Protocol

from ..data import is_saturated, saturated_text
from ..errors import LocalError
from ..limits import FILTER_BITS_MAX, FILTER_HASHES_MAX, REMEMBERED_PAIRS_MAX, SHAPES_REMEMBERED_MAX
from .items import Pair, filter_of, item_bits, items_of, pack, packed_filter
from .json_documents import JsonDocument
from .xml_documents import XmlDocument, xml_element, xml_tree

__all__ = [
    "Document",
    "DocumentError",
    "elements_of",
    "filter_columns",
    "filters_of_body",
    "is_document",
    "is_filter_name",
    "kind_of",
    "read_document",
    "to_body",
    "trees_of",
]

_COLUMN = re.compile(r"#(structure|values)/([1-9][0-9]{0,5})/([1-9])")
_KINDS = {"application/xml": "xml", "text/xml": "xml", "application/json": "json", "text/json": "json"}
NO_DOCUMENT = b""
"""The filter of an event without one."""


class DocumentError(LocalError):
    """A document cannot be published, or read."""


class _Read(Protocol):
    def pairs(self) -> set[Pair]: ...

    def values(self) -> set[str]: ...


class Document:
    """A document that was read. Raises ValueError when it is too deep."""

    def __init__(self, read: _Read) -> None:
        self._read = read
        self._pairs = read.pairs()

    def items(self) -> set[str]:
        """All its items, values included. Raises DocumentError when its texts cannot be read."""
        return items_of(self._pairs) | self._values()

    def filter(self, kind: str, length: int, hashes: int) -> bytes | None:
        """Its filter of this kind; None when it is so full that it would say nothing, or nothing is known."""
        if kind == "structure":
            if len(self._pairs) <= REMEMBERED_PAIRS_MAX:
                return packed_filter(frozenset(self._pairs), length, hashes)
            return pack(filter_of(self._pairs, length, hashes), length)
        made = 0
        try:
            for item in self._values():
                made |= item_bits(item, length, hashes)
        except DocumentError:
            return None
        return pack(made, length)

    def check_filters(self, names: Sequence[str]) -> None:
        """Raises DocumentError when the filter of its structure in one of these match columns would be refused."""
        for name in names:
            kind, length, hashes = _shape(name) or ("", 0, 0)
            # Each pair sets the bits of a name and of a pair at most.
            if kind == "structure" and is_saturated(2 * hashes * len(self._pairs), length):
                bits = filter_of(self._pairs, length, hashes).bit_count()
                if is_saturated(bits, length):
                    raise DocumentError(saturated_text(bits, length))

    def _values(self) -> set[str]:
        try:
            return self._read.values()
        except ValueError as error:
            raise DocumentError(f"the texts of this document cannot be read: {error}") from error


@lru_cache(SHAPES_REMEMBERED_MAX)
def kind_of(content_type: str) -> str:
    """`xml`, `json`, or nothing for what is no document."""
    essence = content_type.partition(";")[0].strip().lower()
    return _KINDS.get(essence) or ("xml" if essence.endswith("+xml") else "json" if essence.endswith("+json") else "")


def is_document(content_type: str) -> bool:
    """Whether a body of this type is a document."""
    return bool(kind_of(content_type))


def read_document(body: bytes, content_type: str) -> Document:
    """The document that a body is. Raises DocumentError."""
    kind = kind_of(content_type)
    try:
        if kind:
            return Document(JsonDocument(body) if kind == "json" else XmlDocument(body))
    except ValueError as error:
        raise DocumentError(f"this is no {kind.upper()} that can be read: {error}") from error
    raise DocumentError(f"a body of type {content_type!r} is no document: say application/xml or application/json")


def trees_of(body: bytes, content_type: str) -> list[Any]:
    """What XPath is asked of: an element of lxml for each root of the document that a body is, none when it is none."""
    kind = kind_of(content_type)
    try:
        if kind == "json":
            from lxml import etree

            return list(JsonDocument(body).trees(etree))
        return [xml_tree(body)] if kind else []
    except ValueError:
        return []


def elements_of(body: bytes, content_type: str) -> list[Any]:
    """The same as elements of Python's own library, as publishers read them, which knows no XPath and needs no lxml."""
    kind = kind_of(content_type)
    try:
        if kind == "json":
            from xml.etree import ElementTree

            return list(JsonDocument(body).trees(ElementTree))
        return [xml_element(body)] if kind else []
    except ValueError:
        return []


def to_body(document: Any, content_type: str) -> tuple[bytes, str]:
    """The body and the content type of what was given as a document: text is XML unless its type says JSON, all else
    becomes JSON. Raises DocumentError.
    """
    if isinstance(document, bytes | bytearray | memoryview | str):
        content_type = content_type or "application/xml"
        try:
            return document.encode() if isinstance(document, str) else bytes(document), content_type
        except UnicodeEncodeError as error:
            raise DocumentError(f"a document that is a string must be valid Unicode: {error.reason}") from error
    content_type = content_type or "application/json"
    if kind_of(content_type) != "json":
        raise DocumentError(f"a document of type {content_type!r} is bytes or a string, not {type(document).__name__}")
    try:
        return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(), content_type
    except (TypeError, ValueError, RecursionError) as error:
        raise DocumentError(f"this cannot be written as JSON: {error}") from error


def is_filter_name(name: str) -> bool:
    """Whether a match column of this name holds filters."""
    return _shape(name) is not None


def filter_columns(document: Document | None, names: Sequence[str]) -> dict[str, bytes]:
    """The cells of an event in the match columns of filters that are asked for. Without a document they are empty; a
    filter that would say nothing is left out.
    """
    cells: dict[str, bytes] = {}
    for name in names:
        shape = _shape(name)
        if shape is not None:
            cell = NO_DOCUMENT if document is None else document.filter(*shape)
            if cell is not None:
                cells[name] = cell
    return cells


def filters_of_body(body: bytes, content_type: str, names: Sequence[str]) -> dict[str, bytes]:
    """The same of an event whose body may be a document. Of what cannot be read here nothing is known."""
    if not body or not is_document(content_type):
        return filter_columns(None, names)
    try:
        return filter_columns(read_document(body, content_type), names)
    except DocumentError:
        return {}


@lru_cache(SHAPES_REMEMBERED_MAX)
def _shape(name: str) -> tuple[str, int, int] | None:
    found = _COLUMN.fullmatch(name) if name[:1] == "#" else None
    if found is None:
        return None
    length, hashes = int(found[2]), int(found[3])
    fits = length % 8 == 0 and length <= FILTER_BITS_MAX and hashes <= FILTER_HASHES_MAX
    return (found[1], length, hashes) if fits else None
