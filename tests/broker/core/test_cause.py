"""Causes: in words when somebody asks, carried by whoever puts something off, and bounded."""

from __future__ import annotations

from types import SimpleNamespace

from headgate.broker.core.cause import CAUSES_MAX, Cause, join_causes
from headgate.broker.core.inputs import Drain, Input, LinkPaused, Received, Stored, Wake
from headgate.protocol.messages import Ping, Puback
from tests.support.builders import make_publish
from tests.support.log_world import LogWorld


def begin(cause: Cause, happened: Input) -> None:
    """As a Node does."""
    cause.happened, cause.who = happened, None
    cause.number += 1


def test_an_input_is_named_by_broker_number_speaker_and_last_word() -> None:
    cause = Cause("ann")
    begin(cause, Received(7, [make_publish(3)]))
    assert cause.text == "ann#1 link 7: Publish 3"
    begin(cause, Received(7, [Ping(1), make_publish(4)]))
    cause.who = SimpleNamespace(name="feed")
    assert cause.text == "ann#2 feed: Publish 4, after 1 more"
    begin(cause, Wake())
    cause.due = ["replication", "backlog"]
    assert cause.text == "ann#3 timers: replication, backlog"
    begin(cause, Drain())
    assert cause.text == "ann#4 Drain"


def test_what_the_host_knows_is_the_cause() -> None:
    cause = Cause("bob")
    begin(cause, Received(7, [Puback(3)], cause="ann#1 feed: Publish 3"))
    assert cause.text == "ann#1 feed: Publish 3"
    begin(cause, LinkPaused(1))
    assert cause.text == "bob#2 LinkPaused", "the former one is over"


def test_what_goes_on_brings_its_causes_along() -> None:
    cause = Cause("ann")
    begin(cause, Stored(4))
    for one in ("a", "b", "a", ""):
        cause.also(one)
    assert cause.text == "a; b"
    for number in range(2 * CAUSES_MAX):
        cause.also(f"c{number}")
    assert cause.text.count("; ") == CAUSES_MAX - 1
    assert join_causes(["a; b", "b; c", ""]) == "a; b; c"


def test_what_strangers_choose_has_a_bound_and_is_one_cause() -> None:
    cause = Cause("ann")
    begin(cause, Received(7, [make_publish(3)]))
    cause.who = SimpleNamespace(name="x; y" * 1000)
    assert len(cause.text) <= 120 and "; " not in cause.text


def test_a_disk_answers_with_the_causes_of_what_it_was_asked() -> None:
    world = LogWorld()
    world.node.streams.declare("quotes", {"durability": "stored"})
    link = world.connect()
    world.say(link, make_publish(1))
    published = world.node.cause.text
    assert published.endswith(": Publish 1")
    world.feed(Wake())
    assert world.node.cause.text != published
    world.sync()
    assert world.node.cause.text == published
