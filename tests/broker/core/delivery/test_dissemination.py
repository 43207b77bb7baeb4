"""Dissemination: who gets which rows in how many portions, and what a batch may get wrong without harm to anybody."""

from __future__ import annotations

from itertools import accumulate
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.delivery import ClientSession
from headgate.broker.core.delivery.dissemination import _all_routes, _by_session
from headgate.broker.core.limits import Limits
from headgate.protocol.data import Batch
from headgate.protocol.errors import ErrorCode
from headgate.protocol.limits import CONTROL_LENGTH_MAX, FRAME_LENGTH_MAX
from headgate.protocol.messages import Deliver, Error, Mode, Puback, Scope, Subscribe, Unsubscribe
from headgate.protocol.wire import encode
from tests.support.builders import deliveries_of, make_publish, make_subscribe, quote_batch
from tests.support.node_world import NodeWorld


def delivers(world: NodeWorld, link: int) -> list[Deliver]:
    return [message for message in world.take(link) if isinstance(message, Deliver)]


# --- Portions ---------------------------------------------------------------------------------------------------------


def test_a_batch_that_everybody_wants_whole_is_one_portion_for_all() -> None:
    world = NodeWorld()
    links = [world.subscriber() for _ in range(3)]
    batch = quote_batch(bodies=["a", "b", "c"])
    world.say(world.connect(), make_publish(1, batch))
    portions = [delivers(world, link)[0].portion for link in links]
    assert portions[0] is portions[1] is portions[2]
    assert portions[0].records is batch.records


def test_sessions_that_want_the_same_rows_share_a_portion() -> None:
    world = NodeWorld()
    links = [world.subscriber(("quotes/a", "")), world.subscriber(("quotes/a", "")), world.subscriber()]
    world.say(world.connect(), make_publish(1, quote_batch(["quotes/a", "quotes/b", "quotes/a"], ["1", "2", "3"])))
    first, second, third = (delivers(world, link)[0].portion for link in links)
    assert first is second
    assert first.count == 2
    assert third.count == 3


def test_subscriptions_of_one_session_share_its_one_portion() -> None:
    world = NodeWorld()
    link = world.subscriber(("quotes", ""), ("quotes/a", ""), ("quotes", "price > 1"))
    batch = quote_batch(["quotes/a", "quotes/b", "quotes/b"], ["1", "2", "3"], price=[0.5, 0.5, 2.0])
    world.say(world.connect(), make_publish(1, batch))
    (message,) = delivers(world, link)
    assert deliveries_of([message]) == [(1, "1"), (2, "1"), (1, "2"), (1, "3"), (3, "3")]


def test_positions_are_dense_whether_anybody_listens_or_not() -> None:
    world = NodeWorld()
    link, publisher = world.subscriber(("quotes/b", "")), world.connect()
    world.say(publisher, make_publish(1, quote_batch("quotes/a", ["1", "2"])))
    world.say(publisher, make_publish(2, quote_batch(["quotes/a", "quotes/b", "quotes/a", "quotes/b"], list("3456"))))
    (message,) = delivers(world, link)
    portion = message.portion
    assert [portion.base + row for row in portion.rows()] == [3, 5]
    assert portion.origin == world.config.origin


def test_no_portion_names_more_subscriptions_than_a_frame_has_room_for() -> None:
    world = NodeWorld(limits=Limits(route_numbers=10))
    link = world.subscriber(*[("quotes", f"price > {bound}") for bound in range(5)])
    prices = [float(number % 6) for number in range(20)]
    world.say(world.connect(), make_publish(1, quote_batch(bodies=[str(n) for n in range(20)], price=prices)))
    messages = delivers(world, link)
    assert all(sum(len(numbers) for numbers, _ in message.runs()) <= 10 for message in messages)
    assert len(messages) > 1
    expected = [(b + 1, str(n)) for n in range(20) for b in range(5) if prices[n] > b]
    assert deliveries_of(messages) == expected


