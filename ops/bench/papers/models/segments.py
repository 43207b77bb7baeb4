"""STATE 4.3 on a ring, in messages: what a value costs until everybody who needs it has it, by four strategies.

    SF      a subscription lies on its item's segment at its own place (4.3.2); each value goes to the whole segment
    MFD     the segment has the nodes of levels (4.3.3); each value goes to level 1, and on with what passes
    LOCAL   one broker has the item, with the trigger index: a segment of one
    HOME    one broker passes each value on to the homes of the item's subscribers, which decide: what the product does

Messages go the ways of the broker's own routing (`multicast.py`, base 4, both ways). A multicast to a set takes the
links that its destinations' ways have together, which is what `spread_set` counts, and is remembered here by pairs.
Costs of a subscription are its way to where it rests, and for MFD from there to each proxy that has to be made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha1

from headgate.broker.core.keyspace import RING_SIZE, Segment, Way, successor
from headgate.matching import Delta
from headgate.matching.dynamic import DIGITS, Levels, Triggers, parts_of_width, place_of_width

from .fingers import ideal_table
from .multicast import spread_segment

__all__ = ["Cost", "Home", "Item", "Local", "Mfd", "Overlay", "Sf", "key_of"]


class Overlay:
    """Brokers on a ring that has settled, and the ways of messages between them."""

    def __init__(self, brokers: int) -> None:
        self.members = sorted(key_of(f"broker {number}") for number in range(brokers))
        self.tables = {one: ideal_table(one, self.members) for one in self.members}
        self._linked = {one: frozenset(table.known) for one, table in self.tables.items()}
        self._paths: dict[tuple[int, int], tuple[tuple[int, int, Way], ...]] = {}
        self._segments: dict[tuple[int, int, int], tuple[int, dict[int, int]]] = {}

    def owner(self, key: int) -> int:
        """Who answers for a key."""
        return successor(self.members, key % RING_SIZE)

    def path(self, origin: int, destination: int) -> tuple[tuple[int, int, Way], ...]:
        """The links of a message's way, as `split_set` takes them."""
        found = self._paths.get((origin, destination))
        if found is None:
            at, way, links = origin, Way.NEAREST, list[tuple[int, int, Way]]()
            while at != destination:
                table = self.tables[at]
                if destination in self._linked[at]:
                    following, way = destination, max(way, table.start())
                else:
                    step = table.step(destination, way)
                    assert step.broker is not None, "the ring has settled"
                    following, way = step.broker, step.way
                links.append((at, following, way))
                at = following
            found = self._paths[origin, destination] = tuple(links)
        return found

    def multicast(self, origin: int, destinations: Iterable[int]) -> int:
        """Messages to all of them."""
        return len({link for one in destinations for link in self.path(origin, one)})

    def segment(self, origin: int, low: int, length: int) -> tuple[int, dict[int, int]]:
        """Messages to every broker that owns a key from `low` on, and after how many hops each hears it."""
        found = self._segments.get((origin, low, length))
        if found is None and not length:
            way = len(self.path(origin, owner := self.owner(low)))
            found = self._segments[origin, low, length] = way, {owner: way}
        if found is None:
            spread = spread_segment(self.tables, origin, Segment(low, (low + length) % RING_SIZE))
            found = self._segments[origin, low, length] = spread.messages, spread.depth
        return found


def key_of(name: str) -> int:
    """SHA-1, as the paper has it."""
    return int.from_bytes(sha1(name.encode()).digest()[:8], "big")


@dataclass(slots=True)
class Item:
    """A source: where its segment begins, and at which broker it publishes."""

    key: int
    origin: int
    value: int


@dataclass(slots=True)
class Cost:
    """What one value cost: messages, and the hops of each delivery."""

    messages: int
    hops: list[int]
    fired: Sequence[int]


@dataclass(slots=True)
class _Strategy:
    """What the four have in common: an item, and whose subscription is at which broker."""

    overlay: Overlay
    item: Item
    length: int
    """Of the segment, in keys."""
    largest: int
    """The greatest width that is asked for."""
    brokers: dict[int, int] = field(default_factory=dict)

    def _deliver(self, sender: int, before: int, fired: Iterable[int]) -> tuple[int, list[int]]:
        """One multicast from a broker that heard of the value after so many hops."""
        at = [self.brokers[number] for number in fired]
        return self.overlay.multicast(sender, at), [before + len(self.overlay.path(sender, one)) for one in at]


