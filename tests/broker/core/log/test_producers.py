"""Producers: what comes again is recognised, older epochs are shut out, and who opens hears what is safe."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.broker.core.limits import STORE_SECONDS_MAX, Limits
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Ask, Error, Mode, Puback
from tests.support.log_world import LogWorld, answer_in, stamped


def opened(world: LogWorld, producer: str = "p", epoch: int = 1) -> tuple[int, Any]:
    link = world.connect()
    return link, world.ask(link, "producer.open", producer=producer, epoch=epoch)


def codes(messages: list[Any]) -> list[int]:
    return [message.code for message in messages if isinstance(message, Error)]


def test_a_new_producer_begins_at_nothing_and_its_disk_knows_it() -> None:
    world = LogWorld(prompt=True)
    _, answer = opened(world)
    assert answer == {"next": 0, "digest": b"", "epoch": 1}
    assert world.disk.producers["p"].epoch == 1


def test_batches_follow_each_other_and_what_comes_again_is_acknowledged_and_not_appended() -> None:
    world = LogWorld(prompt=True)
    link, _ = opened(world)
    said = world.say(link, stamped(1, 0, "a", "b"), stamped(2, 2, "c"), stamped(3, 0, "a", "b"), stamped(4, 3, "d"))
    assert [one.sequence for one in said if isinstance(one, Puback)][-1] == 4
    assert codes(said) == []
    assert [(row.first, row.count, row.producer, row.epoch, row.number) for row in world.rows()] == [
        (0, 2, "p", 1, 0),
        (2, 1, "p", 1, 2),
        (3, 1, "p", 1, 3),
    ]
    assert world.node.producers.duplicates == 2


@pytest.mark.parametrize("number", [4, 1])
def test_what_leaves_a_hole_or_was_cut_in_another_way_is_refused(number: int) -> None:
    world = LogWorld(prompt=True)
    link, _ = opened(world)
    said = world.say(link, stamped(1, 0, "a", "b"), stamped(2, number, "x", "y"))
    assert codes(said) == [ErrorCode.OUT_OF_SEQUENCE]
    assert len(world.rows()) == 1


def test_who_did_not_open_is_asked_to() -> None:
    world = LogWorld(prompt=True)
    assert codes(world.say(world.connect(), stamped(1, 0))) == [ErrorCode.NOT_FOUND]
    link, _ = opened(world)
    assert codes(world.say(link, stamped(1, 0, epoch=2))) == [ErrorCode.NOT_FOUND], "a newer epoch is opened as well"


def test_a_newer_epoch_shuts_out_the_older_and_goes_on_where_it_was() -> None:
    world = LogWorld(prompt=True)
    old, _ = opened(world)
    world.say(old, stamped(1, 0, "a", "b", digest=b"ab"))
    new, answer = opened(world, epoch=2)
    assert answer == {"next": 2, "digest": b"ab", "epoch": 2}
    assert codes(world.say(old, stamped(2, 2))) == [ErrorCode.FENCED]
    assert codes(world.say(new, stamped(1, 2, epoch=2))) == []
    assert opened(world, epoch=1)[1].code == ErrorCode.FENCED
    assert [row.epoch for row in world.rows()] == [1, 2]


def test_a_duplicate_is_acknowledged_when_what_it_repeats_is_on_disk_and_not_before() -> None:
    world = LogWorld()
    link, _ = opened(world)
    world.sync()
    other = world.connect()
    world.say(link, stamped(1, 0))
    assert not [one for one in world.say(other, stamped(1, 0)) if isinstance(one, Puback)]
    world.sync()
    assert [one for one in world.take(other) if isinstance(one, Puback)] == [Puback(1)]
    assert len(world.rows()) == 1


def test_whoever_opens_hears_what_is_safe_and_only_when_it_is() -> None:
    world = LogWorld()
    link, _ = opened(world)
    world.sync()
    world.say(link, stamped(1, 0))
    other = world.connect()
    assert world.ask(other, "producer.open", producer="p", epoch=2) is None
    world.sync()
    assert answer_in(world.take(other)) == {"next": 1, "digest": b"", "epoch": 2}


def test_what_comes_while_somebody_opens_is_refused() -> None:
    world = LogWorld()
    link, _ = opened(world)
    world.sync()
    world.say(link, stamped(1, 0))
    other = world.connect()
    world.ask(other, "producer.open", producer="p", epoch=1)
    assert codes(world.say(link, stamped(2, 1, "b", "c"))) == [ErrorCode.NOT_FOUND]
    world.sync()
    assert answer_in(world.take(other)) == {"next": 1, "digest": b"", "epoch": 1}
    world.say(other, stamped(1, 1, "b", "c"))
    world.sync()
    assert len(world.rows()) == 2


def test_a_full_disk_puts_a_producer_back_to_what_is_stored() -> None:
    world = LogWorld()
    link, _ = opened(world)
    world.sync()
    world.say(link, stamped(1, 0))
    world.sync()
    said = world.say(link, stamped(2, 1), stamped(3, 2))
    world.tell(world.disk.refuse())
    assert codes(said + world.take(link)) == [ErrorCode.NOT_STORED] * 2
    said = world.say(link, stamped(4, 2))
    assert codes(said) == [ErrorCode.OUT_OF_SEQUENCE], "the one before it is not there"
    world.say(link, stamped(5, 1), stamped(6, 2))
    world.sync()
    assert [(row.first, row.number) for row in world.rows()] == [(0, 0), (1, 1), (2, 2)]


def test_another_life_of_the_broker_knows_what_its_disk_knows() -> None:
    world = LogWorld(prompt=True)
    link, _ = opened(world)
    world.say(link, stamped(1, 0, "a", "b", digest=b"2"))
    world.prompt = False
    world.say(link, stamped(2, 2))
    world.restart()
    world.prompt = True
    link = world.connect()
    assert codes(world.say(link, stamped(1, 2))) == [ErrorCode.NOT_FOUND], "sessions of former lives are over"
    assert world.ask(link, "producer.open", producer="p", epoch=1) == {"next": 2, "digest": b"2", "epoch": 1}
    assert codes(world.say(link, stamped(2, 1), stamped(3, 2))) == []
    assert [(row.first, row.number) for row in world.rows()] == [(0, 0), (2, 2)]
    world.node.producers.validate()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [({}, "name"), ({"producer": ""}, "name"), ({"producer": "p"}, "epoch"), ({"producer": "p", "epoch": -1}, "epoch")],
)
def test_who_asks_for_no_producer_is_told(arguments: dict[str, Any], word: str) -> None:
    world = LogWorld()
    answer = world.ask(world.connect(), "producer.open", **arguments)
    assert answer.code == ErrorCode.BAD_REQUEST
    assert word in answer.text


def test_of_too_many_producers_the_one_used_longest_ago_is_forgotten_and_counted() -> None:
    world = LogWorld(prompt=True)
    link, _ = opened(world, "first")
    assert world.node.statistics(world.now).producers_max == Limits().producers
    world.node.producers.limit = 3
    world.say(link, stamped(1, 0, "a", producer="first"))
    for name in ("second", "third", "fourth"):
        opened(world, name)
    statistics = world.node.statistics(world.now)
    assert (statistics.producers, statistics.producers_max, statistics.producers_forgotten) == (3, 3, 1)
    assert opened(world, "first", epoch=2)[1]["next"] == 0, "it is new again"
    assert opened(world, "third", epoch=2)[1]["next"] == 0
    assert world.node.statistics(world.now).producers_forgotten == 2


def test_a_disk_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    world = LogWorld()
    monkeypatch.setattr(world.node.log, "safe_end", lambda held: 0)
    link, _ = opened(world)
    world.sync()
    world.say(link, stamped(1, 0))
    world.say(link, Ask(7, "producer.open", {"producer": "p", "epoch": 2}))
    world.wake_at(world.now + STORE_SECONDS_MAX)
    assert codes(world.take(link)) == [ErrorCode.NOT_STORED, ErrorCode.UNAVAILABLE]


def test_what_the_disk_does_not_keep_is_not_open() -> None:
    world = LogWorld()
    link, answer = opened(world)
    assert answer is None
    world.tell(world.disk.refuse())
    assert codes(world.take(link)) == [ErrorCode.NOT_STORED]
    assert codes(world.say(link, stamped(1, 0))) == [ErrorCode.NOT_FOUND]


def test_a_producer_may_write_to_several_streams() -> None:
    world = LogWorld(prompt=True)
    world.node.streams.declare("other", {"durability": "stored"})
    link, _ = opened(world)
    message = stamped(2, 1)
    message.batch.topics = "other/x"
    assert codes(world.say(link, stamped(1, 0), message, stamped(3, 2), stamped(4, 1))) == []
    assert [row.number for row in world.rows()] == [0, 2]
    assert [row.number for row in world.rows(stream="other")] == [1]


def test_a_stamp_means_nothing_on_a_stream_in_memory() -> None:
    world = LogWorld()
    message = stamped(1, 5, mode=Mode.ACCEPTED)
    message.batch.topics = "memory"
    assert codes(world.say(world.connect(), message)) == []
