"""Filters: sets of items as the bits that their hashes name. (BLOOM 3.2.4.)

**Theory.** Each item names k of the l bits. A set of items has the bits of all of them, so a subset has a subset of the
bits: a filter that is not contained in the document's proves that the document lacks an item. The other way round it
proves nothing: with n items in the document an absent item passes by chance with P = (1 - e^(-kn/l))^k.

Example: `n/book` names bit 813 of 1,024, which `pack` writes as the bytes 03 2d.
Invariant: items <= others implies filter_of(items) & ~filter_of(others) == 0.

The hash is SHA-256 of the item in UTF-8: the digest is four integers of 8 bytes, the most significant byte first, and
the first k of them modulo l are the bits. Any language has it, and how long it takes does not depend on l.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from math import exp, log
from struct import Struct
from typing import Final

from headgate.matching.limits import FILTER_BITS_MAX, FILTER_HASHES_MAX

__all__ = ["DEFAULT_SHAPE", "Shape", "best_hashes", "bits_of", "estimate", "exact", "filter_of", "pack", "unpack"]

_WORDS: Final = Struct(">4Q")
_COLUMN: Final = re.compile(r"#(structure|values)/([1-9][0-9]{0,5})/([1-9])")


@dataclass(frozen=True, slots=True)
class Shape:
    """What a filter is made with: so many bits, so many hashes of each item."""

    length: int
    hashes: int

    @property
    def column(self) -> str:
        """The match column of the filter of names and pairs."""
        return f"#structure/{self.length}/{self.hashes}"

    @property
    def values_column(self) -> str:
        """The match column of the filter of values."""
        return f"#values/{self.length}/{self.hashes}"

    @property
    def is_sendable(self) -> bool:
        """It may stand in a match column: whole bytes, and within the limits."""
        return self.length % 8 == 0 and 0 < self.length <= FILTER_BITS_MAX and 0 < self.hashes <= FILTER_HASHES_MAX

    @staticmethod
    def of_column(name: str) -> Shape | None:
        """The shape that a match column's name says, or None when it is the name of an attribute."""
        found = _COLUMN.fullmatch(name)
        shape = Shape(int(found[2]), int(found[3])) if found else None
        return shape if shape is not None and shape.is_sendable else None


DEFAULT_SHAPE: Final = Shape(1024, 1)


def bits_of(item: str, length: int, hashes: int) -> tuple[int, ...]:
    """The bits of one item, in the order of the hashes; two of them may be the same."""
    return tuple([word % length for word in _WORDS.unpack(sha256(item.encode()).digest())[:hashes]])


def filter_of(items: Iterable[str], length: int, hashes: int) -> int:
    """The filter of a set of items."""
    made = 0
    for item in items:
        for bit in bits_of(item, length, hashes):
            made |= 1 << bit
    return made


def pack(made: int, length: int) -> bytes:
    """The filter as bytes: the positions of its bits while they are few, else all its bits."""
    if made.bit_count() * 16 < length:
        return b"".join([position.to_bytes(2, "big") for position in _positions(made)])
    return made.to_bytes(length // 8, "little")


def unpack(packed: bytes, length: int) -> int | None:
    """The filter that these bytes are; None when they are none of this length."""
    if len(packed) * 8 == length:
        return int.from_bytes(packed, "little")
    if len(packed) % 2 or len(packed) * 8 > length:
        return None
    made, before = 0, -1
    for place in range(0, len(packed), 2):
        position = packed[place] << 8 | packed[place + 1]
        if not before < position < length:
            return None
        made |= 1 << position
        before = position
    return made


def estimate(length: int, hashes: int, items: int) -> float:
    """How likely an item that is not there seems to be there: (1 - e^(-kn/l))^k. (BLOOM 3.2.4)"""
    return float((1 - exp(-hashes * items / length)) ** hashes)


def exact(length: int, hashes: int, items: int) -> float:
    """The same without the approximation of a power by e: (1 - (1 - 1/l)^(nk))^k."""
    return float((1 - (1 - 1 / length) ** (items * hashes)) ** hashes)


def best_hashes(length: int, items: int) -> float:
    """The number of hashes with which the least passes by chance, as a real number: (l/n) ln 2."""
    return length / items * log(2)


def _positions(made: int) -> Iterator[int]:
    """The bits that are set, from the least."""
    while made:
        least = made & -made
        yield least.bit_length() - 1
        made ^= least
