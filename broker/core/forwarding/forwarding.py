"""Forwarding: each row of a batch to the brokers that answer for its keys, each key of it exactly once.

A row has one key for each dimension in use of its stream. Who answers for a key is a *place*: HERE, another broker, or
WAIT when that is unknown at this moment. So a batch falls into

    what is matched here     all of it, or some dimensions of some rows; `Allowed` keeps the others' out
    FORWARDs                 to each other broker the rows that have keys there, with the dimensions asked for
    what waits               while no broker answers for one of its keys; what came later waits behind it, in order

A broker that gets a FORWARD does the same with the dimensions that it names. Each row and key of a split goes to
exactly one broker. So nothing is matched twice, even while two brokers disagree about who owns a key; and nothing is
matched where the answer may be out of date, because a place is HERE only while our copy is known to be current
(`kv/store.py`).

In a cluster where each broker holds everything (three brokers, two replicas) every place is HERE, and none of this
runs.

Of a stream with counted subscriptions each batch is also gathered for (`counted.py`): that sends no FORWARDs.

A match of a subscription whose home is another broker goes there as a DELIVER, with the home's numbers. What the home
gets is sorted by its own clients' sessions. What is lost with a link or a broker on the way is counted by who sent it,
and every home tells the subscribers of that stream: GAP, of the session as a whole, no fewer than were lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from headgate.matching import TopicError
from headgate.protocol.data import Batch, Columns, LogShift
from headgate.protocol.errors import ErrorCode, ProtocolViolation, Refused
from headgate.protocol.limits import CONTROL_LENGTH_MAX, DIMENSIONS_MAX
from headgate.protocol.messages import Deliver, Forward, Gap

from ..cause import Cause
from ..cluster import HERE, WAIT, Cluster
from ..delivery import Carrier, Dissemination, Stream, Streams, Subscribers, stream_of
from ..effects import Effect, Note
from ..keyspace import FLOOD, KBSP, AtVertex, Dimension, Step, Vertices, parse_step
from ..limits import FORWARD_HOPS_MAX, WAITING_RETRY_SECONDS, WAITING_SECONDS_MAX
from ..links import PeerInfo
from ..placement import Registry
from ..safeguards import Safeguard
from ..timers import NEVER, Timers
from .backlog import Task, Waiting
from .counted import Gathering
from .cube import Walk, beginnings, everywhere, walk
from .losses import Losses

__all__ = [
    "Allowed",
    "BACKLOG",
    "Forwarding",
]

Part: TypeAlias = tuple[Dimension | Step, Sequence[int]]
"""Rows that another broker is asked to answer for, and by which of their keys."""

BACKLOG = "backlog"
"""Key of the timer: what waits is looked at again."""

# Allowed: which dimensions may be matched for which rows of a batch; the rest is answered for elsewhere.


class Allowed:
    """Which dimensions may be matched for which rows; a filter over what the index answers."""

    def __init__(
        self,
        dimension_of: Mapping[int, Dimension | AtVertex],
        memory: dict[tuple[int, ...], tuple[Dimension | AtVertex, ...]],
        memory_max: int,
    ) -> None:
        self._memory_max = memory_max
        self._dimension_of = dimension_of
        self._memory = memory
        self.whole: set[Dimension | AtVertex] = set()  # every row
        self.rows: dict[Dimension | AtVertex, set[int]] = {}  # these rows

    @property
    def nothing(self) -> bool:
        """No row is for this broker."""
        return not self.whole and not self.rows

    def __call__(
        self, groups: Iterable[tuple[tuple[int, ...], Sequence[int]]]
    ) -> Iterator[tuple[tuple[int, ...], Sequence[int]]]:
        """The groups without what is answered for elsewhere; a row is in one group, as before."""
        for subscriptions, rows in groups:
            dimensions = self._memory.get(subscriptions)
            if dimensions is None:
                if len(self._memory) >= self._memory_max:
                    self._memory.clear()
                dimensions = tuple(dict.fromkeys(self._dimension_of[one] for one in subscriptions))
                self._memory[subscriptions] = dimensions
            if self.whole.issuperset(dimensions):
                yield subscriptions, rows
            elif len(dimensions) == 1:
                allowed = self.rows.get(dimensions[0])
                left = [row for row in rows if row in allowed] if allowed else []
                if left:
                    yield subscriptions, left
            else:
                yield from self._by_row(subscriptions, dimensions, rows)

    def _by_row(
        self, subscriptions: tuple[int, ...], dimensions: tuple[Dimension | AtVertex, ...], rows: Sequence[int]
    ) -> Iterator[tuple[tuple[int, ...], Sequence[int]]]:
        by_dimensions: dict[tuple[Dimension | AtVertex, ...], list[int]] = {}
        for row in rows:
            here = tuple(one for one in dimensions if one in self.whole or row in self.rows.get(one, ()))
            if here:
                by_dimensions.setdefault(here, []).append(row)
        for here, some in by_dimensions.items():
            yield tuple(one for one in subscriptions if self._dimension_of[one] in here), some


class Forwarding:
    """Splits each batch by who answers for its keys: matches here, hands on, or keeps it waiting."""

    def __init__(
        self,
        origin: str,
        effects: list[Effect],
        streams: Streams,
        subscribers: Subscribers,
        cluster: Cluster,
        registry: Registry,
        dissemination: Dissemination,
        timers: Timers,
        cause: Cause,
    ) -> None:
        self._origin = origin
        self._effects = effects
        self._streams = streams
        self._subscribers = subscribers
        self._cluster = cluster
        self._registry = registry
        self._dissemination = dissemination
        self._memory: dict[tuple[int, ...], tuple[Dimension | AtVertex, ...]] = {}
        self._filters = Safeguard.LOCAL_FILTER in cluster.safeguards
        self._waiting = Waiting(cluster.config.limits)
        self._going = False
        self._sent_under: dict[str, int] = {}  # stream -> epoch in which its last events went to other brokers
        self._timers = timers
        self._cause = cause
        self._epoch = -1
        self.forwarded = self.relayed = 0
        self.edges_local = self.edges_remote = self.edges_pruned = 0
        """Of the walks on cubes that came by here; one event over one edge counts one."""
        self.losses = Losses(cluster, effects, subscribers)
        self.gathering = Gathering(effects, cluster, registry, dissemination, self.losses, timers)

    @property
    def waiting_events(self) -> int:
        """Events that wait here until a broker answers for their keys."""
        return self._waiting.events + self.gathering.events

    # --- from our own publishers ---------------------------------------------------------------------------------

    def publish(self, stream: Stream, batch: Batch, time_us: int, now: float) -> None:
        """A batch that this broker accepted. Raises TopicError, ProtocolViolation or Refused, having done nothing."""
        beside = self._registry.usage.beside_index
        if not self._waiting.events and not self._sent_under and stream.name not in beside and self._everything(now):
            self._dissemination.carry(stream, batch, time_us)
            return
        self.check(stream, batch)
        self.carry(stream, batch, self._dissemination.take_sequence(batch.count), time_us, now)

    def check(self, stream: Stream, batch: Batch) -> None:
        """Whether `carry` can take it, now or later. Raises TopicError, ProtocolViolation or Refused."""
        self._check_room(batch)
        stream.check_topics(batch.topic_list())
        for name in (*batch.columns, *self._summary_attributes(stream)):
            batch.column(name)  # a column that cannot be read is refused now, not when its turn comes

    def carry(
        self, stream: Stream, batch: Batch, base: int, time_us: int, now: float, log: LogShift | None = None
    ) -> None:
        """A batch that was checked, and whose events have their numbers, from `base` on; `log`: where they stand."""
        stream.events += batch.count
        task = Task(stream, batch, self._origin, base, range(batch.count), time_us, None, 0, now, log=log)
        self._offer(task, now)
        self.gathering.begin(task, now)

    def _summary_attributes(self, stream: Stream) -> Sequence[str]:
        summary = self._registry.usage.summaries.get(stream.name)
        return () if summary is None else summary.attributes

    def _check_room(self, batch: Batch) -> None:
        if (self._waiting and self._waiting.over(batch)) or self.gathering.over(batch):
            text = "the cluster is being repaired, and this broker keeps no more until then: try again in a moment"
            raise Refused(ErrorCode.UNAVAILABLE, text)

    def _everything(self, now: float) -> bool:
        """Whether every key is answered for here; what was remembered under other circumstances is forgotten."""
        scope = self._cluster.scope(now)
        if self._cluster.epoch != self._epoch:
            self._epoch = self._cluster.epoch
            self._streams.forget_lanes()
        return scope.everything

    # --- from and to other brokers -------------------------------------------------------------------------------

    def forwarded_here(self, info: PeerInfo, message: Forward, now: float) -> None:
        """Another broker asks us to answer for some keys. Raises ProtocolViolation."""
        task = self._task(message, now)
        if task is None:
            self._cluster.peers.acknowledge(info, message.batch.count, now)
        else:
            task.source = info
            self._offer(task, now)

    def _task(self, message: Forward, now: float) -> Task | None:
        """What a FORWARD asks for; None when this broker cannot take it, and it is lost. Raises ProtocolViolation."""
        batch = message.batch
        wanted: dict[Dimension | Step, Sequence[int]] = {}
        for wire, rows in message.dimensions:
            if any(row >= batch.count for row in rows):
                raise ProtocolViolation("FORWARD: a row that is not in its batch")
            wanted[parse_step(wire)] = rows
        topics = batch.topic_list()
        stream = self._streams.find(topics[0].partition("/")[0])
        if stream is None:
            self.losses.lose(topics[0].partition("/")[0], batch.count, now)
            return None
        try:
            stream.check_topics(topics)
        except TopicError as error:
            raise ProtocolViolation(f"FORWARD: {error}") from error
        places, hops = message.places(), message.hops
        parts = (stream, batch, message.origin, message.base, places, message.time, wanted, hops, now)
        return Task(*parts, log=message.log)

    def returned(self, info: PeerInfo, messages: Iterable[Forward], now: float) -> None:
        """What could not be handed over any more is looked at again, before what came later."""
        tasks = [task for task in (self._task(message, now) for message in messages) if task is not None]
        self._waiting.put_first(tasks)
        self.go_on(now)

    def delivered(self, info: PeerInfo, message: Deliver, now: float) -> None:
        """Matches of our own clients' subscriptions that rest elsewhere."""
        portion = message.portion
        batch = Batch(portion.topics, portion.count, portion.lengths, portion.records, complete=False)
        stream = self._streams.find(stream_of(portion.topics))
        plans = self._plans_at_home(message, batch) if stream is not None else None
        if stream is not None and plans is not None:
            self.relayed += portion.count
            rows = portion.rows()
            serving = (portion.origin, portion.base, rows, portion.time)
            self._dissemination.relay(stream, batch, plans, serving, portion.log)
        self._cluster.peers.acknowledge(info, portion.count, now)

    def _plans_at_home(self, message: Deliver, batch: Batch) -> list[Any] | None:
        """Who gets each event; None when the batch cannot be read."""
        plan_of = self._dissemination.plan_of_clients
        plans: list[Any] = []
        try:
            for numbers, count in self._registry.confirmed(batch, message.runs()):
                plans += [plan_of(tuple(numbers))] * count
        except ProtocolViolation as error:
            self._effects.append(Note("counted batch not understood", {"reason": str(error)}))
            return None
        return plans

    def gap(self, info: PeerInfo, message: Gap, now: float) -> None:
        """Matches of our clients' subscriptions were dropped on their way to us."""
        if message.subscription == 0:
            self._subscribers.lost_on_the_way(None, message.count)
            return
        subscription = self._subscribers.by_identity.get(message.subscription)
        if isinstance(subscription, Carrier):
            for member in subscription.members.values():
                self._subscribers.lost_on_the_way(member, message.count)
        elif subscription is not None and subscription.session.key in self._subscribers.by_key:
            self._subscribers.lost_on_the_way(subscription, message.count)

    def lost_with(self, info: PeerInfo, stream: str, count: int, now: float) -> None:
        """Events that were handed over to a broker; it is unknown what became of them."""
        self.losses.lose(stream, count, now)

    # --- the split -----------------------------------------------------------------------------------------------

    def go_on(self, now: float) -> None:
        """Something may have changed: what waits goes on in order, as far as it can."""
        if self._going:
            return  # a link broke while something was handed on; the outer call goes on
        self._going = True
        try:
            for line in self._waiting.lines:
                self._carry_waiting(line, now)
        finally:
            self._going = False
        self._timers.at(BACKLOG, now + WAITING_RETRY_SECONDS if self._waiting else NEVER)
        self.gathering.go_on(now)

    def _carry_waiting(self, line: deque[Task], now: float) -> None:
        while line:
            task = self._waiting.take(line)
            if not self._carry(task, now, now >= task.since + WAITING_SECONDS_MAX):
                self._waiting.untake(line, task)
                return
            self._cause.also(task.cause)

    def _offer(self, task: Task, now: float) -> None:
        """Carry it now, or after what waits already."""
        if self._waiting.line_of(task) or not self._carry(task, now, False):
            task.cause = self._cause.text
            self._waiting.add(task)
            self._timers.by(BACKLOG, now + WAITING_RETRY_SECONDS)
            if task.source is not None and self._waiting.over():  # no publisher can be refused: it is lost, and counted
                self._waiting.drop_last(task)
                self.losses.lose(task.stream.name, task.batch.count, now)
                self._done(task, now)

    def _carry(self, task: Task, now: float, late: bool) -> bool:
        """Match here what is ours, hand on the rest; False when it has to wait, and nothing was done."""
        everything = self._everything(now)
        if not self._cluster.scope(now).stretches:
            # A broker that answers for no key may not know what is in use of the stream, and so where to hand it to.
            guarded = Safeguard.WAIT_WITHOUT_KEYS in self._cluster.safeguards
            if not guarded and task.stream.name not in self._registry.usage.summaries:
                return True
            if late:
                self.losses.lose(task.stream.name, task.batch.count, now)
                self._done(task, now)
            return late
        if not late and task.wanted is None and self._overtakes(task.stream.name):
            return False
        summary = self._registry.usage.summaries.get(task.stream.name)
        allowed = Allowed(self._registry.anchored.dimension_of, self._memory, self._cluster.config.limits.allowed)
        elsewhere: dict[int, list[Part]] = {}
        lost: set[int] = set()
        if everything and task.wanted is None:
            self._match(task, None)
            self._done(task, now)
            return True
        dimensions = {} if summary is None else summary.dimensions
        wanted = dict.fromkeys(dimensions) if task.wanted is None else task.wanted
        for dimension, rows in wanted.items():
            if isinstance(dimension, Dimension) and dimension in dimensions:
                waits = self._sort(task, dimension, rows, allowed, elsewhere)
                if waits and not late:
                    return False
                lost.update(waits)
        walked: list[Walk] = []
        for cube, vertices in {} if summary is None else summary.cubes.items():
            one = self._walk(task, cube, vertices)
            if one.waits and not late:
                return False
            lost.update(one.waits)
            walked.append(one)
        for one in walked:
            self._walked(one, allowed, elsewhere)
        if lost:
            self.losses.lose(task.stream.name, len(lost), now)
        if not allowed.nothing:
            self._match(task, allowed)
        room = max(1, min(DIMENSIONS_MAX, CONTROL_LENGTH_MAX // 2 // (4 * task.batch.count)))  # that it fits a frame
        for broker, parts in elsewhere.items():
            for at in range(0, len(parts), room):
                self._hand_on(task, broker, parts[at : at + room], now)
        self._done(task, now)
        return True

    def _sort(
        self,
        task: Task,
        dimension: Dimension,
        rows: Sequence[int] | None,
        allowed: Allowed,
        elsewhere: dict[int, list[Part]],
    ) -> Sequence[int]:
        """Where the rows have their keys of this dimension; returns the rows whose keys no broker answers for now."""
        batch, cluster = task.batch, self._cluster
        summary = self._registry.usage.summaries[task.stream.name]
        columns = Columns(batch)
        try:
            places = summary.dimensions[dimension].of(
                batch.topic_list(), batch.count, columns, cluster.epoch, cluster.place_of
            )
        except ProtocolViolation as error:
            self._effects.append(Note("forwarded batch not understood", {"reason": str(error)}))
            return ()
        if rows is None or len(rows) == batch.count:
            if {HERE, None}.issuperset(places):
                allowed.whole.add(dimension)
                return ()
            rows = range(batch.count)
        by_place: dict[int | None, list[int]] = {}
        for row in rows:
            by_place.setdefault(places[row], []).append(row)
        by_place.pop(None, None)
        waits = by_place.pop(WAIT, [])
        here = by_place.pop(HERE, None)
        if here:
            allowed.rows[dimension] = set(here)
        for broker, some in by_place.items():
            assert broker is not None
            elsewhere.setdefault(broker, []).append((dimension, some))
        return waits

    def _walk(self, task: Task, cube: Dimension, vertices: Vertices) -> Walk:
        """Where the rows come to on a cube: from their own vertices on, or from where another broker handed them on."""
        try:
            filters = vertices.filters(Columns(task.batch), task.batch.count)
        except ProtocolViolation as error:
            self._effects.append(Note("forwarded batch not understood", {"reason": str(error)}))
            return Walk()
        steps: Mapping[tuple[int, int], Iterable[int]]
        if task.wanted is None:
            steps = beginnings(filters, vertices, cube.routing == FLOOD)
        else:
            asked = ((one, rows) for one, rows in task.wanted.items() if isinstance(one, Step))
            steps = {(one.vertex, one.cleared): rows for one, rows in asked if one.dimension == cube}
        stream, edges = task.stream.name, self._registry.edges
        at = partial(edges.at, stream, cube) if cube.routing == KBSP else everywhere
        return walk(cube, vertices, filters, steps, at, self._cluster.place_of)

    def _walked(self, done: Walk, allowed: Allowed, elsewhere: dict[int, list[Part]]) -> None:
        at = self._registry.anchored.at
        for place, rows in done.here.items():
            if place in at:
                allowed.rows[place] = set(rows)
        for broker, steps in done.elsewhere.items():
            elsewhere.setdefault(broker, []).extend(steps)
        self.edges_local += done.local
        self.edges_remote += done.remote
        self.edges_pruned += done.pruned

    def _overtakes(self, stream: str) -> bool:
        """Whether events of this stream went another way, when keys were others', and may still be on it.

        What comes later waits for their acknowledgement: so order is kept while keys change hands.
        """
        if self._sent_under.get(stream, self._epoch) == self._epoch:
            return False
        if self._waiting.came_back(stream):
            return True
        for info in self._cluster.linked():
            if any(entry.stream == stream for entry in info.ledger) or info.forwards:
                return True
        del self._sent_under[stream]
        return False

    def _match(self, task: Task, allowed: Allowed | None) -> None:
        """Raises nothing: topics and columns were checked when the batch came in, or it is another broker's."""
        stream, batch = task.stream, task.batch
        try:
            plans = self._dissemination.plans_of(stream, batch, allowed if self._filters else None)
        except ProtocolViolation as error:
            self._effects.append(Note("forwarded batch not understood", {"reason": str(error)}))
            return
        self._dissemination.relay(stream, batch, plans, (task.origin, task.base, task.places, task.time), task.log)

    def _hand_on(self, task: Task, broker: int, parts: Sequence[Part], now: float) -> None:
        info = self._cluster.peers.by_identifier.get(broker)
        rows = sorted({row for _, some in parts for row in some})
        if info is None or task.hops >= FORWARD_HOPS_MAX:
            self.losses.lose(task.stream.name, len(rows), now)
            return
        batch = task.batch
        place_of = {row: place for place, row in enumerate(rows)}
        if len(rows) < batch.count:
            batch = batch.select(rows, self._summary_attributes(task.stream))
        dimensions = [[dimension.wire(), [place_of[row] for row in some]] for dimension, some in parts]
        places = [task.places[row] for row in rows]
        self.forwarded += len(rows)
        self._sent_under.setdefault(task.stream.name, self._epoch)
        message = Forward.make(dimensions, task.hops + 1, batch, task.origin, task.base, places, task.time, task.log)
        self._cluster.peers.send_events(info, message, now)

    def _done(self, task: Task, now: float) -> None:
        if task.source is not None:
            self._cluster.peers.acknowledge(task.source, task.batch.count, now)

    def validate(self) -> None:
        """Whatever waits will be looked at again."""
        self._waiting.validate()
        self.losses.validate()
        self.gathering.validate()
        assert not self._waiting or self._timers.when(BACKLOG) < NEVER
