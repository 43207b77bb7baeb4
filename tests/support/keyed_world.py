"""A small world of keyed stores: links with delays that break, brokers that crash, stand still, join and leave.

The world knows who lives and tells everybody the view, each broker at a time of its own. It stands in for the ring:
a newcomer serves once the broker before it knows it; who stood still too long is dropped, and comes back as a newcomer.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import msgpack

from headgate.broker.core.kv import KvConfig, KvLimits, KvStore, Placed, Route, Stored, Tell, Unplaced, View
from headgate.broker.core.messages import STORE
from headgate.broker.core.safeguards import SAFEGUARDS, Safeguard
from headgate.broker.simulator import engine

__all__ = ["Host", "Membership", "World"]


@dataclass(slots=True)
class Host:
    """One broker of the world."""

    identifier: int
    life: int
    store: KvStore
    inbox: list[Callable[[], None]] = field(default_factory=list)
    paused: bool = False
    alive: bool = True
    version: int = -1
    """Which membership it has heard of."""
    told: View | None = None
    wake_at: float = float("inf")
    joined_at: int = 0
    """The number of the membership that it joined with; what it hears of former ones means its former self."""
    dropped: bool = False
    """The ring gave it up while it stood still."""
    placed: list[int] = field(default_factory=list)
    unplaced: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Membership:
    """Who the ring consists of, from one moment on; `joined` is when each of them did, as a number of a membership."""

    members: tuple[int, ...]
    joined: dict[int, int]


class World(engine.World):
    """Runs keyed stores over links with delays, and breaks, stops and starts them."""

    def __init__(self, seed: int, replicas: int, safeguards: frozenset[Safeguard] = SAFEGUARDS) -> None:
        super().__init__(seed)
        self.replicas = replicas
        limits = KvLimits(retain_seconds=6.0, check_seconds=3.0)
        self.config = KvConfig(limits=limits, safeguards=safeguards)
        self.hosts: dict[int, Host] = {}
        self.memberships: list[Membership] = [Membership((), {})]
        self.after_event: Callable[[Host], None] = lambda host: None
        self.on_placed: Callable[[Host, int], None] = lambda host, ticket: None
        self.view_delay_max = 0.8
        self.delay_max = 0.03
        self.route_loss = 0.02
        self.routes_answers = False
        self.messages: Counter[str] = Counter()
        self.events = 0
        self._links: dict[tuple[int, int], int] = {}
        """Pair -> number of its link; absent when it is down."""
        self._link_numbers = count(1)
        self._channels: dict[tuple[int, int, int], float] = {}
        self._lives: Counter[int] = Counter()

    # --- Brokers -----------------------------------------------------------------------------------------------------

    def start(self, identifier: int) -> Host:
        """A broker begins its life with nothing, and joins."""
        life = self._lives[identifier] = self._lives[identifier] + 1
        host = Host(identifier, life, KvStore(identifier, replace(self.config, life=life), self.now))
        self.hosts[identifier] = host
        for other in list(self.hosts.values()):
            if other is not host and other.alive:
                self.connect(identifier, other.identifier)
        self.join(host)
        return host

    def found(self, identifiers: list[int]) -> None:
        """The first is certain, the others join it at once."""
        for identifier in identifiers:
            self.start(identifier)
            self.run_for(0.2 + self.view_delay_max)

    def join(self, host: Host) -> None:
        members = self.memberships[-1].members
        self._new_membership(tuple(sorted({*members, host.identifier})), joined=host.identifier)

    def drop(self, identifier: int) -> None:
        """The ring gives a broker up."""
        self._new_membership(tuple(one for one in self.memberships[-1].members if one != identifier))

    def crash(self, identifier: int) -> None:
        """It is gone, with everything it held; the others find out in a while."""
        host = self.hosts.pop(identifier)
        host.alive = False
        for other in list(self.hosts):
            self.cut(identifier, other, slow=self.random.random() < 0.5)
        self.at(self.now + self.random.uniform(0.05, 2.0), lambda: self._drop_life(identifier, host.life))

    def _drop_life(self, identifier: int, life: int) -> None:
        host = self.hosts.get(identifier)
        if host is None or host.life == life:
            self.drop(identifier)

    def pause(self, identifier: int, seconds: float, drop_after: float | None) -> None:
        """It stands still; after a while the others may give it up."""
        host = self.hosts[identifier]
        host.paused = True
        if drop_after is not None and drop_after < seconds:
            self.at(self.now + drop_after, lambda: self._give_up(host))
        self.at(self.now + seconds, lambda: self._resume(host))

    def _give_up(self, host: Host) -> None:
        if host.alive and host.paused:
            host.dropped = True
            for other in list(self.hosts):
                if other != host.identifier:
                    self.cut(host.identifier, other, slow=False)
            self.drop(host.identifier)

    def _resume(self, host: Host) -> None:
        if not host.alive:
            return
        host.paused = False
        inbox, host.inbox = host.inbox, []
        if self.random.random() < 0.5:
            self._ticked(host)
        for action in inbox:
            self._run(host, action)
        self._arm(host)
        self.after_event(host)
        if host.dropped:
            self.at(self.now + self.random.uniform(0.0, 1.5), lambda: self._reborn(host))

    def _reborn(self, host: Host) -> None:
        if not host.alive:
            return
        host.dropped = False
        host.told = View(host.identifier, host.identifier, (), False)
        self._into(host, lambda told=host.told: host.store.view(told, self.now))  # type: ignore[misc]
        for other in list(self.hosts):
            if other != host.identifier:
                self.connect(host.identifier, other)
        self.join(host)

    # --- Views -------------------------------------------------------------------------------------------------------

    def _new_membership(self, members: tuple[int, ...], joined: int | None = None) -> None:
        number = len(self.memberships)
        if joined is not None:
            self.hosts[joined].joined_at = number
        former = self.memberships[-1].joined
        times = {one: number if one == joined else former[one] for one in members}
        self.memberships.append(Membership(members, times))
        for host in list(self.hosts.values()):
            delay = self.random.uniform(0.0, self.view_delay_max)
            self.at(self.now + delay, lambda host=host: self._tell_membership(host, number))  # type: ignore[misc]

    def _tell_membership(self, host: Host, number: int) -> None:
        if not host.alive or host.version >= number:
            return
        if host.dropped or host.identifier not in self.memberships[number].members:
            return
        self._into(host, lambda: self._heard_of(host, number))

    def _heard_of(self, host: Host, number: int) -> None:
        if not host.joined_at <= number > host.version or host.dropped:
            return
        if host.identifier not in self.memberships[number].members:
            return
        host.version = number
        self._tell_view(host)
        for other in list(self.hosts.values()):  # the one after us may have waited to be adopted
            if other is not host and other.told is not None and not other.told.serving:
                self.at(self.now, lambda other=other: self._into(other, lambda: self._tell_view(other)))  # type: ignore[misc]

    def _tell_view(self, host: Host) -> None:
        membership = self.memberships[max(host.version, 0)]
        members = membership.members
        if host.dropped or host.version < host.joined_at or host.identifier not in members:
            return
        place = bisect_left(members, host.identifier)
        around = [*members[place + 1 :], *members[:place]]
        after = around[-1] if around else host.identifier
        view = View(after, host.identifier, tuple(around[: self.replicas]), self._adopted(host, after, membership))
        further = tuple(around[self.replicas : max(4, self.replicas)])
        view = view._replace(certain=len(self.memberships) == 2, further=further)
        if view != host.told:
            host.told = view
            host.store.view(view, self.now)

    def _adopted(self, host: Host, after: int, membership: Membership) -> bool:
        """Whether the broker before it has heard of it; once it has, that stays so."""
        joined = membership.joined[host.identifier]
        if host.told is not None and host.told.serving and host.told.me == host.identifier:
            return True
        before = self.hosts.get(after)
        return after == host.identifier or before is None or before.version >= joined

    # --- Links -------------------------------------------------------------------------------------------------------

    def connect(self, one: int, other: int) -> None:
        """A new link; both ends hear of it, each at its time."""
        pair = (min(one, other), max(one, other))
        if pair in self._links:
            return
        number = self._links[pair] = next(self._link_numbers)
        for end, far in (pair, pair[::-1]):
            self._carry(far, end, number, lambda host, far=far: self._up(host, far, number))

    def _up(self, host: Host, far: int, number: int) -> None:
        if self._links.get((min(host.identifier, far), max(host.identifier, far))) == number:
            host.store.peer_up(far, self.now)

    def cut(self, one: int, other: int, slow: bool = False, again: bool = False) -> None:
        """The link is gone with all that is in it; the ends find out."""
        pair = (min(one, other), max(one, other))
        if self._links.pop(pair, None) is None:
            return
        latest = 0.0
        for end, far in (pair, pair[::-1]):
            host = self.hosts.get(end)
            if host is not None:
                delay = self.random.uniform(0.0, 2.0 if slow else 0.2)
                latest = max(latest, delay)
                self.at(self.now + delay, lambda end=end, far=far, life=host.life: self._down(end, far, life))  # type: ignore[misc]
        if again:
            self.at(self.now + latest + self.random.uniform(0.01, 1.0), lambda: self._connect_living(*pair))

    def _connect_living(self, one: int, other: int) -> None:
        if one in self.hosts and other in self.hosts and not (self.hosts[one].dropped or self.hosts[other].dropped):
            self.connect(one, other)

    def _down(self, end: int, far: int, life: int) -> None:
        host = self.hosts.get(end)
        pair = (min(end, far), max(end, far))
        if host is not None and host.life == life and pair not in self._links:
            self._into(host, lambda: host.store.peer_down(far, self.now))

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return list(self._links)

    def _carry(self, sender: int, recipient: int, number: int, action: Callable[[Host], None]) -> None:
        """Along a link, in order, unless it breaks."""
        key = (sender, recipient, number)
        pair = (min(sender, recipient), max(sender, recipient))
        time = max(self._channels.get(key, 0.0), self.now + self.random.uniform(0.0005, self.delay_max))
        if self.random.random() < 0.01:
            time += self.random.uniform(0.0, 0.5)
        self._channels[key] = time
        host = self.hosts[recipient]

        def arrive() -> None:
            if self._links.get(pair) == number and self.hosts.get(recipient) is host:
                self._into(host, lambda: action(host))

        self.at(time, arrive)

    # --- Events ------------------------------------------------------------------------------------------------------

    def _into(self, host: Host, action: Callable[[], None]) -> None:
        if not host.alive:
            return
        if host.paused:
            host.inbox.append(action)
            return
        self._run(host, action)
        self._arm(host)
        self.after_event(host)

    def do(self, identifier: int, action: Callable[[KvStore], Any]) -> Any:
        """Something the caller does at a broker."""
        host = self.hosts[identifier]
        result = action(host.store)
        self._drain(host)
        self._arm(host)
        self.after_event(host)
        return result

    def _run(self, host: Host, action: Callable[[], None]) -> None:
        action()
        self.events += 1
        if self.events % 64 == 0:
            host.store.validate()
        self._drain(host)

    def _arm(self, host: Host) -> None:
        deadline = max(host.store.timers.next, self.now)
        if deadline < host.wake_at - 1e-9 and deadline < float("inf"):
            host.wake_at = deadline
            self.at(deadline + 1e-6, lambda: self._wake(host, deadline))

    def _wake(self, host: Host, deadline: float) -> None:
        if host.wake_at == deadline:
            host.wake_at = float("inf")
            if not host.paused:
                self._into(host, lambda: self._ticked(host))

    def _ticked(self, host: Host) -> None:
        host.store.tick(self.now)
        self._drain(host)

    def _drain(self, host: Host) -> None:
        effects = host.store.effects[:]
        host.store.effects.clear()
        for effect in effects:
            if isinstance(effect, Tell):
                self._told(host, effect)
            elif isinstance(effect, Route):
                self._routed(host, effect)
            elif isinstance(effect, Placed):
                host.placed.append(effect.ticket)
                self.on_placed(host, effect.ticket)
            elif isinstance(effect, Unplaced):
                host.unplaced.append(effect.ticket)

    def _told(self, host: Host, effect: Tell) -> None:
        self.messages[type(effect.message).__name__.upper()] += 1
        body = msgpack.packb(STORE.write(effect.message))
        pair = (min(host.identifier, effect.identifier), max(host.identifier, effect.identifier))
        number = self._links.get(pair)
        if number is not None and effect.identifier in host.store.linked and effect.identifier in self.hosts:
            sender = host.identifier
            self._carry(sender, effect.identifier, number, lambda there: self._handle(there, sender, body))
        elif self.routes_answers and isinstance(effect.message, Stored):
            self._routed(host, Route(effect.identifier, effect.message))

    def _routed(self, host: Host, effect: Route) -> None:
        """To whom this broker believes to be the owner; it may get lost."""
        self.messages[type(effect.message).__name__.upper()] += 1
        members = self.memberships[max(host.version, 0)].members
        if not members or self.random.random() < self.route_loss:
            return
        place = bisect_left(members, effect.key)
        target = members[place % len(members)]
        body = msgpack.packb(STORE.write(effect.message))
        life = self.hosts[target].life if target in self.hosts else -1

        def arrive() -> None:
            there = self.hosts.get(target)
            if there is not None and there.life == life:
                self._into(there, lambda: self._handle(there, host.identifier, body))

        self.at(self.now + self.random.uniform(0.0005, self.delay_max), arrive)

    def _handle(self, host: Host, sender: int, body: bytes) -> None:
        host.store.handle(sender, STORE.read(*msgpack.unpackb(body, strict_map_key=False)), self.now)

    # --- What it looks like ------------------------------------------------------------------------------------------

    def repaired(self) -> bool:
        """Everybody has heard of the last membership, is ready, and all siblings are synced."""
        return not self.unrepaired()

    def unrepaired(self) -> str:
        """What is missing."""
        last = len(self.memberships) - 1
        for host in self.hosts.values():
            store, told = host.store, host.told
            if host.paused or host.dropped or host.version != last or told is None or not told.serving:
                return f"{host.identifier:x} has heard of {host.version} of {last}, {told}"
            own = store.ownership.own
            if own is None or own != store.ownership.ready or own.after != told.after:
                return f"{host.identifier:x} owns {own}, ready {store.ownership.ready}, {told} {store.ownership.handed}"
            if not all(store.siblings.present.values()):
                return f"{host.identifier:x} has siblings {store.siblings.present}"
        return "" if set(self.hosts) == set(self.memberships[-1].members) else "members differ"
