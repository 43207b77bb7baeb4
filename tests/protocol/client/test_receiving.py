"""Deliveries: sorting rows into inboxes, credit, gaps; and a dumb twin that keeps lists."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.protocol.client import Event, Inbox, Outcome
from headgate.protocol.client.delivered import DeliveredSet
from headgate.protocol.client.merging import Piece
from headgate.protocol.client.receiving import Deliveries
from headgate.protocol.data import LogName, LogShift, Portion, Row, join_u32, make_batch
from headgate.protocol.errors import Refused
from headgate.protocol.limits import GAPS_KEPT_MAX
from headgate.protocol.messages import Deliver, Gap, Subscribe


def inbox(deliveries: Deliveries, number: int) -> Inbox:
    made = deliveries.inboxes[number] = Inbox(deliveries, Subscribe(number, number, "a"), Outcome())
    return made


def portion(count: int, base: int = 1) -> Portion:
    bodies = [b"%d" % row for row in range(count)]
    batch = make_batch([f"a/{row}" for row in range(count)], {"row": list(range(count))}, bodies)
    return batch.portion(range(count), "origin", base, 2_500_000)


def rows_of(events: list[Event]) -> list[object]:
    return [event.attributes["row"] for event in events]


def test_an_event_has_its_parts() -> None:
    deliveries = Deliveries(10)
    one = inbox(deliveries, 4)
    deliveries.deliver(Deliver([[4], 1], portion(1, base=77)))
    (event,) = one.take()
    assert (event.id, event.time, event.topic, event.subscription) == ("origin.77", 2.5, "a/0", 4)
    assert (event.attributes, event.body, event.content_type) == ({"row": 0}, b"0", "")
    assert event.text == "0"
    assert "origin.77" in repr(event)
    assert one.take() == []


def test_text_never_fails() -> None:
    assert Event("o", 1, 0.0, "a", {}, b"\xff", "", 1).text == "\ufffd"


def test_offsets_make_the_ids() -> None:
    deliveries = Deliveries(10)
    one = inbox(deliveries, 1)
    batch = make_batch(["a"], {"row": list(range(9))}, [b""] * 9)
    deliveries.deliver(Deliver([[1], 3], batch.portion([2, 5, 8], "o", 100, 0)))
    assert [event.id for event in one.take()] == ["o.102", "o.105", "o.108"]


def test_a_malformed_record_is_skipped_and_counted() -> None:
    deliveries = Deliveries(10)
    one = inbox(deliveries, 1)
    good = make_batch(["a"], {"row": [7]}, [b""]).records
    records = b"\xc1" + good + b"\x90"
    bad = Portion("o", 1, 0, b"", "a", join_u32([1, len(good), 1]), records, 3)
    deliveries.deliver(Deliver([[1], 3], bad))
    assert rows_of(one.take()) == [7]
    assert deliveries.malformed == 2
    assert deliveries.credit().allowed == 13


def test_silence_says_something_only_where_the_broker_could_have_spoken() -> None:
    deliveries = Deliveries(10)
    one, other = inbox(deliveries, 1), inbox(deliveries, 2)
    assert not one.is_quiet, "it has not listened yet"
    one.listen()
    assert one.is_quiet
    deliveries.deliver(Deliver([[1], 1], portion(1)))
    assert not one.is_quiet
    one.take()
    assert one.is_quiet
    deliveries.deliver(Deliver([[2], 8], portion(8)))
    assert one.is_quiet, "what others get is not its own"
    deliveries.deliver(Deliver([[2], 1], portion(1)))
    assert not one.is_quiet, "the window is used up"
    one.listen()
    other.take()
    deliveries.credit()
    assert not one.is_quiet, "so it was when it began to listen"
    one.listen()
    assert one.is_quiet
    deliveries.deliver(Deliver([[2], 10], portion(10)))
    while other.take():
        pass
    deliveries.credit()
    assert not one.is_quiet, "so it was in between"
    one.listen()
    deliveries.hindered()
    assert not one.is_quiet, "there may have been no connection"


def test_credit_is_due_at_half_the_window_and_counts_an_event_once() -> None:
    deliveries = Deliveries(10)
    first, second = inbox(deliveries, 1), inbox(deliveries, 2)
    deliveries.deliver(Deliver([[1, 2], 4, [2], 1], portion(5)))
    assert len(second.take()) == 4
    assert not deliveries.credit_due, "it is due with half of the window"
    assert len(first.take()) == 4
    assert not deliveries.credit_due, "these were counted when the other subscription took them"
    assert len(second.take()) == 1
    assert deliveries.credit_due
    credit = deliveries.credit()
    assert (credit.allowed, credit.received) == (15, 5)
    assert not deliveries.credit_due


def test_what_nobody_here_wants_any_more_is_consumed() -> None:
    deliveries = Deliveries(10)
    one = inbox(deliveries, 1)
    deliveries.deliver(Deliver([[1], 3], portion(3)))
    one.end(discard=True)
    deliveries.deliver(Deliver([[1], 1, [9], 1], portion(2)))
    assert not one.waiting
    assert deliveries.credit().allowed == 15


def test_what_waits_from_an_old_session_is_no_credit_in_the_new_one() -> None:
    deliveries = Deliveries(10)
    one = inbox(deliveries, 1)
    deliveries.deliver(Deliver([[1], 8], portion(8)))
    deliveries.hindered()
    deliveries.restarted()
    assert deliveries.waiting and deliveries.credit().allowed == 2, "it uses up the credit of the new one"
    assert len(one.take()) == 8
    credit = deliveries.credit()
    assert (credit.allowed, credit.received) == (10, 0)


def test_an_inbox_that_ended_gives_what_waits_and_takes_no_more() -> None:
    deliveries = Deliveries(10)
    one = inbox(deliveries, 1)
    woken: list[bool] = []
    one.on_change = lambda: woken.append(True)
    deliveries.deliver(Deliver([[1], 1], portion(1)))
    one.end(Refused(100, "no"))
    one.end(Refused(100, "later"))
    deliveries.deliver(Deliver([[1], 1], portion(1)))
    assert len(one.take()) == 1 and not one.waiting
    assert str(one.failure) == "no"
    assert len(woken) == 3


def test_gaps_go_to_whom_they_concern_and_are_bounded() -> None:
    deliveries = Deliveries(10)
    first, second = inbox(deliveries, 1), inbox(deliveries, 2)
    told: list[Gap] = []
    second.on_gap = told.append
    deliveries.gap(Gap(2, 3, "slow"))
    deliveries.gap(Gap(0, 4, "lost"))
    deliveries.gap(Gap(9, 5, "unknown"))
    assert (first.lost, second.lost, deliveries.lost) == (0, 3, 12)
    assert told == list(second.gaps) == [Gap(2, 3, "slow"), Gap(0, 4, "lost")]
    for _ in range(GAPS_KEPT_MAX * 2):
        deliveries.gap(Gap(1, 1, "slow"))
    assert len(first.gaps) == GAPS_KEPT_MAX
    assert first.lost == GAPS_KEPT_MAX * 2


runs = st.lists(
    st.tuples(st.lists(st.integers(1, 4), min_size=1, max_size=3, unique=True), st.integers(1, 4)), min_size=1
)


@given(st.lists(st.tuples(runs, st.lists(st.integers(1, 4))), max_size=8), st.integers(1, 40))
def test_any_deliveries_agree_with_lists(
    history: list[tuple[list[tuple[list[int], int]], list[int]]], window: int
) -> None:
    deliveries = Deliveries(window)
    inboxes = {number: inbox(deliveries, number) for number in (1, 2, 3)}
    wanted: dict[int, list[object]] = {number: [] for number in (1, 2, 3)}
    found: dict[int, list[object]] = {number: [] for number in (1, 2, 3)}
    total = 0
    for routes, takes in history:
        count = sum(run for _, run in routes)
        start = 0
        for numbers, run in routes:
            for number in numbers:
                if number in wanted:
                    wanted[number] += range(start, start + run)
            start += run
        flat = [part for numbers, run in routes for part in (numbers, run)]
        deliveries.deliver(Deliver(flat, portion(count)))
        total += count
        for number in takes:
            if number in inboxes:
                found[number] += rows_of(inboxes[number].take())
    for number, one in inboxes.items():
        while one.waiting:
            found[number] += rows_of(one.take())
    assert found == wanted
    credit = deliveries.credit()
    assert (credit.allowed, credit.received) == (total + window, total)


def test_what_was_read_from_a_log_is_not_taken_again() -> None:
    deliveries = Deliveries(10)
    one = inbox(deliveries, 1)
    one.delivered = DeliveredSet()
    one.delivered.of("ann@1").read_to(2)
    some = portion(4, base=10)
    some.log = LogShift("ann@1", -10)
    deliveries.deliver(Deliver([[1], 4], some))
    events = one.take()
    assert rows_of(events) == [2, 3] and [event.position for event in events] == ["ann@1:2", "ann@1:3"]
    assert deliveries.malformed == 0 and deliveries.credit().allowed == 14, "they were taken all the same"
    deliveries.deliver(Deliver([[1], 2], portion(2, base=10)))
    assert rows_of(one.take()) == [0, 1], "of a stream in memory"


def test_a_gap_stands_where_it_came_when_it_can_be_closed() -> None:
    deliveries = Deliveries(100)
    one = inbox(deliveries, 1)
    one.delivered = DeliveredSet()
    first = portion(2, base=10)
    first.log = LogShift("ann@1", 0)
    deliveries.deliver(Deliver([[1], 2], first))
    deliveries.gap(Gap(1, 3, "slow"))
    deliveries.gap(Gap(0, 0, "moved"))
    deliveries.deliver(Deliver([[1], 1], portion(1, base=20)))
    one.gap(Gap(1, 1, "again"))
    assert not one.at_gap and rows_of(one.take()) == [0, 1]
    assert one.at_gap and one.waiting and one.take() == []
    assert [gap.reason for gap in one.close_gap()] == ["slow", "moved"]
    assert rows_of(one.take()) == [0] and one.at_gap
    assert not one.gaps and one.lost == 0, "nobody was told"
    assert one.delivered.of("ann@1").runs == [(10, 12)]
    one.tell(Gap(1, 3, "slow"))
    assert one.lost == 3 and [gap.count for gap in one.gaps] == [3]
    one.end(discard=True)
    assert not one.waiting and deliveries.credit().allowed == 103


def logged(first: int, count: int, offsets: bytes = b"") -> Row:
    batch = make_batch([f"a/{row}" for row in range(count)], {"row": list(range(count))}, [b""] * count)
    return Row(first, count, 2_500_000, "o", 100, offsets, batch.topics, batch.lengths, {}, False, batch.records)


def test_rows_of_a_log_are_events_with_the_ids_that_they_had() -> None:
    one = inbox(Deliveries(10), 4)
    name = LogName("ann", 7, 0, "a")
    events = one.read(Piece(name, [logged(20, 2), logged(22, 2, join_u32([3, 7]))]))
    assert [event.id for event in events] == ["o.100", "o.101", "o.103", "o.107"]
    assert [event.position for event in events] == ["ann@7:20", "ann@7:21", "ann@7:25", "ann@7:29"]
    assert {(event.time, event.subscription) for event in events} == {(2.5, 4)}


def test_rows_of_a_log_that_are_broken_are_counted_and_exact_is_exact() -> None:
    deliveries = Deliveries(10)
    one = Inbox(deliveries, Subscribe(1, 1, "a", "", {"exact": True}), Outcome())
    row = logged(0, 3)
    row.topics = "a\na/1\na"
    row.records = row.records[:-1] + b"\xff"
    events = one.read(Piece(LogName("ann", 7, 0, "a"), [row]))
    assert [(event.topic, event.position) for event in events] == [("a", "ann@7:0")]
    assert deliveries.malformed == 1
