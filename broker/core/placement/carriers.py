"""Carriers: subscriptions with DELTA of this broker's clients that say the same but for how far a value has to move.

They share one subscription of this broker itself (`Carrier`, `delivery/dynamic.py`), with the static part of their
conditions. It is placed as any other, at one key; a member is in force as soon as its carrier is, and the carrier goes
with its last member. A million subscriptions to one price are one item, wherever it rests.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeAlias

from headgate.matching import Delta, Pattern, Tree, event_part
from headgate.matching.dynamic import Triggers, precision_of

from ..delivery import Carrier, ClientSession, Streams, Subscribers, Subscription
from ..safeguards import Safeguard

__all__ = ["Carriers"]

_Key: TypeAlias = tuple[Pattern, Tree, tuple[str, ...], tuple[int | float | None, ...]]


class Carriers:
    """Finds the carrier of a subscription or makes it, and lets it go with its last member."""

    def __init__(self, streams: Streams, subscribers: Subscribers, safeguards: Collection[Safeguard]) -> None:
        self._streams = streams
        self._subscribers = subscribers
        self._fresh = Safeguard.OWN_REFERENCE in safeguards
        self._session = ClientSession(b"", "", None, 0, 0)
        self._by_key: dict[_Key, Carrier] = {}
        self._key_of: dict[int, _Key] = {}
        self._waiting: dict[int, list[Subscription]] = {}
        """Carrier that is not in force yet -> its members."""

    def join(self, member: Subscription, condition: Tree, moves: tuple[Delta, ...]) -> tuple[Carrier, bool]:
        """The member's carrier, and whether it is new and has to be placed."""
        schema = self._streams.schemas.get(member.stream)
        attributes = tuple(one.attribute for one in moves)
        precisions = tuple(precision_of(schema, name) for name in attributes)
        key = member.pattern, event_part(condition), attributes, precisions
        carrier = self._by_key.get(key)
        is_new = carrier is None
        if carrier is None:
            carrier = self._make(member, Triggers(attributes, precisions, tally=self._subscribers.references))
            self._by_key[key] = carrier
            self._key_of[carrier.identity] = key
            self._waiting[carrier.identity] = []
        like = None if self._fresh else next(iter(carrier.members), None)
        carrier.triggers.add(member.identity, moves, like)
        carrier.members[member.identity] = member
        member.carrier = carrier
        if carrier.identity in self._waiting:
            self._waiting[carrier.identity].append(member)
        return carrier, is_new

    def _make(self, member: Subscription, triggers: Triggers) -> Carrier:
        identity = next(self._subscribers.identities)
        carrier = Carrier(
            identity, identity, self._session, member.stream, member.pattern, member.condition, triggers=triggers
        )
        self._subscribers.by_identity[identity] = self._subscribers.carriers[identity] = carrier
        return carrier

    def waits(self, carrier: Carrier) -> bool:
        """Whether it is not in force yet."""
        return carrier.identity in self._waiting

    def ended(self, carrier: Carrier) -> list[Subscription]:
        """Placing it came to its end: who waited for that."""
        return self._waiting.pop(carrier.identity)

    def leave(self, member: Subscription) -> Carrier | None:
        """The member is no more; its carrier, when that was the last one and it is no more either."""
        carrier = member.carrier
        assert carrier is not None
        del carrier.members[member.identity]
        carrier.triggers.remove(member.identity)
        waiting = self._waiting.get(carrier.identity)
        if waiting is not None and member in waiting:
            waiting.remove(member)
        if carrier.members:
            return None
        del self._by_key[self._key_of.pop(carrier.identity)]
        self._waiting.pop(carrier.identity, None)
        del self._subscribers.carriers[carrier.identity]
        del self._subscribers.by_identity[carrier.identity]
        return carrier

    def validate(self) -> None:
        """Asserts that each carrier has members, and is found by its key."""
        assert {carrier.identity: key for key, carrier in self._by_key.items()} == self._key_of
        assert self._key_of.keys() == self._subscribers.carriers.keys()
        assert self._waiting.keys() <= self._key_of.keys()
        held = sum(carrier.triggers.references for carrier in self._by_key.values())
        assert held == self._subscribers.references.references
        for carrier in self._by_key.values():
            assert carrier.members and len(carrier.triggers) == len(carrier.members)
            assert all(member.carrier is carrier for member in carrier.members.values())
            carrier.triggers.validate()
