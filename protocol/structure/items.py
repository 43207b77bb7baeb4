"""Items of documents, and filters of them. (matching/SPEC.md, 7.5 to 7.7, which the matching room implements too.)

A document is a set of pairs (parent, name), where the parent of the root is "" and that of a name below something that
no twig can ask for is None. Names of XML may have their namespace before them, and a brace between. Pairs repeat from
document to document, so that the bits of each are remembered, and namespaces looked at once; so do all pairs of small
documents, whose filters are remembered whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from struct import Struct
from struct import pack as pack_positions

from ..data import is_full
from ..limits import FILTERS_REMEMBERED_MAX, ITEMS_REMEMBERED_MAX, VALUE_LENGTH_MAX

__all__ = ["Pair", "filter_of", "is_name", "item_bits", "items_of", "pack", "packed_filter", "plain_text", "value_item"]

Pair = tuple[str | None, str]

_WORDS = Struct(">4Q")
_START = (
    "A-Z_a-z\xc0-\xd6\xd8-\xf6\xf8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_NAME = re.compile(f"[{_START}][{_START}.0-9\xb7\u0300-\u036f\u203f\u2040-]*")
_NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@lru_cache(ITEMS_REMEMBERED_MAX)
def is_name(name: str) -> bool:
    """Whether a twig can ask for this name."""
    return _NAME.fullmatch(name) is not None


def plain_text(text: str) -> str:
    """A text of JSON as XML could hold it: other characters are U+FFFD."""
    return text if text.isprintable() else _NO_XML.sub("\ufffd", text)


def items_of(pairs: Iterable[Pair]) -> set[str]:
    """The items that some pairs are."""
    found = set()
    for parent, name in pairs:
        name = _local(name)
        found.add(f"n/{name}")
        if parent is not None:
            parent = _local(parent)
            found.add(f"s/{parent}/{name}" if parent else f"r/{name}")
    return found


def value_item(name: str, text: str) -> str | None:
    """The item of the text of a leaf or an attribute; None when it is too long to be one."""
    short = len(text) <= VALUE_LENGTH_MAX and len(text.encode("utf-8", "replace")) <= VALUE_LENGTH_MAX
    return f"v/{_local(name)}/{text}" if short else None


def _local(name: str) -> str:
    """A name without its namespace."""
    if "}" not in name:
        return name
    return ("@" if name[0] == "@" else "") + name.rpartition("}")[2]


def filter_of(pairs: Iterable[Pair], length: int, hashes: int) -> int:
    """The filter of some pairs."""
    made = 0
    for parent, name in pairs:
        made |= _pair_bits(parent, name, length, hashes)
    return made


@lru_cache(ITEMS_REMEMBERED_MAX)
def _pair_bits(parent: str | None, name: str, length: int, hashes: int) -> int:
    made = 0
    for item in items_of([(parent, name)]):
        made |= item_bits(item, length, hashes)
    return made


def item_bits(item: str, length: int, hashes: int) -> int:
    """The bits of one item."""
    made = 0
    for word in _WORDS.unpack(sha256(item.encode("utf-8", "replace")).digest())[:hashes]:
        made |= 1 << word % length
    return made


@lru_cache(FILTERS_REMEMBERED_MAX)
def packed_filter(pairs: frozenset[Pair], length: int, hashes: int) -> bytes | None:
    """The filter of some pairs as it stands on the wire, remembered."""
    return pack(filter_of(pairs, length, hashes), length)


def pack(made: int, length: int) -> bytes | None:
    """A filter as it stands on the wire: the positions of its bits while they are few, else all its bits; None when it
    is so full that it would say nothing.
    """
    count = made.bit_count()
    if is_full(count, length):
        return None
    if count * 16 >= length:
        return made.to_bytes(length // 8, "little")
    bits, positions = bin(made)[:1:-1], []
    place = bits.find("1")
    while place >= 0:
        positions.append(place)
        place = bits.find("1", place + 1)
    return pack_positions(f">{len(positions)}H", *positions)
