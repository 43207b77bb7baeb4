"""The Node: one broker as a pure state machine. `handle` is the only way to change it.

    effects  = node.handle(input, now)       one thing happened; do these in order
    deadline = node.next_deadline()          hand in a Wake at that time
    snapshot = node.statistics(now)          read only
    node.validate()                          asserts the invariants of every part

The parts (streams, subscribers, dissemination, clients) hold their own state and append to one list of effects. What
can happen is the table `_inputs`, what a client can say the table of `clients.py`: the broker's tables of contents.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from protocol.errors import ErrorCode
from protocol.messages import Goodbye, Hello, Puback, Publish

from .clients import Clients
from .config import NodeConfig
from .dissemination import Dissemination
from .effects import Close, Effect, Note, Send
from .inputs import Drain, Input, LinkDown, LinkPaused, LinkResumed, Loaded, Received, Wake, WallClock
from .questions import ask
from .statistics import NodeStatistics
from .streams import Streams
from .subscribers import Subscribers

__all__ = ["Node"]


class Node:
    """See the head of this file. Randomness is handed in; the daemon hands in an unguessable one."""

    def __init__(self, config: NodeConfig, random: Random, now: float) -> None:
        self.config = config
        self.effects: list[Effect] = []
        self.streams = Streams()
        self.subscribers = Subscribers(config, self.effects)
        self.dissemination = Dissemination(self.subscribers, config.origin)
        self.clients = Clients(
            config,
            random,
            self.effects,
            self.streams,
            self.subscribers,
            self.dissemination,
            lambda verb, arguments, now: ask(self, verb, arguments, now),
        )
        self._started = now
        self._inputs: dict[type, Callable[[Any, float], None]] = {
            Received: self._received,
            LinkDown: self._link_down,
            LinkPaused: self._link_paused,
            LinkResumed: self._link_resumed,
            Wake: self._wake,
            WallClock: self._wall_clock,
            Loaded: self._loaded,
            Drain: self._drain,
        }

    def handle(self, happened: Input, now: float) -> list[Effect]:
        """The one mutator: what the host must do because of this input."""
        self._inputs[type(happened)](happened, now)
        effects = self.effects[:]
        self.effects.clear()
        return effects

    def next_deadline(self) -> float:
        """When to hand in a Wake; -inf means as soon as other inputs had their turn."""
        return self.subscribers.next_deadline()

    def statistics(self, now: float) -> NodeStatistics:
        """A snapshot."""
        subscribers = self.subscribers
        return NodeStatistics(
            broker=self.config.name,
            origin=self.config.origin,
            uptime_seconds=now - self._started,
            draining=self.clients.draining,
            connections=len(subscribers.by_link),
            sessions=len(subscribers.by_key),
            streams=len(self.streams.by_name),
            subscriptions=len(subscribers.by_identity),
            batches_received=self.clients.batches,
            events_received=self.clients.events,
            events_duplicate=self.clients.duplicates,
            events_refused=self.clients.refused,
            events_delivered=subscribers.deliveries,
            outbox_events=sum(session.outbox_events for session in subscribers.by_key.values()),
            outbox_bytes=subscribers.outbox_bytes,
            outbox_bytes_max=self.config.outbox_bytes_total,
            drops=dict(subscribers.drops),
        )

    def validate(self) -> None:
        """Asserts what must always hold, in every part and between them."""
        assert not self.effects
        self.streams.validate()
        self.subscribers.validate()
        indexed = sum(stream.index.statistics().subscriptions for stream in self.streams.by_name.values())
        assert indexed == len(self.subscribers.by_identity)

    def _received(self, happened: Received, now: float) -> None:
        link = happened.link
        session = self.subscribers.by_link.get(link)
        accepted = session.accepted if session is not None else 0
        for message in happened.messages:
            kind = type(message)
            if kind is not Publish:
                self.dissemination.settle()  # what was published before is delivered under the rules of before
            if session is None:
                session = self.clients.hello(link, message, now) if isinstance(message, Hello) else None
                if session is None:
                    return
                accepted = session.accepted
            elif session.link != link:
                break  # it said goodbye or broke the protocol: what came after that was not said
            else:
                self.clients.table[kind](session, message, now)
        self.dissemination.settle()
        if session is not None and session.accepted != accepted and session.link == link:
            self.effects.append(Send(link, Puback(session.accepted)))

    def _link_down(self, happened: LinkDown, now: float) -> None:
        session = self.subscribers.by_link.get(happened.link)
        if session is not None:
            self.effects.append(Note("connection ended", {"client": session.name, "reason": happened.reason}, True))
            self.subscribers.detach(session, now)

    def _link_paused(self, happened: LinkPaused, now: float) -> None:
        session = self.subscribers.by_link.get(happened.link)
        if session is not None:
            session.paused = True
            # Nothing can go out before LinkResumed; a deadline of -inf until then would spin the host's loop.
            self.subscribers.draining.pop(session.key, None)

    def _link_resumed(self, happened: LinkResumed, now: float) -> None:
        session = self.subscribers.by_link.get(happened.link)
        if session is not None and not session.closing:
            session.paused = False
            self.clients.tell_interest(session, list(session.untold))
            self.subscribers.pump(session)

    def _wake(self, happened: Wake, now: float) -> None:
        for session in list(self.subscribers.draining.values()):
            self.subscribers.pump(session)
        for session in self.subscribers.expired(now):
            self.clients.end(session, "expired")

    def _wall_clock(self, happened: WallClock, now: float) -> None:
        self.clients.wall_offset = happened.offset_seconds

    def _loaded(self, happened: Loaded, now: float) -> None:
        for key, value in happened.records.items():
            kind, _, name = key.partition("/")
            if kind == "schema":
                self.streams.schemas[name] = value

    def _drain(self, happened: Drain, now: float) -> None:
        self.clients.draining = True
        for session in list(self.subscribers.by_link.values()):
            self.subscribers.pump(session)
            while session.key in self.subscribers.draining:
                self.subscribers.pump(session)
            self.subscribers.discard(session, "shutdown")
            self.subscribers.announce(session, "the broker is shutting down")
            if session.link is not None and not session.closing:
                text = "the broker is shutting down; connect again in a moment, or to another one"
                self.effects.append(Send(session.link, Goodbye(ErrorCode.SHUTTING_DOWN, text)))
                self.effects.append(Close(session.link))
                session.close()
