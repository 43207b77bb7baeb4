"""A subscription with `start` sees each event of a stored stream once, whatever sessions and deliveries are lost.

The world is dumb: logs are lists, a delivery is a row that may be dropped, and everything random comes from one seed.
The subscriber is the real one, from the inbox to the work of a replay; the driver of its tasks is the test.
"""

from __future__ import annotations

from collections import deque
from contextlib import nullcontext
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headgate.protocol.client import (
    Chunk,
    ClientLimits,
    Event,
    Inbox,
    LogInfo,
    Outcome,
    Replaying,
    Settled,
    Survey,
    Task,
    Work,
)
from headgate.protocol.client.receiving import Deliveries
from headgate.protocol.data import Batch, LogName, LogShift, Row, join_u32, make_batch
from headgate.protocol.errors import CannotConnect, ErrorCode, Refused
from headgate.protocol.limits import REPLAY_LATE_SECONDS, REPLAY_POLL_SECONDS_MAX, REPLAY_SURE_SECONDS
from headgate.protocol.messages import Deliver, Gap, Subscribe

STEP_US = 4_000_000
OVERTAKEN_MAX = 3
"""Rows of its broker that overtake a delivery: 12 seconds of them, and a replay is patient for 20."""

Id = tuple[str, int]


@dataclass
class Broker:
    """One broker through its lives, with its logs by epoch, and what it has matched and not handed on."""

    name: str
    life: int = 1
    epoch: int = 1
    number: int = 0
    clock: int = 0
    is_away: bool = False
    logs: dict[int, list[Row]] = field(default_factory=dict)
    copies: dict[int, int] = field(default_factory=dict)  # rows that others have, by epoch
    unsafe: int = 0  # rows at the end of its last log that nobody may read yet
    in_flight: deque[list[Row | int]] = field(default_factory=deque)
    shifts: dict[Id, LogShift] = field(default_factory=dict)
    accepted_at: dict[Id, float] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        return f"{self.name:0>16}-{self.life:x}"

    def append(self, draw: Random, now: float = 0.0) -> None:
        count = draw.randint(1, 4)
        self.number += draw.randint(0, 2)  # other streams
        self.clock += draw.randint(0, STEP_US)
        rows = self.logs.setdefault(self.epoch, [])
        first = rows[-1].first + rows[-1].count if rows else 0
        batch = make_batch(["q"], {"n": list(range(self.number, self.number + count))}, [b""] * count)
        parts: tuple[Any, ...] = (b"", batch.topics, batch.lengths, {}, True, batch.records)
        rows.append(Row(first, count, self.clock, self.origin, self.number, *parts))
        event_id = self.origin, self.number
        self.shifts[event_id] = LogShift(f"{self.name}@{self.epoch}", first - self.number)
        self.accepted_at[event_id] = now
        self.number += count
        self.in_flight.append([rows[-1], 0])

    def restart(self, draw: Random) -> None:
        """Its numbers begin anew, and its clock may have been put back."""
        self.life += 1
        self.number = draw.randint(0, 3)
        self.clock = max(0, self.clock - draw.choice((0, 0, 100_000_000)))
        self.epoch += draw.choice((0, 0, 1))
        self.in_flight.clear()


