"""One seed of a world of keyed stores: faults and puts drawn from it, the promises checked at every event.

    visible       once Placed, known to every broker whose scope covers one of its keys, at any later moment
    copies        after each crash somebody is left who holds it
    not lost      at the end every placed item is with its owner, in the version placed or a newer one
    equal         at the end owner and siblings hold the same, and nobody else holds anything
    answered      every put whose origin lived on was placed or given up in time; at the end nothing waits anywhere

Brokers crash, or stand still until they are dropped, at most r times before everything is repaired again; and once less
than there were brokers, for of two brokers' two copies no rule of theirs can save what both take along.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from headgate.broker.core.keyspace import RING_SIZE, Arc
from headgate.broker.core.kv import Item, KvStore
from headgate.broker.core.safeguards import SAFEGUARDS, Safeguard
from tests.support.keyed_world import Host, World

__all__ = ["KEYED_ABLATIONS", "Broken", "Run", "Options", "run"]

KEYED_ABLATIONS = (
    Safeguard.BROADCAST_COVERED,
    Safeguard.BROADCAST_READY,
    Safeguard.GRANTS_AWAITED,
    Safeguard.WAIT_AFTER_GAINING,
    Safeguard.LEASE_FROM_ASKING,
    Safeguard.HANDOVER_AT_FETCH,
    Safeguard.PROMOTION_WITH_COPY,
    Safeguard.TOP_UP,
    Safeguard.TICKETS_OF_A_LIFE,
    Safeguard.HANDED_OFF_FOR_CLAIMANT,
    Safeguard.HANDED_OFF_ONCE,
    Safeguard.COPY_FOR_CLAIMANT,
    Safeguard.LEFT_OUT_IS_TOLD,
    Safeguard.SLEEP_NOTICED,
    Safeguard.COPIES_BEFORE_CONFIRM,
)
"""What can be switched off in a store alone."""


class Broken(AssertionError):
    """A promise was broken."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a run is like; drawn from its seed unless given."""

    seed: int
    seconds: float = 25.0
    ablation: Safeguard | None = None
    routes_answers: bool = False
    """An answer for whom no link leads to goes to who has his keys now, as in a cluster; here it is lost else."""


