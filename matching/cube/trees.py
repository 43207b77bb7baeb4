"""The ordered hypercube: its two induced trees, and what lies below and above a vertex (BLOOM 4.2 to 4.4).

A *vertex* is a number of n bits; there are 2^n of them. The vertices below v are its *sub-hypercube*: all numbers whose
set bits are set in v as well. A publication is at home at the vertex of its key, and whoever wants it is below that.

**Publication tree** (Eq 4.2). At v, reached by clearing bit q (at the root: q = n), go on to v without b for each set
bit b below q. High bits are cleared first, so every vertex below the root is reached, and each on one way only.

**Subscription tree** (Algorithm 1, its bits scanned from 0 on). At v, reached by setting bit q (at the root: q = -1),
go on to v with b for each clear bit b above q. Low bits are set first.

Each is the other one reversed: a subscription that walks up from s comes to v over the very edges, backwards, by which
a publication that walks down from v comes to s. That is why entries left on the way up can lead it down. The depth of
the publication tree is the weight of its root (Theorem 1), and so is its greatest out-degree (Theorem 2).

    from 1011    1010  1001  0011            1001 -> 1000      0011 -> 0010, 0001      0001 -> 0000
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["Edge", "below", "bits_above", "bits_below", "is_below", "publication_tree", "subscription_tree"]


class Edge(NamedTuple):
    """A step of a tree: from a vertex to the one that differs in this bit. The root has no step."""

    vertex: int
    bit: int
    reached: int


def bits_below(vertex: int, cleared: int) -> Iterator[int]:
    """The bits that a publication clears next at a vertex that it reached by clearing this bit: highest first."""
    left = vertex & ((1 << cleared) - 1)
    while left:
        bit = left.bit_length() - 1
        yield bit
        left ^= 1 << bit


def bits_above(vertex: int, bit: int, bits: int) -> Iterator[int]:
    """The bits that a subscription sets next at a vertex that it reached by setting this bit: lowest first."""
    return (above for above in range(bit + 1, bits) if not vertex >> above & 1)


def publication_tree(root: int, bits: int) -> Iterator[Edge]:
    """The edges of the publication tree below a root, each before those behind it."""
    waiting = [(root, bits)]
    while waiting:
        vertex, cleared = waiting.pop()
        for bit in bits_below(vertex, cleared):
            reached = vertex ^ 1 << bit
            waiting.append((reached, bit))
            yield Edge(vertex, bit, reached)


def subscription_tree(root: int, bits: int) -> Iterator[Edge]:
    """The edges of the subscription tree above a root, each before those behind it."""
    waiting = [(root, -1)]
    while waiting:
        vertex, last = waiting.pop()
        for bit in bits_above(vertex, last, bits):
            reached = vertex | 1 << bit
            waiting.append((reached, bit))
            yield Edge(vertex, bit, reached)


def is_below(vertex: int, root: int) -> bool:
    """Whether a vertex is in the sub-hypercube of a root."""
    return vertex & root == vertex


def below(root: int) -> Iterator[int]:
    """The sub-hypercube of a root, from itself down to 0: the dumb twin of its publication tree."""
    vertex = root
    while True:
        yield vertex
        if not vertex:
            return
        vertex = (vertex - 1) & root
