"""Conversation: what is said again after a loss, what is settled, what is final."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headgate.protocol.client import ClientOptions, Conversation, Outcome
from headgate.protocol.errors import ConnectionLost, ErrorCode, Fenced, LocalError, ProtocolViolation, Refused
from headgate.protocol.messages import (
    Answer,
    Ask,
    Credit,
    Error,
    Goodbye,
    Interest,
    LogChunk,
    Message,
    Ping,
    Pong,
    Puback,
    Publish,
    ReadLog,
    Scope,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
    Welcome,
)
from headgate.protocol.wire import session
from tests.support.peer_events import deliver


def welcome(resumed: bool, accepted: int = 0, key: bytes = b"k", broker: str = "b") -> Welcome:
    return Welcome(2, broker, key, resumed, accepted, 100, 15.0)


def begun() -> Conversation:
    conversation = Conversation(ClientOptions(name="n", credit=10, linger_seconds=0), Outcome)
    conversation.handle(welcome(False))
    assert said(conversation) == []
    return conversation


def said(conversation: Conversation) -> list[Message]:
    return list(conversation.outgoing())


def subscribed(conversation: Conversation, pattern: str = "a") -> int:
    inbox = conversation.inbox(pattern, "x > 1", {"exact": True})
    outcome = conversation.subscribe(inbox)
    (message,) = said(conversation)
    assert isinstance(message, Subscribe)
    conversation.handle(Suback(message.request, message.subscription))
    assert outcome.settled and outcome.error is None
    return inbox.number


def test_every_message_that_a_session_lets_through_has_its_handler() -> None:
    assert session._FROM_BROKER - {Pong} <= begun()._handlers.keys()


def test_hello_goes_on_with_the_session() -> None:
    conversation = begun()
    hello = conversation.hello()
    assert (hello.name, hello.session, hello.received, hello.credit) == ("n", b"k", 0, 10)
    assert (conversation.broker, conversation.sessions) == ("b", 1)


def test_a_question_has_its_answer() -> None:
    conversation = begun()
    first, second = conversation.ask("status", {}), conversation.ask("subs", {"stream": "a"})
    one, two = said(conversation)
    assert isinstance(one, Ask) and isinstance(two, Ask)
    conversation.handle(Error(ErrorCode.BAD_REQUEST, Scope.REQUEST, two.request, "no"))
    conversation.handle(Answer(one.request, {"x": 1}))
    conversation.handle(Answer(999, "to nobody"))
    conversation.handle(Error(ErrorCode.BAD_REQUEST, Scope.REQUEST, 999, "to nobody"))
    assert first.result() == {"x": 1}
    with pytest.raises(Refused, match="no"):
        second.result()


def test_a_refused_subscription_leaves_nothing_behind() -> None:
    conversation = begun()
    inbox = conversation.inbox("a", "", {})
    outcome = conversation.subscribe(inbox)
    (message,) = said(conversation)
    assert isinstance(message, Subscribe)
    conversation.handle(Error(ErrorCode.BAD_CONDITION, Scope.REQUEST, message.request, "no"))
    assert isinstance(outcome.error, Refused)
    assert conversation.deliveries.inboxes == {}
    assert inbox.ended


def test_whoever_only_reads_logs_yet_ends_with_the_client() -> None:
    left, lost = begun(), begun()
    reading, other = left.inbox("a", "", {}), lost.inbox("a", "", {})
    left.finish()
    lost.abandon("the broker is gone")
    assert reading.ended and reading.failure is None
    assert other.ended and isinstance(other.failure, ConnectionLost)


def test_whoever_only_reads_logs_yet_may_be_given_up() -> None:
    conversation = begun()
    reading = conversation.inbox("a", "", {})
    assert conversation.unsubscribe(reading).settled and reading.ended
    assert said(conversation) == [] and not conversation._reading
    subscribed(conversation)
    assert not conversation._reading


def test_unsubscribing() -> None:
    conversation = begun()
    number = subscribed(conversation)
    outcome = conversation.unsubscribe(conversation.deliveries.inboxes[number])
    (message,) = said(conversation)
    assert isinstance(message, Unsubscribe)
    conversation.handle(Unsuback(message.request, number))
    assert outcome.settled
    assert conversation.deliveries.inboxes == {}


def test_publishes_wait_while_paused_and_requests_do_not() -> None:
    conversation = begun()
    conversation.publications.add("a", None, b"", "", 1)
    conversation.ask("status", {})
    assert [type(one) for one in conversation.outgoing(paused=True)] == [Ask]
    assert [type(one) for one in conversation.outgoing()] == [Publish]
    conversation.handle(Puback(1))
    assert conversation.publications.idle


def test_credit_is_said_when_it_is_asked_for_and_before_goodbye() -> None:
    conversation = begun()
    number = subscribed(conversation)
    inbox = conversation.deliveries.inboxes[number]
    conversation.handle(Ping(1))
    assert said(conversation) == [], "nothing was taken"
    for base, events in ((0, 2), (2, 1), (3, 5)):
        conversation.handle(replace(deliver(events, base), routes=[number, events]))
    inbox.take()
    assert said(conversation) == [], "far from half of the window"
    conversation.handle(Ping(2))
    (credit,) = said(conversation)
    assert isinstance(credit, Credit) and (credit.allowed, credit.received, credit.taken) == (12, 8, 2)
    conversation.handle(Ping(3))
    assert said(conversation) == []
    inbox.take()
    conversation.end_inboxes()  # what is discarded now was taken by nobody
    conversation.handle(replace(deliver(6, 8), routes=[number, 6]))  # came too late to be taken
    conversation.handle(Ping(4))
    for credit in (*said(conversation), *conversation.last_words()):
        assert isinstance(credit, Credit) and (credit.received, credit.taken) == (14, 3)


def test_what_waits_in_one_subscription_is_not_taken_whatever_another_takes() -> None:
    conversation = begun()
    number, other = subscribed(conversation), subscribed(conversation, "b")
    for base, to in ((0, number), (5, other)):
        conversation.handle(replace(deliver(5, base), routes=[to, 5]))
    assert len(conversation.deliveries.inboxes[other].take()) == 5
    assert conversation.deliveries.taken == 0
    conversation.deliveries.inboxes[number].take()
    assert conversation.deliveries.taken == 10


@pytest.mark.parametrize("resumed", [True, False])
def test_no_silence_goes_over_a_lost_connection(resumed: bool) -> None:
    conversation = begun()
    inbox = conversation.deliveries.inboxes[subscribed(conversation)]
    inbox.listen()
    assert inbox.is_quiet
    conversation.interrupted("reset")
    assert not inbox.is_quiet
    inbox.listen()
    conversation.handle(welcome(resumed))
    assert not inbox.is_quiet


def test_interest_is_remembered_by_stream() -> None:
    conversation = begun()
    conversation.handle(Interest("a", ["x"]))
    conversation.handle(Interest("b", None))
    assert conversation.publications.interest == {"a": ["x"], "b": None}


def test_resumed_says_credit_and_unanswered_requests_again() -> None:
    conversation = begun()
    number = subscribed(conversation)
    subscribing = conversation.subscribe(conversation.inbox("b", "", {}))
    unsubscribing = conversation.unsubscribe(conversation.deliveries.inboxes[number])
    asking = conversation.ask("status", {})
    first = said(conversation)
    unsent = conversation.ask("streams", {})
    conversation.interrupted("reset")
    assert isinstance(asking.error, ConnectionLost) and not unsent.settled
    conversation.handle(welcome(True))
    again = said(conversation)
    assert [type(one) for one in again] == [Credit, Subscribe, Unsubscribe, Ask]
    assert again[1:3] == first[:2]
    # The first ones had arrived: what the broker says of the second ones is good news.
    one, two = again[1], again[2]
    assert isinstance(one, Subscribe) and isinstance(two, Unsubscribe)
    conversation.handle(Error(ErrorCode.DUPLICATE, Scope.REQUEST, one.request, "exists"))
    conversation.handle(Error(ErrorCode.NOT_FOUND, Scope.REQUEST, two.request, "is none"))
    assert subscribing.error is None and subscribing.settled
    assert unsubscribing.error is None and unsubscribing.settled
    assert sorted(conversation.deliveries.inboxes) == [2]


def test_a_duplicate_that_was_said_once_is_refused() -> None:
    conversation = begun()
    outcome = conversation.subscribe(conversation.inbox("b", "", {}))
    (message,) = said(conversation)
    assert isinstance(message, Subscribe)
    conversation.handle(Error(ErrorCode.DUPLICATE, Scope.REQUEST, message.request, "exists"))
    assert isinstance(outcome.error, Refused)


def test_a_new_session_subscribes_again_under_the_same_numbers() -> None:
    conversation = begun()
    kept, closed = subscribed(conversation, "kept"), subscribed(conversation, "closed")
    pending = conversation.subscribe(conversation.inbox("pending", "", {}))
    unsubscribing = conversation.unsubscribe(conversation.deliveries.inboxes[closed])
    said(conversation)
    conversation.interrupted("reset")
    conversation.handle(welcome(False, key=b"new"))
    again = [one for one in said(conversation) if isinstance(one, Subscribe)]
    assert sorted((one.subscription, one.pattern) for one in again) == [(1, "kept"), (3, "pending")]
    assert unsubscribing.settled and not pending.settled
    assert conversation.hello().session == b"new"
    assert [gap.count for gap in conversation.deliveries.inboxes[kept].gaps] == [0]
    (refused,) = (one for one in again if one.pattern == "kept")
    inbox = conversation.deliveries.inboxes[kept]
    conversation.handle(Error(ErrorCode.LIMIT, Scope.REQUEST, refused.request, "full"))
    assert isinstance(inbox.failure, Refused)


def test_two_new_sessions_in_a_row_subscribe_once_each() -> None:
    conversation = begun()
    subscribed(conversation)
    for _ in range(2):
        conversation.interrupted("reset")
        conversation.handle(welcome(False))
        assert [type(one) for one in said(conversation)] == [Subscribe]


def test_another_broker_is_named_in_the_gap_and_has_the_subscription_when_it_says_so() -> None:
    conversation = begun()
    inbox = conversation.deliveries.inboxes[subscribed(conversation)]
    assert inbox.confirmed
    conversation.interrupted("reset")
    conversation.handle(welcome(True))
    assert inbox.confirmed and not inbox.gaps, "the session went on"
    told = []
    inbox.on_change = lambda: told.append(inbox.confirmed)
    conversation.interrupted("reset")
    conversation.handle(welcome(False, broker="c"))
    assert not inbox.confirmed
    (gap,) = inbox.gaps
    assert (gap.count, "moved to another broker, c" in gap.reason) == (0, True)
    (message,) = (one for one in said(conversation) if isinstance(one, Subscribe))
    conversation.handle(Suback(message.request, message.subscription))
    assert inbox.confirmed and told == [True]
    conversation.handle(welcome(False, broker="c"))
    assert "session ended" in inbox.gaps[-1].reason


@pytest.mark.parametrize(
    ("message", "final"),
    [
        (Error(ErrorCode.PROTOCOL, Scope.CONNECTION, 0, "x"), True),
        (Error(ErrorCode.VERSION, Scope.CONNECTION, 0, "x"), True),
        (Error(ErrorCode.REPLACED, Scope.CONNECTION, 0, "x"), True),
        (Error(ErrorCode.TIMEOUT, Scope.CONNECTION, 0, "x"), False),
        (Error(ErrorCode.SHUTTING_DOWN, Scope.CONNECTION, 0, "x"), False),
        (Error(12345, Scope.CONNECTION, 0, "x"), False),
        (Goodbye(ErrorCode.SHUTTING_DOWN, "x"), False),
        (Goodbye(ErrorCode.UNAUTHORISED, "x"), True),
    ],
)
def test_which_ends_are_final(message: Message, final: bool) -> None:
    conversation = begun()
    conversation.handle(message)
    assert isinstance(conversation.fatal, ProtocolViolation) == final


def test_abandon_tells_everybody_and_finish_ends_loops_in_peace() -> None:
    conversation = begun()
    inbox = conversation.deliveries.inboxes[subscribed(conversation)]
    asking, publishing = conversation.ask("status", {}), conversation.publications.add("a", None, b"", "", 1)
    conversation.abandon("gone")
    assert all(isinstance(one.error, ConnectionLost) for one in (asking, publishing))
    assert isinstance(inbox.failure, ConnectionLost)
    other = begun()
    inbox = other.deliveries.inboxes[subscribed(other)]
    other.finish()
    assert inbox.ended and inbox.failure is None


def test_options_are_checked() -> None:
    for options in ({"credit": 0}, {"linger_seconds": -0.1}):
        with pytest.raises(LocalError):
            ClientOptions(**options)


@pytest.mark.parametrize("condition", [3, "x = '\ud800'", "x" * 540_000], ids=["number", "surrogate", "long"])
def test_what_no_broker_would_take_is_refused_before_it_is_said(condition: Any) -> None:
    conversation = begun()
    with pytest.raises(LocalError):
        conversation.inbox("a", condition, {})
    for verb, arguments in ((3, {}), ("x" * 300, {}), ("explain", {"pattern": "x" * 540_000}), ("status", {"x": {1}})):
        with pytest.raises(LocalError):
            conversation.ask(verb, arguments)  # type: ignore[arg-type]
    assert said(conversation) == []
    assert conversation.deliveries.inboxes == {}
    conversation.handle(welcome(False))
    assert said(conversation) == []


@pytest.mark.parametrize(
    "options",
    [{"name": "x" * 300}, {"name": "\ud800"}, {"credit": 2**60}, {"credit": 1.5}, {"heartbeat_seconds": 0}],
    ids=str,
)
def test_options_that_no_broker_would_take_are_refused_before_anybody_is_called(options: dict[str, Any]) -> None:
    with pytest.raises(LocalError):
        ClientOptions(**options)


def opening(conversation: Conversation) -> Ask:
    """The only thing said is the question that opens the client's own producer."""
    (ask,) = said(conversation)
    assert isinstance(ask, Ask) and (ask.verb, ask.arguments) == ("producer.open", {"producer": "me", "epoch": 7})
    return ask