@pytest.mark.slow
def test_the_largest_routes_leave_room_in_the_frame() -> None:
    world = NodeWorld()
    link = world.connect()
    numbers = [2**53 - bound for bound in range(1000)]
    world.say(link, *[Subscribe(n, number, "quotes", f"price <> {n}") for n, number in enumerate(numbers)])
    world.take(link)
    prices = [float(row % 1000) for row in range(4096)]
    world.say(world.connect(), make_publish(1, quote_batch(bodies=["x"] * 4096, price=prices)))
    for message in delivers(world, link):
        assert len(encode(message)) - len(message.portion.records) < CONTROL_LENGTH_MAX


def test_batches_of_one_read_go_out_together_as_far_as_a_frame_has_room() -> None:
    world = NodeWorld()
    link, publisher = world.subscriber(), world.connect()
    world.say(publisher, *[make_publish(sequence) for sequence in range(1, 6)])
    (message,) = delivers(world, link)
    assert deliveries_of([message]) == [(1, str(sequence)) for sequence in range(1, 6)]
    large = [quote_batch(bodies=["x" * 900_000] * 3), quote_batch(bodies=["y" * 900_000] * 2)]
    world.say(publisher, make_publish(6, large[0]), make_publish(7, large[1]))
    messages = delivers(world, link)
    assert all(len(encode(message)) <= FRAME_LENGTH_MAX for message in messages)
    assert [body[0] for _, body in deliveries_of(messages)] == ["x"] * 3 + ["y"] * 2


def test_batches_that_go_the_same_way_are_joined_no_further_than_is_good_for_the_cache() -> None:
    world = NodeWorld(limits=Limits(whole_events=4))
    link, publisher = world.subscriber(), world.connect()
    world.say(publisher, *[make_publish(n, quote_batch(bodies=[f"{n}a", f"{n}b"])) for n in range(1, 6)])
    messages = delivers(world, link)
    assert [message.portion.count for message in messages] == [4, 4, 2]
    assert [message.portion.base for message in messages] == [0, 4, 8]
    assert [body for _, body in deliveries_of(messages)] == [f"{n}{side}" for n in range(1, 6) for side in "ab"]


def test_no_portion_is_larger_than_a_batch() -> None:
    world = NodeWorld(limits=Limits(batch_events=3))
    link, other = world.subscriber(("quotes/a", "")), world.subscriber(("quotes/b", ""))
    batches = [quote_batch(["quotes/a", "quotes/a", "quotes/b"], [f"{n}{side}" for side in "xyz"]) for n in range(4)]
    world.say(world.connect(), *[make_publish(n, batch) for n, batch in enumerate(batches, 1)])
    messages = delivers(world, link)
    assert [message.portion.count for message in messages] == [3, 3, 2]
    assert [body for _, body in deliveries_of(messages)] == [f"{n}{side}" for n in range(4) for side in "xy"]
    assert [body for _, body in deliveries_of(delivers(world, other))] == [f"{n}z" for n in range(4)]


def test_long_topics_count_toward_what_is_gathered() -> None:
    world = NodeWorld()
    topics = [f"quotes/{side * 1000}" for side in "ab"]
    link, publisher = world.subscriber(), world.connect()
    world.subscriber((topics[0], ""))
    for first in (1, 3):
        bodies = [["x"] * 2000, ["y"] * 2000]
        world.say(publisher, *[make_publish(first + n, quote_batch(topics[n], bodies[n])) for n in (0, 1)])
        messages = delivers(world, link)
        assert all(len(encode(message)) <= FRAME_LENGTH_MAX for message in messages)
        assert [body for _, body in deliveries_of(messages)] == bodies[0] + bodies[1]


numbers_ = st.integers(1, 3) | st.integers(2**32, 2**33) | st.lists(st.integers(1, 3), min_size=2, max_size=3)
plans_ = st.lists(st.dictionaries(st.sampled_from("abc"), numbers_, max_size=3), min_size=1, max_size=12)
plans_of_one_ = st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(1, 3), min_size=1, max_size=1), min_size=1)


