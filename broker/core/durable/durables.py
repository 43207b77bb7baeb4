"""Durable subscriptions as the Node sees them: one part that joins those of this room."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from headgate.protocol.errors import ErrorCode, Refused
from headgate.protocol.messages import Ack, Fetched, Subscribe, Unsubscribe

from ..clock import Clock
from ..cluster import Cluster
from ..config import NodeConfig
from ..delivery import ClientSession, Streams
from ..effects import Effect
from ..inputs import Opened
from ..links import PeerInfo
from ..log import Committed, Log, Producers
from ..timers import Timers
from .attaching import ATTACHING, Attaching
from .bodies import BODIES, Bodies
from .coordinator import COORDINATING, ENDS, TAKING, Coordinator
from .dead_letters import DeadLetters
from .feeding import FEEDING, Feeding
from .handing import HANDING, Handing
from .keeping import COLLECTING, KEEPING, Keeping, key_of
from .messages import EndFeed, Feed, Fetch
from .relay import Relay
from .watch import DurableWatch

__all__ = ["Durables"]


class Durables:
    """Coordinates durable subscriptions, tells what logs here have for others', and hands events to clients here."""

    def __init__(
        self,
        config: NodeConfig,
        effects: list[Effect],
        log: Log,
        cluster: Cluster,
        producers: Producers,
        streams: Streams,
        clock: Clock,
        timers: Timers,
    ) -> None:
        self._cluster = cluster
        self._log = log
        self.work: dict[str, None] = {}
        """Not empty when the last input led to something that `settle` has to do: asked after each input."""
        self.relay = relay = Relay(cluster, self.work)
        self.keeping = Keeping(effects, log, cluster, producers, relay, timers, self.work)
        self.coordinator = Coordinator(effects, log, cluster, self.keeping, relay, streams, clock, timers, self.work)
        self.feeding = Feeding(
            log, relay.tell, config.limits, effects=effects, timers=timers, paused=self._takes_nothing
        )
        self._view: object = None
        self.bodies = Bodies(config.origin, effects, log, cluster, relay.tell, timers)
        self.dead_letters = DeadLetters(effects, self.bodies)
        self.handing = Handing(
            effects, self.bodies, relay.tell, timers, streams, config.limits.references, config.safeguards
        )
        self.attaching = Attaching(effects, cluster, relay, self.handing, timers)
        relay.take(
            {
                Feed: self.feeding.feed,
                EndFeed: self.feeding.end,
                Fetch: self.bodies.asked,
            }
        )
        self.woken: dict[Hashable, Callable[[float], None]] = {
            KEEPING: self.keeping.go_on,
            COLLECTING: self.keeping.collect,
            COORDINATING: self.coordinator.wake,
            TAKING: self.coordinator.take_more,
            ENDS: self.coordinator.give_up_surveys,
            ATTACHING: self.attaching.go_on,
            FEEDING: self.feeding.go_on,
            BODIES: self.bodies.go_on,
            HANDING: self.handing.go_on,
        }

    def watch(self, watch: DurableWatch | None) -> None:
        """Tell it of everything that the audit wants to know; None: no stream is audited."""
        self.coordinator.watch = self.handing.watch = watch

    # --- what happens ------------------------------------------------------------------------------------------------

    def opened(self, happened: Opened, now: float) -> None:
        """What earlier lives kept."""
        self.keeping.opened(happened.durables)
        self.keeping.moved(now)

    def moved(self, now: float) -> None:
        """Links or neighbours may have changed."""
        view = [(info.identifier, info.link) for info in self._cluster.linked()], self._cluster.table.known
        if view == self._view:
            return
        self._view = view
        self.relay.now = now
        self.keeping.moved(now)
        self.coordinator.moved(now)

    def link_down(self, info: PeerInfo, now: float) -> None:
        """A broker cannot be reached any more; or it can again, over another link, in the same moment."""
        self.relay.now = now
        self.keeping.link_down(info.identifier)
        self.coordinator.link_down(info.identifier, now)
        self.attaching.link_down(info.identifier, now)
        self.feeding.gone(info.identifier)
        self.bodies.link_down(info, now)

    def fetched(self, info: PeerInfo, message: Fetched, now: float) -> None:
        """Another broker has bodies for us, or has none."""
        self.relay.now = now
        self.bodies.fetched(info.identifier, message, now)

    def committed(self, committed: Iterable[Committed], now: float) -> None:
        """Batches of this broker are before the high watermark."""
        self.relay.now = now
        batches = [one for one in committed if one.stream.name in self.feeding.streams]
        self.bodies.committed(batches)
        self.feeding.committed(batches, now)

    def _takes_nothing(self, identifier: int) -> bool:
        info = self._cluster.peers.by_identifier.get(identifier)
        return info is not None and info.session.paused

    def after_log(self, now: float) -> None:
        """The disk said something: logs may have grown, or begin later."""
        self.relay.now = now
        self.feeding.go_on(now)

    def settle(self, now: float) -> None:
        """What the last input led to."""
        self.work.clear()
        self.relay.settle(now)
        self.coordinator.go_on(now)
        given_up, self.coordinator.given_up = self.coordinator.given_up, []
        for state, letters in given_up:
            self.dead_letters.give_up(state, letters, now)

    # --- clients -----------------------------------------------------------------------------------------------------

    def subscribe(self, session: ClientSession, message: Subscribe, now: float) -> None:
        """A client wants to take part in a durable subscription. Raises Refused."""
        self.relay.now = now
        self.attaching.subscribe(session, message, now)

    def unsubscribe(self, session: ClientSession, message: Unsubscribe, now: float) -> bool:
        """A client takes part no more; False when that is no durable subscription of its session."""
        self.relay.now = now
        return self.attaching.unsubscribe(session, message, now)

    def acknowledge(self, session: ClientSession, message: Ack, now: float) -> None:
        """A client acknowledges, or refuses, what it was handed."""
        self.relay.now = now
        self.handing.settle(session, message, now)

    def govern(self, session: ClientSession, now: float) -> None:
        """The rights of a client may be others."""
        self.relay.now = now
        self.attaching.govern(session, now)

    def gone(self, session: ClientSession, now: float) -> None:
        """A client's connection ended."""
        self.relay.now = now
        self.attaching.gone(session)

    def may_send(self, session: ClientSession, now: float) -> None:
        """A client's connection takes bytes again."""
        self.relay.now = now
        self.handing.resumed(session, now)

    # --- people ------------------------------------------------------------------------------------------------------

    def coordinator_name(self, name: Any) -> str:
        """The broker that coordinates a subscription of this name, as far as is known here. Raises Refused."""
        if type(name) is not str or not name:
            raise Refused(ErrorCode.BAD_REQUEST, "say the `name` of a durable subscription")
        owner = self._cluster.owner_of(key_of(name))
        if owner == self._cluster.me:
            return self._cluster.config.name
        info = self._cluster.peers.by_identifier.get(owner)
        if info is None or info.link is None:
            raise Refused(ErrorCode.UNAVAILABLE, f"the broker that coordinates {name!r} cannot be reached: try again")
        return info.name

    def validate(self) -> None:
        """All parts are sound."""
        self.relay.validate()
        self.keeping.validate()
        self.coordinator.validate()
        self.attaching.validate()
        self.feeding.validate()
        self.bodies.validate()
        self.handing.validate()