def storing() -> tuple[Conversation, Outcome]:
    """One event that is to be stored."""
    conversation = Conversation(ClientOptions(producer="me", epoch=7, linger_seconds=0), Outcome)
    conversation.handle(welcome(False))
    assert said(conversation) == []
    return conversation, conversation.publications.add("a", None, b"", "", 2)


def test_a_producer_is_opened_in_every_session_before_it_publishes() -> None:
    conversation, outcome = storing()
    conversation.handle(Answer(opening(conversation).request, {"next": 3, "digest": b"", "epoch": 7}))
    (first,) = said(conversation)
    conversation.interrupted("gone")
    conversation.handle(welcome(False))
    conversation.handle(Answer(opening(conversation).request, {"next": 3, "digest": b"", "epoch": 7}))
    (second,) = said(conversation)
    assert isinstance(first, Publish) and isinstance(second, Publish) and first.stamp == second.stamp
    assert first.stamp is not None and first.stamp.number == 3
    conversation.handle(Puback(1))
    assert outcome.settled and outcome.error is None


def test_a_question_that_opens_a_producer_outlives_its_connection() -> None:
    conversation, outcome = storing()
    ask = opening(conversation)
    conversation.interrupted("gone")
    conversation.handle(welcome(True))
    assert [one for one in said(conversation) if isinstance(one, Ask)] == [ask]
    conversation.handle(Error(ErrorCode.UNAVAILABLE, Scope.REQUEST, ask.request, "in a moment"))
    assert said(conversation) == [] and conversation.publications.pause_seconds
    conversation.publications.rested()
    conversation.handle(Answer(opening(conversation).request, "nonsense"))
    assert isinstance(outcome.error, ProtocolViolation)


def test_a_producer_that_is_shut_out_fails_what_waits() -> None:
    conversation, outcome = storing()
    conversation.handle(Error(ErrorCode.FENCED, Scope.REQUEST, opening(conversation).request, "epoch 9"))
    assert isinstance(outcome.error, Fenced) and said(conversation) == []


def test_reading_a_log_has_its_answer_or_is_lost_with_the_connection() -> None:
    conversation = begun()
    first = conversation.read_log(ReadLog(0, "ann", 1, 0, "quotes", 5))
    second = conversation.read_log(ReadLog(0, "ann", 1, 0, "quotes", 6))
    one, two = said(conversation)
    assert isinstance(one, ReadLog) and isinstance(two, ReadLog) and one.request != two.request
    chunk = LogChunk(one.request, 0, 5, 5, [])
    conversation.handle(chunk)
    assert first.result() is chunk
    conversation.interrupted("gone")
    assert isinstance(second.error, ConnectionLost)
    conversation.handle(welcome(True))
    assert [type(message) for message in said(conversation)] == [Credit]
    with pytest.raises(LocalError):
        conversation.read_log(ReadLog(0, "ann", 1, 0, "quotes", -5))