class World:
    """Three brokers, and the client of one subscriber: what the replaying asks of it, it answers from the lists."""

    def __init__(self, draw: Random, step: int) -> None:
        self.draw = draw
        self.limits = ClientLimits(replay_near_events=draw.randint(0, 6))
        self.step = step  # every so manyth number is wanted
        self.brokers = {name: Broker(name) for name in ("a1", "b2", "c3")}
        self.is_connected = True
        self.sharing = nullcontext()  # there is one thread
        self.is_subscribed = False
        self.outbox: list[Deliver | Gap] = []
        self.now = 0.0
        self.allowed = draw.choice((8, 30, 1000))
        self.deliveries = Deliveries(self.allowed)
        self.inbox = Inbox(self.deliveries, Subscribe(1, 1, "q"), Outcome())
        self.other = Inbox(self.deliveries, Subscribe(2, 2, "other"), Outcome())  # mostly nobody reads it
        self.deliveries.inboxes |= {1: self.inbox, 2: self.other}
        self.passed = 0

    def clock(self) -> float:
        """In place of the clock."""
        return self.now

    # --- what the replaying asks of its client -----------------------------------------------------------------------

    connected = True

    def over_logs(self) -> World:
        return self

    def survey(self, stream: str) -> Work[Survey]:
        yield Settled(self, Outcome())  # type: ignore[arg-type]
        assert stream == "q"
        if self.draw.random() > 0.9:
            raise CannotConnect("q", "the broker of the moment died")
        infos = []
        for broker in self.brokers.values():
            for epoch, rows in broker.logs.items():
                held = rows[: broker.copies.get(epoch, 0)] if broker.is_away else rows
                if held:
                    name = LogName(broker.name, epoch, 0, "q")
                    infos.append(LogInfo(name, 0, held[-1].first + held[-1].count, 0, 0, 0, ("x",)))
        away = tuple(broker.name for broker in self.brokers.values() if broker.is_away)
        return Survey(infos, away, 4, True)

    def read(self, name: LogName, position: int, events: int, pattern: str, condition: str, ago: float) -> Work[Chunk]:
        yield Settled(self, Outcome())  # type: ignore[arg-type]
        broker = self.brokers[name.broker]
        rows = broker.logs[name.epoch]
        if broker.is_away:
            rows = rows[: broker.copies.get(name.epoch, 0)]
            if self.draw.random() > 0.8 or not rows:
                raise CannotConnect(name.broker, "it is away")
        end = rows[-1].first + rows[-1].count if rows else 0
        unsafe = 0 if broker.is_away or name.epoch < max(broker.logs) else min(broker.unsafe, len(rows))
        early = rows[-unsafe].first if unsafe else end
        if early <= position < end:
            raise Refused(ErrorCode.NOT_STORED, "too few disks have it")
        if position > end:
            raise Refused(ErrorCode.NOT_FOUND, "there is no such position")
        young = [row.first for row in rows if broker.accepted_at[row.origin, row.base] >= self.now - ago]
        after = min(young[0] if young else end, early)
        if ago and after > position:
            self.passed += 1
            return Chunk([], 0, after, end)
        looked = [row for row in rows if position < row.first + row.count <= early][: self.draw.randint(1, 3)]
        following = looked[-1].first + looked[-1].count if looked else position
        found = looked if not pattern else [cut for row in looked if (cut := self._cut(row)) is not None]
        return Chunk(found, 0, following, end)

    def check_usable(self) -> None:
        pass

    def _cut(self, row: Row) -> Row | None:
        places = [place for place in range(row.count) if (row.base + place) % self.step == 0]
        if not places:
            return None
        part = Batch(row.topics, row.count, row.lengths, row.records).portion(places, row.origin, 0, row.time)
        parts: tuple[Any, ...] = (join_u32(places), part.topics, part.lengths, {}, False, part.records)
        return Row(row.first, len(places), row.time, row.origin, row.base, *parts)

    def say_subscribe(self, inbox: Inbox) -> Outcome:
        outcome = Outcome(1)
        outcome.settle()
        self._confirm()
        return outcome

    def confirming(self, inbox: Inbox) -> Work[None]:
        while not inbox.confirmed:
            yield Settled(self, inbox.confirmation)  # type: ignore[arg-type]

    def drive(self, task: Task[list[Event]]) -> list[Event]:
        """What has come by now; whoever has no time finds that it has not."""
        while task.begin() is not None:
            if not self.is_connected and self.is_subscribed:
                self._confirm()
            if self.draw.random() > 0.9:
                return []
            task.give(None)
        return task.result

    def _confirm(self) -> None:
        self.is_connected = self.is_subscribed = True
        self.inbox.confirm()

    # --- what goes on ------------------------------------------------------------------------------------------------

    def match(self) -> None:
        """A broker hands on a row that its disk has, perhaps before an older one of its own."""
        broker = self.draw.choice([one for one in self.brokers.values() if one.in_flight] or [Broker("dd")])
        flight = broker.in_flight
        if not flight:
            return
        place = 1 if len(flight) > 1 and flight[0][1] < OVERTAKEN_MAX and self.draw.random() > 0.7 else 0  # type: ignore[operator]
        flight[0][1] += place  # type: ignore[operator]
        row = flight[place][0]
        del flight[place]
        assert isinstance(row, Row)
        places = [place for place in range(row.count) if (row.base + place) % self.step == 0]
        if places and self.is_connected and self.is_subscribed:
            batch = Batch(row.topics, row.count, row.lengths, row.records)
            portion = batch.portion(places, row.origin, row.base, row.time)
            portion.log = broker.shifts[row.origin, row.base]
            self.outbox.append(Deliver([1, len(places)], portion))

    def write(self, most: int) -> None:
        """What waits at the home goes out, as far as there is credit."""
        if self.deliveries.credit_due:
            self.allowed = self.deliveries.credit().allowed
        while self.outbox and most and self.deliveries.received < self.allowed:
            said = self.outbox.pop(0)
            self.deliveries.deliver(said) if isinstance(said, Deliver) else self.deliveries.gap(said)
            most -= 1

    def crowd(self) -> None:
        """The other subscription of the client gets something, or is read at last."""
        if self.draw.random() < 0.5:
            batch = make_batch(["other"], {}, [b""] * 8)
            self.outbox.append(Deliver([[2], 8], batch.portion(list(range(8)), "other", 0, 0)))
        else:
            self.relieve()

    def relieve(self) -> None:
        while self.other.take():
            pass

    def drop(self) -> None:
        """The outbox is full: the oldest go."""
        count = self.draw.randint(0, len(self.outbox))
        if count:
            self.outbox[:count] = [Gap(1, count, "slow consumer")]

    def lose_session(self) -> None:
        self.outbox.clear()
        self.is_connected = False
        self.deliveries.hindered()
        self.deliveries.restarted()
        self.allowed = self.deliveries.window
        if self.is_subscribed:
            self.inbox.unconfirm(Outcome())
            self.inbox.gap(Gap(1, 0, "the session ended"))

    def kill(self) -> None:
        """A broker dies: what it had not handed on is in its log alone, and the subscribers are told."""
        broker = self.draw.choice(list(self.brokers.values()))
        lost = bool(broker.in_flight)
        broker.restart(self.draw)
        broker.is_away = self.draw.random() < 0.7
        broker.copies = {epoch: self.draw.randint(0, len(rows)) for epoch, rows in broker.logs.items()}
        if lost and self.is_connected and self.is_subscribed:
            self.outbox.append(Gap(0, 0, "it was started again"))

    def flush(self) -> None:
        """All that is on its way arrives."""
        while any(broker.in_flight for broker in self.brokers.values()):
            self.match()
        self.write(1000)

    def lag(self) -> None:
        """The siblings of a broker are slow."""
        broker = self.draw.choice([broker for broker in self.brokers.values() if broker.logs] or [Broker("dd")])
        broker.unsafe = self.draw.randint(0, min(3, len(broker.logs.get(max(broker.logs, default=0), ()))))

    def bring_back(self) -> None:
        for broker in self.brokers.values():
            broker.is_away, broker.unsafe = False, 0


