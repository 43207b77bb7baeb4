"""An index of filters: which of them are contained in the filter of a document?

**Theory.** The plain test of the paper (BLOOM 3.2.4) asks each filter. A filter can only be contained if its rarest bit
is set in the document, so each is filed under that one: the fewest others are there, and of 1,024 bits a document sets
some 80. What is filed under one bit is divided again by the rarest of the bits that are left, once it is too much to be
tested one by one: a tree, in which a document visits only the nodes whose bits it all has (a set-trie).

Filters of the same bits are one entry with several keys: a thousand subscribers to one twig are one test.

Example: filters 0011, 0110 and 0010, where bit 1 is in all three: 0011 is under bit 0, 0110 under bit 2, 0010 under
bit 1. Document 0011 visits the nodes of bits 0 and 1, and tests two.
Invariant: the bits on the way to a node are contained in every filter that is filed there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from headgate.matching.limits import FILTERS_TESTED_MAX, SEARCHED_BITS_MAX

__all__ = ["FilterIndex", "FilterStatistics", "PlainFilters"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FilterStatistics:
    """A snapshot of an index of filters."""

    keys: int
    filters: int  # distinct ones
    nodes: int
    tested: int  # filters that were compared with a document
    passed: int  # of these, how many it contained


@dataclass(slots=True, eq=False)
class _Node(Generic[T]):
    """Filters that have all the bits on the way here. `filters` are tested, or `is_divided` and below its bits."""

    above: _Node[T] | None
    bit: int
    path: int
    filters: dict[int, dict[T, None]] = field(default_factory=dict)
    below: dict[int, _Node[T]] = field(default_factory=dict)
    bits: int = 0  # of the nodes below
    is_divided: bool = False

    def walk(self) -> Iterator[_Node[T]]:
        """This node and all below."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(node.below.values())


class FilterIndex(Generic[T]):
    """Filters by the keys of whoever asks: hashable, and each there once."""

    def __init__(self) -> None:
        self._root: _Node[T] = _Node(None, 0, 0)
        self._places: dict[T, tuple[_Node[T], int]] = {}
        self._uses: dict[int, int] = {}  # bit -> distinct filters that have it
        self._bits = 0
        self._filters = self._tested = self._passed = 0

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[T]:
        return iter(self._places)

    def add(self, key: T, made: int) -> None:
        """File a filter; KeyError when the key is taken."""
        if key in self._places:
            raise KeyError(f"{key!r} is there already")
        node = self._root
        while node.is_divided and made != node.path and made not in node.filters:
            node = self._below(node, made)
        keys = node.filters.get(made)
        if keys is not None:
            keys[key] = None
        else:
            node.filters[made] = {key: None}
            self._filters += 1
            self._count(made, 1)
        self._places[key] = node, made
        if len(node.filters) > FILTERS_TESTED_MAX:
            self._divide(node)

    def remove(self, key: T) -> None:
        """Take a filter out; KeyError when there is none of that key."""
        node, made = self._places.pop(key)
        keys = node.filters[made]
        del keys[key]
        if keys:
            return
        del node.filters[made]
        self._filters -= 1
        self._count(made, -1)
        while node.above is not None and not node.filters and not node.below:
            above = node.above
            del above.below[node.bit]
            above.bits ^= node.bit
            node = above

    def filter_of(self, key: T) -> int:
        """The filter that is filed for a key."""
        return self._places[key][1]

    def match(self, document: int) -> list[T]:
        """The keys of all filters that a document's contains; of all there are, when it is unknown (-1)."""
        if document < 0:
            return list(self._places)
        absent = self._bits & ~document
        found: list[T] = []
        waiting = [self._root]
        while waiting:
            node = waiting.pop()
            self._tested += len(node.filters)
            for made, keys in node.filters.items():
                if not made & absent:
                    self._passed += 1
                    found += keys
            if len(node.below) <= SEARCHED_BITS_MAX:
                waiting += [child for bit, child in node.below.items() if bit & document]
                continue
            common = node.bits & document
            while common:
                bit = common & -common
                common ^= bit
                waiting.append(node.below[bit])
        return found

    def statistics(self) -> FilterStatistics:
        """A snapshot of the sizes of things."""
        nodes = sum(1 for _ in self._root.walk())
        return FilterStatistics(len(self._places), self._filters, nodes, self._tested, self._passed)

    def validate(self) -> None:
        """Assert what must hold between any two calls."""
        keys: dict[T, tuple[_Node[T], int]] = {}
        uses: dict[int, int] = {}
        for node in self._root.walk():
            assert node.bits == sum(node.below), "bits of the nodes below are wrong"
            assert node.above is None or node.filters or node.below, "empty node"
            assert node.is_divided or (len(node.filters) <= FILTERS_TESTED_MAX and not node.below), "too many to test"
            for bit, below in node.below.items():
                assert below.above is node and below.bit == bit and below.path == node.path | bit, "torn tree"
            for made, those in node.filters.items():
                assert those and made & node.path == node.path, "a filter that lacks a bit on its way"
                keys.update(dict.fromkeys(those, (node, made)))
                for bit in _bits(made):
                    uses[bit] = uses.get(bit, 0) + 1
        assert keys == self._places, "filed elsewhere than it says"
        assert uses == self._uses and self._bits == sum(uses), "bits are miscounted"
        assert self._filters == sum(len(node.filters) for node in self._root.walk()), "filters are miscounted"

    def _below(self, node: _Node[T], made: int) -> _Node[T]:
        """The node of the rarest bit that is left of a filter."""
        uses = self._uses
        bit = min(_bits(made & ~node.path), key=lambda one: uses.get(one, 0))
        below = node.below.get(bit)
        if below is None:
            below = node.below[bit] = _Node(node, bit, node.path | bit)
            node.bits |= bit
        return below

    def _divide(self, node: _Node[T]) -> None:
        """Move what is filed at a node to nodes below it, but the filter that has no bit left."""
        node.is_divided = True
        filters, node.filters = node.filters, {}
        for made, keys in filters.items():
            to = node if made == node.path else self._below(node, made)
            to.filters[made] = keys
            self._places.update(dict.fromkeys(keys, (to, made)))
        for below in list(node.below.values()):
            if len(below.filters) > FILTERS_TESTED_MAX:
                self._divide(below)

    def _count(self, made: int, change: int) -> None:
        for bit in _bits(made):
            uses = self._uses.get(bit, 0) + change
            if uses:
                self._uses[bit] = uses
                self._bits |= bit
            else:
                del self._uses[bit]
                self._bits ^= bit


class PlainFilters(Generic[T]):
    """The dumb twin, and the test of the paper: every filter is compared with every document."""

    def __init__(self) -> None:
        self._filters: dict[T, int] = {}
        self._bits = 0  # that some filter had: a number without a sign is compared in half the time

    def __len__(self) -> int:
        return len(self._filters)

    def add(self, key: T, made: int) -> None:
        """File a filter; KeyError when the key is taken."""
        if key in self._filters:
            raise KeyError(f"{key!r} is there already")
        self._filters[key] = made
        self._bits |= made

    def remove(self, key: T) -> None:
        """Take a filter out; KeyError when there is none of that key."""
        del self._filters[key]

    def match(self, document: int) -> list[T]:
        """The keys of all filters that a document's contains."""
        absent = self._bits & ~document
        return [key for key, made in self._filters.items() if not made & absent]


def _bits(made: int) -> Iterator[int]:
    """The bits that are set, each as a number of one bit, from the least."""
    while made:
        bit = made & -made
        yield bit
        made ^= bit
