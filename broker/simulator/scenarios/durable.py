"""Durable subscriptions: their clients come and go, while brokers, links and disks fail and conditions change.

start     brokers start and find each other
safety    producers publish, consumers acknowledge or do not, conditions change, operators go on from other places and
          remove subscriptions, retention takes events, the nemesis strikes
quiet     all faults end, consumers stay and acknowledge: in the end nothing is owed
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from headgate.broker.core.safeguards import SAFEGUARDS, Safeguard
from headgate.protocol.data import LogName, Row

from ..checkers import CursorStands, Disks, DurableChecker, Flagged, InLogOrder, NothingOwed, Wanted
from ..engine import ClusterWorld, Entry, Host, Server, Topology, Violation
from ..faults import LogFaults, LogNemesis, kinds_of
from ..limits import CLIENTS_MAX, DRAIN_SECONDS, LOG_SETTLE_SECONDS, NODES_MAX, START_SECONDS
from ..workloads import (
    CONDITIONS,
    SHARINGS,
    STREAM,
    Change,
    Changer,
    Consumer,
    DurableName,
    DurableProducer,
    LogHistory,
    Mover,
)
from .scenario import Options, Scenario, Write, option, within

__all__ = ["DURABLE_ABLATIONS", "DurableOptions", "DurableScenario"]

DURABLE_ABLATIONS = (
    Safeguard.AMEND_AT_POINT,
    Safeguard.CURRENT_ACKS,
    Safeguard.CURSOR_ON_DISKS,
    Safeguard.DURABLE_FENCE,
)
"""What can be switched off."""

_FAULTS = ("crash", "pause", "link", "cut", "apart", "slow", "full", "brim", "pair", "join", "leave")
_MOVES = ("seek", "remove", "retention")
"""What operators do beside changing conditions; `retention` keeps events for some seconds in half of the seeds."""
_ALL = (*_FAULTS, *_MOVES)


@dataclass(frozen=True, slots=True)
class DurableOptions(Options):
    """Options of a run with durable subscriptions: `--durable`."""

    words = ("--durable",)
    about = "Run clients with durable subscriptions in virtual time under faults, and check every promise made to them."

    nodes: int = option(3, "brokers (3)", within(1, NODES_MAX))
    seconds: float = option(20.0, "virtual seconds of the safety phase (20)", within(0.001, 1e9, float))
    producers: int = option(3, "how many (3)", within(1, CLIENTS_MAX))
    names: int = option(4, "durable subscriptions, of each sharing in turn (4)", within(1, CLIENTS_MAX))
    faults: tuple[str, ...] = option(_ALL, f"comma-separated of {', '.join(_ALL)}; or none (all)", kinds_of(_ALL))
    ablation: str = option("", "switch off one safeguard", flag="--ablate", choices=DURABLE_ABLATIONS)

    def scenario(self, write: Write | None) -> DurableScenario:
        """A scenario with brokers that have disks, producers and consumers."""
        return DurableScenario(self, write)


class DurableScenario(Scenario):
    """A scenario with durable subscriptions of all four sharings."""

    world: ClusterWorld

    def __init__(self, options: DurableOptions, write: Write | None = None) -> None:
        super().__init__(options, write)
        self.options = options
        self.history = LogHistory()
        self.faults = LogFaults.drawn(Random(f"{options.seed}/options"), options.faults)
        topology = Topology(safeguards=SAFEGUARDS - {options.ablation}, seeds=min(options.nodes, 2))
        self.world = ClusterWorld(options.seed, topology, (self.watch,), self.session_failed)
        random = Random(f"{options.seed}/durables")
        settings: dict[str, Any] = {"durability": "stored"}
        if "retention" in options.faults and random.random() < 0.5:
            settings["retention_seconds"] = random.choice((8.0, 15.0))
        self.world.prepare = lambda node: node.streams.declare(STREAM, settings)
        self.disks = Disks(self.world)
        self.names = [_drawn(random, number) for number in range(options.names)]
        parts, names = (self.world, self.history, self.disks), self.names
        self.owed, self.wanted = NothingOwed(*parts, names=names), Wanted(*parts, names=names)
        self.order, self.flagged = InLogOrder(*parts, names=names), Flagged(*parts, names=names)
        self.cursors = CursorStands(*parts, names=names)
        self.checkers: Sequence[DurableChecker] = (self.flagged, self.wanted, self.order, self.cursors, self.owed)
        self.disks.found.append(self._found)
        self.producers = [
            DurableProducer(f"producer-{number}", self.world, self.history, random.choice((0.05, 0.1, 0.4)))
            for number in range(options.producers)
        ]
        self.consumers = [
            Consumer(f"{one.name}/{number}", self.world, one) for one in names for number in range(random.randint(1, 3))
        ]
        for consumer in self.consumers:
            consumer.is_prompt = not options.faults
        self.changers = [Changer(self.world, one) for one in names]
        moves = [kind for kind in _MOVES[:2] if kind in options.faults and random.random() < 0.5]
        self.movers = [Mover(self.world, one, moves) for one in names] if moves else []
        kept = f"; events are kept for {settings['retention_seconds']:g} s" if len(settings) > 1 else ""
        self.swarm = f"{self.faults}{kept}"

    def phases(self) -> Sequence[Callable[[], None]]:
        """Start, safety and quiet."""
        return (self.start, self.safety, self.quiet)

    def start(self) -> None:
        """Start the brokers, and let them find each other."""
        for _ in range(self.options.nodes):
            self.world.after(self.world.random.uniform(0.0, 1.0), self.world.add().start)
        self.world.run_for(START_SECONDS)

    def safety(self) -> None:
        """Let everybody act, and the nemesis strike."""
        world, random = self.world, self.world.random
        for producer in self.producers:
            world.after(random.uniform(0.0, 1.0), producer.dial)
            world.after(random.uniform(0.0, 1.0), producer.think)
        for consumer in self.consumers:
            world.after(random.uniform(0.0, 6.0), consumer.dial)
        for changer in self.changers:
            world.after(random.uniform(2.0, 8.0), changer.think)
        for mover in self.movers:
            world.after(random.uniform(4.0, 12.0), mover.think)
        self.nemesis = LogNemesis(world, self.history, self.faults, self.disks.look)
        world.run_for(self.options.seconds)

    def quiet(self) -> None:
        """End all faults; consumers stay, and acknowledge everything but poison."""
        assert self.nemesis is not None
        self.nemesis.stop()
        for producer in self.producers:
            producer.active = False
        for operator in (*self.changers, *self.movers):
            operator.active = False
        for consumer in self.consumers:
            consumer.good = True
        self.world.run_for(LOG_SETTLE_SECONDS)
        self._drain()
        self.disks.look()
        for producer in self.producers:
            if producer.unanswered:
                raise Violation("Answered", f"{producer.name} waits for {len(producer.unanswered)} answers")
        for changer in self.changers:
            if changer.waits and len(changer.durable.changes) > 1:
                raise Violation("Answered", f"a change of {changer.durable.name} was never confirmed")
        for mover in self.movers:
            if mover.waits:
                raise Violation("Answered", f"{mover.question()} was never confirmed")
        for checker in self.checkers:
            checker.finish()

    def _drain(self) -> None:
        """Go on while something is handed out: a client that takes three at a time needs a while."""
        before = -1
        while before != (count := sum(len(one.receipts) for one in self.names)):
            before = count
            self.world.run_for(DRAIN_SECONDS)

    def look_closely(self, host: Host) -> None:
        """Look at all disks as well."""
        self.disks.look()
        self.cursors.look()
        super().look_closely(host)

    def counts(self) -> dict[str, int]:
        """The counters of clients and checkers."""
        receipts = [receipt for one in self.names for receipt in one.receipts]
        return {
            **super().counts(),
            "published": len(self.history.published),
            "acknowledged": len(self.history.acknowledged),
            "attachments": sum(consumer.attached for consumer in self.consumers),
            "conditions changed": sum(changer.answered for changer in self.changers),
            "moved": sum(mover.answered for mover in self.movers),
            "lost to retention": sum(self.owed.lost.values()),
            "events handed out": len(receipts),
            "flagged": sum(receipt.count > 1 for receipt in receipts),
            "acks confirmed": sum(receipt.confirmed for receipt in receipts),
            "acks refused": sum(one.stale for one in self.names),
            "events owed": self.owed.owed,
            "handed out again": self.flagged.repeated,
            "order compared": self.order.compared,
            "states looked at": self.cursors.looked,
        }

    def _found(self, server: Server, log: LogName, entry: Entry, row: Row) -> None:
        for checker in self.checkers:
            checker.found(server, log, entry, row)


def _drawn(random: Random, number: int) -> DurableName:
    """One durable subscription."""
    condition = random.choice(list(CONDITIONS))
    return DurableName(
        f"durable-{number}",
        SHARINGS[number % len(SHARINGS)],
        random.choice(("start", "now")),
        random.choice((0.5, 1.0, 3.0)),
        random.choice((0, 3, 5)),
        random.choice((3, 20, 1000)),
        [Change(condition, "ack", 0.0, 0.0)],
    )
