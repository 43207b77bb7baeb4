"""The lists of one broker: which subscriptions are on the list of a value, of an attribute, of a stream.

They are made of the items that the keyed store holds here, as owner or for another, and are as true as those are: who
may answer for a key may answer with its list. An item is a subID and the keys on whose lists it is: one key, or all
from the first to the last cell of a range. There is a list for every value, as RANGE 3.1.1 has it, and it is not
written out for every value: a stretch of cells is the union of few *blocks* (of 1, 2, 4, 8, ... cells), each block has
the subIDs that are on all of its lists, and the list of a cell is what its own blocks have, at most one of each size.

    cells    0 1 2 3 4 5 6 7      a range of 1 to 6 is the blocks 1, 2-3, 4-5, 6
             --- --- --- ---      the list of cell 5 is what 5, 4-5, 4-7 and 0-7 have

So a range costs twice the logarithm of its cells, and so does a question. `counting.CountingStore` is the plain form.

While a subscription is amended, its former and its next range may overlap: a subID is on a list as long as any of its
items puts it there, and once.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..keyspace import COUNT, Dimension, Domain
from .counting import SubscriptionId

__all__ = ["CountingLists"]


class _Values:
    """Lists of single values, by key."""

    __slots__ = ("lists",)

    def __init__(self) -> None:
        self.lists: dict[int, dict[SubscriptionId, int]] = {}

    def blocks(self, low: int, high: int) -> Iterator[int]:
        """Whose lists make up that of the keys."""
        assert low == high, "values without a domain have no order"
        yield low

    def upwards(self, key: int) -> Iterator[int]:
        """The blocks that a key is in."""
        yield key


class _Cells:
    """Lists of the cells of a domain. Block 1 is all of them; the halves of block n are 2n and 2n + 1."""

    __slots__ = ("_domain", "_leaves", "lists")

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._leaves = 1 << (domain.cells - 1).bit_length()
        self.lists: dict[int, dict[SubscriptionId, int]] = {}

    def blocks(self, low: int, high: int) -> Iterator[int]:
        """The fewest blocks that are the cells from here to there."""
        left = self._domain.cell_at(low) + self._leaves
        right = self._domain.cell_at(high) + self._leaves + 1
        while left < right:
            if left & 1:
                yield left
                left += 1
            if right & 1:
                right -= 1
                yield right
            left >>= 1
            right >>= 1

    def upwards(self, key: int) -> Iterator[int]:
        """The blocks that the cell is in, from the smallest to all."""
        block = self._domain.cell_at(key) + self._leaves
        while block:
            yield block
            block >>= 1


class CountingLists:
    """Answers which subscriptions are on the list of a key, from ranges of cells that were stored whole."""

    def __init__(self) -> None:
        self._dimensions: dict[tuple[str, Dimension], _Values | _Cells] = {}

    def __len__(self) -> int:
        """SubIDs, each as often as a block has it."""
        return sum(len(one) for dimensions in self._dimensions.values() for one in dimensions.lists.values())

    def add(self, stream: str, dimension: Dimension, low: int, high: int, identity: SubscriptionId) -> None:
        """Put a subID on the lists of these keys. Raises ValueError when there can be none."""
        if dimension.kind != COUNT or (not dimension.is_arc and low != high):
            raise ValueError(f"{dimension} has no lists from {low} to {high}")
        dimensions = self._dimensions.get((stream, dimension))
        if dimensions is None:
            dimensions = _Cells(dimension.domain(stream)) if dimension.is_arc else _Values()
            self._dimensions[stream, dimension] = dimensions
        for block in dimensions.blocks(low, high):
            identities = dimensions.lists.setdefault(block, {})
            identities[identity] = identities.get(identity, 0) + 1

    def remove(self, stream: str, dimension: Dimension, low: int, high: int, identity: SubscriptionId) -> None:
        """Take it off again; what is not there is not missed."""
        dimensions = self._dimensions.get((stream, dimension))
        if dimensions is None:
            return
        for block in dimensions.blocks(low, high):
            identities = dimensions.lists.get(block, {})
            items = identities.pop(identity, 0)
            if items > 1:
                identities[identity] = items - 1
            if not identities:
                dimensions.lists.pop(block, None)
        if not dimensions.lists:
            del self._dimensions[stream, dimension]

    def at(self, stream: str, dimension: Dimension, key: int) -> list[SubscriptionId]:
        """The list of the value that has this key, or lies in the cell that has it."""
        dimensions = self._dimensions.get((stream, dimension))
        if dimensions is None:
            return []
        lists, found = dimensions.lists, {}
        for block in dimensions.upwards(key):
            if block in lists:
                found.update(lists[block])
        return list(found)

    def subscriptions(self, stream: str) -> int:
        """How many are on any list of a stream here."""
        dimensions = [one for (name, _), one in self._dimensions.items() if name == stream]
        return len({identity for one in dimensions for identities in one.lists.values() for identity in identities})

    def validate(self) -> None:
        """Asserts that no list is empty."""
        for dimensions in self._dimensions.values():
            assert dimensions.lists and all(dimensions.lists.values()), "an empty list is removed"
