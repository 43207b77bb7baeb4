"""The history of a cluster's run: what was accepted where and when, and which subscriptions were in force then.

Written, as `history.py`, by a dumb twin that reads the inputs of Hosts and those effects that are answers. A
subscription is in force from the step in which its SUBACK went out, until its UNSUBSCRIBE comes in or its session ends;
whatever a broker accepts in between, anywhere, is expected.

What no broker can know to be lost is excused, and counted: see `Incidents`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.broker.core.effects import Effect, Send
from headgate.broker.core.inputs import Input, LinkDown, Received
from headgate.protocol.data import decode_record
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Error, Goodbye, Hello, Mode, Publish, Scope, Suback, Subscribe, Unsubscribe

from .history import Event, History, SessionLog, SubscriptionLog
from .limits import LOST_ON_THE_WAY_SECONDS, LOST_WITH_STUCK_SECONDS
from .workload import event_name
from .world import Host

__all__ = ["ClusterHistory", "Incidents"]


@dataclass(frozen=True, slots=True)
class _Incident:
    since: float
    until: float


class Incidents:
    """When what was accepted may be lost without a word, because who could have counted it is dead.

    A broker that dies takes with it what it had accepted and not yet handed on, and what it had matched and not yet
    delivered. Everything else is delivered or announced.
    """

    def __init__(self) -> None:
        self._all: list[_Incident] = []
        self.apart_until = float("-inf")
        self.any = False
        """Whether anything ever happened."""

    def crashed(self, since: float, now: float) -> None:
        """A broker died that had something in its hands since then."""
        self._all.append(_Incident(since, now))

    def parted(self) -> None:
        """From now on, and until `apart` says since when and until when, nothing is promised."""
        self.apart_until = float("inf")

    def apart(self, since: float, until: float) -> None:
        """Brokers could not talk to each other; nothing is promised of that time."""
        self.apart_until = until
        self._all.append(_Incident(since, until))

    def is_apart(self, now: float) -> bool:
        """Whether brokers cannot talk to each other, or could not a while ago."""
        return now < self.apart_until

    def excuse(self, event: Event) -> bool:
        """Whether this event may be missing without a GAP."""
        return any(one.since <= event.accepted_at <= one.until for one in self._all)


def _oldest_in_hand(host: Host) -> float:
    """When the oldest event was accepted, about, that this broker did not get rid of yet."""
    node, now = host.node, host.world.now
    stuck = any(info.forwards for info in node.peers.by_identifier.values())
    if stuck or any(session.outbox for session in node.peers.sessions.values()):
        return now - LOST_WITH_STUCK_SECONDS
    waiting = (*node.forwarding._waiting, *node.forwarding.gathering)
    return min((task.since for task in waiting), default=now) - LOST_ON_THE_WAY_SECONDS


class ClusterHistory(History):
    """See the head of this file."""

    def __init__(self) -> None:
        super().__init__()
        self.incidents = Incidents()
        self.schemas: dict[str, None] = {}
        """Streams that were ever given one."""
        self.asked: dict[tuple[str, int, int], SubscriptionLog] = {}
        self.in_force: dict[SubscriptionLog, None] = {}

    def subscribing(self, client: str, message: Subscribe) -> SubscriptionLog:
        """A client asks for this."""
        log = super().subscribing(client, message)
        self.asked[client, message.request, message.subscription] = log
        return log

    def __call__(self, host: Host, happened: Input, effects: Sequence[Effect]) -> None:
        """One step of a Host."""
        if isinstance(happened, Received):
            answers = [one.message for one in effects if isinstance(one, Send) and one.link == happened.link]
            for message in happened.messages:
                if isinstance(message, Hello):
                    self._hello(host, happened.link, message, answers)
                elif happened.link in self._by_link:
                    self._heard(host, self._by_link[happened.link], message, answers)
        elif isinstance(happened, LinkDown):
            self._detached(happened.link, host.world.now)
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.message, Suback) and effect.link in self._by_link:
                self._placed(self._by_link[effect.link], effect.message, host.world.now)

    def died(self, host: Host) -> None:
        """All sessions of this Host are over."""
        self.left(host)
        self.incidents.crashed(_oldest_in_hand(host), host.world.now)

    def left(self, host: Host) -> None:
        """It is about to stop in order: its sessions end, what it took in is handed on first."""
        name, life = host.node.config.name, host.node.config.incarnation
        for session in self.sessions.values():
            if (session.broker, session.life) == (name, life):
                self._over(session)

    def _hello(self, host: Host, link: int, hello: Hello, answers: Sequence[object]) -> None:
        before = self.sessions.get(hello.session)
        here = (host.node.config.name, host.node.config.incarnation)
        super()._hello(host, link, hello, answers)
        if before is not None and (before.broker, before.life) != here:
            self.broken_resumes.clear()  # it is known elsewhere
        for session in self.sessions.values():
            if session.over and session.subscriptions:
                self._over(session)
        known = self._by_link.get(link)
        if known is not None:
            known.broker, known.life = here

    def _heard(self, host: Host, session: SessionLog, message: object, answers: Sequence[object]) -> None:
        if isinstance(message, Publish):
            self._accepted(host, session, message, answers)
        elif isinstance(message, Unsubscribe):
            log = session.subscriptions.pop(message.subscription, None)
            if log is not None:
                self._ended(log)
        elif isinstance(message, Goodbye):
            self._over(session)

    def _placed(self, session: SessionLog, message: Suback, now: float) -> None:
        log = self.asked.get((session.client, message.request, message.subscription))
        if log is not None and not log.in_force and not log.over:
            log.in_force, log.in_force_at = True, now
            session.subscriptions[message.subscription] = log
            self.in_force[log] = None

    def _ended(self, log: SubscriptionLog) -> None:
        log.in_force = False
        self.in_force.pop(log, None)

    def _over(self, session: SessionLog) -> None:
        session.over = True
        for log in session.subscriptions.values():
            self._ended(log)
        session.subscriptions.clear()

    def _accepted(self, host: Host, session: SessionLog, message: Publish, answers: Sequence[object]) -> None:
        if message.mode != Mode.FIRE:
            if message.sequence != session.accepted + 1:
                return
            session.accepted = message.sequence
        names = [event_name(decode_record(record)[1]) for record in message.batch.pieces()]
        for answer in answers:
            if isinstance(answer, Error) and answer.scope == Scope.PUBLISH and answer.reference == message.sequence:
                busy = answer.code == ErrorCode.UNAVAILABLE
                if (session.client, names[0]) not in self.spoiled and not busy:
                    self.refused.append(f"{names[0]}: {ErrorCode(answer.code).name}: {answer.text}")
                return
        self.accepted_events += len(names)
        now = host.world.now
        for name in names:
            event = self.events[name]
            event.accepted_at, event.broker = now, host.node.config.name
            for log in self.in_force:
                if log.in_force_at < now and log.wants(event):
                    log.expected.append(name)