@given(plans_ | plans_of_one_)
def test_rows_are_sorted_by_session_as_a_walk_over_them_would(plans: list[dict[str, Any]]) -> None:
    everybody = {name: ClientSession(name.encode(), name, None, 0, 0) for name in "abc"}
    flat = [tuple(part for name, some in plan.items() for part in (everybody[name], some)) for plan in plans]
    sessions, shares, rows, numbers, alone = _by_session(flat)
    ends = [*accumulate(shares)]
    walked: dict[str, list[tuple[int, list[int]]]] = {}
    for row, plan in enumerate(plans):
        for session, some in plan.items():
            walked.setdefault(session, []).append((row, some if isinstance(some, list) else [some]))
    found: dict[str, list[tuple[int, list[int]]]] = {}
    for whose, start, end, routes in zip(sessions, [0, *ends], ends, _all_routes(numbers, ends), strict=False):
        runs = Deliver(routes, cast(Any, None)).runs()
        each = [some for some, count in runs for _ in range(count)]
        found[whose.name] = list(zip(rows[start:end], each, strict=True))
    assert list(found.items()) == list(walked.items())
    assert alone <= (len(rows) == len(plans) == len(set(rows)))
    assert not any(session.rows for session in everybody.values()), "the next batch would find them"


# --- Columns ----------------------------------------------------------------------------------------------------------


def test_a_column_that_was_not_sent_is_derived_from_the_records() -> None:
    world = NodeWorld()
    link = world.subscriber(("quotes", "price > 1 AND symbol = 'OTE'"))
    batch = quote_batch(bodies=["a", "b", "c"], interest=["symbol"], price=[2, 0, 2], symbol=["OTE", "OTE", "IBM"])
    assert not batch.complete
    assert list(batch.columns) == ["symbol"]
    world.say(world.connect(), make_publish(1, batch))
    assert world.delivered(link) == [(1, "a")]


def test_an_attribute_that_no_event_has_is_null() -> None:
    world = NodeWorld()
    link = world.subscriber(("quotes", "price IS NULL"), ("quotes", "price > 1 OR NOT price > 1"))
    world.publish(world.connect(), "a")
    assert world.delivered(link) == [(1, "a")]


def spoiled(batch: Batch, **columns: bytes) -> Batch:
    return Batch(batch.topics, batch.count, batch.lengths, batch.records, batch.columns | columns, batch.complete)


@pytest.mark.parametrize(
    "column", [b"", b"z", b"m", b"m\xc1", b"m\x92\x01", b"m\x93\x01\x02\x03", b"q\x00", b"m\x92\x90\x90"]
)
def test_a_bad_column_refuses_the_batch_and_loses_nothing_else(column: bytes) -> None:
    world = NodeWorld()
    link = world.subscriber(("quotes", "price > 1"), ("quotes", ""))
    publisher = world.connect()
    good = quote_batch(bodies=["a", "b"], price=[2, 2])
    answers = world.say(
        publisher, make_publish(1, good), make_publish(2, spoiled(good, price=column)), make_publish(3, good)
    )
    errors = [answer for answer in answers if isinstance(answer, Error)]
    assert [(error.code, error.scope, error.reference) for error in errors] == [(ErrorCode.BAD_BATCH, Scope.PUBLISH, 2)]
    assert answers[-1] == Puback(3)
    assert len(world.delivered(link)) == 8
    assert world.node.statistics(world.now).events_refused == 2


def test_a_bad_record_refuses_the_batch_only_when_somebody_must_look_into_it() -> None:
    world = NodeWorld()
    publisher = world.connect()
    plain = world.subscriber()
    good = quote_batch(bodies=["a"])
    bad = Batch(good.topics, 1, good.lengths, b"\xc1" * len(good.records), {}, complete=False)
    world.say(publisher, make_publish(1, bad))
    assert len(delivers(world, plain)) == 1
    world.subscriber(("quotes", "price > 1"))
    (error,) = (one for one in world.say(publisher, make_publish(2, bad)) if isinstance(one, Error))
    assert error.code == ErrorCode.BAD_BATCH
    assert delivers(world, plain) == []