class Run:
    """Plays one seed and checks the promises at every event."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.random = random = Random(options.seed * 7919 + 1)
        self.replicas = random.choice([1, 2, 2, 2, 3])
        self.world = World(options.seed, self.replicas, SAFEGUARDS - {options.ablation})
        self.world.routes_answers = options.routes_answers
        self.world.view_delay_max = random.choice([0.1, 0.8, 1.5])
        self.world.delay_max = random.choice([0.003, 0.03, 0.2])
        self.world.after_event = self._check
        self.world.on_placed = self._placed
        self.brokers_min = random.choice([2, 3, 3, 4])
        self.versions: dict[Any, Item] = {}
        self.asked: dict[tuple[int, int, int], tuple[list[Item], float]] = {}
        """(broker, life, ticket) -> what was put, and when."""
        self.placed: dict[Any, Item] = {}
        self._checked: dict[tuple[int, int], int] = {}
        """(broker, life) -> the epoch of its scope when it was last compared with everything placed."""
        self.failures = 0
        self.failures_max = 0
        self.counts = {"crash": 0, "pause": 0, "drop": 0, "break": 0, "start": 0, "placed": 0, "unplaced": 0}

    # --- The run -----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        count = self.random.randint(3, 8)
        self.world.found([self._identifier() for _ in range(count)])
        self._may_fail()
        self.world.run_for(self.random.choice([0.0, 6.0]))
        end = self.world.now + self.options.seconds
        calm = self.random.choice([0.3, 1.0, 3.0])
        while self.world.now < end:
            self.world.run_for(self.random.expovariate(4.0))
            self._put()
            if self.random.random() < 0.25 / calm:
                self._fault()
        self._quiet()

    def _identifier(self) -> int:
        while True:
            identifier = self.random.randrange(RING_SIZE)
            if identifier not in self.world.hosts:
                return identifier

    def _put(self) -> None:
        awake = [host for host in self.world.hosts.values() if not host.paused and host.told is not None]
        if not awake:
            return
        host = self.random.choice(awake)
        items = [self._item() for _ in range(self.random.choice([1, 1, 1, 3]))]
        items = list({item.name: item for item in items}.values())
        for item in items:
            self.versions[item.name] = item
        key = (host.identifier, host.life)
        asked_at = self.world.now

        def put(store: KvStore) -> None:
            ticket = store.put(items, self.world.now)
            self.asked[(*key, ticket)] = (items, asked_at)

        self.world.do(host.identifier, put)

    def _item(self) -> Item:
        known = list(self.versions.values())
        if known and self.random.random() < 0.4:
            item = self.random.choice(known)
            value = None if self.random.random() < 0.3 else f"again {item.version}"
            same = self.random.random() < 0.2
            return item if same else item._replace(version=item.version + 1, value=value)
        low = self.random.randrange(RING_SIZE)
        kind = self.random.random()
        if kind < 0.5:
            high = low
        elif kind < 0.85:
            high = (low + self.random.randrange(RING_SIZE // 3)) % RING_SIZE
        else:
            low, high = 0, RING_SIZE - 1
        return Item(("sub", len(self.versions), low % 1000), low, high, 1, "new")

    def _fault(self) -> None:
        world = self.world
        if world.repaired():
            self._may_fail()
        kind = self.random.choice(["crash", "crash", "pause", "pause", "drop", "break", "break", "start"])
        awake = [one for one, host in world.hosts.items() if not host.paused and not host.dropped]
        if kind == "break" and world.pairs:
            world.cut(*self.random.choice(world.pairs), slow=self.random.random() < 0.3, again=True)
        elif kind == "start" and len(world.hosts) < 8:
            world.start(self._identifier())
        elif kind == "pause" and awake:
            world.pause(self.random.choice(awake), self.random.uniform(0.1, 4.0), None)
        elif kind in ("crash", "drop") and len(awake) > self.brokers_min and self.failures < self.failures_max:
            victim = self.random.choice(awake)
            self.failures += 1
            if kind == "crash":
                world.crash(victim)
                self._check_copies()
                if self.random.random() < 0.3:
                    world.at(world.now + self.random.uniform(2.5, 4.0), lambda: self._restart(victim))
            else:
                world.pause(victim, self.random.uniform(2.5, 9.0), self.random.uniform(2.0, 3.5))
        else:
            return
        self.counts[kind] += 1

    def _may_fail(self) -> None:
        """Everything has as many copies as it can have."""
        self.failures, self.failures_max = 0, min(self.replicas, len(self.world.hosts) - 1)

    def _restart(self, identifier: int) -> None:
        if identifier not in self.world.hosts and identifier not in self.world.memberships[-1].members:
            self.world.start(identifier)

    def _quiet(self) -> None:
        self.world.run_for(9.5)  # whoever stands still wakes up, whoever crashed is found, and comes back
        for one in list(self.world.hosts):
            for other in list(self.world.hosts):
                if one < other:
                    self.world.connect(one, other)
        for _ in range(12):
            self.world.run_for(4.0)
            if self.world.repaired() and not any(self._waits(host) for host in self.world.hosts.values()):
                break
        self.world.run_for(2 * self.world.config.limits.retain_seconds + 1.0)
        self._check_the_end()

    def _waits(self, host: Host) -> bool:
        store = host.store
        return bool(len(store.puts) or len(store.writes_in_flight) or len(store.orphans) or len(store.fetches))

    # --- The promises ------------------------------------------------------------------------------------------------

    def _placed(self, host: Host, ticket: int) -> None:
        asked = self.asked.get((host.identifier, host.life, ticket))
        if asked is None:  # answered before `put` returned
            self.world.at(self.world.now, lambda: self._placed(host, ticket))
            return
        self.counts["placed"] += 1
        for item in asked[0]:
            former = self.placed.get(item.name)
            if former is None or former.rank < item.rank:
                self.placed[item.name] = item
                for other in self.world.hosts.values():
                    if not other.paused:
                        self._compare(other, [item])

    def _check(self, host: Host) -> None:
        """Items only get newer, so a broker whose scope is the same is compared now and then only."""
        epoch = host.store.scope(self.world.now).epoch
        key = (host.identifier, host.life)
        if self._checked.get(key) != epoch or self.world.events % 32 == 0:
            self._checked[key] = epoch
            self._compare(host, list(self.placed.values()))

    def _compare(self, host: Host, items: list[Item]) -> None:
        scope = host.store.scope(self.world.now)
        table = host.store.items.table
        for item in items:
            held = table.get(item.name)
            if (held is None or held.rank < item.rank) and any(
                stretch.touches(item.low, item.high) for stretch in scope.stretches
            ):
                raise Broken(
                    f"visible: at {self.world.now:.3f} {host.identifier:x} answers for {item} and has {held}: "
                    f"own {host.store.leases.scope(self.world.now)}, "
                    f"replicas {host.store.replicas.scope(self.world.now)}"
                )

    def _check_copies(self) -> None:
        tables = [host.store.items.table for host in self.world.hosts.values()]
        for item in self.placed.values():
            if not any(item.name in table and table[item.name].rank >= item.rank for table in tables):
                raise Broken(f"copies: at {self.world.now:.3f} nobody is left who holds {item}")

    def _check_the_end(self) -> None:
        world = self.world
        if not world.repaired():
            raise Broken(f"repaired: never: {world.unrepaired()}")
        for host in world.hosts.values():
            store = host.store
            if not store.scope(world.now).covers(host.identifier):
                raise Broken(f"answers: {host.identifier:x} does not answer for its own key")
            if self._waits(host):
                raise Broken(f"answered: {host.identifier:x} still waits: {store.statistics()}")
            self._check_equal(host)
        for item in self.placed.values():
            for host in world.hosts.values():
                if store_touches(host, item) and host.store.items.table.get(item.name, item).rank < item.rank:
                    raise Broken(f"not lost: {item} at {host.identifier:x}")
                if store_touches(host, item) and item.name not in host.store.items.table:
                    raise Broken(f"not lost: {item} is not at {host.identifier:x}")

    def _check_equal(self, host: Host) -> None:
        own, hosts = host.store.ownership.own, self.world.hosts
        assert own is not None and host.told is not None
        mine = _within(host, own)
        for sibling in host.told.siblings:
            theirs = _within(hosts[sibling], own)
            if mine != theirs:
                raise Broken(
                    f"equal: {host.identifier:x} and {sibling:x}: only the first has {mine - theirs}, "
                    f"only the second {theirs - mine}"
                )
        before = [one for one in hosts.values() if one.told is not None and host.identifier in one.told.siblings]
        concerns = [own, *(one.store.ownership.own for one in before if one.store.ownership.own is not None)]
        for item in host.store.items.table.values():
            if item.value is not None and not any(arc.touches(item.low, item.high) for arc in concerns):
                raise Broken(f"leftover: {item} at {host.identifier:x}")


def _within(host: Host, arc: Arc) -> set[Item]:
    return {item for item in host.store.items.table.values() if arc.touches(item.low, item.high)}


def store_touches(host: Host, item: Item) -> bool:
    own = host.store.ownership.own
    return own is not None and own.touches(item.low, item.high)


def run(options: Options) -> Run:
    """Play a seed to its end; raises Broken."""
    one = Run(options)
    one.run()
    return one
