"""Levels of filters of one item (MFD, STATE 4.3.3): the algebra, without brokers.

A width, in units of precision, is written in base 4 and cut into its non-zero digits, smallest first: 21 is 1, 4 and
16, so it stands on level 3. A subscription is told of what the filter before it passed, if that has moved by more than
its own last part from what it was told last. The filters before it are its *proxies*, here those of 1 and of 1 + 4: one
for each (item, width), made with the first subscription that needs it, gone with the last. A value that no filter of a
level passes goes no further; most values pass none.

**Why the bound holds.** |v - T1| <= c1 and |T(i-1) - Ti| <= ci, so |v - Tn| <= c1 + ... + cn = c (Theorem 1 promises
the same deliveries as one filter of c, which is not so). Whoever comes later, subscription or proxy, begins at the
value of that moment: what it hears of lies within the sum of the lower digits of it, which is less than its own digit.
So each subscription has a reference of its own; with that of another one of its width the bound would break.

No broker uses this: `Triggers` is the same where one broker has an item, and costs less. It is what brokers of a ring
segment would do, each of them the nodes that `place_of_width` gives it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

__all__ = ["BASE", "DIGITS", "Levels", "Passage", "parts_of_width", "place_of_width"]

BASE: Final = 4
DIGITS: Final = BASE - 1
"""Nodes of a level: one for each leading digit."""


def parts_of_width(width: int) -> tuple[int, ...]:
    """The non-zero digits of a width with their weights, smallest first: 34 is 2 + 32."""
    parts: list[int] = []
    weight = 1
    while width:
        width, digit = divmod(width, BASE)
        if digit:
            parts.append(digit * weight)
        weight *= BASE
    return tuple(parts)


def place_of_width(width: int) -> tuple[int, int, int]:
    """Level, leading digit, and the index of the node: (level - 1) * 3 + digit - 1."""
    parts = parts_of_width(width)
    digit = parts[-1]
    while digit >= BASE:
        digit //= BASE
    return len(parts), digit, (len(parts) - 1) * DIGITS + digit - 1


class Passage(NamedTuple):
    """What became of one value."""

    fired: tuple[int, ...]
    """The subscriptions that are told of it, by their numbers, those of lower levels first."""
    levels: tuple[tuple[int, ...], ...]
    """For each level that saw it the indexes of the nodes of which some proxy passed it on."""


@dataclass(slots=True)
class _Filter:
    """What one filter passed last, and how far a value has to be from that: the last part of its width."""

    part: int
    last: int

    def passes(self, value: int) -> bool:
        """Whether the value goes on; it is the next reference then."""
        if abs(value - self.last) <= self.part:
            return False
        self.last = value
        return True


@dataclass(slots=True)
class _Chain:
    """All that there is of one width: its proxy, if others need it, and its subscriptions."""

    parts: tuple[int, ...]
    node: int
    proxy: _Filter | None = None
    dependants: int = 0
    """Subscriptions of greater widths whose chain goes through this one."""
    own: dict[int, _Filter] = field(default_factory=dict)


class Levels:
    """The filters of one item: subscriptions by the caller's numbers, and the proxies that they need."""

    def __init__(self, value: int) -> None:
        self._value = value
        """What the source says."""
        self._chains: dict[int, _Chain] = {}
        self._widths: dict[int, int] = {}
        self._ordered: list[list[tuple[int, _Chain]]] | None = None
        """The chains of each level; None: to be made."""

    def __len__(self) -> int:
        return len(self._widths)

    def subscribe(self, number: int, width: int) -> list[int]:
        """It is told the value of this moment, and begins there. The widths of the proxies that had to be made."""
        assert number not in self._widths and width > 0
        parts = parts_of_width(width)
        made: list[int] = []
        for prefix in _prefixes(parts):
            chain = self._chain(prefix)
            if chain.proxy is None:
                chain.proxy = _Filter(chain.parts[-1], self._value)
                made.append(prefix)
            chain.dependants += 1
        self._chain(width).own[number] = _Filter(parts[-1], self._value)
        self._widths[number] = width
        return made

    def unsubscribe(self, number: int) -> list[int]:
        """It is no more. The widths of the proxies that nobody needs any more."""
        width = self._widths.pop(number)
        del self._chains[width].own[number]
        gone: list[int] = []
        for prefix in _prefixes(parts_of_width(width)):
            chain = self._chains[prefix]
            chain.dependants -= 1
            if not chain.dependants:
                chain.proxy = None
                gone.append(prefix)
        for one in (width, *gone):
            chain = self._chains[one]
            if not chain.own and chain.proxy is None:
                del self._chains[one]
                self._ordered = None
        return gone

    def publish(self, value: int) -> Passage:
        """The source says something."""
        self._value = value
        fired: list[int] = []
        levels: list[tuple[int, ...]] = []
        passed: dict[int, None] = {}
        for level, chains in enumerate(self._in_levels(), 1):
            nodes: dict[int, None] = {}
            for width, chain in chains:
                if level > 1 and width - chain.parts[-1] not in passed:
                    continue
                told = [number for number, one in chain.own.items() if one.passes(value)]
                if chain.proxy is not None and chain.proxy.passes(value):
                    passed[width] = None
                    nodes[chain.node] = None
                fired += told
            levels.append(tuple(sorted(nodes)))
            if not nodes:
                break
        return Passage(tuple(fired), tuple(levels))

    @property
    def depth(self) -> int:
        """How many levels there are."""
        return len(self._in_levels())

    def _in_levels(self) -> list[list[tuple[int, _Chain]]]:
        found = self._ordered
        if found is None:
            count = max((len(one.parts) for one in self._chains.values()), default=0)
            found = self._ordered = [[] for _ in range(count)]
            for width, chain in self._chains.items():
                found[len(chain.parts) - 1].append((width, chain))
        return found

    def reference(self, number: int) -> int:
        """What a subscription was told last."""
        return self._chains[self._widths[number]].own[number].last

    def nodes(self) -> dict[int, list[int]]:
        """Which widths stand at which node, proxies included."""
        found: dict[int, list[int]] = {}
        for width, chain in sorted(self._chains.items()):
            found.setdefault(chain.node, []).append(width)
        return found

    def validate(self) -> None:
        """Asserts that there are exactly the proxies that subscriptions need, and that the bound holds."""
        needed: dict[int, int] = {}
        for number, width in self._widths.items():
            for prefix in _prefixes(parts_of_width(width)):
                needed[prefix] = needed.get(prefix, 0) + 1
            assert abs(self._value - self.reference(number)) <= width
        assert {width: chain.dependants for width, chain in self._chains.items() if chain.proxy is not None} == needed
        assert all(chain.own or chain.proxy is not None for chain in self._chains.values())
        assert sum(len(chain.own) for chain in self._chains.values()) == len(self._widths)

    def _chain(self, width: int) -> _Chain:
        chain = self._chains.get(width)
        if chain is None:
            chain = self._chains[width] = _Chain(parts_of_width(width), place_of_width(width)[2])
            self._ordered = None
        return chain


def _prefixes(parts: tuple[int, ...]) -> list[int]:
    """The widths of the filters before one: of 1, 4 and 16 they are 1 and 5."""
    sums: list[int] = []
    total = 0
    for part in parts[:-1]:
        total += part
        sums.append(total)
    return sums
