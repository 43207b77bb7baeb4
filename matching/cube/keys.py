"""Keys: from the l bits of a filter to the n bits of a vertex of the cube (BLOOM 4.1, with its map made better).

A *key map* sends each bit of a filter to a bit of the key, or to none. The key has a bit when the filter has any bit
that goes there. Whatever the map, it is **monotone**: if f covers g, the key of f lies below the key of g. So whoever
wants a document is below the document's key, and a map decides about traffic alone, never about who gets what. Brokers
make keys from filters; publishers need not know the map.

    folded     bit b goes to b mod n: the paper's. A large document has all bits, and every publication one key
    sampled    some bits, chosen by hash, go to b mod n; the others to none. Many twigs are left with the empty key
    chosen     bits that subscriptions use and documents do not all have, put together so that documents have different
               keys

A map has a name, under which all brokers make the same one: `fold`, or for each bit of a filter that goes somewhere how
many bits before it go nowhere, and the bit of the key as a letter. `3a0c` sends bit 3 to bit 0 and bit 4 to bit 2.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

__all__ = [
    "BITS_MAX",
    "FOLD",
    "NAME_LENGTH_MAX",
    "SENT_MAX",
    "KeyMap",
    "set_bits",
    "chosen",
    "folded",
    "named",
    "sampled",
]

BITS_MAX: Final = 12
"""Bits of a key: 4,096 vertices. A subscription leaves entries at up to 2^(n - 1) of them."""

FOLD: Final = "fold"
"""The name of the map that sends bit b to b mod n."""

SENT_MAX: Final = 256
"""Bits of filters that a learned map sends somewhere. Subscriptions to one stream use a hundred or two."""

NAME_LENGTH_MAX: Final = 6 * SENT_MAX
"""Characters of the name of a map, which stands wherever a vertex does; a bit has up to six, of 1,024 mostly two."""

_LETTERS: Final = "abcdefghijkl"
_SENT: Final = re.compile(r"(0|[1-9][0-9]{0,4})([a-l])")
_HALF: Final = 0.5
_FULL: Final = 0.65
"""Share of documents in which a bit of the key may be set before no more bits are sent to it: with more of them it
tells documents apart less well than none."""


class KeyMap:
    """Sends the bits of a filter to bits of a key. Maps of one name, length and number of bits are the same map."""

    __slots__ = ("_parts", "bits", "length", "name")

    def __init__(self, length: int, bits: int, target: Callable[[int], int | None], name: str = "") -> None:
        assert 0 < bits <= BITS_MAX
        masks = [0] * bits
        sent, before = [], -1
        for bit in range(length):
            to = target(bit)
            if to is not None:
                masks[to] |= 1 << bit
                sent.append(f"{bit - before - 1}{_LETTERS[to]}")
                before = bit
        self.length, self.bits = length, bits
        self.name = name or "".join(sent)
        self._parts = [(mask, 1 << to) for to, mask in enumerate(masks) if mask]

    def key(self, one: int) -> int:
        """The vertex of a filter."""
        key = 0
        for mask, bit in self._parts:
            if one & mask:
                key |= bit
        return key


def folded(length: int, bits: int) -> KeyMap:
    """Bit b goes to b mod n."""
    return KeyMap(length, bits, lambda bit: bit % bits, FOLD)


def sampled(length: int, bits: int, items: float) -> KeyMap:
    """As many bits, by hash, that a document of so many items has each bit of the key with a chance of one half."""
    share = min(1.0, bits * (1 - _HALF ** (1 / max(1.0, items))))
    return KeyMap(length, bits, lambda bit: bit % bits if _draw(bit) < share else None)


def _draw(bit: int) -> float:
    digest = hashlib.sha1(str(bit).encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4], "big") / 2**32


def chosen(length: int, bits: int, documents: Sequence[int], twigs: Sequence[int]) -> KeyMap:
    """Learned from a sample of both, with at most SENT_MAX bits. Of the bits that twigs use, those go first that most
    twigs without a bit of the key have; each goes where the fewest pairs of documents have the same key then.
    """
    having = _having(documents)
    everywhere = (1 << len(documents)) - 1
    users: dict[int, list[int]] = {}
    for place, twig in enumerate(twigs):
        for bit in set_bits(twig):
            users.setdefault(bit, []).append(place)
    useful = {bit for bit in users if having.get(bit, 0) != everywhere}
    reach = Counter({bit: len(users[bit]) for bit in useful})
    targets: dict[int, int] = {}
    keys = [0] * len(documents)
    without = set(range(len(twigs)))
    while useful and len(targets) < SENT_MAX:
        bit = min(useful, key=lambda one: (-reach[one], having.get(one, 0).bit_count(), one))
        useful.discard(bit)
        to = _place(keys, set(set_bits(having.get(bit, 0))), bits, dict.fromkeys(targets.values()))
        if to is None:
            continue
        targets[bit] = to
        for document in set_bits(having.get(bit, 0)):
            keys[document] |= 1 << to
        for twig in without.intersection(users[bit]):
            without.discard(twig)
            reach.subtract(one for one in set_bits(twigs[twig]) if one in reach)
    return KeyMap(length, bits, targets.get)


def _place(keys: Sequence[int], more: Collection[int], bits: int, used: Collection[int]) -> int | None:
    """The bit of the key that a bit goes to which these documents have; None when it would fill any of them."""
    best: tuple[int, int, int] | None = None
    for to in range(bits):
        made = [key | 1 << to if place in more else key for place, key in enumerate(keys)]
        held = sum(key >> to & 1 for key in made)
        if held > _FULL * len(keys) and to in used:
            continue
        alike = sum(count * count for count in Counter(made).values())
        if best is None or (alike, held, to) < best:
            best = alike, held, to
    return None if best is None else best[2]


def _having(documents: Sequence[int]) -> dict[int, int]:
    """Bit -> the documents that have it, as a set of bits."""
    having: dict[int, int] = {}
    for place, document in enumerate(documents):
        for bit in set_bits(document):
            having[bit] = having.get(bit, 0) | 1 << place
    return having


def set_bits(one: int) -> Iterator[int]:
    """The bits that are set, lowest first."""
    while one:
        lowest = one & -one
        yield lowest.bit_length() - 1
        one ^= lowest


def named(name: str, length: int, bits: int) -> KeyMap:
    """The map of this name. Raises ValueError when there is none."""
    if not 0 < bits <= BITS_MAX:
        raise ValueError(f"a key has 1 to {BITS_MAX} bits, not {bits}")
    if name == FOLD:
        return folded(length, bits)
    targets: dict[int, int] = {}
    place, bit = 0, -1
    while place < len(name) <= NAME_LENGTH_MAX and (sent := _SENT.match(name, place)):
        place, bit = sent.end(), bit + 1 + int(sent[1])
        targets[bit] = _LETTERS.index(sent[2])
    if not targets or place < len(name) or bit >= length or max(targets.values()) >= bits:
        raise ValueError(f"not a key map from {length} bits to {bits}: {name!r:.80}")
    return KeyMap(length, bits, targets.get)
