"""The Node: one broker as a pure state machine. `handle` is the only way to change it.

    effects  = node.handle(input, now)       one thing happened; do these in order
    deadline = node.next_deadline()          hand in a Wake at that time
    snapshot = node.statistics(now)          read only
    node.validate()                          asserts the invariants of every part

The parts (streams, subscribers, dissemination, clients) hold their own state and append to one list of effects. What
can happen is the table `_inputs`, what a client can say the table of `clients/clients.py`: the broker's tables of
contents.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from random import Random
from typing import Any

from headgate.protocol.errors import ErrorCode, ProtocolViolation, Refused
from headgate.protocol.messages import Ask, Goodbye, Hello, Puback, Publish

from .cause import Cause
from .clients import (
    AMENDING,
    AUDIT_ACKS,
    AUDIT_LINES,
    INQUIRIES,
    PACES,
    TOKENS,
    AuditLog,
    Clients,
    Inquire,
    Inquiries,
    Named,
    Paces,
    Publishers,
    Surveys,
    answer_of,
    answered_by,
    ask,
    shown,
)
from .clock import Clock
from .cluster import Cluster, Moved
from .config import NodeConfig
from .delivery import DRAINING, GRACE, ClientSession, Dissemination, Streams, Subscribers
from .durable import Durables
from .effects import Close, Effect, Note, Send
from .forwarding import BACKLOG, GATHERING, Forwarding
from .inputs import (
    Admitted,
    AsideRemoved,
    Certified,
    DialFailed,
    Drain,
    Found,
    Governed,
    Input,
    LinkDown,
    LinkPaused,
    LinkResumed,
    Loaded,
    NotStored,
    Opened,
    PeerUp,
    Reachable,
    Received,
    RecordsRoom,
    RowsRead,
    Stored,
    Trimmed,
    Wake,
    WallClock,
)
from .limits import STORE_SECONDS_MAX
from .links import PeerHooks, PeerInfo, Peers
from .log import (
    CHECKPOINT,
    LISTINGS,
    OPENINGS,
    RECONCILE,
    REPLICATION,
    RETENTION,
    WAITERS,
    Follower,
    Leader,
    Log,
    LogReading,
    ProducerLists,
    Producers,
    Reconciler,
    Retention,
    shortage,
)
from .placement import REGISTRY, Registry
from .statistics import NodeStatistics, statistics_of
from .timers import AT_ONCE, NEVER, Timers

__all__ = ["Node"]

LEAVE = "leave"
"""Key of the timer: who leaves waits no longer for its disk."""

TURN = "turn"
"""Key of the timer: the turn that the host is in the middle of has come to its end."""


class Node:
    """One broker: its parts, and the tables of what can happen to it.

    Randomness is handed in; the daemon hands in an unguessable one.
    """

    def __init__(self, config: NodeConfig, random: Random, now: float) -> None:
        self.config = config
        self.effects: list[Effect] = []
        self.timers = Timers()
        self.cause = Cause(config.name)
        self.streams = Streams(config.limits)
        self.subscribers = Subscribers(config, self.effects, self.timers)
        self.dissemination = Dissemination(self.subscribers, config.origin, config.limits)
        self.clock = Clock()
        self.cluster = Cluster(config, random, self.effects, self.timers, now)
        self.registry = Registry(config, self.effects, self.streams, self.subscribers, self.cluster, self.timers, now)
        self.forwarding = Forwarding(
            config.origin,
            self.effects,
            self.streams,
            self.subscribers,
            self.cluster,
            self.registry,
            self.dissemination,
            self.timers,
            self.cause,
        )
        self._make_log(config, now)
        self._make_clients(config, random)
        self._connect_parts(now)
        self.started = now
        self._leaves = False
        self.certificates: Mapping[str, float] = {}
        self._in_turn = False
        self._unanswered: dict[int, tuple[ClientSession, int]] = {}
        """Links whose clients published in this turn, and up to where each had its answer before."""
        self._make_tables()

    def _make_log(self, config: NodeConfig, now: float) -> None:
        timers = self.timers
        self.log = Log(
            config.name, self.effects, timers, self.cause, config.safeguards, config.limits, config.log_copies
        )
        self.producers = Producers(self.log, self.cluster, config.log_copies, timers, self.clock, now)
        self.producer_lists = ProducerLists(self.log, self.cluster, self.producers, config.log_copies, timers)
        self.reconciler = Reconciler(self.effects, self.log, self.cluster, self.producers, timers)
        self.leader = Leader(config, self.effects, self.log, self.cluster, self.producers, self.reconciler, timers)
        self.follower = Follower(self.log, self.cluster, self.producers)
        self.retention = Retention(self.log, self.streams, timers, self.clock)
        self.log_reading = LogReading(self.log, self.effects, self.clock, config.safeguards)
        self.audit = AuditLog(
            config.origin, self.effects, self.log, self.streams, self.subscribers, timers, self.clock, config.limits
        )

    def _make_clients(self, config: NodeConfig, random: Random) -> None:
        self.durables = Durables(
            config, self.effects, self.log, self.cluster, self.producers, self.streams, self.clock, self.timers
        )
        self.paces = Paces(self.effects, self.timers)
        self.publishers = Publishers(
            config.origin,
            self.effects,
            self.streams,
            self.dissemination,
            self.forwarding,
            self.log,
            self.producers,
            self.cluster,
            self.clock,
            config.limits,
            self.paces,
        )
        self.clients = Clients(
            config,
            random,
            self.effects,
            self.streams,
            self.subscribers,
            self.dissemination,
            self.registry,
            self.publishers,
            self.log_reading,
            self.audit,
            self.durables,
            self.timers,
            self.clock,
            self.paces,
        )
        self.clients.table[Ask] = self._asked
        self.inquiries = Inquiries(self.cluster, self.timers)
        self.surveys = Surveys(self, answer_of)
        self.cluster.take_controls({Inquire: self._inquired, Named: self._named})

    def _make_tables(self) -> None:
        self._of_the_disk: dict[type, Callable[[Any, float], None]] = {
            Opened: self._opened,
            Stored: self.log.stored,
            NotStored: self.log.not_stored,
            Trimmed: lambda happened, now: self.log.trimmed(happened),
            AsideRemoved: lambda happened, now: self.log.aside_removed(happened),
            RowsRead: lambda happened, now: self.log.take_lookup(happened.ticket)(happened, now),
            Found: lambda happened, now: self.log.take_lookup(happened.ticket)(happened.value, now),
        }
        self._inputs: dict[type, Callable[[Any, float], None]] = {
            Received: self._received,
            Admitted: self.clients.access.admit,
            Governed: self._governed,
            Certified: self._certified,
            PeerUp: self._for_peers,
            DialFailed: self._for_peers,
            Reachable: self._reachable,
            LinkDown: self._link_down,
            LinkPaused: self._link_paused,
            LinkResumed: self._link_resumed,
            Wake: self._wake,
            WallClock: self._wall_clock,
            Loaded: self._loaded,
            RecordsRoom: self._records_room,
            Drain: self._drain,
        }
        self._inputs.update(dict.fromkeys(self._of_the_disk, self._disk_said))

        self._woken: dict[Hashable, Callable[[float], None]] = {
            **self.cluster.woken,
            REGISTRY: self.registry.go_on,
            AMENDING: self.clients.amending.go_on,
            DRAINING: self.subscribers.drain,
            GRACE: self._end_expired,
            TURN: lambda now: None,  # whatever is handled, a wake too, ends the turn before it
            BACKLOG: self.forwarding.go_on,
            GATHERING: self.forwarding.gathering.go_on,
            WAITERS: self._give_up_late,
            OPENINGS: self.producers.give_up_late,
            LISTINGS: self.producer_lists.give_up_late,
            RECONCILE: self.reconciler.go_on,
            REPLICATION: self.leader.ask_again,
            RETENTION: self.retention.trim,
            CHECKPOINT: self.log.checkpoint,
            AUDIT_LINES: self.audit.flush,
            AUDIT_ACKS: self.audit.ask_back,
            INQUIRIES: self.inquiries.give_up_late,
            TOKENS: self.clients.end_expired_tokens,
            PACES: self.paces.go_on,
            LEAVE: self._leave,
            **self.durables.woken,
        }

    def _connect_parts(self, now: float) -> None:
        """Which part hears what of which; the parts themselves do not know each other."""
        cluster, forwarding = self.cluster, self.forwarding
        hooks = PeerHooks(
            up=self._broker_up,
            down=self._broker_down,
            letter=cluster.letter,
            control=cluster.control,
            copy=self.follower.copy,
            forward=forwarding.forwarded_here,
            deliver=forwarding.delivered,
            gap=forwarding.gap,
            lost=forwarding.lost_with,
            returned=forwarding.returned,
            fetched=self.durables.fetched,
        )
        self.peers = cluster.peers = Peers(
            self.config, self.effects, self.subscribers, hooks, cluster.random, self.timers.below("links")
        )
        cluster.start(now)
        self.carry_on(now)

    def handle(self, happened: Input, now: float) -> list[Effect]:
        """The one mutator: what the host must do because of this input."""
        self.audit.now = now
        self.cause.happened = happened
        self.cause.number += 1
        if self._in_turn and type(happened) is not Received:
            self._end_turn()
        self._inputs[type(happened)](happened, now)
        while self.cluster.events or self.cluster.kv.effects:  # whatever is said may cut a link that takes nothing
            self._after_peers(now)
        surveys = self.surveys
        while self.durables.work or ((surveys.asked or surveys.rounds) and surveys.is_due):
            self.durables.settle(now)
            for letter in self.durables.dead_letters.take():
                self.publishers.publish_own(letter.batch, letter.subscription, now)
            if surveys.asked or surveys.rounds:
                surveys.go_on(now)
            self._after_peers(now)
        if self.durables.feeding.interest:
            self._feeds_changed()
        if self.streams.changes:
            self._settings_changed()
        effects = self.effects[:]
        self.effects.clear()
        return effects

    def next_deadline(self) -> float:
        """When to hand in a Wake; -inf means as soon as other inputs had their turn."""
        return self.timers.next

    def statistics(self, now: float) -> NodeStatistics:
        """A snapshot."""
        return statistics_of(self, now)

    def validate(self) -> None:
        """Asserts the invariants of every part, and those between parts."""
        assert not self.effects
        assert self._in_turn == (self.timers.when(TURN) == AT_ONCE)
        assert self._in_turn or not (self._unanswered or self.dissemination.gathered.count)
        self.streams.validate()
        self.subscribers.validate()
        self.clients.amending.validate()
        own = sum(session.outbox_bytes for session in self.subscribers.by_key.values())
        assert own + self.peers.outbox_bytes == self.subscribers.outbox_bytes
        self.cluster.validate()
        self.registry.validate()
        self.forwarding.validate()
        self.timers.validate()
        self.log.validate()
        self.producers.validate()
        self.leader.validate()
        self.audit.validate()
        self.inquiries.validate()
        self.paces.validate()
        self.durables.validate()

    def _governed(self, happened: Governed, now: float) -> None:
        self.streams.verify(happened.policy.conditional)
        self.clients.govern(happened.policy, now)
        for info in self.cluster.linked():
            self.cluster.tell(info, Named(happened.policy.version), now)
        self._after_peers(now)

    def _certified(self, happened: Certified, now: float) -> None:
        self.certificates = happened.ends

    def _named(self, info: PeerInfo, message: Named, now: float) -> None:
        """Another broker says by which users and roles it lets clients in: all brokers of a cluster have the same."""
        info.named = message.version
        ours = "" if self.clients.access.policy is None else self.clients.access.policy.version
        if ours != message.version:
            advice = "give all brokers the same files of users and roles"
            facts = {"broker": info.name, "ours": ours or "none", "theirs": message.version, "advice": advice}
            self.effects.append(Note("users and roles differ", facts, alarming=True))

    def _received(self, happened: Received, now: float) -> None:
        link = happened.link
        self.cause.who = session = self.subscribers.by_link.get(link)
        if session is None:
            self.cause.who = self.peers.by_link.get(link)
            if self._in_turn:
                self._end_turn()
            if self.peers.handle(happened, now):
                self._after_peers(now)
                return
        accepted = session.accepted if session is not None else 0
        for message in happened.messages:
            kind = type(message)
            if kind is not Publish:
                self.dissemination.settle()  # what was published before is delivered under the rules of before
            if session is None:
                if isinstance(message, Hello):
                    self.cause.who = session = self.clients.hello(link, happened.address, message, now)
                if session is None:
                    return
                accepted = session.accepted
                self.carry_on(now)
            elif session.link != link:
                break  # it said goodbye or broke the protocol: what came after that was not said
            else:
                try:
                    self.clients.table[kind](session, message, now)
                except ProtocolViolation as violation:
                    self.clients.violated(session, violation, now)
                if kind is not Publish:
                    self.carry_on(now)
        if session is not None and session.accepted != accepted:
            self._unanswered.setdefault(link, (session, accepted))
        if not happened.more:
            self._end_turn()
        elif not self._in_turn:
            self._in_turn = True
            self.timers.at(TURN, AT_ONCE)

    def _end_turn(self) -> None:
        """Deliver what clients published in this turn, and acknowledge it."""
        self.dissemination.settle()
        if self._in_turn:
            self._in_turn = False
            self.timers.at(TURN, NEVER)
        unanswered, self._unanswered = self._unanswered, {}
        for link, (session, accepted) in unanswered.items():
            if session.link == link and not session.closing:
                if not session.unstored:
                    self.effects.append(Send(link, Puback(session.accepted)))
                elif answered_by(session) > accepted:
                    self.effects.append(Send(link, Puback(answered_by(session))))

    def carry_on(self, now: float) -> None:
        """Take what the cluster and the registry say to the parts above them, until they say nothing more."""
        cluster = self.cluster
        while cluster.events or cluster.kv.effects:
            moved = False
            for event in cluster.take_events(now):
                if isinstance(event, Moved):
                    moved = True
                else:
                    self.registry.handle(event, now)
            for stream in self.registry.usage.settle():
                self.publishers.interest_changed(stream)
            if moved:
                self.forwarding.go_on(now)
                self.durables.moved(now)
            self._say_in_force(now)
        if self.registry.events:
            self._say_in_force(now)

    def _say_in_force(self, now: float) -> None:
        ended = self.registry.events[:]
        self.registry.events.clear()
        for event in ended:
            self.clients.placed(event.subscription, event.done, now)

    def _after_peers(self, now: float) -> None:
        self.carry_on(now)
        self._go_on_publishing(now)
        self._after_log(now)

    def _go_on_publishing(self, now: float) -> None:
        """What waited for the cluster is taken, one thing after the other: what comes of one holds for the next."""
        while self.publishers.go_on(now):
            self.carry_on(now)

    def _for_peers(self, happened: PeerUp | DialFailed, now: float) -> None:
        self.peers.handle(happened, now)
        self._after_peers(now)

    def _reachable(self, happened: Reachable, now: float) -> None:
        self.peers.handle(happened, now)
        self.cluster.begin(happened.address, happened.client_address, now)
        self._after_peers(now)

    def _feeds_changed(self) -> None:
        """Feeds are filtered on other attributes: publishers here are told to send them as columns."""
        for name, attributes in self.durables.feeding.take_interest().items():
            stream = self.streams.find(name)
            if stream is not None and stream.show_fed(attributes):
                self.publishers.interest_changed(stream)

    def _settings_changed(self) -> None:
        for stream, before, after in self.streams.take_changes():
            if after.audit and not before.audit:
                self.audit.begin(stream)
                self.durables.watch(self.audit)
                self.durables.coordinator.tell_watch(stream, "subscribe")
            elif before.audit and not after.audit:
                self.durables.coordinator.tell_watch(stream, "unsubscribe", "the stream is not audited any more")
                self.audit.end(stream)
                if self.subscribers.watch is None:
                    self.durables.watch(None)

    def _asked(self, session: ClientSession, message: Ask, now: float) -> None:
        """A client has a question."""
        try:
            self.clients.check_asking(session)
            arguments = self.clients.access.check(session, message.verb, message.arguments)
            if message.verb == "amend":
                answer: Any = self.clients.amend(session, arguments, now)
            else:
                answer = ask(self, message.verb, arguments, now)
            if message.verb == "explain":
                answer = shown(session.rights, answer, arguments)
        except Refused as refused:
            answer = refused
        self.clients.answer(session, message.request, answer)

    def _inquired(self, info: PeerInfo, inquiry: Inquire, now: float) -> None:
        """Another broker has one, for a client of its own."""
        try:
            self.inquiries.check(info, inquiry.verb)
            answer = answer_of(self, inquiry.verb, inquiry.arguments, now)
        except Refused as refused:
            answer = refused
        self.inquiries.answer(info, inquiry.number, answer, now)

    def _broker_up(self, info: PeerInfo, now: float) -> None:
        self.forwarding.losses.link_up(info, now)
        self.cluster.peer_up(info, now)
        self.follower.peer_up(info, now)
        self.leader.peer_up(info, now)
        if self.clients.access.policy is not None:
            self.cluster.tell(info, Named(self.clients.access.policy.version), now)
        self.registry.life_seen(info.identifier, info.life, now)

    def _broker_down(self, info: PeerInfo, reason: str, now: float) -> None:
        self.forwarding.losses.link_down(info, now)
        self.cluster.peer_down(info, reason, now)
        self.leader.peer_down(info, now)
        self.producers.link_down(info, now)
        self.producer_lists.link_down(info, now)
        self.durables.link_down(info, now)
        self.inquiries.link_down(info)

    def _link_down(self, happened: LinkDown, now: float) -> None:
        if self.peers.handle(happened, now):
            self._after_peers(now)
            return
        self.clients.access.gone(happened.link)
        self.paces.gone(happened.link)
        session = self.subscribers.by_link.get(happened.link)
        if session is not None:
            self.effects.append(Note("connection ended", {"client": session.name, "reason": happened.reason}, True))
            self.subscribers.detach(session, now)
            self.durables.gone(session, now)

    def _link_paused(self, happened: LinkPaused, now: float) -> None:
        if self.peers.handle(happened, now):
            return
        session = self.subscribers.by_link.get(happened.link)
        if session is not None:
            session.paused = True
            self.subscribers.stop_draining(session)

    def _link_resumed(self, happened: LinkResumed, now: float) -> None:
        if self.peers.handle(happened, now):
            self._after_peers(now)
            return
        session = self.subscribers.by_link.get(happened.link)
        if session is not None and not session.closing:
            session.paused = False
            self.publishers.tell_interest(session, list(session.untold))
            self.subscribers.pump(session)
            self.durables.may_send(session, now)

    def _wake(self, happened: Wake, now: float) -> None:
        self.cause.due = due = self.timers.due(now)
        if due:
            self.timers.hand_out(due, lambda key: self._woken[key](now), now)
            self.carry_on(now)
            self._go_on_publishing(now)
        self._after_log(now)

    def _give_up_late(self, now: float) -> None:
        self.log.give_up_late(shortage(self.cluster, self.log), now)

    def _end_expired(self, now: float) -> None:
        for session in self.subscribers.expired(now):
            self.clients.end(session, "expired", now)

    def _wall_clock(self, happened: WallClock, now: float) -> None:
        self.clock.offset = self.registry.schemas.wall_offset = happened.offset_seconds
        self.audit.begin_life()

    def _loaded(self, happened: Loaded, now: float) -> None:
        for key, value in happened.records.items():
            kind, _, name = key.partition("/")
            if kind == "schema":
                self.registry.schemas.load(name, value, now)
            elif kind == "contacts":
                self.cluster.remember(value, now)
        self.leader.begin(now)
        self.carry_on(now)

    def _records_room(self, happened: RecordsRoom, now: float) -> None:
        self.registry.schemas.obstacle = happened.obstacle

    def _opened(self, happened: Opened, now: float) -> None:
        self.log.opened(happened)
        self.producers.opened(happened)
        self.durables.opened(happened, now)
        self.retention.begin(now)

    def _disk_said(self, happened: Any, now: float) -> None:
        self._of_the_disk[type(happened)](happened, now)
        if self.log.halted:  # whatever else would be said could be wrong
            self._inputs = dict.fromkeys(self._inputs, lambda happened, now: None)
        else:
            self._after_log(now)

    def _after_log(self, now: float) -> None:
        """What waited for the disk may have gone on."""
        if self.log.landed:
            self.leader.landed(self.log.take_landed(), now)
        if self.log.committed:
            committed = self.log.take_committed()
            self.publishers.deliver(committed, now)
            if self.durables.feeding.streams:
                self.durables.committed(committed, now)
        if self.dissemination.gathered.count:
            self.dissemination.settle()
        self.publishers.settle()
        if self.follower.to_tell or self.follower.to_refuse:
            self.follower.settle(now)
        if self.durables.feeding.streams:
            self.durables.after_log(now)
        if self._leaves and self.log.idle:
            self._leave(now)

    def _drain(self, happened: Drain, now: float) -> None:
        """Clients that wait for the disk get their answers first."""
        self.clients.draining = True
        self.audit.flush(now)
        self.log.closing = True
        self._leaves = True
        self.timers.at(LEAVE, now + STORE_SECONDS_MAX / 2)  # its host waits no longer than twice that
        if self.log.idle:
            self._leave(now)

    def _leave(self, now: float) -> None:
        self._leaves = False
        self.timers.at(LEAVE, NEVER)
        self.log.checkpoint(now)
        self.registry.leave(now)
        self.carry_on(now)
        self.cluster.leave(now)
        self.peers.drain(now)
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
        self.audit.flush(now)
        self.carry_on(now)
