"""Publishers: what clients publish, how each batch is answered, and what they are told to send with it.

A session numbers its batches; PUBACK says up to where all have their answer. A batch of a stream in memory has its
answer at once. One in mode `stored` has it when enough disks have it, so it stands in `session.unstored` until then,
and PUBACK stays before it, whatever came behind. A refused batch is answered too: ERROR names it, then PUBACK passes.

A batch of a stored stream is refused before it has a place in the log, or not at all. It is delivered (`deliver`) when
as many disks have it as a batch in mode `stored` waits for, whatever its mode.

A broker that was told of a cluster and has no place in it yet does not know its streams: it may have lost its disk, and
one of them be a stored one. Until it knows (`knows_streams`), batches of streams without a schema wait in `_early`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace

from headgate.matching import TopicError, check_topic
from headgate.protocol.data import FILTER_COLUMNS, STRUCTURE_COLUMNS, Batch, LogKind, Row
from headgate.protocol.errors import ErrorCode, ProtocolViolation, Refused
from headgate.protocol.limits import PUBLISH_WINDOW_DEFAULT
from headgate.protocol.messages import Error, Interest, Message, Mode, Puback, Publish, Rejected, Scope, Stamp

from ..clock import Clock
from ..cluster import Cluster
from ..delivery import ClientSession, Dissemination, Stream, Streams
from ..effects import Effect, Note, Send
from ..forwarding import Forwarding
from ..limits import ERROR_TEXT_LENGTH_MAX, PLAIN_COLUMNS_MAX, PUBLISHED_STREAMS_MAX, REMEMBERED_TEXT_LENGTH_MAX, Limits
from ..log import Committed, HeldLog, Log, Producers
from ..log_state import ProducerState
from ..rights import Rights
from ..safeguards import Safeguard
from .filters import saturated
from .paces import Paces

__all__ = ["Publishers", "answered_by"]

_IDS = "ids"


class _Partly(Refused):
    """A batch of a producer has events that its client may not publish, and so none of it is taken."""

    def __init__(self, rejected: Rejected) -> None:
        super().__init__(rejected.code, rejected.text)
        self.rejected = rejected


class Publishers:
    """Takes the batches of this broker's clients, and answers each."""

    def __init__(
        self,
        origin: str,
        effects: list[Effect],
        streams: Streams,
        dissemination: Dissemination,
        forwarding: Forwarding,
        log: Log,
        producers: Producers,
        cluster: Cluster,
        clock: Clock,
        limits: Limits,
        paces: Paces,
    ) -> None:
        self._paces = paces
        self._limits = limits
        self._safeguards = cluster.safeguards
        self._derives = Safeguard.DERIVE in cluster.safeguards
        self._origin = origin
        self._effects = effects
        self._streams = streams
        self._dissemination = dissemination
        self._forwarding = forwarding
        self._log = log
        self._producers = producers
        self._answered: dict[bytes, ClientSession] = {}
        self._cluster = cluster
        self._clock = clock
        self._early: deque[tuple[ClientSession, Publish, Stream]] = deque()
        self._waiting: list[Callable[[str, float], None]] = []
        self._early_bytes = 0
        self._knows = False
        self._plain_columns: set[str] = set()  # names of match columns that hold no filters
        self.batches = self.events = self.duplicates = self.refused = 0

    # --- batches -----------------------------------------------------------------------------------------------------

    def publish(self, session: ClientSession, message: Publish, now: float) -> None:
        """A client says PUBLISH. Raises ProtocolViolation when its numbers have a hole."""
        batch, sequence = message.batch, message.sequence
        if session.rights is not None and session.rights.is_paced:
            self._paces.published(session, batch.count, len(batch.records), now)
        if not self._derives:
            batch.complete = True
        if message.mode != Mode.FIRE:
            if sequence <= session.accepted and Safeguard.DEDUPE in self._safeguards:
                self._again(session, message)
                return
            if sequence > session.accepted + 1:
                text = f"PUBLISH {sequence} came after {session.accepted}: sequences have no holes"
                raise ProtocolViolation(text, ErrorCode.SEQUENCE_GAP)
            session.accepted = sequence
            if session.unheard:
                session.unheard.clear()
        self.batches += 1
        try:
            looks = session.rights is not None or not self._plain_columns.issuperset(batch.columns)
            if looks and (unfit := self._unfit(session.rights, batch)):
                message = self._without(session, message, *unfit)
                batch = message.batch
            topics = batch.topic_list()
            stream = self._publishing(session, topics[0].partition("/")[0])
            if stream.plain:
                if self._early or not (self._knows or self.knows(now)):
                    self._wait_for_cluster(session, message, stream, now)
                    return
                if message.mode == Mode.STORED:
                    raise _not_stored_here(stream.name)
                self._forwarding.publish(stream, batch, int((now + self._clock.offset) * 1e6), now)
            else:
                self._publish_with_settings(session, message, stream, now)
            self.events += batch.count
        except (TopicError, ProtocolViolation, Refused) as error:
            self._refuse(session, sequence, batch.count, error)

    def _unfit(self, rights: Rights | None, batch: Batch) -> tuple[list[int], Refused] | None:
        """The events of a batch that its client may not publish, and why the first of them; None when all are fit."""
        shut = rights.unpublishable(batch) if rights is not None else []
        full: dict[int, str] = {}
        for name in batch.columns:
            if name.startswith(STRUCTURE_COLUMNS):
                full.update(saturated(batch, name))
            elif name not in self._plain_columns:
                if len(self._plain_columns) >= PLAIN_COLUMNS_MAX:
                    self._plain_columns.clear()
                self._plain_columns.add(name)
        if not shut and not full:
            return None
        refused = sorted(dict.fromkeys((*shut, *full)))
        first = refused[0]
        if first not in shut[:1]:
            return refused, Refused(ErrorCode.LIMIT, full[first])
        topics = batch.topic_list()
        topic = topics[0] if len(topics) == 1 else topics[first]
        return refused, Refused(ErrorCode.FORBIDDEN, f"your rights do not let you publish this to {topic!r}")

    def _without(self, session: ClientSession, message: Publish, refused: list[int], why: Refused) -> Publish:
        """A batch without some of its events, of which its client is told. Raises Refused when nothing is left."""
        batch = message.batch
        if len(refused) == batch.count:
            raise why
        spans = [place for start, stop in _spans(refused) for place in (start, stop - 1)]
        told = f"{len(refused)} of {batch.count} events, the first is number {refused[0]} (from 0): {why.text}"
        kept = message.stamp is None
        rejected = Rejected(message.sequence, why.code, spans, kept, told[:ERROR_TEXT_LENGTH_MAX])
        if not kept:
            raise _Partly(rejected)
        self.refused += len(refused)
        self._refuse_batch(session, message.sequence, rejected)
        outside = dict.fromkeys(refused)
        rows = [row for row in range(batch.count) if row not in outside]
        return replace(message, batch=batch.select(rows, batch.columns))

    def knows(self, now: float) -> bool:
        """Whether this broker knows which streams are stored; once it does, it hears of every change."""
        self._knows = self._knows or self._cluster.knows_streams(now)
        return self._knows

    def _wait_for_cluster(self, session: ClientSession, message: Publish, stream: Stream, now: float) -> None:
        """Keep it until this broker knows its streams. Raises Refused when that is too much, or never to be."""
        size = len(message.batch.records)
        shut_out = self._cluster.shut_out(now)
        if shut_out or self._early_bytes + size > self._limits.early_bytes:
            raise _has_no_place(message, shut_out)
        self._early.append((session, message, stream))
        self._early_bytes += size
        if message.sequence:
            session.unstored[message.sequence] = None

    def when_known(self, act: Callable[[str, float], None]) -> None:
        """Call `act` as soon as this broker knows its streams, or with the reason why it never will."""
        self._waiting.append(act)

    def go_on(self, now: float) -> bool:
        """Something may have changed in the cluster: what came too early is taken as soon as its stream is known.

        True when one thing was done of which something may have come: pass that on, and call again.
        """
        known = self.knows(now)
        if not self._early and not self._waiting:
            return False
        shut_out = "" if known else self._cluster.shut_out(now)
        if not (known or shut_out):
            return False
        if self._waiting:
            self._waiting.pop(0)(shut_out, now)
            return True
        early, self._early = self._early, deque()
        self._early_bytes = 0
        for session, message, stream in early:
            try:
                if shut_out:
                    raise _has_no_place(message, shut_out)
                if stream.plain:
                    if message.mode == Mode.STORED:
                        raise _not_stored_here(stream.name)
                    self._forwarding.publish(stream, message.batch, self._clock.us(now), now)
                else:
                    self._publish_with_settings(session, message, stream, now)
            except (TopicError, ProtocolViolation, Refused) as error:
                self._refuse(session, message.sequence, message.batch.count, error)
            else:
                if message.mode == Mode.STORED:
                    continue
            self._answer(session, message.sequence, None)
        return False

    def _again(self, session: ClientSession, message: Publish) -> None:
        """This sequence was taken before: the client that sends it again waits for its answer."""
        sequence = message.sequence
        self.duplicates += message.batch.count
        if Safeguard.SECOND_ANSWER not in self._safeguards:
            return
        for one in [one for one in session.unheard if one <= sequence]:  # it sends what has no answer, in order
            del session.unheard[one]
        if sequence in session.unstored:
            return
        if sequence in session.refusals:
            self._say(session, session.refusals[sequence])
        self._say(session, Puback(answered_by(session)))

    def _publish_with_settings(self, session: ClientSession, message: Publish, stream: Stream, now: float) -> None:
        if stream.verifies:
            batch = message.batch
            # Rights do not depend on filters of documents: those are believed unless the stream's settings say no.
            filters = {} if stream.settings.verify else batch.columns
            columns = {name: column for name, column in filters.items() if name.startswith(FILTER_COLUMNS)}
            message = replace(message, batch=batch.with_columns(columns))
        if not stream.settings.stored:
            if message.mode == Mode.STORED:
                raise _not_stored_here(stream.name)
            self._forwarding.publish(stream, message.batch, self._clock.us(now), now)
        elif self._log.recovered:
            self._store(session, message, stream, now)
        else:
            self._log.check_room(len(message.batch.records))
            self._forwarding.check(stream, message.batch)
            if message.sequence:
                session.unstored[message.sequence] = None
            self._log.hold_back(len(message.batch.records), lambda now: self._store_late(session, message, stream, now))

    def _store_late(self, session: ClientSession, message: Publish, stream: Stream, now: float) -> None:
        """It had to wait until this broker knew that its log is whole."""
        try:
            self._store(session, message, stream, now)
        except (TopicError, ProtocolViolation, Refused) as error:
            self._refuse(session, message.sequence, message.batch.count, error)
        else:
            if message.mode == Mode.STORED:
                return
        self._answer(session, message.sequence, None)

    def _store(self, session: ClientSession, message: Publish, stream: Stream, now: float) -> None:
        """Put it into the log: what follows happens when it is there. Raises, having done nothing."""
        batch, stamp, log = message.batch, message.stamp, self._log
        needs = None if stamp is None else self._producers.judge(stamp, batch.count)
        if needs is None:
            log.check_room(len(batch.records))
            self._forwarding.check(stream, batch)
            if stamp is not None:
                _check_ids(stamp, batch.count)
            needs = [self._append(batch, stamp, stream, now)]
        if message.mode == Mode.STORED:
            sequence = message.sequence
            session.unstored[sequence] = None
            log.wait(needs, lambda refused, now: self._answer(session, sequence, refused), now, batch=True)

    def _append(self, batch: Batch, stamp: Stamp | None, stream: Stream, now: float) -> tuple[HeldLog, int]:
        held, time_us = self._log.own(LogKind.EVENTS, stream.name), self._clock.us(now)
        base = self._dissemination.take_sequence(batch.count)
        row = Row(
            held.assigned,
            batch.count,
            time_us,
            self._origin,
            base,
            b"",
            batch.topics,
            batch.lengths,
            batch.columns,
            batch.complete,
            batch.records,
        )
        producer: ProducerState | None = None
        if stamp is not None:
            producer = self._producers.taken(stamp, batch.count, now)
            row.producer, row.epoch, row.number = stamp.producer, stamp.epoch, stamp.number
            row.digest, row.ids = stamp.digest, stamp.ids

        def on_disk(reason: str, now: float) -> None:
            if producer is not None:
                self._producers.stored(producer, reason)

        end = self._log.append(held, row, producer, on_disk, Committed(stream, batch, base, time_us))
        if stamp is not None:
            self._producers.ends_at(stamp, held, end)
        return held, end

    def publish_own(self, batch: Batch, subscription: str, now: float) -> None:
        """A dead letter of a durable subscription: into the log where its stream is stored."""
        topic = batch.topic_list()[0]
        stream = self._streams.find(topic.partition("/")[0])
        try:
            if stream is None:
                raise Refused(ErrorCode.LIMIT, "this broker has as many streams as it can hold")
            if not stream.settings.stored:
                self._forwarding.publish(stream, batch, self._clock.us(now), now)
                return
            self._log.check_room(len(batch.records))
            self._forwarding.check(stream, batch)
            self._log.when_vouched(len(batch.records), lambda now: self._append_own(batch, stream, now), now)
        except (TopicError, ProtocolViolation, Refused) as error:
            facts = {"name": subscription, "topic": topic, "reason": str(error)}
            self._effects.append(Note("dead letter not published", facts, alarming=True))

    def _append_own(self, batch: Batch, stream: Stream, now: float) -> None:
        self._append(batch, None, stream, now)

    def deliver(self, committed: Iterable[Committed], now: float) -> None:
        """Match and forward what is before the high watermark."""
        for one in committed:  # a stream that is gone from the table has no subscriptions here
            stream = self._streams.by_name.get(one.stream.name, one.stream)
            self._forwarding.carry(stream, one.batch, one.base, one.time, now, one.shift)

    # --- answers -----------------------------------------------------------------------------------------------------

    def _refuse(self, session: ClientSession, sequence: int, count: int, error: Exception) -> None:
        self.refused += count
        if isinstance(error, _Partly):
            self._refuse_batch(session, sequence, error.rejected)
            return
        code = getattr(error, "code", ErrorCode.BAD_TOPIC)
        code = ErrorCode.BAD_BATCH if code == ErrorCode.PROTOCOL else code
        self._refuse_batch(session, sequence, Error(code, Scope.PUBLISH, sequence, str(error)[:ERROR_TEXT_LENGTH_MAX]))

    def _refuse_batch(self, session: ClientSession, sequence: int, error: Error | Rejected) -> None:
        """Say so, and remember it: if this connection breaks now, the client must not take PUBACK for a yes."""
        if sequence:
            session.refusals[sequence] = replace(error, text=error.text[:REMEMBERED_TEXT_LENGTH_MAX])
            if len(session.refusals) > PUBLISH_WINDOW_DEFAULT:
                del session.refusals[next(iter(session.refusals))]
        self._say(session, error)

    def _answer(self, session: ClientSession, sequence: int, refused: Refused | None) -> None:
        """A batch that waited has its answer; PUBACK follows when all of the moment have theirs."""
        if sequence not in session.unstored:
            return
        if next(iter(session.unstored)) == sequence:
            self._answered[session.key] = session
        del session.unstored[sequence]
        if refused is not None:
            self._refuse_batch(session, sequence, Error(refused.code, Scope.PUBLISH, sequence, refused.text))

    def resumed(self, session: ClientSession) -> int:
        """It goes on over another connection: up to where it need not send anything again.

        It is unknown whether what was refused was heard on the former one: it is asked to be sent again, and refused
        again, and no PUBACK passes it before that.
        """
        session.unheard = dict.fromkeys(sorted(session.refusals))
        return answered_by(session)

    def settle(self) -> None:
        """PUBACK to every session that has answers."""
        if self._answered:
            answered, self._answered = self._answered, {}
            for session in answered.values():
                self._say(session, Puback(answered_by(session)))

    # --- what publishers are told ------------------------------------------------------------------------------------

    def _publishing(self, session: ClientSession, name: str) -> Stream:
        """The stream that a session publishes to; the first time it hears what the stream is filtered on."""
        stream = self._streams.by_name.get(name)
        if stream is None or session.key not in stream.publishers:
            check_topic(name)  # before a stream comes into being that no client could ever subscribe to
            stream = self._streams.find(name)
            if stream is None:
                raise Refused(ErrorCode.LIMIT, "this broker has as many streams as it can hold")
            stream.publishers[session.key] = session
            session.publishes[name] = None
            if len(session.publishes) > PUBLISHED_STREAMS_MAX:
                oldest = next(iter(session.publishes))
                del session.publishes[oldest]
                del self._streams.by_name[oldest].publishers[session.key]
            self._say(session, _interest(stream))
        return stream

    def interest_changed(self, stream: Stream) -> None:
        """Tell the sessions that publish to it."""
        for publisher in stream.publishers.values():
            if publisher.paused:
                # A publisher that does not read must not have others' subscriptions pile up before it: once, when it
                # does.
                publisher.untold[stream.name] = None
            else:
                self._say(publisher, _interest(stream))

    def tell_interest(self, session: ClientSession, names: Iterable[str]) -> None:
        """Say what these streams are filtered on now, the last word of all that was not said before."""
        for name in names:
            self._say(session, _interest(self._streams.by_name[name]))
        session.untold.clear()

    def end(self, session: ClientSession) -> None:
        """It publishes nothing any more. What waits for the disk is stored all the same."""
        for name in session.publishes:
            self._streams.by_name[name].publishers.pop(session.key, None)

    def _say(self, session: ClientSession, message: Message) -> None:
        if session.link is not None and not session.closing:
            self._effects.append(Send(session.link, message))


