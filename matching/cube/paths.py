"""Reverse paths: what subscriptions leave at the vertices of the cube, for publications to follow (BLOOM 4.5, KBSP).

A subscription rests at the vertex of its key and walks up the subscription tree. At each vertex that it comes to over
bit b it leaves its filter under b: "whoever passes this may go on to the vertex without b". So at v stands, for each
child v - b, the *antichain* of what came from there:

    entries[v][b] = minimal(rest(v - b) + entries[v - b][c] for each c < b)

A filter that is covered where it comes to goes no further, for what covers it went that way before. Where two filters
were merged, the merged one goes on in their place.

A publication that walks down looks only at children v - b with b below the bit that it cleared last. Nothing is missed,
for whoever came to v over b came to v's parent over the higher bit, and nothing is met twice, for in that tree each
vertex has one parent. (Without that rule s = 001 is found from 111 by 011 and by 101.)

Taking a filter away makes all entries anew from the filters that are left, because entries cannot be subtracted:
what is merged or covered does not show whose it was. Only where it was covered at once, or is asked for again, nothing
is to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from headgate.matching.cube.covering import ANTICHAIN_MAX, Antichain, passes, with_filter
from headgate.matching.cube.trees import Edge, bits_above, bits_below

__all__ = ["Entries", "ReversePaths", "walk"]

Entries = Mapping[int, Sequence[int]]
"""Of one vertex: bit -> filters of what may be behind the vertex without it."""


class ReversePaths:
    """The entries that some subscriptions leave, kept as they come and go."""

    def __init__(self, bits: int, key_of: Callable[[int], int], antichain_max: int = ANTICHAIN_MAX) -> None:
        self._bits = bits
        self._key_of = key_of
        self._antichain_max = antichain_max
        self._uses: dict[int, int] = {}
        self._shown: set[int] = set()
        """Filters that changed an entry when they came: without them entries may be others."""
        self.entries: dict[int, dict[int, Antichain]] = {}

    def __len__(self) -> int:
        """Distinct filters."""
        return len(self._uses)

    def add(self, one: int) -> set[int]:
        """A subscription with this filter comes: the vertices whose entries are others now."""
        uses = self._uses[one] = self._uses.get(one, 0) + 1
        return self._lay(one) if uses == 1 else set()

    def remove(self, gone: Iterable[int]) -> set[int]:
        """Subscriptions with these filters go: the vertices whose entries are others now."""
        shown = False
        for one in gone:
            self._uses[one] -= 1
            if not self._uses[one]:
                del self._uses[one]
                shown = shown or one in self._shown
        if not shown:
            return set()
        before, self.entries = self.entries, {}
        self._shown.clear()
        for left in sorted(self._uses, key=int.bit_count):  # those that cover others first
            self._lay(left)
        return {vertex for vertex in before.keys() | self.entries if before.get(vertex) != self.entries.get(vertex)}

    def _lay(self, one: int) -> set[int]:
        changed: set[int] = set()
        waiting = [(self._key_of(one), -1, one)]
        while waiting:
            vertex, last, carried = waiting.pop()
            for bit in bits_above(vertex, last, self._bits):
                reached = vertex | 1 << bit
                entry = self.entries.setdefault(reached, {})
                before = entry.get(bit, ())
                after = entry[bit] = with_filter(before, carried, self._antichain_max)
                if after is not before:
                    changed.add(reached)
                    waiting += [(reached, bit, new) for new in after if new not in before]
        if changed:
            self._shown.add(one)
        return changed


def walk(
    document: int, key: int, bits: int, entries_at: Callable[[int], Entries | None], cleared: int | None = None
) -> Iterator[Edge]:
    """The edges along which a publication goes, each before those behind it; from its key on, or from a vertex that it
    reached by clearing this bit. Where `entries_at` says None, every child may have something."""
    waiting = [(key, bits if cleared is None else cleared)]
    while waiting:
        vertex, last = waiting.pop()
        entries = entries_at(vertex)
        for bit in bits_below(vertex, last):
            if entries is None or passes(entries.get(bit, ()), document):
                reached = vertex ^ 1 << bit
                waiting.append((reached, bit))
                yield Edge(vertex, bit, reached)
