"""Publishers: modes and their answers, cumulative over both kinds of streams, and order from disk to subscriber."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest

from headgate.broker.core.clients import answered_by
from headgate.broker.core.inputs import LinkPaused
from headgate.broker.core.limits import Limits
from headgate.matching.structure import DEFAULT_SHAPE, pack
from headgate.protocol.data import pack_record
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Deliver, Error, Interest, Mode, Puback, Publish, Rejected, Stamp
from tests.support.builders import deliveries_of, make_publish, quote_batch
from tests.support.log_world import LogWorld, stamped


def stored(sequence: int, *bodies: str, topics: str = "quotes/a", mode: Mode = Mode.STORED) -> Publish:
    return make_publish(sequence, quote_batch(topics, bodies or (str(sequence),)), mode)


def pubacks(messages: list[Any]) -> list[int]:
    return [message.sequence for message in messages if isinstance(message, Puback)]


def errors(messages: list[Any]) -> list[tuple[int, int]]:
    return [(message.reference, message.code) for message in messages if isinstance(message, Error)]


def test_a_stored_batch_is_delivered_and_acknowledged_when_the_disk_has_it() -> None:
    world = LogWorld()
    subscriber, publisher = world.subscriber(("quotes", "")), world.connect()
    said = world.say(publisher, stored(1, "a", "b"))
    assert said == [Interest("quotes", [])]
    assert world.delivered(subscriber) == []
    world.sync()
    assert world.take(publisher) == [Puback(1)]
    assert world.delivered(subscriber) == [(1, "a"), (1, "b")]
    (row,) = world.rows()
    assert (row.first, row.count, row.origin, row.base, row.topics) == (0, 2, world.config.origin, 0, "quotes/a")
    assert row.time == int(world.now * 1e6)


def test_an_event_has_the_same_id_in_the_log_and_when_it_is_delivered() -> None:
    world = LogWorld(prompt=True)
    subscriber, publisher = world.subscriber(("quotes", ""), ("memory", "")), world.connect()
    world.say(publisher, stored(1), stored(2, "x", "y"), stored(3, topics="memory", mode=Mode.ACCEPTED), stored(4))
    portions = [one.portion for one in world.take(subscriber) if isinstance(one, Deliver)]
    live = {(one.topics, one.origin, one.base + place) for one in portions for place in one.rows()}
    logged = {(row.topics, row.origin, row.base + place) for row in world.rows() for place in row.places()}
    assert logged == {one for one in live if one[0] != "memory"}
    assert len(live) == 5


@pytest.mark.parametrize("mode", [Mode.ACCEPTED, Mode.FIRE])
def test_who_does_not_ask_for_disks_does_not_wait_for_them(mode: Mode) -> None:
    world = LogWorld()
    subscriber, publisher = world.subscriber(), world.connect()
    said = world.say(publisher, stored(1 if mode == Mode.ACCEPTED else 0, "a", mode=mode))
    assert pubacks(said) == ([1] if mode == Mode.ACCEPTED else [])
    assert world.delivered(subscriber) == [], "nobody sees what is not in the log"
    world.sync()
    assert pubacks(world.take(publisher)) == []
    assert world.delivered(subscriber) == [(1, "a")]
    assert len(world.rows()) == 1


def test_puback_never_passes_a_batch_that_has_no_answer() -> None:
    world = LogWorld()
    subscriber, publisher = world.subscriber(("memory", "")), world.connect()
    said = world.say(publisher, stored(1, topics="memory", mode=Mode.ACCEPTED), stored(2))
    assert pubacks(said) == [1]
    said = world.say(publisher, stored(3, "now", topics="memory", mode=Mode.ACCEPTED), stored(4, topics="quotes//b"))
    assert pubacks(said) == []
    assert errors(said) == [(4, ErrorCode.BAD_TOPIC)]
    assert world.delivered(subscriber) == [(1, "1"), (1, "now")], "a memory stream waits for no disk"
    world.sync()
    assert pubacks(world.take(publisher)) == [4]


def test_events_of_a_stored_stream_come_in_the_order_of_their_log() -> None:
    world = LogWorld()
    subscriber = world.subscriber()
    one, other = world.connect(), world.connect()
    for turn in range(3):
        world.say(one, stored(turn + 1, f"one {turn}"))
        world.say(other, stored(turn + 1, f"other {turn}", mode=Mode.ACCEPTED))
    world.sync()
    bodies = [body for _, body in world.delivered(subscriber)]
    assert bodies == [f"{who} {turn}" for turn in range(3) for who in ("one", "other")]
    assert [row.first for row in world.rows()] == list(range(6))


def test_a_memory_stream_takes_no_batch_in_mode_stored_and_the_text_says_what_to_do() -> None:
    world = LogWorld()
    (error, puback) = world.say(world.connect(), stored(1, topics="memory"))[-2:]
    assert isinstance(error, Error)
    assert error.code == ErrorCode.UNSUPPORTED
    assert 'headgate schema put memory \'{"durability": "stored"}\'' in error.text
    assert puback == Puback(1)


def test_a_broker_without_a_disk_takes_nothing_for_a_stored_stream() -> None:
    world = LogWorld()
    world.node.log.available = False
    said = world.say(world.connect(), stored(1), stored(2, mode=Mode.ACCEPTED))
    assert errors(said) == [(1, ErrorCode.UNSUPPORTED), (2, ErrorCode.UNSUPPORTED)]


@pytest.mark.parametrize(
    "batch",
    [
        quote_batch("quotes//a"),
        quote_batch(["quotes/a", "other/b"], ["a", "b"]),
        quote_batch(price=[1.5]),
    ],
    ids=["topic", "stream", "column"],
)
def test_what_is_refused_is_refused_before_it_is_in_the_log(batch: Any) -> None:
    if batch.columns:
        batch.columns["price"] = b"\xc1"
    world = LogWorld(prompt=True)
    publisher = world.connect()
    said = world.say(publisher, make_publish(1, batch, Mode.STORED))
    assert [code for _, code in errors(said)] in ([ErrorCode.BAD_TOPIC], [ErrorCode.BAD_BATCH])
    assert pubacks(said) == [1]
    assert world.rows() == []


def test_a_record_that_cannot_be_read_is_refused_where_a_condition_reads_it() -> None:
    world = LogWorld(prompt=True, schema={"durability": "stored", "verify": True})
    world.subscriber(("quotes", "price > 1"))
    batch = quote_batch(price=[2])
    batch.records, batch.lengths = b"\xc1", (1).to_bytes(4, "little")
    publisher = world.connect()
    assert errors(world.say(publisher, make_publish(1, batch, Mode.STORED))) == [(1, ErrorCode.BAD_BATCH)]
    assert world.rows() == []


@pytest.mark.parametrize("durability", ["stored", "memory"])
def test_a_verified_stream_does_not_take_the_publishers_word_for_columns(durability: str) -> None:
    world = LogWorld(prompt=True, schema={"durability": durability, "verify": True})
    subscriber = world.subscriber(("quotes", "price > 1"))
    honest, lying = quote_batch(bodies=["honest"], price=[2]), quote_batch(bodies=["lying"], price=[2])
    lying.records = pack_record({"price": 0}, b"lying")
    lying.lengths = len(lying.records).to_bytes(4, "little")
    world.say(world.connect(), make_publish(1, honest), make_publish(2, lying))
    assert deliveries_of(world.take(subscriber)) == [(1, "honest")]


def test_more_than_may_wait_for_the_disk_is_refused() -> None:
    world = LogWorld(limits=Limits(log_pending_bytes=2_000))
    publisher = world.connect()
    said = world.say(publisher, *(stored(number, "x" * 100) for number in range(1, 5)))
    refused = errors(said)
    assert refused
    assert {code for _, code in refused} == {ErrorCode.NOT_STORED}
    world.sync()
    assert pubacks(world.take(publisher)) == [4]
    assert len(world.rows()) == 4 - len(refused)


def test_what_a_full_disk_does_not_take_is_refused_and_its_positions_are_given_again() -> None:
    world = LogWorld()
    subscriber, publisher = world.subscriber(), world.connect()
    world.say(publisher, stored(1))
    world.sync()
    world.say(publisher, stored(2), stored(3), stored(4, topics="quotes//b"))
    world.tell(world.disk.refuse())
    said = world.take(publisher)
    assert errors(said) == [(2, ErrorCode.NOT_STORED), (3, ErrorCode.NOT_STORED)]
    assert pubacks(said) == [4]
    world.say(publisher, stored(5))
    world.sync()
    assert [row.first for row in world.rows()] == [0, 1]
    assert world.delivered(subscriber) == [(1, "1"), (1, "5")]


def test_a_session_that_comes_back_hears_what_has_its_answer_and_gets_the_rest_later() -> None:
    world = LogWorld()
    publisher = world.connect()
    world.say(publisher, stored(1), stored(2), stored(3, topics="memory", mode=Mode.ACCEPTED))
    key = world.key(publisher)
    world.drop(publisher)
    link, (welcome, *_) = world.resume(key)
    assert welcome.accepted == 0  # type: ignore[attr-defined]
    assert pubacks(world.say(link, stored(1), stored(2))) == [], "sent again, and still waiting"
    world.sync()
    assert pubacks(world.take(link)) == [3]
    assert len(world.rows()) == 2


def test_what_a_session_left_behind_is_stored_all_the_same() -> None:
    world = LogWorld()
    subscriber, publisher = world.subscriber(), world.connect()
    world.say(publisher, stored(1))
    world.drop(publisher)
    world.wake_at(world.now + 60.0)
    world.sync()
    assert world.delivered(subscriber) == [(1, "1")]
    assert len(world.rows()) == 1


def test_a_stamp_with_ids_that_are_none_is_refused() -> None:
    world = LogWorld(prompt=True)
    publisher = world.connect()
    world.ask(publisher, "producer.open", producer="p", epoch=1)
    message = stamped(1, 0)
    message.stamp = Stamp("p", 1, 0, b"", b"\xc1")
    assert errors(world.say(publisher, message)) == [(1, ErrorCode.BAD_BATCH)]
    assert world.rows() == []


FULL, LAST_TAKEN = (1 << 1024) - 1, (1 << 921) - 1  # of 1,024 bits nine tenths


def filtered(sequence: int, *filters: bytes | None, column: str = DEFAULT_SHAPE.column) -> Publish:
    batch = quote_batch("memory", [str(row) for row in range(len(filters))])
    batch.columns[column] = b"b" + msgpack.packb(filters)
    return make_publish(sequence, batch)


def test_an_event_whose_filter_says_nothing_is_refused_and_the_others_are_taken() -> None:
    world = LogWorld()
    subscriber, publisher = world.subscriber(("memory", "")), world.connect()
    full, taken, few = pack(FULL, 1024), pack(LAST_TAKEN, 1024), pack(3, 1024)
    said = world.say(
        publisher, filtered(1, taken, full, few, None, b"", b"\xff" * 127, pack(LAST_TAKEN << 1 | 1, 1024))
    )
    (rejected,) = (one for one in said if isinstance(one, Rejected))
    assert (rejected.sequence, rejected.code, rejected.spans, rejected.kept) == (1, ErrorCode.LIMIT, [1, 1, 6, 6], True)
    assert rejected.text.startswith(
        "2 of 7 events, the first is number 1 (from 0): the filter of this document has 1024"
    )
    assert "headgate schema put" in rejected.text and "smaller documents" in rejected.text
    assert [body for _, body in world.delivered(subscriber)] == ["0", "2", "3", "4", "5"] and pubacks(said) == [1]
    said = world.say(publisher, filtered(2, full))
    assert errors(said) == [(2, ErrorCode.LIMIT)] and pubacks(said) == [2]
    assert errors(world.say(publisher, filtered(3, full, column=DEFAULT_SHAPE.values_column))) == [], "long texts do so"
    assert errors(world.say(publisher, filtered(4, full, column="#structure/1000000/1"))) == [], "it is no filter"
    assert [body for _, body in world.delivered(subscriber)] == ["0", "0"]


def test_of_a_producer_nothing_is_taken_beside_a_filter_that_says_nothing() -> None:
    world = LogWorld(prompt=True)
    publisher = world.connect()
    world.ask(publisher, "producer.open", producer="p", epoch=1)
    message = stamped(1, 0, "a", "b")
    message.batch.columns[DEFAULT_SHAPE.column] = b"b" + msgpack.packb([b"", pack(FULL, 1024)])
    (rejected,) = (one for one in world.say(publisher, message) if isinstance(one, Rejected))
    assert (rejected.spans, rejected.kept) == ([1, 1], False)
    assert world.rows() == []


def test_publishers_hear_of_interest_once_and_the_paused_ones_later() -> None:
    world = LogWorld()
    publisher = world.connect()
    assert Interest("quotes", []) in world.say(publisher, stored(1))
    world.feed(LinkPaused(publisher))
    world.subscriber(("quotes", "price > 1"))
    assert world.take(publisher) == []
    assert list(world.node.subscribers.by_link[publisher].untold) == ["quotes"]


def test_after_a_lost_connection_no_puback_passes_a_refusal_that_may_not_have_been_heard() -> None:
    world = LogWorld()
    publisher = world.connect()
    world.say(publisher, stored(1), stored(2, topics="quotes//x"), stored(3), stored(4, topics="quotes//x"))
    key = world.key(publisher)
    world.drop(publisher)
    link, (welcome, *_) = world.resume(key)
    assert welcome.accepted == 0  # type: ignore[attr-defined]
    world.sync()
    assert pubacks(world.take(link)) == [1]
    said = world.say(link, stored(2, topics="quotes//x"))
    assert (errors(said), pubacks(said)) == ([(2, ErrorCode.BAD_TOPIC)], [3])
    said = world.say(link, stored(3), stored(4, topics="quotes//x"))
    assert (errors(said), pubacks(said)) == ([(4, ErrorCode.BAD_TOPIC)], [3, 4])


def test_neither_puback_nor_the_refusal_before_it_is_said_on_a_link_that_was_given_up() -> None:
    world = LogWorld()
    publisher = world.connect()
    world.node.subscribers.by_link[publisher].close()
    said = world.say(publisher, stored(1, topics="quotes//x"))
    assert (errors(said), pubacks(said)) == ([], [])


def test_who_sends_again_what_still_waits_has_heard_what_was_refused_before() -> None:
    world = LogWorld()
    publisher = world.connect()
    world.say(publisher, stored(1, topics="quotes//x"), stored(2))
    key = world.key(publisher)
    world.drop(publisher)
    link, _ = world.resume(key)
    assert pubacks(world.say(link, stored(2))) == []
    world.sync()
    assert pubacks(world.take(link)) == [2]


def test_who_sends_something_new_has_heard_everything_before() -> None:
    world = LogWorld()
    publisher = world.connect()
    world.say(publisher, stored(1, topics="quotes//x"))
    key = world.key(publisher)
    world.drop(publisher)
    link, _ = world.resume(key)
    assert pubacks(world.say(link, stored(2, topics="memory", mode=Mode.ACCEPTED))) == [2]


def test_what_comes_before_a_broker_knows_its_streams_waits_until_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its disk may be new, and a stream that it never heard of a stored one."""
    world = LogWorld(prompt=True)
    subscriber, publisher = world.subscriber(("news", "")), world.connect()
    publishers = world.node.publishers
    publishers._knows = False
    monkeypatch.setattr(world.node.cluster, "knows_streams", lambda now: False)
    assert pubacks(world.say(publisher, stored(1, topics="news", mode=Mode.ACCEPTED))) == []
    assert pubacks(world.say(publisher, stored(2, topics="news"), stored(3, topics="quotes/a"))) == []
    world.sync()
    assert world.delivered(subscriber) == []
    monkeypatch.setattr(world.node.cluster, "knows_streams", lambda now: True)
    world.node.streams.declare("news", {"attributes": {}, "durability": "stored"})
    publishers.go_on(world.now)
    world.say(publisher, stored(4, topics="quotes/a"))
    world.sync()
    assert len(world.rows()) == 2
    assert [row.topics for row in world.rows(stream="news")] == ["news", "news"]
    assert world.delivered(subscriber) == [(1, "1"), (1, "2")]
    assert publisher_answers(world, publisher) == 4


def test_what_comes_too_early_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    world = LogWorld(prompt=True, limits=Limits(early_bytes=10))
    publisher = world.connect()
    world.node.publishers._knows = False
    monkeypatch.setattr(world.node.cluster, "knows_streams", lambda now: False)
    said = world.say(publisher, stored(1, "x" * 20, topics="news", mode=Mode.ACCEPTED))
    assert errors(said) == [(1, ErrorCode.UNAVAILABLE)]
    assert errors(world.say(publisher, stored(2, "x" * 20, topics="news"))) == [(2, ErrorCode.NOT_STORED)]


def publisher_answers(world: LogWorld, publisher: int) -> int:
    return max(pubacks(world.take(publisher)), default=answered_by(world.node.subscribers.by_link[publisher]))
