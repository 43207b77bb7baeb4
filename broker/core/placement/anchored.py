"""Anchored placement: a subscription rests at one anchor, and is in the index of its stream where the keys of that are.

`planner.py` chooses the anchor. At the owner of its keys, and wherever a copy is held, the subscription is in the
stream's index under an identity of that broker. If its home is another broker, its session is that broker's link, and
its number is the home's identity for it. Events meet it there (`forwarding/forwarding.py`), and what is matched needs
no second look.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from headgate.matching import Pattern, Tree, parse_condition, parse_pattern
from headgate.protocol.data import Batch

from ..cluster import Cluster
from ..config import NodeConfig
from ..delivery import Streams, Subscribers, Subscription
from ..keyspace import CUBE, AtVertex, Dimension, parse_dimension
from ..kv import Item
from ..safeguards import Safeguard
from .placement import Mine, Placement, Runs, Wish
from .planner import Anchor, plan_anchored

__all__ = ["Anchored"]


@dataclass(slots=True)
class _Held:
    """A subscription that rests here, under how many of its keys."""

    identity: int
    parts: int
    dimension: Dimension | AtVertex
    stream: str


class Anchored(Placement):
    """Keeps the subscriptions that rest at this broker's keys in the indexes of their streams."""

    name = "anchored"
    kind = "sub"

    def __init__(
        self,
        config: NodeConfig,
        streams: Streams,
        subscribers: Subscribers,
        cluster: Cluster,
        mine: Mapping[int, Mine],
    ) -> None:
        super().__init__(config)
        self._streams = streams
        self._subscribers = subscribers
        self._cluster = cluster
        self._mine = mine
        self.dimension_of: dict[int, Dimension | AtVertex] = {}
        """By which of an event's keys a subscription is met: by those on its dimension, or by one vertex of a cube."""
        self.at: Counter[AtVertex] = Counter()
        """How many rest at a vertex."""
        self._held: dict[tuple[int, int, int], _Held] = {}

    def plan(self, wish: Wish) -> Anchor:
        """The best anchor that its condition offers."""
        return plan_anchored(wish)

    def enter(self, number: int, identity: int, pattern: Pattern, condition: Tree | None) -> None:
        """Nothing is kept of it at its home."""

    def leave(self, number: int, identity: int) -> None:
        """It is matched no more from now on, before the owners of its keys hear of it."""
        if Safeguard.WITHDRAWN_AT_ONCE in self._cluster.safeguards:
            self._rest_no_more(self._me, self._life, number)

    def add(self, item: Item) -> None:
        """Into the index, with the first of its keys that rests here."""
        _, home, life, number, _ = item.name
        assert isinstance(home, int) and isinstance(life, int) and isinstance(number, int)
        held = self._held.get((home, life, number))
        if held is not None:
            held.parts += 1
            return
        assert item.value is not None
        stream_name, pattern_text, exact, condition_text, dimension_wire = item.value
        dimension: Dimension | AtVertex = _rests_at(stream_name, parse_dimension(dimension_wire), item.low)
        ours = home == self._me
        mine = self._mine.get(number) if ours and life == self._life else None
        if ours and mine is None:
            return  # of a former life, or withdrawn meanwhile
        if mine is not None and mine.meaning is not None:
            pattern, condition = mine.meaning
        else:
            pattern = parse_pattern(pattern_text, exact=exact)
            condition = parse_condition(condition_text) if condition_text else None
        stream = self._streams.find(stream_name)
        if stream is None:
            raise ValueError("this broker has as many streams as it can hold")
        identity = number
        if mine is None:
            identity = next(self._subscribers.identities)
            session = self._cluster.peers.session_of(home, life)
            held_here = Subscription(identity, number, session, stream_name, pattern, condition_text)
            self._subscribers.by_identity[identity] = session.subscriptions[number] = held_here
        stream.index.add(identity, pattern, condition)
        self.dimension_of[identity] = dimension
        if isinstance(dimension, AtVertex):
            self.at[dimension] += 1
        self._held[home, life, number] = _Held(identity, 1, dimension, stream_name)
        stream.subscriptions_changed()

    def remove(self, item: Item) -> None:
        """Out of the index, with the last of its keys."""
        _, home, life, number, _ = item.name
        assert isinstance(home, int) and isinstance(life, int) and isinstance(number, int)
        held = self._held.get((home, life, number))
        if held is None:
            return
        held.parts -= 1
        if not held.parts:
            self._rest_no_more(home, life, number)

    def _rest_no_more(self, home: int, life: int, number: int) -> None:
        held = self._held.pop((home, life, number), None)
        if held is None:
            return
        del self.dimension_of[held.identity]
        if isinstance(held.dimension, AtVertex):
            self.at[held.dimension] -= 1
            if not self.at[held.dimension]:
                del self.at[held.dimension]
        stream = self._streams.by_name[held.stream]
        stream.index.remove(held.identity)
        if home != self._me:
            subscription = self._subscribers.by_identity.pop(held.identity)
            subscription.session.subscriptions.pop(number, None)
        stream.subscriptions_changed()

    def confirmed(self, batch: Batch, runs: Runs) -> Runs:
        """All of it: the whole condition was true where it rests."""
        return runs

    def resting(self, stream: str) -> int:
        """Those in its index."""
        found = self._streams.by_name.get(stream)
        return 0 if found is None else len(found.index)

    def subid(self, number: int | None, attributes: int) -> None:
        """It has none."""

    def validate(self) -> None:
        """Asserts that each subscription that rests here is in its index, in its dimension, and has a session."""
        assert {held.identity for held in self._held.values()} == self.dimension_of.keys()
        indexed = sum(len(stream.index) for stream in self._streams.by_name.values())
        assert indexed == len(self.dimension_of)
        at = Counter(dimension for dimension in self.dimension_of.values() if isinstance(dimension, AtVertex))
        assert at == self.at
        for identity in self.dimension_of:
            assert identity in self._subscribers.by_identity


def _rests_at(stream: str, dimension: Dimension, key: int) -> Dimension | AtVertex:
    """What of a dimension a subscription with this key is met by: all of it, or its vertex of a cube."""
    return AtVertex(dimension, dimension.vertices(stream).vertex_at(key)) if dimension.kind == CUBE else dimension
