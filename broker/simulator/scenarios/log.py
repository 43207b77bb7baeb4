"""A cluster that keeps logs: producers publish in mode stored, while brokers and disks fail.

start     brokers start and find each other
safety    producers publish, the nemesis strikes; checkers look at every step, and at every row on every disk
quiet     all faults end: everything is answered, and what was acknowledged is on disks
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from headgate.broker.core.safeguards import SAFEGUARDS, Safeguard
from headgate.protocol.data import LogName, Row

from ..checkers import (
    ComesBackWhole,
    Disks,
    LogChecker,
    OnEnoughDisks,
    OnlyOnce,
    PositionsStand,
    SeenWhenSafe,
    StoredElsewhere,
)
from ..engine import ClusterWorld, Entry, Host, Server, Topology, Violation
from ..faults import LOG_FAULTS, NAMED_FAULTS, LogFaults, LogNemesis, kinds_of
from ..limits import CLIENTS_MAX, LOG_SETTLE_SECONDS, NODES_MAX, START_SECONDS
from ..workloads import STREAM, Listener, LogHistory, Producer
from .scenario import Options, Scenario, Write, option, within

__all__ = ["LOG_ABLATIONS", "LogOptions", "LogScenario"]

_LISTENERS = 2
_HASTY = "heard-before-writing"
LOG_ABLATIONS = (
    Safeguard.COPIES_BEFORE_ACK,
    Safeguard.DEDUPE_STORED,
    Safeguard.DELIVER_AT_HIGH_WATERMARK,
    Safeguard.EPOCH_CHECK,
    Safeguard.FENCES,
    Safeguard.OTHER_FOLLOWER,
    Safeguard.RECONCILE,
    Safeguard.ROLLBACK,
    Safeguard.SAFE_BEFORE_OPEN,
    Safeguard.SYNC_BEFORE_ACK,
    _HASTY,
)
"""What can be switched off: safeguards, and that the thread with the disk waits for the Node after a full disk."""


@dataclass(frozen=True, slots=True)
class LogOptions(Options):
    """Options of a run with logs: `--log`."""

    words = ("--log",)
    about = "Run a cluster that keeps logs in virtual time, harm its disks, and check every promise it makes."

    nodes: int = option(3, "brokers (3)", within(1, NODES_MAX))
    seconds: float = option(20.0, "virtual seconds of the safety phase (20)", within(0.001, 1e9, float))
    producers: int = option(4, "how many (4)", within(1, CLIENTS_MAX))
    copies: int = option(2, "disks that have an event before it is acknowledged (2)", within(1, NODES_MAX))
    faults: tuple[str, ...] = option(
        LOG_FAULTS,
        f"comma-separated of {', '.join((*LOG_FAULTS, *NAMED_FAULTS))}; or none (all but the last five)",
        kinds_of((*LOG_FAULTS, *NAMED_FAULTS)),
    )
    ablation: str = option("", "switch off one safeguard", flag="--ablate", choices=LOG_ABLATIONS)

    def scenario(self, write: Write | None) -> LogScenario:
        """A scenario with brokers that have disks, and producers."""
        return LogScenario(self, write)


class LogScenario(Scenario):
    """A scenario with brokers and disks, and checkers that read all disks."""

    world: ClusterWorld

    def __init__(self, options: LogOptions, write: Write | None = None) -> None:
        super().__init__(options, write)
        self.options = options
        self.history = LogHistory()
        self.faults = LogFaults.drawn(Random(f"{options.seed}/options"), options.faults)
        seeds = min(options.nodes, 2)  # one that is alone was told of nobody
        topology = Topology(safeguards=SAFEGUARDS - {options.ablation}, copies=options.copies, seeds=seeds)
        self.world = ClusterWorld(options.seed, topology, (self.watch,), self.session_failed)
        self.world.prepare = lambda node: node.streams.declare(STREAM, {"durability": "stored"})
        self.world.prepare_log = lambda log: setattr(log, "hasty", options.ablation == _HASTY)
        self.disks = Disks(self.world)
        parts = (self.world, self.history, self.disks)
        self.stored, self.once = OnEnoughDisks(*parts), OnlyOnce(*parts)
        self.positions, self.recovery = PositionsStand(*parts), ComesBackWhole(*parts)
        self.seen = SeenWhenSafe(*parts)
        self.checkers: Sequence[LogChecker] = (self.stored, self.once, self.seen, self.positions, self.recovery)
        if options.faults == ("follower",):
            self.checkers = (*self.checkers, StoredElsewhere(*parts))
        self.disks.found.append(self._found)
        self.producers = [
            Producer(f"producer-{number}", self.world, self.history, self.world.random.choice((0.02, 0.1, 0.4)))
            for number in range(options.producers)
        ]
        self.listeners = [Listener(f"listener-{number}", self.world) for number in range(_LISTENERS)]
        self.swarm = str(self.faults)

    def phases(self) -> Sequence[Callable[[], None]]:
        """Start, safety and quiet."""
        return (self.start, self.safety, self.quiet)

    def start(self) -> None:
        """Start the brokers, and let them find each other."""
        for _ in range(self.options.nodes):
            self.world.after(self.world.random.uniform(0.0, 1.0), self.world.add().start)
        self.world.run_for(START_SECONDS)

    def safety(self) -> None:
        """Let producers publish, subscribers listen and the nemesis strike."""
        world, random = self.world, self.world.random
        for listener in self.listeners:
            world.after(random.uniform(0.0, 1.0), listener.dial)
        for producer in self.producers:
            world.after(random.uniform(0.0, 1.0), producer.dial)
            world.after(random.uniform(0.0, 1.0), producer.think)
        self.nemesis = LogNemesis(world, self.history, self.faults, self.disks.look)
        world.run_for(self.options.seconds)

    def quiet(self) -> None:
        """End all faults: everything is answered, and what was acknowledged is on disks."""
        assert self.nemesis is not None
        self.nemesis.stop()
        for producer in self.producers:
            producer.active = False
        self.world.run_for(LOG_SETTLE_SECONDS)
        for producer in self.producers:
            if producer.unanswered:
                raise Violation("Answered", f"{producer.name} waits for {len(producer.unanswered)} answers")
        for node in self.world.nodes():
            if node.log.pending_bytes:
                raise Violation("NothingWaits", f"{node.config.name}: {node.log.pending_bytes} bytes wait for disks")
        for checker in self.checkers:
            checker.finish()

    def look_closely(self, host: Host) -> None:
        """Look at all disks as well."""
        self.disks.look()
        super().look_closely(host)

    def counts(self) -> dict[str, int]:
        """The counters of producers and checkers."""
        return {
            **super().counts(),
            "published": len(self.history.published),
            "acknowledged": len(self.history.acknowledged),
            "acknowledgements checked": self.stored.checked,
            "rows on disks": self.disks.rows,
            "rows compared": self.positions.compared,
            "openings of disks": self.recovery.openings,
            "events delivered": self.seen.delivered_events,
            "events readable": self.seen.read,
            "batches sent again": self.history.resent,
            "refused": self.history.refused,
            "in two brokers' logs": self.once.moved,
        }

    def _found(self, server: Server, log: LogName, entry: Entry, row: Row) -> None:
        for checker in self.checkers:
            checker.found(server, log, entry, row)