def test_a_column_that_nobody_reads_is_not_looked_at() -> None:
    world = NodeWorld()
    link = world.subscriber(("quotes", "price > 1"))
    world.say(world.connect(), make_publish(1, spoiled(quote_batch(bodies=["a"], price=[2]), unread=b"m\xc1")))
    assert world.delivered(link) == [(1, "a")]


# --- Topics -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "topics", [["quotes/a", "alerts/a"], ["quotes/a", "quotes//a"], ["quotes/*", "quotes"], ["", "x"]]
)
def test_a_bad_topic_refuses_the_whole_batch(topics: list[str]) -> None:
    world = NodeWorld()
    link = world.subscriber()
    answers = world.say(world.connect(), make_publish(1, quote_batch(topics, ["a", "b"])))
    (error,) = (answer for answer in answers if isinstance(answer, Error))
    assert (error.code, error.reference) == (ErrorCode.BAD_TOPIC, 1)
    assert answers[-1] == Puback(1)
    assert world.delivered(link) == []


def test_a_topic_that_no_one_could_subscribe_to_makes_no_stream() -> None:
    world = NodeWorld()
    publisher = world.connect()
    for sequence, topic in enumerate(["", "*", "\x01", "/x", "x" * 5000], 1):
        world.say(publisher, make_publish(sequence, quote_batch(topic)))
    assert world.node.statistics(world.now).streams == 0


def test_a_refusal_in_mode_fire_names_no_sequence() -> None:
    world = NodeWorld()
    answers = world.say(world.connect(), make_publish(0, quote_batch("quotes//x"), Mode.FIRE))
    assert [(one.reference, one.scope) for one in answers if isinstance(one, Error)] == [(0, Scope.PUBLISH)]
    assert not [one for one in answers if isinstance(one, Puback)]


# --- What is remembered -----------------------------------------------------------------------------------------------


def test_a_remembered_topic_is_forgotten_when_subscriptions_change() -> None:
    world = NodeWorld()
    publisher, first = world.connect(), world.subscriber()
    world.publish(publisher, "a", "b")
    second = world.subscriber(("quotes/NYSE", ""))
    world.publish(publisher, "c")
    world.say(first, Unsubscribe(9, 1))
    world.publish(publisher, "d")
    third = world.subscriber(("quotes/*/OTE", "price IS NULL"))
    world.publish(publisher, "e")
    assert [body for _, body in world.delivered(second)] == ["c", "d", "e"]
    assert world.delivered(third) == [(1, "e")]


def test_a_session_that_ended_gets_nothing_more() -> None:
    world = NodeWorld()
    publisher, subscriber = world.connect(), world.subscriber()
    world.publish(publisher, "a")
    world.drop(subscriber)
    world.wake_at(world.now + 10.0)
    world.publish(publisher, "b")
    assert world.node.statistics(world.now).outbox_events == 0


def test_remembered_plans_are_bounded() -> None:
    world = NodeWorld(limits=Limits(plans=4))
    link = world.subscriber(*[("quotes", f"price > {bound}") for bound in range(10)])
    publisher = world.connect()
    for sequence in range(1, 11):
        world.say(publisher, make_publish(sequence, quote_batch(price=[sequence - 0.5])))
        assert len(world.delivered(link)) == sequence
        assert len(world.node.dissemination._plans) <= 4


def test_numbers_may_be_used_again_at_once() -> None:
    world = NodeWorld()
    publisher, link = world.connect(), world.subscriber(("quotes/a", ""))
    world.say(link, Unsubscribe(9, 1), make_subscribe(1, "quotes/b"))
    world.say(publisher, make_publish(1, quote_batch(["quotes/a", "quotes/b"], ["a", "b"])))
    assert world.delivered(link) == [(1, "b")]


def test_a_plan_of_sessions_is_flat_and_counts_toward_the_bound_of_routes() -> None:
    world = NodeWorld()
    spread = world.node.dissemination
    one, other = ClientSession(b"1", "one", None, 0, 0), ClientSession(b"2", "other", None, 0, 0)
    assert spread.plan_of_sessions({}) == ()
    assert spread.plan_of_sessions({one: [7], other: [8, 9]}) == (one, 7, other, [8, 9])
    assert spread._widest == 2
