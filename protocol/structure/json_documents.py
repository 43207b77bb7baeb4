"""JSON as a tree of names: what its pairs and values are, and the elements that XPath reads. (protocol/SPEC.md, 6.4.)

An object's key is an element, and each key of a top-level object is a root. Arrays are transparent: an array is as
many elements of its key as it has values, and an empty one is none. A number is the text that it is written with; true,
false and null are elements without a text. Keys that are no names of XML cannot be asked for: what is below them can.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ..limits import DOCUMENT_DEPTH_MAX
from .items import Pair, is_name, plain_text, value_item

__all__ = ["JsonDocument"]

UNNAMED = "_" * 256
"""The element of a key that is no name: a twig's names are shorter."""


class JsonDocument:
    """A JSON document that was read. Raises ValueError when it is none, or too deep."""

    def __init__(self, body: bytes) -> None:
        try:
            self._value = json.loads(body, parse_int=str, parse_float=str, parse_constant=_refuse)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None

    def pairs(self) -> set[Pair]:
        """Its parents and names. Raises ValueError when it is too deep."""
        found: set[Pair] = set()
        for parent, name, _ in self._walk():
            if name is not None:
                found.add((parent, name))
        return found

    def values(self) -> set[str]:
        """The items of the texts of its leaves."""
        leaves = ((name, _text(value)) for _, name, value in self._walk() if name is not None and _is_leaf(value))
        return {item for name, text in leaves if (item := value_item(name, text)) is not None}

    def trees(self, etree: Any) -> Iterator[Any]:
        """Each of its roots as an element of this library, which is lxml's or Python's own."""
        waiting: list[tuple[Any, str, Any, int]] = []
        for key, member in _members(self._value):
            root = etree.Element(key if is_name(key) else UNNAMED)
            waiting.append((root, key, member, 1))
            while waiting:
                element, _, value, depth = waiting.pop()
                _check_depth(depth)
                if not isinstance(value, dict):
                    element.text = _text(value)
                    continue
                for inner, below in _members(value):
                    child = etree.SubElement(element, inner if is_name(inner) else UNNAMED)
                    waiting.append((child, inner, below, depth + 1))
            yield root

    def _walk(self) -> Iterator[tuple[str | None, str | None, Any]]:
        """(parent, name, value) of each element; None where the name is none."""
        waiting: list[tuple[str | None, Any, int]] = [("", self._value, 0)]
        while waiting:
            parent, value, depth = waiting.pop()
            _check_depth(depth)
            for key, member in _members(value):
                name = key if is_name(key) else None
                yield parent, name, member
                if isinstance(member, dict):
                    waiting.append((name, member, depth + 1))


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    """The elements below a value: key and value, none of them an array."""
    lists = [value]
    while lists:  # an array in an array is as transparent as one alone
        one = lists.pop()
        if isinstance(one, list):
            lists.extend(reversed(one))
        elif isinstance(one, dict):
            for key, member in one.items():
                yield from ((key, single) for single in _singles(member))


def _singles(member: Any) -> Iterator[Any]:
    if not isinstance(member, list):
        yield member
        return
    lists = [member]
    while lists:
        one = lists.pop()
        if isinstance(one, list):
            lists.extend(reversed(one))
        else:
            yield one


def _is_leaf(value: Any) -> bool:
    """It has no elements below it."""
    return not isinstance(value, dict) or not any(True for _ in _members(value))


def _text(value: Any) -> str:
    return plain_text(value) if isinstance(value, str) else ""


def _check_depth(depth: int) -> None:
    if depth > DOCUMENT_DEPTH_MAX:
        raise ValueError(f"it is nested deeper than {DOCUMENT_DEPTH_MAX} levels")


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")