class Reader:
    """The application: takes what there is, one batch a time."""

    def __init__(self, world: World, start: str) -> None:
        self.world = world
        self.told: list[Gap] = []
        world.inbox.on_gap = self.told.append
        self.replaying = Replaying(world, world.inbox, start)  # type: ignore[arg-type]
        self.seen: list[Id] = []

    def take(self) -> bool:
        events = self.world.drive(self.replaying.take(Event))
        if not events and not self.replaying.is_late:
            events = self.world.inbox.take()
        self.seen += [(event.origin, event.sequence) for event in events]
        return bool(events) or self.replaying.is_late

    def look(self) -> None:
        """So much time has passed, and nobody knows what was on its way."""
        self.world.now += REPLAY_LATE_SECONDS
        self.replaying.rested(1.0)
        self.take()

    def rest(self) -> None:
        """There is silence, so all that was on its way came, or it is lost without a word yet."""
        world = self.world
        world.flush()
        while self.take():
            pass
        world.inbox.listen()
        world.now += REPLAY_LATE_SECONDS
        self.replaying.rested(REPLAY_LATE_SECONDS)
        world.now += world.draw.choice((0.0, 2 * REPLAY_SURE_SECONDS))
        self.take()

    def read_all(self) -> None:
        """All is well, and the application takes until nothing comes any more."""
        world = self.world
        world.bring_back()
        idle = 0
        while idle < 20 or world.inbox.waiting or world.outbox:
            world.relieve()
            world.flush()
            world.now += REPLAY_POLL_SECONDS_MAX
            idle = 0 if self.take() else idle + 1


