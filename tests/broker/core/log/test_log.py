"""The log: positions without a hole, in the order of acceptance; what is pending; who waits, and for how long."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from headgate.broker.core.cause import Cause
from headgate.broker.core.effects import Append, Effect, Halt
from headgate.broker.core.inputs import NotStored, Opened, Received, Stored, Wake
from headgate.broker.core.limits import DEFAULT_LIMITS, STORE_SECONDS_MAX, Limits
from headgate.broker.core.log import HeldLog, Log
from headgate.broker.core.log_state import LogState
from headgate.broker.core.timers import Timers
from headgate.protocol.data import LogKind, LogName, Row
from headgate.protocol.errors import ErrorCode, Refused
from headgate.protocol.messages import Error, Mode, Puback
from tests.support.builders import make_publish
from tests.support.log_disk import EPOCH, Disk
from tests.support.log_world import LogWorld


def row(count: int = 1, **fields: Any) -> Row:
    return Row(0, count, 5_000, "o", 0, b"", "quotes", b"", {}, False, b"x" * 10, **fields)


class Bench:
    """A log and its disk."""

    def __init__(self, opened: Opened | None = None, limits: Limits = DEFAULT_LIMITS) -> None:
        self.effects: list[Effect] = []
        self.timers = Timers()
        self.log = Log("ann", self.effects, self.timers, Cause("ann"), limits=limits)
        self.disk = Disk()
        self.log.opened(opened or self.disk.opened())

    def append(self, held: HeldLog, count: int = 1, then: Any = None) -> int:
        end = self.log.append(held, row(count), None, then)
        self.disk.ask(self.effects)
        self.effects.clear()
        return end

    def sync(self) -> None:
        for said in self.disk.answer():
            assert isinstance(said, Stored)
            self.log.stored(said, 1.0)

    @property
    def events(self) -> HeldLog:
        return self.log.own(LogKind.EVENTS, "quotes")


def test_positions_follow_each_other_and_count_events() -> None:
    bench = Bench()
    assert [bench.append(bench.events, count) for count in (3, 1, 2)] == [3, 4, 6]
    assert (bench.events.next, bench.events.assigned) == (0, 6)
    bench.sync()
    held = bench.events
    assert (held.first, held.next, held.assigned) == (0, 6, 6)
    assert held.bytes == sum(len(one.row) for one in bench.disk.logs[held.name].rows)
    assert (held.first_time, held.last_time) == (5_000, 5_000)
    assert [one.first for one in bench.disk.rows(held.name)] == [0, 3, 4]


def test_states_of_durable_subscriptions_wait_for_the_disk_like_rows() -> None:
    bench, heard = Bench(), []

    def then(reason: str, now: float) -> None:
        heard.append(reason)

    bench.append(bench.events)
    bench.log.keep_durable("billing", b"1" * 100, then)
    bench.log.keep_durable("shop", b"2", then)
    bench.log.validate()
    assert bench.log.pending_bytes > 100
    bench.disk.ask(bench.effects)
    bench.effects.clear()
    bench.sync()
    assert heard == ["", ""] and bench.disk.opened().durables == {"billing": b"1" * 100, "shop": b"2"}
    bench.log.keep_durable("shop", b"", then)
    bench.log.not_stored(NotStored("the disk is full"), 1.0)
    assert heard[2:] == ["the disk is full"] and not bench.log.pending_bytes
    bench.log.validate()


def test_each_stream_and_each_kind_has_a_log_of_its_own() -> None:
    bench = Bench()
    logs = [bench.log.own(kind, stream) for kind in LogKind for stream in ("a", "b")]
    assert [bench.append(held) for held in logs] == [1] * 6
    assert [held.name.partition for held in logs] == [f"ann@{EPOCH}"] * 6


def test_what_earlier_lives_wrote_is_gone_on_with_and_damage_is_told() -> None:
    name, copy = LogName("ann", EPOCH, 0, "quotes"), LogName("bob", 7, 0, "quotes")
    states = [LogState(name, 5, 9, 100, 1, 2), LogState(copy, 0, 4, 40, 1, 2)]
    bench = Bench(Opened(EPOCH, states, [], ["rows 9 to 12 are gone"]))
    assert bench.effects[0].facts == {"damage": "rows 9 to 12 are gone"}  # type: ignore[union-attr]
    assert (bench.events.first, bench.events.next) == (5, 9)
    assert bench.log.own_logs() == [bench.events]
    assert bench.append(bench.events) == 10
    bench.log.begin_epoch(EPOCH + 1)
    assert bench.append(bench.events) == 1
    assert [held.name.epoch for held in bench.log.own_logs()] == [EPOCH, EPOCH + 1]


def test_who_waits_hears_when_all_of_it_is_safe() -> None:
    bench, heard = Bench(), []
    other = bench.log.own(LogKind.EVENTS, "other")
    bench.append(bench.events, 2)
    bench.append(other, 2)
    bench.log.needed = 1
    bench.events.confirmed[7], other.confirmed[7] = 0, 2
    bench.log.wait([(other, 2), (bench.events, 1)], lambda refused, now: heard.append(refused), 0.0)
    bench.sync()
    assert heard == [], "our own disk is not enough"
    bench.events.confirmed[7] = 1
    bench.log.settle(bench.events, 1.0)
    assert heard == [None]
    assert bench.log.is_safe([(bench.events, 1)]) and not bench.log.is_safe([(bench.events, 2)])
    assert bench.log.idle
    bench.log.wait([(other, 2)], lambda refused, now: heard.append(refused), 0.0)
    assert heard == [None, None], "at once"


def test_who_waits_too_long_hears_that_it_may_be_in_the_log_all_the_same() -> None:
    bench, heard = Bench(), []
    bench.log.needed = 1
    for end in (1, 2):
        bench.log.wait([(bench.events, end)], lambda refused, now: heard.append(refused), float(end))
    assert bench.timers.next == 1.0 + STORE_SECONDS_MAX
    bench.log.give_up_late("bob is missing", 1.0 + STORE_SECONDS_MAX)
    assert [refused.code for refused in heard if refused] == [ErrorCode.NOT_STORED]
    assert bench.timers.next == 2.0 + STORE_SECONDS_MAX
    assert len(bench.events.waiters) == 1, "whoever gave up is not kept"
    bench.log.validate()


def test_a_full_disk_fails_all_that_is_pending_and_whoever_waits_for_it() -> None:
    bench, heard, told = Bench(), [], []
    bench.append(bench.events)
    bench.sync()
    end = bench.append(bench.events, 3, lambda reason, now: told.append(reason))
    bench.log.wait([(bench.events, end)], lambda refused, now: heard.append(refused), 0.0)
    bench.log.not_stored(bench.disk.refuse("full")[0], 1.0)  # type: ignore[arg-type]
    assert told == ["full"]
    assert [refused.code for refused in heard if refused] == [ErrorCode.NOT_STORED]
    assert "make room" in heard[0].text
    assert (bench.events.next, bench.events.assigned, bench.log.pending_bytes) == (1, 1, 0)
    bench.log.validate()


def test_who_was_told_once_that_it_is_not_stored_is_not_told_again() -> None:
    bench, heard = Bench(), list[str]()
    bench.append(bench.events)
    bench.sync()
    bench.log.needed = 1
    bench.log.wait([(bench.events, 1)], lambda refused, now: heard.append("first"), 1.0)
    bench.log.wait([(bench.events, 9)], lambda refused, now: heard.append("second"), 1.0)
    for _ in range(2):
        bench.log.not_stored(NotStored("the disk is full"), 1.0)
        bench.log.validate()
    assert heard == ["second"]
    for _ in range(2):
        bench.log.moved(bench.events, 0, 10, bench.log.own(LogKind.EVENTS, "other"), {}, 1.0)
        bench.log.validate()
    assert heard == ["second", "first"]


def test_a_disk_that_fails_stops_the_broker_and_nothing_else_is_said() -> None:
    world = LogWorld()
    publisher = world.connect()
    world.say(publisher, make_publish(1, mode=Mode.STORED))
    effects = world.node.handle(world.disk.refuse("input/output error", fatal=True)[0], world.now)
    assert [effect for effect in effects if isinstance(effect, Halt)] == [Halt("input/output error")]
    assert len(effects) == 2
    assert world.feed(Received(publisher, [make_publish(2, mode=Mode.ACCEPTED)])) == []
    assert world.feed(Stored(1)) == []
    assert world.feed(Wake()) == []


def test_a_batch_that_disks_are_too_slow_for_is_refused_and_delivered_when_it_is_there() -> None:
    world = LogWorld()
    subscriber, publisher = world.subscriber(), world.connect()
    world.say(publisher, make_publish(1, mode=Mode.STORED))
    world.wake_at(world.now + STORE_SECONDS_MAX)
    error, puback = world.take(publisher)
    assert isinstance(error, Error)
    assert (error.code, error.reference, puback) == (ErrorCode.NOT_STORED, 1, Puback(1))
    world.sync()
    assert world.take(publisher) == []
    assert world.delivered(subscriber) == [(1, "1")]


def test_room_is_bounded_in_bytes_and_in_waiters() -> None:
    bench = Bench(limits=Limits(log_pending_bytes=1_000, log_waiters=1))
    bench.log.check_room(400)
    bench.append(bench.events)
    with pytest.raises(Refused, match="try again") as caught:
        bench.log.check_room(400)
    assert caught.value.code == ErrorCode.NOT_STORED
    bench.sync()
    bench.log.check_room(400)
    unsafe, told = [(bench.events, 9)], list[Refused | None]()
    for _ in range(3):
        bench.log.wait(unsafe, lambda refused, now: told.append(refused), 1.0)
    bench.log.check_room(0)
    bench.log.wait(unsafe, lambda refused, now: told.append(refused), 1.0, batch=True)
    bench.log.validate()
    with pytest.raises(Refused, match="behind"):
        bench.log.check_room(0)
    bench.log.give_up_late("bob is missing", 9.0)
    assert len(told) == 4
    bench.log.check_room(0)


def test_what_is_held_back_is_written_in_order_as_soon_as_it_may() -> None:
    bench, done = Bench(), []
    bench.log.recovered = False
    for number in range(3):
        bench.log.hold_back(10, lambda now, number=number: done.append(number))  # type: ignore[misc]
    assert not bench.log.idle
    bench.log.validate()
    bench.log.vouch(1.0)
    assert done == [0, 1, 2]
    assert bench.log.idle


class Twin(RuleBasedStateMachine):
    """Against a list: whatever the disk does, the log holds what was said to be stored, in order, each once."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench()
        self.pending: list[int] = []
        self.safe: list[int] = []
        self.answers: dict[int, str] = {}
        self.count = 0

    @rule(count=st.integers(1, 5))
    def append(self, count: int) -> None:
        number, self.count = self.count, self.count + 1
        self.pending.append(number)
        end = self.bench.append(self.bench.events, count, lambda reason, now: self._landed(number, reason))
        self.bench.log.wait([(self.bench.events, end)], lambda refused, now: self._answer(number, refused), 0.0)

    def _landed(self, number: int, reason: str) -> None:
        assert self.pending.pop(0) == number
        if not reason:
            self.safe.append(number)

    def _answer(self, number: int, refused: Refused | None) -> None:
        assert number not in self.answers
        self.answers[number] = "refused" if refused else "stored"

    @rule()
    def sync(self) -> None:
        self.bench.sync()
        assert not self.pending

    @rule()
    def full(self) -> None:
        self.bench.log.not_stored(self.bench.disk.refuse()[0], 1.0)  # type: ignore[arg-type]
        self.bench.effects.clear()
        assert not self.pending

    @invariant()
    def agrees(self) -> None:
        self.bench.log.validate()
        rows = self.bench.disk.logs.get(self.bench.events.name)
        assert len(rows.rows if rows else []) == len(self.safe)
        assert [number for number, said in sorted(self.answers.items()) if said == "stored"] == self.safe
        assert set(self.answers) == set(range(self.count)) - set(self.pending)


TestTwin = Twin.TestCase
TestTwin.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_tickets_of_appends_count_without_a_hole() -> None:
    bench = Bench()
    bench.log.append(bench.events, row())
    bench.log.append(bench.log.own(LogKind.DELIVERIES, "quotes"), row())
    assert [effect.ticket for effect in bench.effects if isinstance(effect, Append)] == [1, 2]
