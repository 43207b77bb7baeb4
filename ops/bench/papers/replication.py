"""Subscriptions that are still reached when brokers fail: BLOOM Figure 5.5, and what repair in between makes of it.

All brokers of the paper's network, each with the keyed store that a real one has, on a ring that is told to them; their
messages are carried at once, one after the other, and time stands still, so that nothing is late. Each subscription
rests at a key anywhere, with its owner and its next r siblings.

    static     every broker fails with probability p, all at the same moment, as in the paper
    repaired   as many fail, but some at a time, and the others repair what is left before the next ones do

A subscription is reached when the live broker that its key belongs to holds it. Printed beside both is 1 - p^(r+1), the
share of keys of which not all of r + 1 brokers fail. The paper counts publications, each of which needs many
subscriptions' places on its way, and its (5.1) is the probability that anything at all is lost: another thing.
"""

from __future__ import annotations

import argparse
from bisect import bisect_left
from collections import deque
from random import Random
from typing import Any

from rich.table import Table

from headgate.broker.core.keyspace import RING_SIZE
from headgate.broker.core.kv import Item, KvConfig, KvStore, Put, Route, Stored, Tell, View

from ..wire import console

__all__ = ["FAILING", "REPLICAS", "StillRing", "add_arguments", "run", "share_repaired", "share_static"]

REPLICAS = (1, 2, 3, 4, 5, 6, 7, 8)
FAILING = (0.25, 0.5)
BATCHES = 64
"""The brokers that fail do so in so many portions, each followed by a repair."""

NOW = 0.0


class StillRing:
    """Keyed stores on a ring, whose messages arrive at once."""

    def __init__(self, count: int, replicas: int, seed: int) -> None:
        random = Random(f"{seed} {count}")
        self.replicas = replicas
        self.members = sorted({random.randrange(RING_SIZE) for _ in range(count)})
        self.stores = {one: KvStore(one, KvConfig(), NOW) for one in self.members}
        self._told: dict[int, View] = {}
        self._waiting: deque[tuple[int, int, Any]] = deque()
        for certain in (True, False):
            for one in self.members:
                self._show(one, certain)
            self._carry_all()
        self.keys: dict[int, int] = {}

    def subscribe(self, count: int, seed: int) -> None:
        """Place so many subscriptions at random keys."""
        random = Random(f"{seed} subscriptions")
        for number in range(count):
            key = self.keys[number] = random.randrange(RING_SIZE)
            origin = random.choice(self.members)
            self.stores[origin].put([Item(("sub", number), key, key, 1, number)], NOW)
            self._collect(origin)
            self._carry_all()

    def fail(self, victims: list[int]) -> None:
        """Remove these brokers at the same moment; the others do not notice yet."""
        for one in victims:
            del self.stores[one]
            del self._told[one]
        self.members = sorted(self.stores)

    def repair(self) -> None:
        """Let the others notice, and repair."""
        for one in self.members:
            store = self.stores[one]
            for gone in [peer for peer in store.linked if peer not in self.stores]:
                store.peer_down(gone, NOW)
        for one in self.members:
            self._show(one, certain=False)
        self._carry_all()

    def reached(self) -> float:
        """The share of subscriptions that the broker to whom their key belongs by now holds."""
        found = sum(self.stores[self._owner(key)].get(("sub", number)) is not None for number, key in self.keys.items())
        return found / len(self.keys)

    def _owner(self, key: int) -> int:
        return self.members[bisect_left(self.members, key) % len(self.members)]

    def _show(self, one: int, certain: bool) -> None:
        place, count = bisect_left(self.members, one), len(self.members)
        around = [self.members[(place + step) % count] for step in range(1, min(self.replicas, count - 1) + 1)]
        view = View(self.members[place - 1], one, tuple(around), True, certain)
        if self._told.get(one) != view:
            self._told[one] = view
            for peer in around:
                self._link(one, peer)
            self.stores[one].view(view, NOW)
            self._collect(one)

    def _link(self, one: int, other: int) -> None:
        if other not in self.stores[one].linked:
            for end, far in ((one, other), (other, one)):
                self.stores[end].peer_up(far, NOW)
                self._collect(end)

    def _collect(self, one: int) -> None:
        effects = self.stores[one].effects
        for effect in effects:
            if isinstance(effect, Tell) and effect.identifier in self.stores:
                self._waiting.append((one, effect.identifier, effect.message))
            elif isinstance(effect, Route):
                self._waiting.append((one, self._owner(effect.key), effect.message))
        effects.clear()

    def _carry_all(self) -> None:
        while self._waiting:
            sender, recipient, message = self._waiting.popleft()
            if not isinstance(message, Put | Stored):
                self._link(recipient, sender)
            self.stores[recipient].handle(sender, message, NOW)
            self._collect(recipient)


def _victims(ring: StillRing, failing: float, seed: int) -> list[int]:
    random = Random(f"{seed} {failing}")
    victims = [one for one in ring.members if random.random() < failing]
    random.shuffle(victims)
    return victims


def share_static(count: int, replicas: int, failing: float, subscriptions: int, seed: int) -> float:
    """The share still reached when the failing brokers fail at the same moment."""
    ring = StillRing(count, replicas, seed)
    ring.subscribe(subscriptions, seed)
    ring.fail(_victims(ring, failing, seed))
    return ring.reached()


def share_repaired(
    count: int, replicas: int, failing: float, subscriptions: int, seed: int, batches: int = BATCHES
) -> float:
    """The share still reached when some brokers fail at a time, with repair in between."""
    ring = StillRing(count, replicas, seed)
    ring.subscribe(subscriptions, seed)
    victims = _victims(ring, failing, seed)
    for batch in range(batches):
        ring.fail(victims[batch::batches])
        ring.repair()
    return ring.reached()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Sizes, for a quick look."""
    parser.add_argument("--replication-nodes", type=int, default=4096, help="brokers (BLOOM Figure 5.5)")
    parser.add_argument("--replication-subscriptions", type=int, default=4096, help="subscriptions placed")
    parser.set_defaults(replication_replicas=REPLICAS)


def run(arguments: argparse.Namespace) -> int:
    """Print the table; 1 when the static shares are not what r + 1 copies give."""
    count, subscriptions, seed = arguments.replication_nodes, arguments.replication_subscriptions, arguments.seed
    table = Table(title=f"BLOOM Figure 5.5: subscriptions still reached, {count} brokers, seed {seed}")
    for heading in ("r", *(f"{column}, p = {p}" for p in FAILING for column in ("1 - p^(r+1)", "static", "repaired"))):
        table.add_column(heading, justify="right")
    good = True
    for replicas in arguments.replication_replicas:
        cells = [str(replicas)]
        for failing in FAILING:
            expected = 1 - failing ** (replicas + 1)
            static = share_static(count, replicas, failing, subscriptions, seed)
            repaired = share_repaired(count, replicas, failing, subscriptions, seed)
            good = good and abs(static - expected) < 0.03
            cells += [f"{share:.2%}" for share in (expected, static, repaired)]
        table.add_row(*cells)
    console().print(table)
    return 0 if good else 1
