"""Gathering: the lists of a batch, asked for where it was accepted, and counted there when all of them have come.

For a stream with counted subscriptions, beside what `forwarding.py` does for those that rest at one anchor:

    begin    a batch was accepted. As soon as this broker answers for some key, and so knows what is in use of the
             stream, the row's key on each counted dimension in use is one *question*: each is asked once a batch
    ask      who answers for the key? We do: the list is here. Another broker: one message to each, for all of its keys.
             None just now, or no answer in ASK_AGAIN_SECONDS: it is asked again, of the broker that answers then
    count    all lists are here: a subscription on as many of a row's lists as it has attributes is a candidate
             (`counting.met`)
    go out   in the order in which the batches of the stream were accepted: our own clients' candidates are checked
             here (`placement/counting_home.py`), the others go to their homes as DELIVERs, which check theirs

Why an event published after SUBACK is seen: the subscription's items were confirmed on all of their keys by then, and a
list comes only from a broker whose scope covers the key when it answers, which knows them (`kv/store.py`). Lists are
read at different moments, so a subscription that comes or goes meanwhile may be met too seldom; nothing is promised of
that one. It is never met too often: it is on one list of a dimension, however often that list comes. And nothing is
delivered twice, because a row is counted here and nowhere else.

A list that no broker can give within WAITING_SECONDS_MAX makes the rows that ask for it lost: counted, and announced.
What the other lists of those rows say is delivered all the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from headgate.protocol.data import Batch, Columns
from headgate.protocol.errors import ProtocolViolation

from ..cluster import HERE, WAIT, Cluster
from ..delivery import Dissemination, Plan, Undecided
from ..effects import Effect, Note
from ..keyspace import Dimension
from ..limits import FORWARD_HOPS_MAX, WAITING_RETRY_SECONDS, WAITING_SECONDS_MAX
from ..links import PeerInfo
from ..placement import ASK_AGAIN_SECONDS, Registry, SubscriptionId, met
from ..safeguards import Safeguard
from ..timers import NEVER, Timers
from .backlog import Task
from .losses import Losses
from .messages import AskLists, Lists, Spot, ask_messages, list_messages

__all__ = ["GATHERING", "Gathering"]

GATHERING = "gathering"
"""Key of the timer: lists that have not come are asked for again."""

_NOBODY = (WAIT, float("-inf"))


@dataclass(slots=True, eq=False)
class _Gather:
    """One batch and its lists."""

    number: int
    task: Task
    keys: dict[Dimension, list[int | None]] | None = None
    """Dimension -> the key of each row; None until this broker knows which dimensions are in use."""
    open: dict[Spot, tuple[int, float]] = field(default_factory=dict)
    """Lists that have not come -> who was asked last, and when."""
    lists: dict[Spot, Sequence[SubscriptionId]] = field(default_factory=dict)
    pieces: dict[tuple[int, Spot], list[SubscriptionId]] = field(default_factory=dict)
    """Who answers, and for what -> the pieces of the list that came so far."""
    look_at: float = float("-inf")

    @property
    def complete(self) -> bool:
        """Whether every list has come."""
        return self.keys is not None and not self.open

    def close(self, spot: Spot, identities: Sequence[SubscriptionId]) -> None:
        """This list has come."""
        self.open.pop(spot, None)
        self.lists[spot] = identities

    def candidates(self) -> Iterator[list[SubscriptionId]]:
        """Row by row, who is met often enough."""
        dimensions = self.keys or {}
        known: dict[tuple[int | None, ...], list[SubscriptionId]] = {}
        rows = zip(*dimensions.values(), strict=True) if dimensions else iter([()] * self.task.batch.count)
        for keys in rows:
            found = known.get(keys)
            if found is None:
                spots = [
                    Spot(dimension, key) for dimension, key in zip(dimensions, keys, strict=True) if key is not None
                ]
                found = known[keys] = met(self.lists.get(spot, ()) for spot in spots)
            yield found

    def rows_without(self) -> int:
        """Rows of which a list has not come."""
        if self.keys is None:
            return self.task.batch.count
        missing = {
            row
            for dimension, keys in self.keys.items()
            for row, key in enumerate(keys)
            if key is not None and Spot(dimension, key) in self.open
        }
        return len(missing)


class Gathering:
    """Asks for the lists of each batch, and counts on how many of them each subscription is."""

    def __init__(
        self,
        effects: list[Effect],
        cluster: Cluster,
        registry: Registry,
        dissemination: Dissemination,
        losses: Losses,
        timers: Timers,
    ) -> None:
        self._effects = effects
        self._cluster = cluster
        self._limits = cluster.config.limits
        self._registry = registry
        self._dissemination = dissemination
        self._losses = losses
        self._lines: dict[str, deque[_Gather]] = {}
        self._by_number: dict[int, _Gather] = {}
        self._numbers = 0
        self._going = False
        self._timers = timers
        self.events = self.bytes = 0
        self.asked = 0
        cluster.take_controls({AskLists: self._asked, Lists: self._told})

    def __iter__(self) -> Iterator[Task]:
        """What is under way, each stream's in order."""
        return (gather.task for line in self._lines.values() for gather in line)

    def concerns(self, stream: str, now: float) -> bool:
        """Whether batches of this stream are to be counted, as far as is known here."""
        counted = stream in self._registry.usage.beside_index or stream in self._lines
        return counted or not self._cluster.scope(now).stretches

    def over(self, batch: Batch) -> bool:
        """Whether no more can wait."""
        events, size = self.events + batch.count, self.bytes + len(batch.records)
        limits = self._limits
        return bool(self._lines) and (events > limits.waiting_events or size > limits.waiting_bytes)

    def begin(self, task: Task, now: float) -> None:
        """A batch that this broker accepted, and has checked; of a stream of which nothing is counted there is nothing
        to do."""
        if not self.concerns(task.stream.name, now):
            return
        self._numbers += 1
        gather = _Gather(self._numbers, task)
        self._by_number[gather.number] = gather
        self._lines.setdefault(task.stream.name, deque()).append(gather)
        self.events += task.batch.count
        self.bytes += len(task.batch.records)
        self._timers.by(GATHERING, now + WAITING_RETRY_SECONDS)
        self._go(task.stream.name, now)

    # --- time ----------------------------------------------------------------------------------------------------

    def go_on(self, now: float) -> None:
        """Something may have changed."""
        for stream in list(self._lines):
            self._go(stream, now)
        self._timers.at(GATHERING, now + WAITING_RETRY_SECONDS if self._lines else NEVER)

    def _go(self, stream: str, now: float) -> None:
        """Ask what is to be asked, and let go out what is complete, in order."""
        line = self._lines.get(stream)
        if line is None or self._going:
            return  # a link broke while something was sent; the outer call goes on
        self._going = True
        try:
            done = True
            while done:
                for gather in list(islice(line, self._limits.batches_asking)):
                    if not gather.complete and now >= gather.look_at:
                        self._advance(gather, now)
                done = False
                while line and (line[0].complete or now >= line[0].task.since + WAITING_SECONDS_MAX):
                    self._finish(line.popleft(), now)
                    done = True  # and others may begin to ask
        finally:
            self._going = False
        if not line:
            del self._lines[stream]

    # --- asking --------------------------------------------------------------------------------------------------

    def _advance(self, gather: _Gather, now: float) -> None:
        scope = self._cluster.scope(now)
        gather.look_at = now + WAITING_RETRY_SECONDS
        if gather.keys is None:
            if not scope.stretches:
                return  # a broker that answers for no key may not know what is in use
            self._look_up(gather)
        asks: dict[int, list[Spot]] = {}
        stream, lists = gather.task.stream.name, self._registry.counting.lists
        for spot, (broker, since) in list(gather.open.items()):
            place = self._cluster.place_of(spot.key)
            if place == HERE:
                gather.close(spot, lists.at(stream, spot.dimension, spot.key))
            elif place != WAIT and (place != broker or now >= since + ASK_AGAIN_SECONDS):
                asks.setdefault(place, []).append(spot)
                gather.open[spot] = (place, now)
        for broker, spots in asks.items():
            self._ask(broker, ask_messages(gather.number, self._cluster.address, 0, stream, spots), now)

    def _look_up(self, gather: _Gather) -> None:
        """Which lists the rows ask for."""
        gather.keys = {}
        task = gather.task
        summary = self._registry.usage.summaries.get(task.stream.name)
        columns, topics = Columns(task.batch), task.batch.topic_list()
        for dimension, row_keys in summary.counted.items() if summary is not None else ():
            try:
                keys = gather.keys[dimension] = row_keys.of(topics, task.batch.count, columns)
            except ProtocolViolation as error:  # of an attribute that was not asked for when it was published
                self._effects.append(Note("batch to be counted not understood", {"reason": str(error)}))
                continue
            gather.open.update(dict.fromkeys((Spot(dimension, key) for key in keys if key is not None), _NOBODY))

    def _ask(self, broker: int, questions: Iterable[AskLists], now: float) -> None:
        info = self._cluster.peers.by_identifier.get(broker)
        if info is not None:
            for question in questions:
                self.asked += 1
                self._cluster.tell(info, question, now)

    def _asked(self, info: PeerInfo, question: AskLists, now: float) -> None:
        """Another broker asks for lists: those that we answer for go back, the others' questions on."""
        self._cluster.scope(now)
        here: list[Spot] = []
        elsewhere: dict[int, list[Spot]] = {}
        for spot in question.spots:
            place = self._cluster.place_of(spot.key)
            if place == HERE or Safeguard.LISTS_BY_LEASE not in self._cluster.safeguards:
                here.append(spot)
            elif place not in (WAIT, info.identifier) and question.hops < FORWARD_HOPS_MAX:
                elsewhere.setdefault(place, []).append(spot)
        lists = [(spot, self._registry.counting.lists.at(question.stream, *spot)) for spot in here]
        for message in list_messages(question.number, lists):
            self._cluster.tell_address(question.address, message, now)
        for broker, spots in elsewhere.items():
            on = ask_messages(question.number, question.address, question.hops + 1, question.stream, spots)
            self._ask(broker, on, now)

    def _told(self, info: PeerInfo, lists: Lists, now: float) -> None:
        """Lists that we asked for."""
        gather = self._by_number.get(lists.number)
        if gather is None:
            return  # it was asked for twice, and went out after the first answer
        for piece in lists.pieces():
            if piece.spot not in gather.open:
                continue
            where = info.identifier, piece.spot
            if piece.place == 0:
                gather.pieces[where] = piece.identities
            elif where in gather.pieces:
                gather.pieces[where] += piece.identities
            if piece.last and where in gather.pieces:
                gather.close(piece.spot, gather.pieces.pop(where))
        if gather.complete:
            self._go(gather.task.stream.name, now)

    # --- going out -----------------------------------------------------------------------------------------------

    def _finish(self, gather: _Gather, now: float) -> None:
        task = gather.task
        del self._by_number[gather.number]
        self.events -= task.batch.count
        self.bytes -= len(task.batch.records)
        if not gather.complete:
            self._losses.lose(task.stream.name, gather.rows_without(), now)
        try:
            plans = [self._plan(task.batch, row, found, now) for row, found in enumerate(gather.candidates())]
        except ProtocolViolation as error:
            self._effects.append(Note("batch to be counted not understood", {"reason": str(error)}))
            return
        serving = (task.origin, task.base, task.places, task.time)
        self._dissemination.relay(task.stream, task.batch, plans, serving, task.log)

    def _plan(self, batch: Batch, row: int, found: Sequence[SubscriptionId], now: float) -> Plan:
        """Who gets a row: our own clients that want it, and the homes of the other candidates."""
        if not found:
            return ()
        registry, mine = self._registry, []
        homes: dict[tuple[int, int], list[int]] = {}
        for one in found:
            if one.broker != self._cluster.me:
                homes.setdefault((one.broker, one.life), []).append(one.number)
            elif one.life == self._cluster.config.incarnation:
                mine.append(one.number)
        numbers_of = {}
        for home, numbers in homes.items():
            session = registry.session_of(*home, now)
            if session is not None:
                numbers_of[session] = numbers
        plan = self._dissemination.plan_of_sessions(numbers_of)
        own = registry.counting.true_of(batch, row, mine)
        clients = self._dissemination.plan_of_clients(own) if own else ()
        whole = (*plan, *clients)
        return Undecided.of(whole, (), clients.amended) if isinstance(clients, Undecided) else whole

    def validate(self) -> None:
        """What is under way adds up, and a timer runs for it."""
        tasks = list(self)
        assert self.events == sum(task.batch.count for task in tasks)
        assert self.bytes == sum(len(task.batch.records) for task in tasks)
        assert len(tasks) == len(self._by_number)
        assert all(self._lines.values()), "an empty line is removed"
        assert not self._lines or self._timers.when(GATHERING) < NEVER
        for gather in self._by_number.values():
            assert gather.keys is not None or not gather.open
            assert not gather.open.keys() & gather.lists.keys()