def answered_by(session: ClientSession) -> int:
    """Every batch up to this one has its answer, and PUBACK may say so."""
    last = session.accepted
    for open_ones in (session.unstored, session.unheard):
        if open_ones:
            last = min(last, next(iter(open_ones)) - 1)
    return last


def _spans(rows: Iterable[int]) -> list[tuple[int, int]]:
    """Rows in ascending order as spans, each up to but without its second."""
    spans: list[tuple[int, int]] = []
    for row in rows:
        if spans and spans[-1][1] == row:
            spans[-1] = spans[-1][0], row + 1
        else:
            spans.append((row, row + 1))
    return spans


def _interest(stream: Stream) -> Interest:
    return Interest(stream.name, None if stream.interest is None else list(stream.interest))


def _has_no_place(message: Publish, shut_out: str) -> Refused:
    code = ErrorCode.NOT_STORED if message.mode == Mode.STORED else ErrorCode.UNAVAILABLE
    if shut_out:
        return Refused(code, f"this broker is not let into its cluster, so use another one: {shut_out}")
    text = "this broker has not found its place in the cluster yet: try again in a moment, or another broker"
    return Refused(code, text)


def _not_stored_here(stream: str) -> Refused:
    text = f"stream {stream!r} is kept in memory: publish in mode accepted or fire, or make it a stored one with "
    text += f"""`headgate schema put {stream} '{{"durability": "stored"}}'`"""
    return Refused(ErrorCode.UNSUPPORTED, text)


def _check_ids(stamp: Stamp, count: int) -> None:
    """Raises ProtocolViolation unless there is one string an event, or none at all."""
    if stamp.ids:
        ids = Batch("", count, b"", b"", {_IDS: stamp.ids}).column(_IDS)
        if ids is None or not all(type(one) is str for one in ids):
            raise ProtocolViolation("the ids of a batch are strings, one an event")
