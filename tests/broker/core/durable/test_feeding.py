"""Feeding: exactly what matches is told, once and in order, by reading and live."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headgate.broker.core.durable.feeding import FEEDING, key_hash
from headgate.broker.core.durable.messages import Place
from headgate.broker.core.effects import Append, ReadRows
from headgate.broker.core.limits import DEFAULT_LIMITS, FEED_IDLE_SECONDS, FEED_PAUSE_SECONDS
from headgate.broker.core.timers import NEVER
from headgate.protocol.data import decode_row, encode_column
from tests.support.builders import quote_batch
from tests.support.feed_world import FeedWorld
from tests.support.log_disk import EPOCH

ANN = Place("ann", EPOCH)


def filled(*batches: list[Any], **config: Any) -> FeedWorld:
    world = FeedWorld(**config)
    for batch in batches:
        world.append(batch)
    world.answer()
    world.settle()
    return world


def test_a_feed_from_the_start_is_told_what_is_there_and_then_what_comes() -> None:
    world = filled([1, 2, 3], [4, 5])
    world.feed(condition="price >= 3")
    world.settle()
    assert world.positions() == [2, 3, 4]
    world.append([9, 0])
    assert world.positions() == [2, 3, 4], "not before the disk has it"
    world.answer()
    assert world.positions() == [2, 3, 4, 5]
    assert not world.reads, "what is live needs no disk"
    world.settle()
    world.check_end()


def test_nothing_is_told_before_enough_disks_have_it() -> None:
    world = FeedWorld(copies=True)
    world.feed()
    world.append([1])
    world.answer()
    assert world.positions() == []
    world.confirm()
    assert world.positions() == [0]
    world.settle()
    world.check_end()


def test_rows_that_are_read_beyond_the_high_watermark_are_left_for_later() -> None:
    world = FeedWorld(copies=True)
    for price in (1, 2):
        world.append([price])
    world.answer()
    world.confirm(end=1)
    world.feed(1)
    world.settle()
    assert world.positions() == [0]
    world.confirm()
    world.settle()
    assert world.positions() == [0, 1]


def test_keys_are_in_the_order_of_positions_whatever_else_matches() -> None:
    world = FeedWorld()
    world.feed(1, key="price")
    world.feed(2, condition="price = 2")
    world.append([1, 2, 3, 2])
    world.answer()
    assert (world.positions(1), world.positions(2)) == ([0, 1, 2, 3], [1, 3])


def test_it_goes_on_at_the_places_that_are_named() -> None:
    world = filled([1, 2], [3, 4])
    world.feed(1, places=[("ann", EPOCH, 1)])
    world.feed(2, places=[("ann", EPOCH, 4)])
    world.feed(3, places=[("ann", EPOCH, 99)])
    world.settle()
    assert [world.positions(number) for number in (1, 2, 3)] == [[1, 2, 3], [], []]
    assert world.told[5, 3][ANN].start == 99, "even if they are behind the end: this broker knows less"
    world.check_end()


def test_logs_that_are_not_named_begin_by_time() -> None:
    world = filled([1], [2], [3])
    times = [event[2] for event in world.events[ANN].values()]
    for number, since in enumerate([0, times[1], times[2] + 1], 1):
        world.feed(number, since=since)
    world.settle()
    assert [world.positions(number) for number in (1, 2, 3)] == [[0, 1, 2], [1, 2], []]
    world.check_end()


def test_what_matches_nothing_is_told_at_the_end_and_then_now_and_then() -> None:
    world = filled([1], [2])
    world.feed(condition="price > 100")
    world.answer()
    world.wake()
    assert (world.told[5, 1][ANN].upto, world.told[5, 1][ANN].facts) == (2, 1)
    for price in (3, 4):
        world.append([price])
        world.answer()
    assert world.told[5, 1][ANN].upto == 2
    world.wake(FEED_IDLE_SECONDS)
    assert (world.told[5, 1][ANN].upto, world.told[5, 1][ANN].facts) == (4, 2)
    world.settle()
    assert world.timers.when(FEEDING) == NEVER, "who is idle is not woken"


def test_many_idle_feeds_are_told_some_at_a_time() -> None:
    world = FeedWorld(limits=replace(DEFAULT_LIMITS, feed_idle_feeds=2))
    for number in range(1, 6):
        world.feed(number, condition=f"price = {number}")
    world.append([9])
    world.answer()

    def told() -> int:
        return sum(bool(world.told[5, number] and world.told[5, number][ANN].upto) for number in range(1, 6))

    counts = []
    for _ in range(3):
        world.wake(FEED_IDLE_SECONDS)
        counts.append(told())
    assert counts == [2, 4, 5]


def test_one_scan_serves_all_that_are_behind() -> None:
    world = filled(*[[number] for number in range(20)], limits=replace(DEFAULT_LIMITS, feed_chunk_bytes=1))
    world.feed(1, places=[("ann", EPOCH, 3)])
    reads: list[int] = []
    for _ in range(60):
        world.wake()
        reads += [one.position for one in world.disk.asked if isinstance(one, ReadRows)]
        world.answer()
        if len(reads) == 6:
            world.feed(2, places=[("ann", EPOCH, 15)])
            world.feed(3, places=[("ann", EPOCH, 6)])
            world.feed(4, places=[("ann", EPOCH, 4)])
    assert world.positions(1) == list(range(3, 20)) and world.positions(2) == list(range(15, 20))
    assert world.positions(3) == list(range(6, 20)) and world.positions(4) == list(range(4, 20))
    assert reads == [*range(3, 20), *range(4, 20)], "who is ahead of the scan waits for it, who is behind for the next"
    world.settle()
    world.check_end()


def test_who_reads_arrives_although_the_log_grows_with_every_answer_of_the_disk() -> None:
    world = filled([0])
    world.feed()
    for number in range(1, 10):
        read = world.read()
        world.append([number])
        world.answer()
        world.happens(read)
        if not world.reads:
            break
    assert world.positions() == [0, 1]
    world.append([10])
    world.answer()
    assert world.positions() == [0, 1, 2]
    world.settle()
    world.check_end()


def test_what_was_kept_while_the_disk_reads_is_bounded() -> None:
    world = filled([0], limits=replace(DEFAULT_LIMITS, feed_recent_bytes=1))
    world.feed()
    read = world.read()
    world.append([1])
    world.answer()
    world.happens(read)
    assert world.reads, "it was not, and is read"
    world.settle()
    assert world.positions() == [0, 1]
    world.check_end()


def test_who_is_at_the_end_does_not_wait_for_those_that_read() -> None:
    world = filled([0], [1])
    world.feed(1)
    world.feed(2, places=[("ann", EPOCH, 2)])
    read = world.read()
    world.append([2])
    world.answer()
    assert (world.positions(1), world.positions(2)) == ([], [2])
    world.happens(read)
    assert world.positions(1) == [0, 1, 2]


def test_rows_of_an_earlier_life_are_read_for_those_that_are_live() -> None:
    world = FeedWorld(copies=True)
    world.append([1, 2])
    world.append([3])
    world.answer()
    world.disk.logs[world.own().name].safe = 2
    world.begin()
    world.feed(condition="price > 1", places=[("ann", EPOCH, 2)])
    world.append([4])
    world.answer()
    assert world.positions() == []
    world.confirm()
    assert [one.position for one in world.disk.asked if isinstance(one, ReadRows)] == [2]
    world.settle()
    assert world.positions() == [2, 3]
    world.check_end()


def test_a_log_that_begins_later_is_fed_from_its_beginning() -> None:
    world = filled([1])
    world.feed(since=world.clock_us + 10**9)
    world.log.begin_epoch(EPOCH + 1)
    world.append([2])
    world.answer()
    world.settle()
    assert world.positions() == [] and world.positions(epoch=EPOCH + 1) == [0]
    world.check_end()


def test_rows_that_moved_to_another_log_are_told_there() -> None:
    world = FeedWorld(copies=True)
    world.feed(since=world.clock_us + 10**9)
    world.append([1])
    world.answer()
    held = world.own()
    assert held.uncommitted
    world.log.begin_epoch(EPOCH + 1)
    other = world.own()
    (row,) = world.disk.logs[held.name].rows
    at = decode_row(row.row)
    moved = Append(0, other.name, row.row, 0, at.count, at.time)
    world.events[Place("ann", EPOCH + 1)] = world.events.pop(ANN)
    world.disk.logs[other.name] = world.disk.logs.pop(held.name)
    world.log.moved(held, 0, len(row.row), other, {1: moved}, world.now)
    world.after()
    assert world.positions(epoch=EPOCH + 1) == []
    world.confirm(other)
    world.settle()
    assert world.positions() == [] and world.positions(epoch=EPOCH + 1) == [0]


def test_copies_are_fed_while_their_owner_is_not_present() -> None:
    world = FeedWorld()
    world.append([1, 2], held=world.copy())
    world.answer()
    world.feed(1)
    world.feed(2, present=["ann"])
    world.settle()
    assert Place("bob", EPOCH) not in world.told[5, 1]
    assert world.positions(2, broker="bob") == [0, 1]
    world.append([3], held=world.copy())
    world.append([4], held=world.copy("cid"))
    world.answer()
    world.settle()
    assert world.positions(2, broker="bob") == [0, 1, 2] and world.positions(2, broker="cid") == [0]
    world.check_end()


def test_a_section_asks_more_of_what_is_before_its_end() -> None:
    world = filled([1, 5, 9])
    world.feed(
        condition="price > 1", sections=[("price > 6", [("ann", EPOCH, 4)]), ("price < 12", [("ann", EPOCH, 2)])]
    )
    world.append([5, 3, 12])
    world.answer()
    world.settle()
    assert world.positions() == [2, 4, 5]


def test_a_key_is_the_same_number_for_equal_values() -> None:
    assert key_hash(1) == key_hash(1.0) != key_hash("1")
    assert key_hash(-0.0) == key_hash(0) != key_hash(None)
    assert key_hash(True) != key_hash(1), "as SQL has it"
    assert key_hash(2.5) == key_hash(2.5) and key_hash(2**60) == key_hash(float(2**60))
    assert key_hash("OTE") == 2916196213, "for ever, in every broker"
    world = filled([1, "x", None], [1.0])
    world.feed(1, key="price")
    world.feed(2, key="nothing")
    world.settle()
    assert world.positions() == [0, 1, 2, 3]


def test_retention_is_told_to_those_that_are_live_and_to_those_that_read() -> None:
    world = filled([1], [2], [3], [4])
    world.feed(1, places=[("ann", EPOCH, 4)])
    world.trim(3)
    world.feed(2, places=[("ann", EPOCH, 1)])
    world.answer()
    world.wake(FEED_IDLE_SECONDS)
    assert world.told[5, 1][ANN].first == 3
    assert (world.told[5, 2][ANN].first, world.positions(2)) == (3, [3])
    world.settle()
    world.check_end()


def test_retention_of_all_that_a_feed_is_behind_of_is_told_at_once() -> None:
    world = filled([1, 2], [3, 4])
    world.trim(4)
    world.settle()
    world.feed(places=[("ann", EPOCH, 1)])
    world.settle()
    assert (world.told[5, 1][ANN].first, world.told[5, 1][ANN].upto, world.positions()) == (4, 4, [])
    world.append([5])
    world.settle()
    assert world.positions() == [4]
    world.check_end()


def test_damage_is_passed_over_and_noted() -> None:
    world = filled([1], [2], [3])
    world.disk.unreadable[world.own().name] = 1
    world.feed()
    world.disk.unreadable.clear()
    world.disk.logs[world.own().name].rows[1] = replace(world.disk.logs[world.own().name].rows[1], row=b"x")
    del world.events[ANN][1]
    world.settle()
    assert world.positions() == [0, 2]
    assert [note.event for note in world.notes] == ["rows not fed"]
    assert world.told[5, 1][ANN].upto == 3


def test_a_part_that_cannot_be_read_at_all_is_passed_over() -> None:
    world = filled([1], [2], [3])
    world.disk.unreadable[world.own().name] = 0
    del world.events[ANN][0]
    world.feed()
    world.settle()
    assert world.positions() == [1, 2] and world.notes


def test_a_column_that_cannot_be_read_concerns_only_conditions_that_name_it() -> None:
    world = FeedWorld()
    for number, condition in enumerate(["", "price >= 0", "volume > 0 OR price >= 0"], 1):
        world.feed(number, condition)
    batch = quote_batch(bodies=["a", "b"], price=[1, 2])
    batch.columns["volume"] = b"?"
    events = world.events
    world.asked[5, 3] = replace(world.asked[5, 3], condition="price > 100")  # what names it matches nothing
    world.append([1, 2], batch=batch)
    assert events
    world.answer()
    assert [world.positions(number) for number in (1, 2, 3)] == [[0, 1], [0, 1], []]


def test_a_feed_of_the_same_number_begins_anew_and_one_that_ended_is_told_nothing() -> None:
    world = filled([1, 2])
    world.feed(1)
    world.feed(2)
    world.settle()
    world.feed(1, condition="price = 2")
    world.end(2)
    world.append([2])
    world.answer()
    world.settle()
    assert world.positions() == [1, 2]
    world.gone(5)
    world.append([2])
    world.answer()
    world.settle()
    world.feeding.validate()
    assert not world.feeding.streams


def test_a_link_that_ends_lets_go_of_many_feeds_step_by_step() -> None:
    world = filled([1], limits=replace(DEFAULT_LIMITS, feed_step_feeds=3))
    for number in range(1, 11):
        world.feed(number, condition=f"price = {number}")
    world.feed(1, asker=6)
    world.settle()
    world.gone(5)
    world.append([1])
    world.answer()
    assert world.positions(asker=6) == [0, 1]
    world.settle()
    world.check_end()
    assert world.timers.when(FEEDING) == NEVER


def test_nothing_is_read_while_a_coordinator_takes_nothing() -> None:
    world = filled([1])
    world.paused[5] = None
    world.feed()
    world.wake()
    assert not world.disk.asked
    world.paused.clear()
    world.wake(FEED_PAUSE_SECONDS)
    world.settle()
    assert world.positions() == [0]


def test_what_is_not_understood_is_noted_and_not_fed() -> None:
    world = filled([1])
    world.feed(1, condition="price >")
    world.feed(2, pattern="quotes/#")
    world.feed(3, sections=[("price >", [])])
    world.settle()
    assert [note.event for note in world.notes] == ["feed not understood"] * 3
    assert not any(world.told.values())


@pytest.mark.parametrize("key", ["", "price"])
def test_long_answers_are_several_facts(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.broker.core.durable.feeding._RUNS_MAX", 2)
    monkeypatch.setattr("headgate.broker.core.durable.feeding._KEYS_MAX", 3)
    world = filled([1, 1, 1, 1, 0, 1, 0, 1, 0, 1, 0])
    world.feed(condition="price = 1", key=key)
    world.settle()
    assert world.positions() == [0, 1, 2, 3, 5, 7, 9]
    assert world.told[5, 1][ANN].facts == (3 if key else 2)
    world.check_end()


def test_a_verified_batch_is_matched_by_its_records() -> None:
    world = FeedWorld()
    world.feed(condition="price = 2")
    batch = quote_batch(bodies=["a", "b"], price=[1, 2])
    assert encode_column([1, 2]) == batch.columns["price"]
    batch.columns, batch.complete = {}, False
    world.append([1, 2], batch=batch)
    world.answer()
    assert world.positions() == [1]


CONDITIONS = ["", "price > 2", "price = 1 OR price IS NULL", "price < 2 AND price > 4"]
LIMITS = replace(
    DEFAULT_LIMITS,
    feed_chunk_bytes=300,
    feed_step_bytes=100,
    feed_step_feeds=2,
    feed_idle_feeds=2,
    feed_recent_bytes=400,
    feed_reads=2,
)
prices = st.lists(st.sampled_from([0, 1, 2, 3, 4.0, 5, None]), min_size=1, max_size=4)
numbers, askers = st.integers(1, 4), st.integers(5, 6)


class FedMachine(RuleBasedStateMachine):
    """Any order of what can happen; `FeedWorld.heard` checks each fact, and at the end all is known."""

    def __init__(self) -> None:
        super().__init__()
        self.world = FeedWorld(copies=True, limits=LIMITS)

    @rule(prices=prices, topic=st.sampled_from(["quotes/a", "quotes/b"]))
    def publish(self, prices: list[Any], topic: str) -> None:
        self.world.append(prices, topic)

    @rule(prices=prices)
    def copied(self, prices: list[Any]) -> None:
        self.world.append(prices, held=self.world.copy())

    @rule(most=st.integers(1, 4))
    def disk(self, most: int) -> None:
        self.world.answer(most)

    @rule(part=st.floats(0, 1))
    def confirm(self, part: float) -> None:
        for held in self.world.log.own_logs():
            self.world.confirm(held, int(part * held.next + 0.5))

    @rule(
        number=numbers,
        asker=askers,
        condition=st.sampled_from(CONDITIONS),
        pattern=st.sampled_from(["quotes", "quotes/a", "quotes/*"]),
        named=st.booleans(),
        part=st.floats(0, 1.2),
        section=st.sampled_from(["", "price >= 3"]),
        before=st.floats(0, 1.2),
        key=st.sampled_from(["", "price"]),
        present=st.sampled_from([("ann",), ("ann", "bob")]),
        age=st.integers(0, 12),
    )
    def feed(
        self,
        number: int,
        asker: int,
        condition: str,
        pattern: str,
        named: bool,
        part: float,
        section: str,
        before: float,
        key: str,
        present: tuple[str, ...],
        age: int,
    ) -> None:
        logs = self.world.log.by_stream.get("quotes", [])
        places = [(one.name.broker, one.name.epoch, int(part * one.readable)) for one in logs]
        ends = [(one.name.broker, one.name.epoch, int(before * one.readable)) for one in logs]
        sections = [(section, ends)] if section else []
        since = self.world.clock_us - 1000 * age
        self.world.feed(number, condition, pattern, asker, since, places if named else (), sections, key, present)

    @rule(number=numbers, asker=askers)
    def end(self, number: int, asker: int) -> None:
        self.world.end(number, asker)

    @rule(asker=askers)
    def gone(self, asker: int) -> None:
        self.world.gone(asker)

    @rule(seconds=st.sampled_from([0.0, 0.1, 2.0]))
    def wake(self, seconds: float) -> None:
        self.world.wake(seconds)

    @rule(part=st.floats(0, 1), own=st.booleans())
    def trim(self, part: float, own: bool) -> None:
        for held in self.world.log.by_stream.get("quotes", []):
            if held.own is own and held.name in self.world.disk.logs:
                self.world.trim(int(part * held.readable), held)

    @precondition(lambda self: self.world.log.epoch < EPOCH + 3)
    @rule()
    def new_epoch(self) -> None:
        self.world.log.begin_epoch(self.world.log.epoch + 1)

    @rule()
    def restart(self) -> None:
        self.world.restart()

    @invariant()
    def sound(self) -> None:
        self.world.feeding.validate()

    def teardown(self) -> None:
        self.world.settle()
        for held in self.world.log.own_logs():
            self.world.confirm(held)
        self.world.settle()
        self.world.check_end()


TestFedMachine = FedMachine.TestCase
TestFedMachine.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