def live_through(draw: Random) -> int:
    """A random history; at the end the subscriber has seen each event from its beginning on once, and no gap."""
    world = World(draw, draw.choice((1, 1, 2, 5)))
    for _ in range(draw.randint(0, 6)):
        draw.choice(list(world.brokers.values())).append(draw)
    old = [row for broker in world.brokers.values() for rows in broker.logs.values() for row in rows]
    start, begun = "start", {broker.name: -1 for broker in world.brokers.values()}
    if old and draw.random() < 0.5:
        places = []
        for broker in world.brokers.values():
            if broker.logs:
                row = draw.choice(broker.logs[1])
                begun[broker.name] = number = row.base + draw.randint(0, row.count - 1)
                places.append(f"{broker.name}@1:{row.first + number - row.base + 1}")
        start = ",".join(places)
    elif draw.random() < 0.2:
        start = "now"
        begun = {broker.name: broker.number - 1 for broker in world.brokers.values()}
    for broker in world.brokers.values():
        broker.in_flight.clear()
    reader = Reader(world, start)
    if start == "now":
        begun_replay = Task(reader.replaying.begin(Event))
        while begun_replay.begin() is not None:
            world.drive(begun_replay)  # type: ignore[arg-type]
    acts = [
        lambda: draw.choice(list(world.brokers.values())).append(draw, world.now),
        world.match,
        reader.take,
    ] * draw.choice((4, 20))
    acts += [lambda: world.write(draw.randint(1, 4))] * (len(acts) // draw.choice((3, 9)))
    acts += [reader.rest, reader.look, world.crowd, world.drop, world.lose_session, world.kill, world.lag]
    acts.append(world.bring_back)
    for _ in range(draw.randint(0, draw.choice((60, 250)))):
        world.now += draw.choice((0.0, 1.0, 4.0))
        draw.choice(acts)()
    reader.read_all()
    assert len(set(reader.seen)) == len(reader.seen), "once"
    wanted = {
        (row.origin, row.base + place)
        for broker in world.brokers.values()
        for epoch, rows in broker.logs.items()
        for row in rows
        for place in range(row.count)
        if (row.base + place) % world.step == 0
        and not (row.origin.endswith("-1") and epoch == 1 and row.base + place <= begun[broker.name])
    }
    assert set(reader.seen) == wanted
    assert all(gap.count == 0 and "cannot be re" in gap.reason for gap in reader.told)
    return world.passed


def test_any_history_shows_each_event_once() -> None:
    assert sum(live_through(Random(seed)) for seed in range(200)) > 5, "what came before a silence was passed over"


@given(st.randoms(use_true_random=False))
def test_any_history_that_is_found_shows_each_event_once(draw: Random) -> None:
    live_through(draw)
