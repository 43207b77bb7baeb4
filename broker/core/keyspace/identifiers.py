"""Identifiers: arithmetic on a ring of 64 bits; no state.

The ring is the numbers 0 to 2^64 - 1, clockwise upwards, 0 after the last one. 64 bits, so that an identifier is one
integer of msgpack and one word of numpy. A key belongs to its *successor*: the first member at or after it.

    between(10, 12, 20)     True
    between(20, 5, 10)      True: from 20 over the top, past 0, to 10
    between(10, 10, 20)     False: the interval is open at both ends
    between(7, 8, 7)        True: from 7 once around to 7 is everything but 7
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, TypeVar

__all__ = ["BITS", "RING_SIZE", "between", "distance", "hash_identifier", "in_arc", "successor"]

BITS = 64
RING_SIZE = 1 << BITS

Place = TypeVar("Place", bound=Any)
"""A number, or anything with a total order: `between` needs no arithmetic, and so works for members as well."""


def hash_identifier(text: str | bytes) -> int:
    """H: the first eight bytes of SHA-1, most significant first."""
    octets = text.encode() if isinstance(text, str) else text
    return int.from_bytes(hashlib.sha1(octets, usedforsecurity=False).digest()[:8], "big")


def between(low: Place, place: Place, high: Place) -> bool:
    """Whether `place` lies strictly inside the interval that goes clockwise from `low` to `high`."""
    if low < high:
        return bool(low < place < high)
    return bool(place > low or place < high)


def in_arc(low: Place, place: Place, high: Place) -> bool:
    """Whether `place` lies in (low, high]: the keys of member `high` when `low` is the member before it."""
    return bool(place == high) or between(low, place, high)


def distance(start: int, end: int) -> int:
    """Steps clockwise from start to end: 0 to 2^64 - 1."""
    return (end - start) % RING_SIZE


def successor(members: Sequence[Place], place: Place) -> Place:
    """The first of the members, which are in ascending order and not none, at or after a place."""
    position = bisect_left(members, place)
    return members[position] if position < len(members) else members[0]
