"""The driver: inputs go in, effects are carried out, one timer is armed, and a fault costs one link."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import structlog

from headgate.broker.core.delivery import DRAINING
from headgate.broker.core.effects import Append, Close, FindTime, Halt, Note, Send, Store, WriteOn
from headgate.broker.core.inputs import Drain, LinkDown, LinkPaused, NotStored, Opened, Received, Wake
from headgate.broker.daemon.driver import MATCH_BUCKETS_SECONDS
from headgate.broker.daemon.limits import (
    FAULT_PAUSE_SECONDS,
    FEW_EFFECTS_MAX,
    LARGE_READ_BYTES,
    TURN_BYTES_MAX,
    TURN_READS_MAX,
)
from headgate.protocol.data import LogName, make_batch, split_u32
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Ask, Deliver, Error, Gap, Goodbye, Mode, Puback, Publish
from tests.support.driver_bench import Bench, Wire
from tests.support.waiting import wait_until


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def test_each_effect_is_carried_out(bench: Bench) -> None:
    wire = bench.client(1)
    with structlog.testing.capture_logs() as lines:
        bench.node.extra = (
            Send(1, Gap(1, 2, "why")),
            Store("schema/a", {"attributes": {}}),
            Note("it happened", {"client": "ann"}),
            Note("it went wrong", {}, alarming=True),
            Note("nobody cares", {}, routine=True),
            Close(1),
        )
        bench.driver.feed(Wake())
    assert wire.heard(Gap) == [Gap(1, 2, "why")]
    assert wire.closed and not wire.aborted
    assert bench.records.values == {"schema/a": {"attributes": {}}}
    assert lines == [
        {"event": "it happened", "client": "ann", "log_level": "info", "cause": "test#2 timers:"},
        {"event": "it went wrong", "log_level": "warning", "cause": "test#2 timers:"},
        {"event": "nobody cares", "log_level": "debug", "cause": "test#2 timers:"},
    ]


async def test_a_link_that_is_gone_or_closed_is_no_error(bench: Bench) -> None:
    wire = bench.client(1)
    wire.closed = True
    wire.said.clear()
    bench.node.extra = (Send(1, Gap(1, 2, "")), Send(99, Gap(1, 2, "")), Close(99))
    bench.driver.feed(Wake())
    assert wire.said == []
    assert bench.driver.faults == 0


async def test_a_record_that_cannot_be_written_is_logged_and_nothing_else(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "records.new").mkdir()
    with structlog.testing.capture_logs() as lines:
        bench.node.extra = (Store("schema/a", {}), Note("after it", {}))
        bench.driver.feed(Wake())
    assert [line["event"] for line in lines] == ["record not stored", "after it"]
    assert lines[0]["key"] == "schema/a" and "Is a directory" in lines[0]["reason"]


async def test_matching_is_timed_by_read(bench: Bench) -> None:
    bench.client(1)
    bench.driver.match_counts = [0] * len(bench.driver.match_counts)
    ticks = iter([5.0, 5.0 + 3e-4])
    bench.driver.clock = lambda: next(ticks)
    bench.publish(1)
    place = MATCH_BUCKETS_SECONDS.index(5e-4)
    assert bench.driver.match_counts == [int(number == place) for number in range(len(MATCH_BUCKETS_SECONDS) + 1)]
    assert bench.driver.match_seconds == pytest.approx(3e-4, rel=1e-3)
    bench.driver.clock = lambda: bench.now
    bench.driver.feed(Wake())
    bench.driver.feed(LinkDown(1, "gone"))
    assert sum(bench.driver.match_counts) == 1, "only what clients say is matched"
    bench.driver.stop()


async def test_the_timer_wakes_the_node_when_it_is_due(bench: Bench) -> None:
    bench.client(1)
    bench.driver.feed(LinkDown(1, "gone"))
    assert len(bench.node.subscribers.by_key) == 1
    bench.now += bench.node.config.grace_seconds
    await wait_until(lambda: not bench.node.subscribers.by_key)
    bench.driver.stop()


async def test_what_is_due_at_once_lets_others_have_their_turn(bench: Bench) -> None:
    wire = bench.subscriber(1, credit=1)
    bench.client(2)
    for sequence in range(1, 5):
        bench.publish(2, sequence, size=512 * 1024)
    assert len(wire.heard(Deliver)) == 1
    session = bench.node.subscribers.by_link[1]
    session.allowed = 1000
    bench.node.subscribers.draining[session.key] = session
    bench.node.timers.at(DRAINING, float("-inf"))
    turns: list[int] = []
    bench.driver.feed(LinkDown(99, "a nobody"))
    asyncio.get_running_loop().call_soon(lambda: turns.append(len(wire.heard(Deliver))))
    assert len(wire.heard(Deliver)) == 1, "not within the input that came upon it"
    await wait_until(lambda: len(wire.heard(Deliver)) == 4)
    assert turns == [3], "one step of a mebibyte, then the next one in the queue, then the rest"
    assert bench.node.next_deadline() > bench.now


async def test_a_paused_link_with_much_to_come_does_not_spin(bench: Bench) -> None:
    bench.subscriber(1, credit=1)
    bench.client(2)
    for sequence in range(1, 6):
        bench.publish(2, sequence, size=700 * 1024)
    session = bench.node.subscribers.by_link[1]
    session.allowed = 1000
    bench.node.subscribers.pump(session)
    assert bench.node.next_deadline() == float("-inf")
    bench.driver.feed(LinkPaused(1))
    assert bench.node.next_deadline() > bench.now


async def test_stop_disarms(bench: Bench) -> None:
    bench.client(1)
    bench.node.deadline = float("-inf")
    bench.driver.feed(LinkDown(99, "a nobody"))
    bench.driver.stop()
    bench.node.breaks_on = Wake
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert bench.node.breaks == 0


async def test_an_input_that_fails_ends_its_session_and_no_other(bench: Bench) -> None:
    subscriber, publisher, hostile = bench.subscriber(1), bench.client(2), bench.client(3)
    bench.node.breaks_on = Publish
    with structlog.testing.capture_logs() as lines:
        bench.publish(3)
    assert [(line["event"], line["input"], line["exc_info"]) for line in lines if line["log_level"] == "error"] == [
        ("fault while handling an input", "Received", True)
    ]
    assert bench.driver.faults == 1
    assert hostile.closed
    assert "a fault in the broker" in hostile.said[-1].text  # type: ignore[union-attr]  # a GOODBYE
    assert 3 not in bench.node.subscribers.by_link and len(bench.node.subscribers.by_key) == 2
    bench.node.breaks_on = type(None)
    bench.publish(2)
    assert publisher.heard(Puback) == [Puback(1)]
    assert len(subscriber.heard(Deliver)) == 1
    bench.driver.feed(LinkDown(3, "closed"))
    bench.node.validate()


async def test_a_session_that_cannot_even_end_loses_its_link(bench: Bench) -> None:
    wire = bench.client(1)
    bench.node.breaks_on = Received
    bench.publish(1)
    assert wire.closed
    assert bench.node.breaks == bench.driver.faults == 2


async def test_a_wake_that_fails_is_tried_again_after_a_pause(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.node.deadline = float("-inf")
    bench.node.breaks_on = Wake
    bench.driver.feed(LinkDown(99, "a nobody"))
    pauses: list[float] = []
    loop = asyncio.get_running_loop()

    def call_later(delay: float, call: Any) -> asyncio.Handle:
        pauses.append(delay)
        return loop.call_soon(call)

    monkeypatch.setattr(loop, "call_later", call_later)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert pauses[0] == FAULT_PAUSE_SECONDS
    bench.driver.stop()


async def test_an_effect_that_fails_costs_its_own_link_only(bench: Bench) -> None:
    first, choking, last = bench.subscriber(1), bench.subscriber(2), bench.subscriber(3)
    publisher = bench.client(4)
    choking.chokes_on = Deliver
    bench.publish(4)
    assert len(first.heard(Deliver)) == len(last.heard(Deliver)) == 1
    assert publisher.heard(Puback) == [Puback(1)]
    assert choking.aborted and not (first.closed or last.closed or publisher.closed)
    assert bench.driver.faults == 1


async def test_a_drain_that_fails_is_logged(bench: Bench) -> None:
    bench.node.breaks_on = Drain
    bench.driver.feed(Drain())
    assert bench.driver.faults == 1


async def test_the_wall_clock_is_told_as_its_distance(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 5000.0)
    bench.driver.tell_wall_clock()
    assert bench.node.clock.offset == 4000.0


async def test_goodbye_closes_the_link_from_this_side_too(bench: Bench) -> None:
    wire = bench.client(1)
    bench.driver.feed(Received(1, [Goodbye(ErrorCode.GOODBYE, "")]))
    assert wire.closed and not wire.aborted


async def test_what_one_input_says_on_a_link_is_flushed_once_and_at_once(bench: Bench) -> None:
    wires = [bench.subscriber(link) for link in (1, 2)]
    before = [wire.flushes for wire in wires]
    bench.client(3)
    batches = [make_batch(["a"], {}, [b"x" * size]) for size in (1, 2, 3)]
    bench.feed(Received(3, [Publish(sequence, Mode.ACCEPTED, batch) for sequence, batch in enumerate(batches, 1)]))
    assert [wire.flushes for wire in wires] == [count + 1 for count in before]


async def test_a_lone_delivery_is_written_before_its_acknowledgement_is_encoded(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscriber, publisher = bench.subscriber(1), bench.client(2)
    bench.publish(2, sequence=1)
    order: list[tuple[Any, str]] = []
    monkeypatch.setattr(Wire, "queue", lambda wire, message: order.append((wire, type(message).__name__)))
    monkeypatch.setattr(Wire, "flush", lambda wire: order.append((wire, "flush")))
    bench.publish(2, sequence=2)
    assert order == [(subscriber, "Deliver"), (subscriber, "flush"), (publisher, "Puback"), (publisher, "flush")]


async def test_of_many_effects_each_link_is_flushed_once(bench: Bench) -> None:
    wires = [bench.subscriber(link, 10_000) for link in range(1, FEW_EFFECTS_MAX + 1)]
    bench.client(99)
    before = [wire.flushes for wire in wires]
    batches = [make_batch(["a"], {}, [b"x"] * 4000) for _ in range(2)]
    bench.feed(Received(99, [Publish(sequence, Mode.ACCEPTED, batch) for sequence, batch in enumerate(batches, 1)]))
    assert all(len(wire.heard(Deliver)) > 1 for wire in wires), "they take turns"
    assert [wire.flushes for wire in wires] == [count + 1 for count in before]


async def test_when_more_follows_everything_is_flushed_once_at_the_end_of_the_turn(bench: Bench) -> None:
    wire = bench.subscriber(1)
    bench.client(2)
    before = wire.flushes
    for sequence in (1, 2, 3):
        batch = make_batch(["a"], {}, [b"x"])
        bench.driver.feed(Received(2, [Publish(sequence, Mode.ACCEPTED, batch)]), LARGE_READ_BYTES)
    assert wire.flushes == before
    await asyncio.sleep(0)
    assert wire.flushes == before + 1
    bench.publish(2, sequence=4)
    assert wire.flushes == before + 2


def single(sequence: int, link: int = 2) -> Received:
    return Received(link, [Publish(sequence, Mode.ACCEPTED, make_batch(["a"], {}, [b"x" * sequence]))])


def lengths_of(wire: Wire) -> list[list[int]]:
    return [split_u32(message.portion.lengths).tolist() for message in wire.heard(Deliver)]


async def test_reads_that_follow_one_another_are_spread_as_one(bench: Bench) -> None:
    wire = bench.subscriber(1)
    bench.client(2)
    for sequence in (1, 2, 3):
        bench.driver.feed(single(sequence), LARGE_READ_BYTES)
    assert not wire.heard(Deliver)
    await asyncio.sleep(0)
    (lengths,) = lengths_of(wire)
    assert len(lengths) == 3 and lengths == sorted(lengths)


async def test_nothing_overtakes_what_is_held_back(bench: Bench) -> None:
    wire, publisher = bench.subscriber(1), bench.client(2)
    bench.client(3)
    bench.driver.feed(single(1), LARGE_READ_BYTES)
    bench.driver.feed(Wake())
    assert [message.sequence for message in publisher.heard(Puback)] == [1]
    bench.driver.feed(single(2), LARGE_READ_BYTES)
    bench.driver.feed(single(1, link=3), LARGE_READ_BYTES)
    assert [message.sequence for message in publisher.heard(Puback)] == [1]
    bench.driver.feed(LinkDown(3, "gone"))
    assert [message.sequence for message in publisher.heard(Puback)] == [1, 2]
    assert [len(lengths) for lengths in lengths_of(wire)] == [1, 2]
    await asyncio.sleep(0)
    assert len(lengths_of(wire)) == 2


async def test_what_is_held_back_is_bounded(bench: Bench) -> None:
    wire = bench.subscriber(1)
    bench.client(2)
    reads = TURN_BYTES_MAX // LARGE_READ_BYTES
    for sequence in range(1, reads + 1):
        assert not wire.heard(Deliver)
        bench.driver.feed(single(sequence), LARGE_READ_BYTES)
    (lengths,) = lengths_of(wire)
    assert len(lengths) == reads <= TURN_READS_MAX


async def test_a_pause_in_the_middle_of_an_input_is_told_when_the_input_is_done(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = bench.subscriber(1), bench.subscriber(2)
    bench.client(3)

    def flush(wire: Wire) -> None:
        if wire is first:
            bench.node.extra = (Send(2, Gap(1, 2, "why")),)
            bench.driver.feed(LinkPaused(1))

    monkeypatch.setattr(Wire, "flush", flush)
    second.said.clear()
    bench.publish(3)
    assert [type(message) for message in second.said] == [Deliver, Gap]


async def test_small_reads_that_come_close_behind_one_another_are_one_turn(bench: Bench) -> None:
    wire = bench.subscriber(1)
    publishers = [bench.client(link) for link in (2, 3, 4)]
    bench.driver.feed(Wake())
    for link in (2, 3, 4):
        bench.driver.feed(single(1, link), 100)
    assert not wire.heard(Deliver)
    await asyncio.sleep(0)
    assert [len(lengths) for lengths in lengths_of(wire)] == [3]
    assert [[message.sequence for message in one.heard(Puback)] for one in publishers] == [[1], [1], [1]]
    bench.now += 0.001
    bench.driver.feed(single(2, 2), 100)
    assert len(lengths_of(wire)) == 2, "what comes alone does not wait"


async def test_a_read_that_the_node_fails_on_costs_its_own_link_alone(bench: Bench) -> None:
    wire, good, bad = bench.subscriber(1), bench.client(2), bench.client(3)
    bench.driver.feed(single(1), LARGE_READ_BYTES)
    bench.driver.feed(Received(3, [object()]), LARGE_READ_BYTES)  # type: ignore[list-item]
    bench.driver.feed(single(2), 1)
    await asyncio.sleep(0)
    assert [message.sequence for message in good.heard(Puback)][-1] == 2 and bad.closed and not good.closed
    assert sum(map(len, lengths_of(wire))) == 2


async def test_what_the_log_is_asked_and_the_order_to_halt_go_to_whoever_can(bench: Bench) -> None:
    asked: list[object] = []
    question = FindTime(1, LogName("test", 7, 0, "a"), 5)
    bench.node.extra = (question, Halt("the disk has failed"))
    bench.driver.feed(Wake())  # nobody can: nothing happens
    bench.driver.ask_store = bench.driver.halt = asked.append
    bench.node.extra = (question, Halt("the disk has failed"))
    bench.driver.feed(Wake())
    assert asked == [question, "the disk has failed"] and bench.driver.faults == 0


async def test_what_was_held_back_is_asked_of_the_disk_before_the_node_says_that_it_knows(bench: Bench) -> None:
    wire = bench.client(1)
    asked: list[Any] = []
    bench.driver.ask_store = asked.append
    bench.driver.feed(Opened(7))
    bench.node.streams.declare("a", {"durability": "stored"})
    batch = make_batch(["a/b"], {}, [b"x"])
    bench.driver.feed(Received(1, [Publish(1, Mode.STORED, batch)]))
    bench.driver.feed(Received(1, [Publish(2, Mode.STORED, batch)]), LARGE_READ_BYTES)
    bench.driver.feed(NotStored("no room"))
    bench.driver.feed(Received(1, [Publish(3, Mode.STORED, batch)]))
    assert [type(one) for one in asked] == [Append, Append, WriteOn, Append]
    assert [one.first for one in asked if isinstance(one, Append)] == [0, 1, 0], "its positions are given again"
    assert [error.reference for error in wire.heard(Error)] == [1, 2]
    bench.node.validate()
    bench.driver.stop()


async def test_while_records_find_no_room_a_schema_is_refused(bench: Bench) -> None:
    wire = bench.client(1)
    bench.records.reserve.whole = False
    catch_up, bench.records.catch_up = bench.records.catch_up, lambda: None  # type: ignore[method-assign]
    put = Ask(1, "schema.put", {"stream": "a", "schema": {}})
    with structlog.testing.capture_logs() as lines:
        bench.driver.look_at_records()
        bench.driver.feed(Received(1, [put]))
        bench.records.catch_up = catch_up  # type: ignore[method-assign]
        bench.driver.look_at_records()
        bench.driver.look_at_records()
    assert [line["event"] for line in lines] == ["no room for records", "room for records again"]
    (error,) = wire.heard(Error)
    assert error.code == ErrorCode.NOT_STORED and "could not keep it: no room for" in error.text
    assert bench.records.values == {}
    bench.driver.feed(Received(1, [Ask(2, "schema.put", {"stream": "a", "schema": {}})]))
    assert "schema/a" in bench.records.values
    bench.driver.stop()
