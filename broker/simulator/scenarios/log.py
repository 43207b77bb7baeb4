"""One run of a cluster that keeps logs: producers publish in mode stored, brokers and disks fail, nothing may be wrong.

start     brokers come up and find each other
safety    producers publish, the nemesis strikes; the checkers look at every step, and at every row on every disk
quiet     all that was broken is whole again: everything is answered, and what was acknowledged is there
"""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from headgate.broker.core import Node
from headgate.broker.core.effects import Effect, Send
from headgate.broker.core.inputs import Input, Received
from headgate.protocol.data import LogName, Row
from headgate.protocol.errors import HeadgateError

from ..checkers import ComesBackWhole, Disks, LogChecker, OnEnoughDisks, OnlyOnce, PositionsStand, StoredElsewhere
from ..engine import ClusterOptions, ClusterWorld, Entry, Host, Server, Trace, Violation
from ..faults import LOG_FAULTS, LogFaults, LogNemesis
from ..limits import LOG_SETTLE_SECONDS, START_SECONDS
from ..workloads import STREAM, LogHistory, Producer
from .log_ablations import ablate_disk, ablate_log

__all__ = ["LogRun", "LogRunOptions", "LogVerdict", "run_log"]

_SOUND_EVERY = 64


@dataclass(frozen=True, slots=True)
class LogRunOptions:
    """What a run is made from; everything else is drawn from the seed."""

    seed: int
    nodes: int = 3
    seconds: float = 20.0
    producers: int = 4
    faults: tuple[str, ...] = LOG_FAULTS
    ablation: str = ""


@dataclass(frozen=True, slots=True)
class LogVerdict:
    """How a run ended. `failure` is empty when it went well."""

    options: LogRunOptions
    swarm: str
    digest: str
    failure: str
    details: str
    counts: dict[str, int]


class LogRun:
    """The parts of one run; `play` plays it."""

    def __init__(self, options: LogRunOptions, write: Callable[[str], object] | None = None) -> None:
        self.options = options
        self.history = LogHistory()
        self.faults = LogFaults.drawn(Random(f"{options.seed}/options"), options.faults)
        self.world = ClusterWorld(options.seed, ClusterOptions(), (self._step,), self._session_failed)
        self.world.prepare = self._prepare
        self.world.prepare_log = lambda log: ablate_disk(log, options.ablation)
        self.disks = Disks(self.world)
        parts = (self.world, self.history, self.disks)
        self.stored, self.once = OnEnoughDisks(*parts), OnlyOnce(*parts)
        self.positions, self.recovery = PositionsStand(*parts), ComesBackWhole(*parts)
        self.checkers: tuple[LogChecker, ...] = (self.stored, self.once, self.positions, self.recovery)
        if options.faults == ("follower",):
            self.checkers += (StoredElsewhere(*parts),)
        self.disks.found.append(self._found)
        self.producers = [
            Producer(f"producer-{number}", self.world, self.history, self.world.random.choice((0.02, 0.1, 0.4)))
            for number in range(options.producers)
        ]
        self.nemesis: LogNemesis | None = None
        self._trace = Trace(write) if write is not None else None
        self._digest = hashlib.sha256()
        self._steps = 0

    def play(self) -> None:
        """All phases. Raises Violation."""
        world, random = self.world, self.world.random
        for _ in range(self.options.nodes):
            world.after(random.uniform(0.0, 1.0), world.add().start)
        world.run_for(START_SECONDS)
        for producer in self.producers:
            world.after(random.uniform(0.0, 1.0), producer.dial)
            world.after(random.uniform(0.0, 1.0), producer.think)
        self.nemesis = LogNemesis(world, self.history, self.faults, self.disks.look)
        world.run_for(self.options.seconds)
        self.nemesis.stop()
        for producer in self.producers:
            producer.active = False
        world.run_for(LOG_SETTLE_SECONDS)
        for producer in self.producers:
            if producer.unanswered:
                raise Violation("Answered", f"{producer.name} waits for {len(producer.unanswered)} answers")
        for checker in self.checkers:
            checker.finish()

    def counts(self) -> dict[str, int]:
        """What happened, for the report."""
        return {
            "steps": self.world.steps,
            "published": len(self.history.published),
            "acknowledged": len(self.history.acknowledged),
            "acknowledgements checked": self.stored.checked,
            "rows on disks": self.disks.rows,
            "rows compared": self.positions.compared,
            "openings of disks": self.recovery.openings,
            "batches sent again": self.history.resent,
            "refused": self.history.refused,
            "in two brokers' logs": self.once.moved,
        } | (dict(self.nemesis.done) if self.nemesis is not None else {})

    @property
    def digest(self) -> str:
        """Of every step's time and shape: the same in every run of a seed."""
        return self._digest.hexdigest()

    def _prepare(self, node: Node) -> None:
        node.streams.declare(STREAM, {"durability": "stored"})
        ablate_log(node, self.options.ablation)

    def _found(self, server: Server, log: LogName, entry: Entry, row: Row) -> None:
        for checker in self.checkers:
            checker.found(server, log, entry, row)

    def _step(self, host: Host, happened: Input, effects: Sequence[Effect]) -> None:
        self._steps += 1
        if self._trace is not None:
            self._trace.step(self.world.now, host.node.config.name, happened, effects)
        messages = happened.messages if isinstance(happened, Received) else ()
        said = [effect.message if isinstance(effect, Send) else effect for effect in effects]
        shape = " ".join(type(one).__name__ for one in (happened, *messages, *said))
        self._digest.update(f"{self.world.now:.9f} {host.node.config.name} {shape}\n".encode())
        for checker in self.checkers:
            checker.step(host, happened, effects)
        if self._steps % _SOUND_EVERY == 0:
            self.disks.look()
            host.node.validate()

    def _session_failed(self, side: str, failure: HeadgateError) -> None:
        """Connections end in many ways here; what was said on them is judged by what comes of it."""


def run_log(options: LogRunOptions, write: Callable[[str], object] | None = None) -> LogVerdict:
    """Play one run to its verdict; whatever a Node raises is a verdict as well."""
    run = LogRun(options, write)
    failure = details = ""
    try:
        run.play()
    except Violation as violation:
        failure, details = str(violation), "".join(traceback.format_exception(violation))
    except Exception as error:  # a crash of a Node is what a simulator is there to find
        failure = f"Crash: {type(error).__name__}: {error}"
        details = "".join(traceback.format_exception(error))
    return LogVerdict(options, str(run.faults), run.digest, failure, details, run.counts())
