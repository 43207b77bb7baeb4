"""Clients: every message a client may say, what it is answered, and every way in which it can be refused."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.broker.core.effects import Close
from headgate.broker.core.inputs import LinkPaused, LinkResumed, Received
from headgate.broker.core.limits import Limits
from headgate.matching.structure import parse_twig
from headgate.protocol.errors import ErrorCode
from headgate.protocol.limits import CREDIT_MAX, PUBLISH_WINDOW_DEFAULT, TEXT_LENGTH_MAX
from headgate.protocol.messages import (
    VERSION,
    Ack,
    Acked,
    Answer,
    Ask,
    Credit,
    Deliver,
    Error,
    Goodbye,
    Hello,
    Interest,
    Mode,
    Ping,
    Pong,
    Puback,
    Scope,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
    Welcome,
)
from headgate.protocol.wire import session
from tests.support.builders import make_publish, make_subscribe, quote_batch
from tests.support.node_world import NodeWorld


def error_in(messages: list[Any]) -> Error:
    (error,) = (message for message in messages if isinstance(message, Error))
    return error


def test_every_message_that_a_session_lets_through_has_its_handler() -> None:
    assert session._FROM_CLIENT - {Ping, Pong} <= NodeWorld().node.clients.table.keys()


def test_an_ack_for_what_is_no_durable_subscription_is_stale_as_a_whole() -> None:
    world = NodeWorld()
    link, _ = world.dial()
    world.say(link, make_subscribe(1))
    assert world.say(link, Ack(0, 1, 0, [1, 4])) == [], "nobody asked"
    assert world.say(link, Ack(7, 1, 0, [1, 4]), Ack(8, 9, 3, [5, 5], -1, "broken")) == [
        Acked(7, [1, 4]),
        Acked(8, [5, 5]),
    ]


# --- HELLO ------------------------------------------------------------------------------------------------------------


def test_a_new_session_is_welcomed_with_a_key_of_its_own() -> None:
    world = NodeWorld()
    first, second = world.dial()[1][0], world.dial()[1][0]
    assert isinstance(first, Welcome)
    assert isinstance(second, Welcome)
    assert len(first.session) == 16
    assert first.session != second.session
    assert (first.broker, first.resumed, first.accepted, first.window) == ("broker-1", False, 0, PUBLISH_WINDOW_DEFAULT)
    assert first.heartbeat_seconds == Hello().heartbeat_seconds


def test_a_session_goes_on_with_subscriptions_and_sequences() -> None:
    world = NodeWorld()
    link = world.subscriber()
    key = world.key(link)
    world.say(link, make_publish(1), make_publish(2))
    world.drop(link)
    link, answers = world.resume(key, received=2)
    welcome = answers[0]
    assert isinstance(welcome, Welcome)
    assert (welcome.resumed, welcome.accepted, welcome.session) == (True, 2, key)
    assert Interest("quotes", []) in answers
    world.publish(link, "c")
    assert world.delivered(link) == [(1, "c")]


def test_what_is_asked_of_documents_is_said_again_when_a_session_goes_on() -> None:
    """Before any event: SUBACK, or the ANSWER of an amendment, may have been lost with the connection."""
    world = NodeWorld()
    link = world.subscriber()
    key = world.key(link)
    world.say(link, make_subscribe(2, condition="XPATH 'a/b'"), make_subscribe(3, condition="XPATH 'c'"))
    amended = {"subscription": 3, "pattern": "quotes", "where": "price > 1"}
    world.say(link, make_subscribe(4, condition="XPATH 'd'"), Ask(5, "amend", amended), Unsubscribe(6, 4))
    world.drop(link)
    world.publish(world.connect(), "a")
    _, answers = world.resume(key)
    checks = [parse_twig("a/b").check()]
    assert [one for one in answers if isinstance(one, Suback)] == [Suback(0, 2, checks), Suback(0, 3)]
    kinds = [type(one) for one in answers]
    assert kinds.index(Suback) < kinds.index(Deliver)


def test_an_unknown_key_begins_a_new_session_with_another_key() -> None:
    world = NodeWorld()
    welcome = world.resume(b"0123456789abcdef", received=77)[1][0]
    assert isinstance(welcome, Welcome)
    assert not welcome.resumed
    assert welcome.session != b"0123456789abcdef"


def test_whoever_comes_back_replaces_the_connection_that_was_not_known_to_be_dead() -> None:
    world = NodeWorld()
    old = world.subscriber()
    publisher, key = world.connect(), world.key(old)
    link, answers = world.resume(key)
    assert isinstance(answers[0], Welcome)
    assert answers[0].resumed
    assert error_in(world.take(old)).code == ErrorCode.REPLACED
    assert world.closed == [old]
    world.feed(Received(old, [Unsubscribe(1, 1)]))
    world.drop(old)
    world.publish(publisher, "a")
    assert world.delivered(link) == [(1, "a")]
    assert world.take(old) == []
    assert world.node.statistics(world.now).sessions == 2


def test_more_received_than_was_sent_is_refused_and_the_session_stays() -> None:
    world = NodeWorld()
    link = world.subscriber()
    key = world.key(link)
    world.drop(link)
    link, answers = world.resume(key, received=1)
    assert [(type(one), one.code) for one in answers if isinstance(one, Error)] == [(Error, ErrorCode.PROTOCOL)]
    assert world.closed == [link]
    assert world.resume(key, received=0)[1][0] == Welcome(
        VERSION, "broker-1", key, True, 0, PUBLISH_WINDOW_DEFAULT, Hello().heartbeat_seconds
    )


def test_too_many_sessions_are_turned_away_and_old_ones_may_still_come_back() -> None:
    world = NodeWorld(limits=Limits(sessions=2))
    first = world.connect()
    key = world.key(first)
    world.connect()
    link, answers = world.dial()
    assert error_in(answers).code == ErrorCode.TOO_MANY
    assert world.closed == [link]
    world.drop(first)
    assert isinstance(world.resume(key)[1][0], Welcome)


# --- PUBLISH ----------------------------------------------------------------------------------------------------------


def test_a_batch_that_is_sent_again_is_answered_and_delivered_once() -> None:
    world = NodeWorld()
    subscriber, publisher = world.subscriber(), world.connect()
    world.say(publisher, make_publish(1), make_publish(2))
    assert world.say(publisher, make_publish(1), make_publish(2))[-1] == Puback(2)
    assert world.delivered(subscriber) == [(1, "1"), (1, "2")]
    assert world.node.statistics(world.now).events_duplicate == 2


def test_a_hole_in_the_sequence_ends_the_connection_and_not_the_session() -> None:
    world = NodeWorld()
    subscriber, publisher = world.subscriber(), world.connect()
    key = world.key(publisher)
    answers = world.say(publisher, make_publish(1), make_publish(3))
    assert error_in(answers).code == ErrorCode.SEQUENCE_GAP
    assert world.closed == [publisher]
    assert world.delivered(subscriber) == [(1, "1")]
    world.drop(publisher)
    welcome = world.resume(key)[1][0]
    assert isinstance(welcome, Welcome)
    assert (welcome.resumed, welcome.accepted) == (True, 1)


def test_nothing_goes_out_on_a_link_after_its_violation() -> None:
    world = NodeWorld()
    link, publisher = world.subscriber(), world.connect()
    key = world.key(link)
    world.say(link, Credit(1, 5))
    world.publish(publisher, "a")
    assert world.take(link) == []
    world.drop(link)
    assert world.node.next_deadline() == world.now + 10.0
    assert len(world.resume(key)[1]) == 2, "WELCOME, and what was published meanwhile"


def test_fire_is_not_answered_and_has_no_sequence() -> None:
    world = NodeWorld()
    subscriber, publisher = world.subscriber(), world.connect()
    answers = world.say(publisher, *[make_publish(0, mode=Mode.FIRE)] * 3)
    assert [type(answer) for answer in answers] == [Interest]
    assert len(world.delivered(subscriber)) == 3


def test_stored_is_refused_until_there_is_a_log_and_the_sequence_goes_on() -> None:
    world = NodeWorld()
    link = world.connect()
    answers = world.say(link, make_publish(1, mode=Mode.STORED), make_publish(2))
    assert error_in(answers).code == ErrorCode.UNSUPPORTED
    assert error_in(answers).reference == 1
    assert answers[-1] == Puback(2)


def test_too_many_streams_are_refused() -> None:
    world = NodeWorld(limits=Limits(streams=1))
    link = world.connect()
    world.publish(link, "a")
    assert error_in(world.say(link, make_publish(2, quote_batch("alerts")))).code == ErrorCode.LIMIT
    assert error_in(world.say(link, make_subscribe(1, "alerts"))).code == ErrorCode.LIMIT
    assert Suback(102, 2) in world.say(link, make_subscribe(2, "quotes"))


# --- INTEREST ---------------------------------------------------------------------------------------------------------


def test_publishers_hear_what_is_filtered_on_once_and_whenever_it_changes() -> None:
    world = NodeWorld()
    publisher = world.connect()
    assert [one for one in world.say(publisher, make_publish(1), make_publish(2)) if isinstance(one, Interest)] == [
        Interest("quotes", [])
    ]
    subscriber = world.subscriber(("quotes", "price > 1"), ("quotes/x", "price > 2"), ("alerts", "other = 1"))
    assert world.take(publisher) == [Interest("quotes", ["price"])]
    world.say(subscriber, Unsubscribe(1, 1))
    assert world.take(publisher) == []
    world.say(subscriber, Unsubscribe(2, 2))
    assert world.take(publisher) == [Interest("quotes", [])]
    assert [one for one in world.say(subscriber, make_publish(1, quote_batch("alerts"))) if type(one) is Interest] == [
        Interest("alerts", ["other"])
    ]


def test_a_publisher_that_does_not_read_hears_the_last_word_once_when_it_does() -> None:
    world = NodeWorld()
    publisher, subscriber = world.connect(), world.subscriber(("quotes", "price > 1"))
    world.publish(publisher, "a")
    world.take(publisher)
    world.feed(LinkPaused(publisher))
    for number in range(2, 50):
        world.say(subscriber, make_subscribe(number, condition=f"a{number} = 1"), Unsubscribe(100 + number, number - 1))
    assert world.take(publisher) == []
    world.feed(LinkResumed(publisher))
    assert world.take(publisher) == [Interest("quotes", ["a49"])]
    world.feed(LinkPaused(publisher))
    world.feed(LinkResumed(publisher))
    assert world.take(publisher) == []


def test_the_end_of_a_session_takes_its_interest_along() -> None:
    world = NodeWorld()
    publisher, subscriber = world.connect(), world.subscriber(("quotes", "price > 1"))
    world.publish(publisher, "a")
    world.take(publisher)
    world.say(subscriber, Goodbye(0, ""))
    assert world.take(publisher) == [Interest("quotes", [])]
    world.say(publisher, Goodbye(0, ""))
    assert world.node.streams.by_name["quotes"].publishers == {}


# --- SUBSCRIBE and UNSUBSCRIBE ----------------------------------------------------------------------------------------


def test_a_subscription_is_in_force_from_its_place_in_the_stream_of_messages() -> None:
    world = NodeWorld()
    link = world.connect()
    world.feed(
        Received(link, [make_publish(1), make_subscribe(1), make_publish(2), Unsubscribe(5, 1), make_publish(3)])
    )
    assert world.delivered(link) == [(1, "2")]


REFUSED: list[tuple[Subscribe, ErrorCode, str]] = [
    (make_subscribe(0), ErrorCode.BAD_REQUEST, "from 1"),
    (make_subscribe(1, "quotes/#"), ErrorCode.BAD_PATTERN, "wildcard"),
    (make_subscribe(1, ""), ErrorCode.BAD_PATTERN, "empty"),
    (make_subscribe(1, "*/x"), ErrorCode.BAD_PATTERN, "stream"),
    (make_subscribe(1, condition="price >"), ErrorCode.BAD_CONDITION, "expected"),
    (make_subscribe(1, condition="XPATH '/a/b' AND DELTA(price) > 1"), ErrorCode.UNSUPPORTED, "`rest`"),
    (make_subscribe(1, color="red"), ErrorCode.BAD_REQUEST, "color"),
    (make_subscribe(1, exact=1), ErrorCode.BAD_REQUEST, "exact"),
    (make_subscribe(1, ordered="yes"), ErrorCode.BAD_REQUEST, "ordered"),
    (make_subscribe(1, durable="mine"), ErrorCode.UNSUPPORTED, "durable"),
    (Subscribe(101, 1, "quotes", "", {"from": "start"}), ErrorCode.UNSUPPORTED, "from"),
]


@pytest.mark.parametrize(("message", "code", "word"), REFUSED, ids=str)
def test_a_refused_subscription_changes_nothing(message: Subscribe, code: ErrorCode, word: str) -> None:
    world = NodeWorld()
    link = world.connect()
    (answer,) = world.say(link, message)
    assert isinstance(answer, Error)
    assert (answer.code, answer.scope, answer.reference) == (code, Scope.REQUEST, message.request)
    assert word in answer.text
    assert world.node.statistics(world.now).subscriptions == 0
    assert world.closed == []
    assert world.say(link, make_subscribe(1)) == [Suback(101, 1)]


@pytest.mark.parametrize(
    "options", [{}, {"exact": False}, {"ordered": True}, {"durable": ""}, {"from": "now"}, {"credit": 5}]
)
def test_options_that_ask_for_what_is_there_are_taken(options: dict[str, Any]) -> None:
    world = NodeWorld()
    assert world.say(world.connect(), Subscribe(1, 1, "quotes", "", options)) == [Suback(1, 1)]


def test_an_exact_subscription_does_not_get_what_is_below() -> None:
    world = NodeWorld()
    link = world.connect()
    world.say(link, make_subscribe(1, "quotes/NYSE", exact=True))
    world.say(world.connect(), make_publish(1, quote_batch(["quotes/NYSE", "quotes/NYSE/OTE"], ["a", "b"])))
    assert world.delivered(link) == [(1, "a")]


def test_a_condition_of_blanks_is_none() -> None:
    world = NodeWorld()
    link = world.subscriber(("quotes", "  \n "))
    world.publish(world.connect(), "a")
    assert world.delivered(link) == [(1, "a")]


def test_a_number_in_use_is_refused_and_the_first_subscription_stays() -> None:
    world = NodeWorld()
    link = world.subscriber(("quotes/a", ""))
    assert error_in(world.say(link, make_subscribe(1, "quotes/b"))).code == ErrorCode.DUPLICATE
    world.say(world.connect(), make_publish(1, quote_batch(["quotes/a", "quotes/b"], ["a", "b"])))
    assert world.delivered(link) == [(1, "a")]


def test_two_clients_may_use_the_same_number() -> None:
    world = NodeWorld()
    links = [world.subscriber(), world.subscriber()]
    world.say(links[0], Unsubscribe(1, 1))
    world.publish(world.connect(), "a")
    assert [world.delivered(link) for link in links] == [[], [(1, "a")]]


@pytest.mark.parametrize("bound", ["subscriptions_per_session", "subscriptions"])
def test_too_many_subscriptions_are_refused(bound: str) -> None:
    world = NodeWorld(limits=Limits(**{bound: 2}))
    link = world.subscriber(("quotes", ""), ("quotes", ""))
    assert error_in(world.say(link, make_subscribe(3))).code == ErrorCode.LIMIT
    world.say(link, Unsubscribe(9, 1))
    assert world.say(link, make_subscribe(3)) == [Suback(103, 3)]


def test_unsubscribing_is_answered_and_only_once() -> None:
    world = NodeWorld()
    link = world.subscriber()
    assert world.say(link, Unsubscribe(7, 1)) == [Unsuback(7, 1)]
    error = error_in(world.say(link, Unsubscribe(8, 1)))
    assert (error.code, error.reference) == (ErrorCode.NOT_FOUND, 8)


# --- CREDIT, ASK, GOODBYE, ERROR --------------------------------------------------------------------------------------


def test_a_smaller_allowance_than_before_has_no_effect() -> None:
    world = NodeWorld()
    subscriber, publisher = world.subscriber(credit=5), world.connect()
    world.say(subscriber, Credit(2, 0))
    world.publish(publisher, *"abcdef")
    assert len(world.delivered(subscriber)) == 5


@pytest.mark.parametrize(("allowed", "received"), [(10, 3), (CREDIT_MAX + 1, 2), (10, 1)])
def test_credit_that_cannot_be_ends_the_connection(allowed: int, received: int) -> None:
    world = NodeWorld()
    subscriber, publisher = world.subscriber(), world.connect()
    world.publish(publisher, "a", "b")
    world.grant(subscriber, 10, 2)
    (error,) = world.grant(subscriber, allowed, received)
    assert isinstance(error, Error)
    assert (error.code, error.scope) == (ErrorCode.PROTOCOL, Scope.CONNECTION)
    assert world.closed == [subscriber]


def test_questions_are_answered_or_refused_by_their_number() -> None:
    world = NodeWorld()
    link = world.connect()
    (answer,) = world.say(link, Ask(5, "status", {}))
    assert isinstance(answer, Answer)
    assert (answer.request, answer.value["sessions"]) == (5, 1)
    error = error_in(world.say(link, Ask(6, "gossip", {})))
    assert (error.code, error.scope, error.reference) == (ErrorCode.BAD_REQUEST, Scope.REQUEST, 6)


def test_goodbye_ends_the_session_at_once() -> None:
    world = NodeWorld()
    link = world.subscriber()
    key = world.key(link)
    assert world.say(link, Goodbye(0, "bye")) == []
    assert world.effects == [Close(link)]
    assert world.node.statistics(world.now).sessions == 0
    world.drop(link)
    welcome = world.resume(key)[1][0]
    assert isinstance(welcome, Welcome)
    assert not welcome.resumed


def test_an_error_that_a_client_reports_is_noted() -> None:
    world = NodeWorld()
    link = world.connect(name="ann")
    world.say(link, Error(ErrorCode.PROTOCOL, Scope.CONNECTION, 0, "what was that?"))
    assert world.notes[-1].facts == {"client": "ann", "text": "what was that?"}


def test_however_long_the_text_that_is_refused_the_refusal_fits_a_frame() -> None:
    world = NodeWorld()
    link = world.connect()
    long = "\x00" * (TEXT_LENGTH_MAX - 1)
    for message in (
        Subscribe(1, 1, "quotes", "", {long: 1}),
        Subscribe(1, 1, long),
        Subscribe(1, 1, "quotes", long),
        Ask(1, "schema.put", {"stream": "quotes", "schema": {"attributes": {long: {"type": 1}}}}),
    ):
        assert len(error_in(world.say(link, message)).text) <= 8_000