@dataclass(slots=True)
class Local(_Strategy):
    """One owner, one index."""

    index: Triggers = field(default_factory=lambda: Triggers(["value"]))

    def subscribe(self, number: int, width: int, broker: int) -> int:
        """Its cost in messages."""
        self.brokers[number] = broker
        self.index.add(number, [Delta("value", width, False)])
        self.index.fire("item", [self.item.value], 0.0)  # it begins at the value of this moment, as 4.3.2 has it
        return len(self.overlay.path(broker, self.overlay.owner(self.item.key)))

    def publish(self, value: int) -> Cost:
        """The value's way."""
        owner = self.overlay.owner(self.item.key)
        way = len(self.overlay.path(self.item.origin, owner))
        fired = self.index.fire("item", [value], 0.0)
        messages, hops = self._deliver(owner, way, fired)
        return Cost(way + messages, hops, fired)


@dataclass(slots=True)
class Home(Local):
    """One owner, which sends each value to all homes."""

    def publish(self, value: int) -> Cost:
        """The value's way."""
        owner = self.overlay.owner(self.item.key)
        way = len(self.overlay.path(self.item.origin, owner))
        fired = self.index.fire("item", [value], 0.0)
        messages = self.overlay.multicast(owner, dict.fromkeys(self.brokers.values()))
        return Cost(way + messages, self._deliver(owner, way, fired)[1], fired)


@dataclass(slots=True)
class Sf(Local):
    """Each subscription at a place of its own; what fires is sent by whoever has it."""

    places: dict[int, int] = field(default_factory=dict)

    def subscribe(self, number: int, width: int, broker: int) -> int:
        """Its cost in messages."""
        Local.subscribe(self, number, width, broker)
        place = self.overlay.owner(self.item.key + width * self.length // (self.largest + 1))
        self.places[number] = place
        return len(self.overlay.path(broker, place))

    def publish(self, value: int) -> Cost:
        """The value's way."""
        messages, depth = self.overlay.segment(self.item.origin, self.item.key, self.length)
        fired = self.index.fire("item", [value], 0.0)
        hops: list[int] = []
        for place, numbers in _by_place(self.places, fired).items():
            more, own = self._deliver(place, depth[place], numbers)
            messages, hops = messages + more, hops + own
        return Cost(messages, hops, fired)


@dataclass(slots=True)
class Mfd(_Strategy):
    """Levels of filters. `says_none`: a node tells its leader also that nothing passed, so that it need not wait."""

    says_none: bool = False
    levels: Levels = field(init=False)
    places: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.levels = Levels(self.item.value)

    @property
    def _nodes(self) -> int:
        return DIGITS * max(len(parts_of_width(width)) for width in range(1, self.largest + 1))

    def _key(self, node: int) -> int:
        return self.item.key + node * self.length // self._nodes

    def subscribe(self, number: int, width: int, broker: int) -> int:
        """Its cost in messages."""
        self.brokers[number] = broker
        place = self.places[number] = self.overlay.owner(self._key(place_of_width(width)[2]))
        made = self.levels.subscribe(number, width)
        proxies = dict.fromkeys(self.overlay.owner(self._key(place_of_width(one)[2])) for one in made)
        return len(self.overlay.path(broker, place)) + sum(len(self.overlay.path(place, one)) for one in proxies)

    def publish(self, value: int) -> Cost:
        """The value's way."""
        passage = self.levels.publish(value)
        sender, before, messages = self.item.origin, 0, 0
        heard: dict[int, int] = {}
        for level, passed in enumerate(passage.levels or ((),)):  # its source does not know whether anybody is there
            first, last = DIGITS * level, DIGITS * (level + 1) - 1
            more, depth = self.overlay.segment(sender, self._key(first) % RING_SIZE, self._key(last) - self._key(first))
            messages += more
            for broker, hops in depth.items():
                heard[broker] = min(before + hops, heard.get(broker, before + hops))
            leader = self.overlay.owner(self._key(last))
            tellers = dict.fromkeys(
                self.overlay.owner(self._key(node)) for node in (range(first, last + 1) if self.says_none else passed)
            )
            ways = [self.overlay.path(one, leader) for one in tellers if passed or self._has_proxies(level)]
            messages += len({link for way in ways for link in way})
            before = max([before + depth[leader], *(before + depth[way[0][0]] + len(way) for way in ways if way)])
            sender = leader
        hops_of: list[int] = []
        for place, numbers in _by_place(self.places, passage.fired).items():
            more, own = self._deliver(place, heard[place], numbers)
            messages, hops_of = messages + more, hops_of + own
        return Cost(messages, hops_of, passage.fired)

    def _has_proxies(self, level: int) -> bool:
        return self.says_none and self.levels.depth > level + 1


def _by_place(places: dict[int, int], fired: Iterable[int]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for number in fired:
        found.setdefault(places[number], []).append(number)
    return found
