"""The cluster as one broker sees it: who is there, which keys are whose, and how to reach them.

Here four machines meet that know nothing of each other:

    chord    which brokers there are         letters  -> who is before us, who follows us
    peers    links to them                   control and events, each link with its bounds
    routing  the next hop of a key           from both: neighbours, and all that we have a link to
    keyed    what lives at the keys          from the neighbours: which arc is ours, who holds our copies

Whatever one of them says is carried to the others; what concerns the parts above is kept as events. A message for a
key travels as ROUTE, hop by hop, and becomes an ordinary message of the store where the key lives.

Brokers learn of each other by ROSTER: each tells one other, every second, which brokers it has links to. Up to
`mesh_brokers` brokers each keeps a link to every other.

`place_of(key)` is what the parts above ask: HERE, the identifier of the broker to hand it to, or WAIT, when no broker
can answer for the key at this moment. The answer holds as long as `epoch` stays the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, TypeAlias

from headgate.protocol.errors import ErrorCode, ProtocolViolation
from headgate.protocol.messages import Control
from headgate.protocol.messages import Letter as WireLetter

from ..config import NodeConfig
from ..effects import Effect, Note, Store
from ..keyspace import NOTHING, RING_SIZE, RoutingTable, Scope, Way, distance
from ..kv import LEASE_SECONDS, Added, KvConfig, KvStore, Placed, Removed, Route, Stored, Tell, Unplaced, View
from ..limits import CONTACTS_KEPT_MAX, NEWS_ASKED_SECONDS, ROSTER_SECONDS, ROUTE_HOPS_MAX
from ..links import PeerInfo, Peers
from ..membership import Chord, Heard, Lost, Member, Post, Tick, from_wire, to_wire
from ..messages import CONTROLS
from ..safeguards import Safeguard
from ..timers import Timers
from .address_book import AddressBook
from .cold_start import ColdStart
from .messages import AskNews, News, Roster, Routed, StoreMessage
from .serving import Serving

__all__ = ["HERE", "LIFE_SHIFT", "WAIT", "Cluster", "ClusterEvent", "Moved"]

HERE = -1
"""Place of a key that is answered for by this broker."""

WAIT = -2
"""Place of a key that no broker answers for just now: its owner is not reached, or is not ready."""

LIFE_SHIFT = 16
"""A ring member's incarnation is the broker's life and, behind it, how often it was reborn within that life."""


@dataclass(frozen=True, slots=True)
class Moved:
    """Event: links or neighbours changed, so keys may have another place now."""


ClusterEvent: TypeAlias = Added | Removed | Placed | Unplaced | Moved


class Cluster:
    """Joins membership, links and the store, and says where a key is answered for."""

    def __init__(self, config: NodeConfig, random: Random, effects: list[Effect], timers: Timers, now: float) -> None:
        self.me = config.identifier
        self.config = config
        self._limits = config.limits
        self.safeguards = config.safeguards
        self.chord: Chord | None = None
        self.peers: Peers
        self.timers = timers
        kv = KvConfig(
            config.incarnation, limits=config.kv, mesh_brokers=config.limits.mesh_brokers, safeguards=config.safeguards
        )
        self.kv = KvStore(self.me, kv, now, timers.below("store"))
        self.table = RoutingTable(self.me, None, ())
        self.address = self.client_address = ""
        self.epoch = 0
        self.events: list[ClusterEvent] = []
        """What came of it; the Node takes them out (`take_events`)."""
        self.table_of_controls: dict[type[Any], Callable[[PeerInfo, Any, float], None]] = {}
        self.take_controls(
            {
                StoreMessage: self._store_message,
                Routed: self._routed,
                Roster: self._roster,
                AskNews: self._asked_for_news,
                News: self._news,
            }
        )
        self.random = random
        self._effects = effects
        self.address_book = AddressBook(config.limits)
        self.serving = Serving(self.me, config, self.address_book, now)
        self.cold_start = ColdStart(self.me)
        self._promises_over_at = float("inf")
        """Nothing that a former life promised to a broker unknown here lasts longer."""
        self._homes: dict[tuple[int, int], str] = {}
        self._scope = NOTHING
        self._scope_epoch, self._scope_table = -1, self.table
        self._places: dict[int, int] = {}
        self.hops = 0
        self.lost_routes = 0
        self.woken: dict[Hashable, Callable[[float], None]] = {
            "ring": lambda now: self._carry_out(self._chord.handle(Tick(), now), now),
            "store": self.kv.tick,
            "links": lambda now: self.peers.wake(now),
            "roster": self._tell_roster,
            "news": self._ask_for_news,
        }
        self.reconnects = 0

    def take_controls(self, table: Mapping[Any, Callable[[PeerInfo, Any, float], None]]) -> None:
        """Who handles which messages; each has one handler."""
        twice = self.table_of_controls.keys() & table.keys()
        assert not twice, f"two parts of the broker handle {twice}"
        self.table_of_controls |= table

    def start(self, now: float) -> None:
        """All parts are in place."""
        self._show_view(now)
        self.settle(now)

    # --- inputs --------------------------------------------------------------------------------------------------

    def begin(self, address: str, client_address: str, now: float) -> None:
        """Others can reach us there: from now on we look for them."""
        self.address, self.client_address = address, client_address
        self._promises_over_at = now + (0.0 if self.address_book.contacts else LEASE_SECONDS)
        self.address_book.own = address
        me = Member(self.me, self.config.incarnation << LIFE_SHIFT, 0, address)
        seeds = [*self.config.seeds, *(one for one in self.address_book.contacts if one not in self.config.seeds)]
        self.serving.begin(now)
        self.peers.show_founder(self.serving.founder())
        chord = replace(self.config.chord, safeguards=self.safeguards)
        self.chord = Chord(me, seeds, chord, self.random, now)
        self.timers.at("ring", self.chord.next_deadline())
        self.timers.at("roster", now)
        self.timers.at("news", now)
        self._refresh(now)
        self.settle(now)

    def remember(self, contacts: Sequence[str], now: float) -> None:
        """Brokers that an earlier life knew; before the first link."""
        self.address_book.remember(contacts)
        self._show_view(now)
        self.kv.unasked()
        self.settle(now)

    def peer_up(self, info: PeerInfo, now: float) -> None:
        """There is a link to this broker."""
        self.reconnects += self.address_book.met(info.address, now)
        contacts = self.address_book.new_contacts(one.address for one in self.linked())
        if contacts is not None:
            self._effects.append(Store("contacts", contacts))
        self.peers.show_founder(False)
        if self.chord is not None:
            self._carry_out(self.chord.meet(info.address), now)
        self._scope_epoch = -1  # what waited for this link need wait no longer
        self.cold_start.forget(info.identifier)
        self.kv.peer_up(info.identifier, now)
        self._refresh(now)

    def peer_down(self, info: PeerInfo, reason: str, now: float) -> None:
        """There is none any more."""
        self._scope_epoch = -1  # and what went over it has to wait
        self.cold_start.forget(info.identifier)
        self.kv.peer_down(info.identifier, now)
        self._refresh(now)

    def letter(self, info: PeerInfo, wire: WireLetter, now: float) -> None:
        """Ring control came."""
        letter = from_wire(wire)
        if letter.sender.identifier != info.identifier:
            raise ProtocolViolation("a letter names its own writer")
        if self.chord is not None:
            self._carry_out(self.chord.handle(Heard(letter), now), now)

    def control(self, info: PeerInfo, message: Control, now: float) -> None:
        """Something else came."""
        said = CONTROLS.read(message.kind, list(message.body))
        self.table_of_controls[type(said)](info, said, now)

    def leave(self, now: float) -> None:
        """Tell the neighbours that we go, so that none waits for us."""
        if self.chord is not None:
            self._carry_out(self.chord.farewell(), now)

    # --- what the parts above ask --------------------------------------------------------------------------------

    def scope(self, now: float) -> Scope:
        """What may be answered for here, now; the epoch moves on when that changed."""
        scope = self._scope = self.kv.scope(now)
        if scope.epoch != self._scope_epoch or self.table is not self._scope_table:
            self._scope_epoch, self._scope_table = scope.epoch, self.table
            self.epoch += 1
            self._places.clear()
        return scope

    def place_of(self, key: int) -> int:
        """HERE, WAIT or a broker; ask for the scope first, which fixes the moment."""
        place = self._places.get(key)
        if place is None:
            if len(self._places) >= self._limits.mesh_brokers * 1024:
                self._places.clear()
            place = self._places[key] = self._find(key)
        return place

    def owner_of(self, key: int) -> int:
        """The broker that the key belongs to, as far as is known here: for explanations."""
        return min((self.me, *self.table.known), key=lambda one: distance(key, one))

    def scope_share(self, now: float) -> float:
        """Which part of the keys is answered for here."""
        scope = self.kv.scope(now)
        return 1.0 if scope.everything else min(1.0, sum(one.size for one in scope.stretches) / RING_SIZE)

    def settled(self, now: float) -> bool:
        """Whether this broker answers for its own keys."""
        return self.kv.scope(now).covers(self.me)

    @property
    def is_stranger(self) -> bool:
        """Whether this broker was told of others and has met none yet: that it knows of nothing says nothing."""
        return self.address_book.nobody() and not self.serving.founder()

    def knows_streams(self, now: float) -> bool:
        """Whether this broker has what every broker holds, schemas too: it was settled, or never heard of others."""
        return self.settled(now) or self.serving.founder()

    def refusals(self, now: float) -> dict[str, str]:
        """By address, why brokers that this one would join do not let it in.

        That a broker of another cluster lives at an address which is only remembered is no fault.
        """
        return {
            address: refusal.text
            for address, refusal in self.peers.refusals(now).items()
            if refusal.code != ErrorCode.OTHER_CLUSTER or address in self.config.seeds
        }

    def shut_out(self, now: float) -> str:
        """Why this broker has no place, as others do not let it in; empty when it has one, or is only on its way."""
        return "" if self.settled(now) else next(iter(self.refusals(now).values()), "")

    @property
    def alone(self) -> bool:
        """Whether there is no other broker, as far as is known here."""
        return not self.table.known

    def tell(self, info: PeerInfo, message: Any, now: float) -> None:
        """Say a message of CONTROLS to a broker, as soon as there is a link; it may be lost."""
        self.tell_address(info.address, message, now)

    def tell_address(self, address: str, message: Any, now: float) -> None:
        """The same, where only its address is known."""
        self.peers.tell(address, Control(*CONTROLS.write(message)), now)

    def broadcast(self, message: Any, now: float) -> None:
        """Say a message of CONTROLS to every broker that there is a link to."""
        said = Control(*CONTROLS.write(message))
        for info in self.linked():
            self.peers.tell(info.address, said, now)

    def linked(self) -> list[PeerInfo]:
        """Brokers that there is a link to."""
        return [info for info in self.peers.by_identifier.values() if info.link is not None]

    def unreached(self, more: Sequence[str] = ()) -> list[str]:
        """Addresses of brokers that there are, or were, and that there is no link to; of `more` as well."""
        here = {address for info in self.linked() for address in (info.address, *info.aliases)}
        known = {*self.address_book.known, *self.address_book.contacts, *more}
        return sorted(known - here - {self.address_book.own})

    def _find(self, key: int) -> int:
        if self._scope.covers(key):
            return HERE
        step = self.table.step(key, self.table.start())
        if step.broker is None:
            return WAIT
        info = self.peers.by_identifier.get(step.broker)
        return step.broker if info is not None and info.link is not None else WAIT

    # --- between the machines ------------------------------------------------------------------------------------

    def settle(self, now: float) -> None:
        """Carry what the store says to other brokers, until it says nothing more."""
        while self.kv.effects:  # more come when one of its messages comes back to this broker
            effects = self.kv.effects[:]
            self.kv.effects.clear()
            for effect in effects:
                self._carry_out_store(effect, now)

    def take_events(self, now: float) -> list[ClusterEvent]:
        """What came to rest here or rests here no more, which puts ended, and whether the places of keys moved."""
        self.settle(now)
        events = self.events[:]
        self.events.clear()
        return events

    def _carry_out_store(self, effect: Any, now: float) -> None:
        if isinstance(effect, Tell):
            info = self.peers.by_identifier.get(effect.identifier)
            if info is not None and info.link is not None:
                self.tell(info, StoreMessage(effect.message), now)
            elif isinstance(effect.message, Stored):  # an answer to a broker far away
                self._route(effect.identifier, Way.NEAREST, 0, self.me, effect.message, now)
        elif isinstance(effect, Route):
            self._route(effect.key, Way.NEAREST, 0, self.me, effect.message, now)
        elif isinstance(effect, Note):
            self._effects.append(effect)
        else:
            self.events.append(effect)

    def _route(self, key: int, way: Way, hops: int, origin: int, message: Any, now: float) -> None:
        step = self.table.step(key, way)
        if step.broker is None:
            self.kv.handle(origin, message, now)
            return
        info = self.peers.by_identifier.get(step.broker)
        if info is None or info.link is None or hops >= ROUTE_HOPS_MAX:
            self.lost_routes += 1  # the asker asks again
            return
        self.hops += 1
        self.tell(info, Routed(key, int(step.way), hops + 1, origin, message), now)

    def _routed(self, info: PeerInfo, routed: Routed, now: float) -> None:
        self._route(routed.key, Way(routed.way), routed.hops, routed.origin, routed.message, now)

    def _store_message(self, info: PeerInfo, store: StoreMessage, now: float) -> None:
        self.kv.handle(info.identifier, store.message, now)

    def _carry_out(self, effects: Sequence[Any], now: float) -> None:
        for effect in effects:
            if isinstance(effect, Post):
                self.peers.tell(effect.address, to_wire(effect.letter), now)
            elif isinstance(effect, Note):
                self._effects.append(effect)
            elif isinstance(effect, Lost):
                self._effects.append(Note("broker lost", {"address": effect.member.address}))
        self.timers.at("ring", self._chord.next_deadline())
        self._refresh(now)

    @property
    def _chord(self) -> Chord:
        assert self.chord is not None
        return self.chord

    # --- who is where --------------------------------------------------------------------------------------------

    def _refresh(self, now: float) -> None:
        """Neighbours or links changed: show the store its arc, and make the routing table anew."""
        self._show_view(now)
        if self.chord is None:
            return
        members = [one for one in self.chord.members() if one.identifier != self.me]
        predecessor, successors = self._neighbours()
        linked = [info.identifier for info in self.linked()]
        everybody = {*linked, *successors, *(() if predecessor is None else (predecessor,))}
        table = RoutingTable(self.me, predecessor, successors, linked, mesh=len(everybody) < self._limits.mesh_brokers)
        mine = self.table
        if (table.known, table.predecessor, table.successors) != (mine.known, mine.predecessor, mine.successors):
            self.table = table
        wanted = {one.address: None for one in members}
        if self.chord.ring is not None and not self.chord.ring.predecessor.artificial:
            wanted.setdefault(self.chord.ring.predecessor.address, None)
        for address in self.address_book.known:
            if len(wanted) < self._limits.mesh_brokers:
                wanted.setdefault(address, None)
        wanted.pop(self.address, None)
        self.peers.keep(list(wanted), now)
        self.events.append(Moved())

    def _neighbours(self) -> tuple[int | None, list[int]]:
        """Identifiers before and after ours; None when the one before is not known."""
        chord = self._chord
        ring = chord.ring
        if ring is None:
            others = sorted({one.identifier for one in chord.members()} - {self.me})
            if not others:
                return None, []
            ahead = sorted(others, key=lambda one: distance(self.me, one))
            return ahead[-1], ahead
        after = [one.identifier for one in chord.members() if one.identifier != self.me]
        before = ring.predecessor.identifier
        return (None if before == self.me else before), list(dict.fromkeys(after))

    def _show_view(self, now: float) -> None:
        since = None
        if self.chord is None:
            view: View | None = self.serving.before()
        else:
            predecessor, others = self._neighbours()
            linked, refused = bool(self.linked()), bool(self.refusals(now))
            since = self._all_new_since(now)
            view = self.serving.view(self.chord, predecessor, others, linked, now, refused, since is not None)
        if view is not None and view != self.serving.last:
            self.serving.last = view
            self.kv.view(view, now)
        if since is not None and self.kv.new:
            self.kv.all_new(since, now)
            self._effects.append(Note("all brokers are new", {"brokers": len(self.cold_start.began)}))

    # --- all brokers started at once -----------------------------------------------------------------------------

    def _ask_for_news(self, now: float) -> None:
        """Ask all others whether they are as new as this broker, until it answers for keys."""
        if not self.kv.new:
            return
        self.timers.at("news", now + NEWS_ASKED_SECONDS)
        for info in self.linked():
            self.tell(info, AskNews(self.cold_start.ask(info.identifier, now)), now)

    def _asked_for_news(self, info: PeerInfo, asked: AskNews, now: float) -> None:
        self.tell(info, News(asked.number, tuple(sorted(self._seen_as_new(now)))), now)

    def _news(self, info: PeerInfo, news: News, now: float) -> None:
        self.cold_start.answered(info.identifier, news.number, news.seen)
        if self.kv.new:
            self._show_view(now)
            self._scope_epoch = -1
            self.events.append(Moved())

    def _seen_as_new(self, now: float) -> frozenset[int]:
        """This broker and all others, when it is new and sees all that it knows of (`cold_start`); else nobody."""
        if self.chord is None or self.chord.mesh is None or self.chord.joining is not None:
            return frozenset()
        seen = frozenset([self.me, *(info.identifier for info in self.linked())])
        if Safeguard.COLD_START_AGREED not in self.safeguards:
            return seen if seen == {self.me, *self._neighbours()[1]} else frozenset()
        if now < self._promises_over_at or len(self.address_book.contacts) >= CONTACTS_KEPT_MAX:
            return frozenset()
        complete = seen == {self.me, *self._neighbours()[1]} and not self.unreached(self.config.seeds)
        return seen if complete and (self.kv.new or seen == self.cold_start.began) else frozenset()

    def _all_new_since(self, now: float) -> float | None:
        return self.cold_start.agreed_since(self._seen_as_new(now), now)

    # --- brokers we have heard of --------------------------------------------------------------------------------

    def _tell_roster(self, now: float) -> None:
        self.timers.at("roster", now + ROSTER_SECONDS * self.random.uniform(0.8, 1.2))
        linked = self.linked()
        for info in linked:
            self.address_book.met(info.address, now)
        self.address_book.forget_strangers(now)
        self._reach_homes(now)
        if linked:
            asked = self.random.choice(linked)
            self.tell(asked, Roster(tuple(info.address for info in linked[: self._limits.mesh_brokers])), now)
        self._refresh(now)

    def home_at(self, home: int, life: int, address: str) -> None:
        """A broker that events may have to be brought to, and where it is reached."""
        self._homes.pop((home, life), None)
        self._homes[home, life] = address
        if len(self._homes) > self._limits.homes:
            del self._homes[next(iter(self._homes))]

    def _reach_homes(self, now: float) -> None:
        """Events wait for brokers that there is no link to, as for most beyond `mesh_brokers`: those are dialled."""
        for home, session in self.peers.sessions.items():
            if session.outbox and session.link is None and home in self._homes:
                self.tell_address(self._homes[home], Roster(()), now)

    def _roster(self, info: PeerInfo, roster: Roster, now: float) -> None:
        self.address_book.told(roster.addresses, now)
        self._refresh(now)

    def validate(self) -> None:
        """Asserts that routing table, store and links are sound, and that no event was left behind."""
        self.table.validate()
        self.kv.validate()
        self.peers.validate()
        assert not self.kv.effects and not self.events
