"""Durable subscriptions at the client, without I/O: options, spans, what is said of events, and coming back."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.protocol.addresses import Addresses
from headgate.protocol.client import ClientCore, ClientLimits, ClientOptions, Conversation, LinkCore, Outcome, Retry
from headgate.protocol.client.durable import DurableInbox, HandedEvent, durable_options, is_within, spans_of
from headgate.protocol.data import Portion, join_u32, make_batch
from headgate.protocol.errors import ErrorCode, LocalError, Refused
from headgate.protocol.limits import ACK_SPANS_MAX
from headgate.protocol.messages import (
    Ack,
    Acked,
    AckVerb,
    Ended,
    Error,
    Gap,
    Handed,
    Message,
    Scope,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
    Welcome,
)


class World:
    """One durable subscription in a conversation whose clock and broker are the test's."""

    def __init__(self, retry_seconds: float | None = None, limits: ClientLimits | None = None, **options: Any) -> None:
        client_options = ClientOptions(limits=limits or ClientLimits())
        self.conversation = Conversation(client_options, Outcome)
        self.now = 100.0
        retry = Retry(retry_seconds, lambda: 0.0)
        link = LinkCore(Addresses("a:1", lambda: 0.0), self.conversation, retry, lambda: self.now)
        core = ClientCore(client_options, self.conversation, link, lambda: self.now)
        core.sharing = nullcontext()
        core.say_acks = lambda inbox: None  # type: ignore[method-assign]  # the test says when
        inbox = self.conversation.inbox("a", "x > 1", {"durable": "d", **options})
        assert isinstance(inbox, DurableInbox)
        self.inbox = inbox
        inbox.client, inbox.retry = core, link.patience()
        self.welcome(False)
        self.outcome = self.conversation.subscribe(inbox)

    def welcome(self, resumed: bool) -> None:
        self.conversation.handle(Welcome(2, "ann", b"k", resumed, 0, 256, 15.0))

    def say(self, *messages: Message) -> None:
        for message in messages:
            self.conversation.handle(message)

    def sent(self) -> list[Message]:
        return list(self.conversation.outgoing())

    def attach(self) -> Subscribe:
        (asked,) = self.sent()
        assert isinstance(asked, Subscribe)
        self.say(Suback(asked.request, 1))
        return asked

    def hand(self, first: int, count: int = 1, counts: bytes = b"") -> list[HandedEvent]:
        self.conversation.handle(Handed(1, first, counts, portion(count)))
        return [event for event in self.inbox.take() if isinstance(event, HandedEvent)]

    def acks(self) -> list[Ack]:
        self.conversation.acknowledge()
        acks = self.sent()
        assert all(isinstance(ack, Ack) for ack in acks)
        return acks  # type: ignore[return-value]

    def again(self) -> Subscribe:
        """It has rested: ask."""
        assert self.inbox.rest_until is not None
        self.now = self.inbox.rest_until
        self.inbox.client.attach(self.inbox)
        (asked,) = self.sent()
        assert isinstance(asked, Subscribe)
        return asked


def attached(**options: Any) -> World:
    world = World(**options)
    world.attach()
    return world


def portion(count: int) -> Portion:
    return make_batch(["a"], {"row": list(range(count))}, [b""] * count).portion(range(count), "o", 40, 2_500_000)


# --- Options and spans ------------------------------------------------------------------------------------------------


def test_options_are_those_that_were_set() -> None:
    nothing = {"sharing": None, "backoff": None, "takeover": False, "window": None}
    assert durable_options(None, "start", **nothing) == {}
    assert durable_options("d", None, **nothing) == {"durable": "d"}
    options = durable_options(
        "d", "now", sharing="key:user", ack_wait=5, max_deliver=0, backoff=(1, 2.5), takeover=True
    )
    settings = {"sharing": "key:user", "ack_wait": 5, "max_deliver": 0, "backoff": [1, 2.5], "takeover": True}
    assert options == {"durable": "d", "from": "now", **settings}


@pytest.mark.parametrize(
    ("durable", "start", "settings"),
    [
        (None, None, {"ack_wait": 1}),
        ("", None, {}),
        (7, None, {}),
        ("d", 1.5, {}),
        ("d", None, {"ack_wait": -1}),
        ("d", None, {"backoff": [1, -1]}),
        ("d", None, {"max_deliver": 1.5}),
        ("d", None, {"max_unacked": -1}),
        ("d", None, {"window": True}),
    ],
)
def test_what_is_no_option_is_our_own_error(durable: Any, start: Any, settings: dict[str, Any]) -> None:
    with pytest.raises(LocalError):
        durable_options(durable, start, **settings)


@given(st.lists(st.integers(1, 30)))
def test_spans_are_the_numbers(numbers: list[int]) -> None:
    spans = spans_of(numbers)
    pairs = list(zip(spans[::2], spans[1::2], strict=True))
    assert [number for first, last in pairs for number in range(first, last + 1)] == sorted(set(numbers))
    assert all(after[0] > before[1] + 1 for before, after in pairwise(pairs))
    assert all(is_within(number, spans) == (number in numbers) for number in range(32))


# --- What comes -------------------------------------------------------------------------------------------------------


def test_events_know_their_delivery() -> None:
    world = attached()
    first, second = world.hand(7, 2, join_u32([1, 3]))
    assert (first.delivery, first.delivery_count, first.redelivered) == (7, 1, False)
    assert (second.delivery, second.delivery_count, second.redelivered) == (8, 3, True)
    assert (second.id, second.time, second.topic, second.attributes) == ("o.41", 2.5, "a", {"row": 1})
    assert world.hand(9)[0].delivery_count == 1
    assert world.sent() == [], "credit has nothing to do with it"


def test_what_cannot_be_read_is_given_up_and_counted() -> None:
    world = attached()
    good = portion(1).records
    bad = Portion("o", 1, 0, b"", "a", join_u32([1, len(good), 1]), b"\xc1" + good + b"\x90", 3)
    world.say(Handed(1, 5, b"", bad))
    assert [event.delivery for event in world.inbox.take(HandedEvent)] == [6]
    assert world.conversation.deliveries.malformed == 2
    (ack,) = world.sent()  # with what is sent next, whatever that is
    assert ack == Ack(2, 1, AckVerb.TERM, [5, 5, 7, 7], -1, "its record cannot be read")


def test_what_comes_for_nobody_is_passed_over() -> None:
    world = World()
    world.say(Handed(1, 5, b"", portion(1)), Handed(9, 5, b"", portion(1)), Ended(9, 107, "gone"), Acked(77))
    assert not world.inbox.waiting and not world.inbox.ended


def test_a_gap_is_told() -> None:
    world = attached()
    world.say(Gap(1, 20, "retention"), Gap(0, 3, "of others"))
    assert (world.inbox.lost, [gap.count for gap in world.inbox.gaps]) == (20, [20])


# --- What is said -----------------------------------------------------------------------------------------------------


def test_what_was_said_in_a_moment_goes_together() -> None:
    world = attached()
    events = world.hand(7, 6)
    for place in (0, 1, 2, 4):
        assert world.inbox.say(events[place], AckVerb.ACK)
    world.inbox.say(events[3], AckVerb.NAK, 2.5)
    world.inbox.say(events[5], AckVerb.PROGRESS)
    assert world.sent() == [], "it is not due yet"
    assert world.acks() == [
        Ack(2, 1, AckVerb.PROGRESS, [12, 12], -1, ""),
        Ack(3, 1, AckVerb.NAK, [10, 10], 2.5, ""),
        Ack(4, 1, AckVerb.ACK, [7, 9, 11, 11], -1, ""),
    ]
    (flight,) = world.inbox.flights
    world.say(Acked(2), Acked(3, [10, 10]))
    assert not flight.outcome.settled
    world.say(Acked(4))
    assert flight.outcome.value == [10, 10] and world.inbox.stale == 1
    assert world.inbox.flights == [] and world.acks() == []


def test_an_event_is_settled_once() -> None:
    world = attached()
    (event,) = world.hand(7)
    assert world.inbox.say(event, AckVerb.PROGRESS) and world.inbox.say(event, AckVerb.PROGRESS)
    assert world.inbox.say(event, AckVerb.ACK) and world.inbox.say(event, AckVerb.ACK)
    assert not world.inbox.say(event, AckVerb.NAK) and not world.inbox.say(event, AckVerb.PROGRESS)
    assert [ack.verb for ack in world.acks()] == [AckVerb.PROGRESS, AckVerb.ACK]
    assert world.inbox.stale == 2


def test_all_up_to_an_event_is_one_span() -> None:
    world = attached()
    events = world.hand(7, 6)
    assert world.inbox.say(events[1], AckVerb.ACK) and world.inbox.say(events[5], AckVerb.ACK)
    assert world.inbox.say_all(events[3]) and world.inbox.say_all(events[2]), "the second adds nothing"
    assert world.inbox.say(events[0], AckVerb.ACK) and not world.inbox.say(events[0], AckVerb.NAK)
    assert [ack.spans for ack in world.acks()] == [[0, 10, 12, 12]]
    world.say(Acked(2, [0, 10]))
    assert world.inbox.stale == 2, "a stale span from 0 counts one"
    assert world.inbox.say_all(events[5]) and [ack.spans for ack in world.acks()] == [[0, 12]]


def test_what_was_said_of_one_goes_before_all_up_to_an_event() -> None:
    world = attached()
    events = world.hand(7, 4)
    assert world.inbox.say(events[0], AckVerb.ACK) and world.inbox.say(events[1], AckVerb.NAK)
    assert world.inbox.say_all(events[3])
    assert [(ack.verb, ack.spans) for ack in world.acks()] == [(AckVerb.NAK, [8, 8]), (AckVerb.ACK, [0, 10])]


def test_who_waits_for_an_event_waits_for_what_was_said_of_it_alone() -> None:
    world = attached()
    events = world.hand(7, 3)
    flights = []
    for event in events[:2]:
        assert world.inbox.say(event, AckVerb.ACK)
        world.acks()
        flights.append(event.flight)
    assert world.inbox.say_all(events[2]) and events[2].flight is world.inbox.flights[-1]
    assert flights[0] is not flights[1] and world.inbox.flights[:2] == flights
    assert world.inbox.say(events[0], AckVerb.ACK) and events[0].flight is flights[0], "it was said already"


def test_more_spans_than_an_ack_has_go_in_several() -> None:
    world = attached()
    events = world.hand(2, 4096) + world.hand(4098, 4096) + world.hand(8194, 4)
    for event in events[::2]:
        world.inbox.say(event, AckVerb.ACK)
    acks = world.acks()
    assert [len(ack.spans) for ack in acks] == [2 * ACK_SPANS_MAX, 4]
    assert [number for ack in acks for number in ack.spans[::2]] == [event.delivery for event in events[::2]]


def test_few_acks_are_under_way_and_the_rest_goes_with_the_next() -> None:
    world = attached(limits=ClientLimits(acks_open=2))
    events = world.hand(1, 8)
    for event in events[:2]:
        world.inbox.say(event, AckVerb.ACK)
        assert len(world.acks()) == 1
    for event in events[2:5]:
        world.inbox.say(event, AckVerb.ACK)
        assert world.acks() == []
    world.say(Acked(2))
    assert world.sent() == [Ack(4, 1, AckVerb.ACK, [3, 5], -1, "")]


def test_the_last_word_waits_for_no_answer() -> None:
    world = attached(limits=ClientLimits(acks_open=1))
    events = world.hand(1, 3)
    for event in events:
        world.inbox.say(event, AckVerb.ACK)
        world.acks()
    assert not world.inbox.takes_acks
    world.conversation.unsubscribe(world.inbox)
    ack, unsubscribe = world.sent()
    assert isinstance(ack, Ack) and ack.spans == [2, 3] and isinstance(unsubscribe, Unsubscribe)


# --- Attached and detached --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("resumed", [True, False])
def test_after_a_lost_connection_it_attaches_by_its_name_under_the_same_number(resumed: bool) -> None:
    world = World(takeover=True, window=5, ack_wait=3)
    first = world.attach()
    assert (first.pattern, first.condition) == ("a", "x > 1")
    assert first.options == {"durable": "d", "takeover": True, "window": 5, "ack_wait": 3}
    old = world.hand(7, 3)
    dropped: list[bool] = []
    world.inbox.on_drop = lambda: dropped.append(True)
    world.inbox.say(old[0], AckVerb.ACK)
    (ack,) = world.acks()
    world.inbox.say(old[1], AckVerb.ACK)
    flights = world.inbox.flights
    world.say(Handed(1, 10, b"", portion(2)))
    world.conversation.interrupted("cut")
    assert not world.inbox.waiting and not world.inbox.confirmed and dropped == [True]
    assert [flight.outcome.value for flight in flights] == [None, None] and world.inbox.stale == 2
    assert not world.inbox.say(old[2], AckVerb.ACK) and not world.inbox.say_all(old[2]), "its number is of the past"
    world.welcome(resumed)
    again = [message for message in world.sent() if isinstance(message, Subscribe)]
    assert again == [Subscribe(again[0].request, 1, "", "", {"durable": "d", "window": 5})]
    world.say(Acked(ack.request), Suback(again[0].request, 1))
    assert world.inbox.confirmed and list(world.inbox.gaps) == []
    (event,) = world.hand(20)
    assert world.inbox.say(event, AckVerb.ACK) and [ack.spans for ack in world.acks()] == [[20, 20]]


def test_all_up_to_an_event_without_an_answer_is_said_anew_of_what_comes_again() -> None:
    world = attached()
    events = world.hand(7, 3)
    assert world.inbox.say_all(events[2]) and [ack.spans for ack in world.acks()] == [[0, 9]]
    (flight,) = world.inbox.flights
    world.conversation.interrupted("cut")
    assert flight.outcome.value is None and world.inbox.stale == 1, "nobody knows whether it arrived"
    world.welcome(True)
    said = world.sent()
    assert not any(isinstance(message, Ack) for message in said), "what comes again has other numbers"
    (again,) = (message for message in said if isinstance(message, Subscribe))
    world.say(Suback(again.request, 1))
    events = world.hand(20, 3)
    assert world.inbox.say_all(events[2]) and [ack.spans for ack in world.acks()] == [[0, 22]]


def test_what_was_never_answered_is_asked_as_it_was() -> None:
    world = World()
    (asked,) = world.sent()
    world.conversation.interrupted("cut")
    world.welcome(True)
    assert [one for one in world.sent() if isinstance(one, Subscribe)] == [asked]
    world.say(Error(ErrorCode.DUPLICATE, Scope.REQUEST, 1, "somebody else has it"))
    assert world.inbox.ended and isinstance(world.outcome.error, Refused), "it was not the first one that had arrived"


@pytest.mark.parametrize("code", [ErrorCode.NOT_FOUND, ErrorCode.DUPLICATE, ErrorCode.LIMIT])
def test_an_end_for_good_is_raised_with_its_reason(code: ErrorCode) -> None:
    world = attached()
    world.say(Ended(1, code, "because"))
    assert world.inbox.ended and isinstance(world.inbox.failure, Refused)
    assert (world.inbox.failure.code, world.inbox.failure.text) == (code, "because")
    world.conversation.interrupted("cut")
    world.welcome(False)
    assert not [one for one in world.sent() if isinstance(one, Subscribe)]


def test_a_broker_that_lets_go_is_asked_again_after_pauses_that_grow() -> None:
    world = attached()
    (event,) = world.hand(7)
    pauses = []
    world.say(Ended(1, ErrorCode.UNAVAILABLE, "moved"))
    assert not world.inbox.say(event, AckVerb.ACK) and not world.inbox.ended
    for _ in range(4):
        assert world.inbox.rest_until is not None
        pauses.append(world.inbox.rest_until - world.now)
        world.inbox.client.attach(world.inbox)
        assert world.sent() == [], "it rests"
        asked = world.again()
        world.say(Error(ErrorCode.UNAVAILABLE, Scope.REQUEST, asked.request, "not yet"))
    assert [round(pause, 6) for pause in pauses] == [0.025, 0.05, 0.1, 0.2]
    world.say(Suback(world.again().request, 1))
    assert world.inbox.confirmed and world.inbox.rest_until is None
    world.now += 10
    world.say(Ended(1, ErrorCode.UNAVAILABLE, "moved again"))
    assert world.inbox.rest_until == pytest.approx(world.now + 0.025)


def test_patience_ends_where_the_clients_does() -> None:
    world = attached(retry_seconds=1.0)
    world.say(Ended(1, ErrorCode.UNAVAILABLE, "moved"))
    world.now += 2
    asked = world.again()
    world.now += 2
    world.say(Error(ErrorCode.UNAVAILABLE, Scope.REQUEST, asked.request, "not yet"))
    assert world.inbox.ended and isinstance(world.inbox.failure, Refused)


def test_who_comes_back_takes_itself_for_another_one_for_a_while_only() -> None:
    world = attached(limits=ClientLimits(own_ghost_seconds=10))
    world.conversation.interrupted("cut")
    world.welcome(False)
    (asked,) = (one for one in world.sent() if isinstance(one, Subscribe))
    world.say(Error(ErrorCode.DUPLICATE, Scope.REQUEST, asked.request, "ann has it"))
    assert not world.inbox.ended
    asked = world.again()
    world.now += 11
    world.say(Error(ErrorCode.DUPLICATE, Scope.REQUEST, asked.request, "ann has it"))
    assert world.inbox.ended and isinstance(world.inbox.failure, Refused)


def test_a_rest_ends_with_a_new_connection() -> None:
    world = attached()
    world.say(Ended(1, ErrorCode.UNAVAILABLE, "moved"))
    world.conversation.interrupted("cut")
    world.welcome(False)
    assert world.inbox.rest_until is None and len([one for one in world.sent() if isinstance(one, Subscribe)]) == 1


def test_what_was_said_goes_before_the_end() -> None:
    world = attached()
    (event,) = world.hand(7)
    world.inbox.say(event, AckVerb.ACK)
    outcome = world.conversation.unsubscribe(world.inbox)
    ack, end = world.sent()
    assert isinstance(ack, Ack) and isinstance(end, Unsubscribe)
    (flight,) = world.inbox.flights
    world.say(Acked(ack.request), Unsuback(end.request, 1))
    assert outcome.settled and flight.outcome.value == []
    assert not world.inbox.say(event, AckVerb.PROGRESS)


@pytest.mark.parametrize("cut", [True, False])
def test_an_end_is_done_when_the_broker_has_no_such_thing_any_more(cut: bool) -> None:
    world = attached()
    outcome = world.conversation.unsubscribe(world.inbox)
    (end,) = world.sent()
    assert isinstance(end, Unsubscribe)
    if cut:
        world.conversation.interrupted("cut")
        world.welcome(True)
        assert not [one for one in world.sent() if isinstance(one, Subscribe | Unsubscribe)]
    else:
        world.say(Error(ErrorCode.NOT_FOUND, Scope.REQUEST, end.request, "no such subscription"))
    assert outcome.settled and outcome.error is None


def test_who_waits_is_told_when_the_client_ends() -> None:
    world = attached()
    (event,) = world.hand(7)
    world.inbox.say(event, AckVerb.ACK)
    (flight,) = world.inbox.flights
    world.conversation.abandon("nobody answers")
    assert flight.outcome.settled and flight.outcome.value is None and world.inbox.ended


# --- A dumb twin ------------------------------------------------------------------------------------------------------

STEPS = st.lists(
    st.tuples(st.sampled_from(["hand", "ack", "nak", "term", "all", "flush", "answer", "cut"]), st.integers(0, 9)),
    max_size=40,
)


@given(STEPS)
def test_the_broker_hears_of_each_event_what_the_application_said_first(steps: list[tuple[str, int]]) -> None:
    """The twin keeps a dictionary of what was said of each number, and throws it away when the connection is cut."""
    world = attached(limits=ClientLimits(acks_open=2))
    verbs = {"ack": AckVerb.ACK, "nak": AckVerb.NAK, "term": AckVerb.TERM}
    events: list[HandedEvent] = []
    said: dict[int, AckVerb] = {}
    heard: dict[int, AckVerb] = {}
    unanswered: list[int] = []
    handed, first = 1, 0  # the next number, and the first event of this attachment

    def hear(acks: list[Ack]) -> None:
        for ack in acks:
            unanswered.append(ack.request)
            for low, high in zip(ack.spans[::2], ack.spans[1::2], strict=True):
                for event in events[first:]:
                    # What is settled already is not current any more: a span from 0 passes over it.
                    if low <= event.delivery <= high and (low or event.delivery not in heard):
                        assert event.delivery not in heard, "it is said once"
                        heard[event.delivery] = AckVerb(ack.verb)

    for step, place in steps:
        if step == "hand":
            events += world.hand(handed, place + 1)
            handed += place + 1
        elif step == "flush":
            hear(world.acks())
        elif step == "answer" and unanswered:
            world.say(Acked(unanswered.pop(0)))
            hear([one for one in world.sent() if isinstance(one, Ack)])
        elif step == "cut":
            world.conversation.interrupted("cut")
            world.welcome(False)
            (asked,) = (one for one in world.sent() if isinstance(one, Subscribe))
            world.say(Suback(asked.request, 1))
            first, unanswered = len(events), []
            said.clear()
            heard.clear()
        elif events and step in (*verbs, "all"):
            event = events[-1 - place % len(events)]
            current = event.delivery >= (events[first].delivery if first < len(events) else handed)
            if step == "all":
                assert world.inbox.say_all(event) is current
                if current:
                    for one in events[first:]:
                        if one.delivery <= event.delivery:
                            said.setdefault(one.delivery, AckVerb.ACK)
            else:
                verb = verbs[step]
                expected = current and said.get(event.delivery, verb) is verb
                assert world.inbox.say(event, verb) is expected
                if current:
                    said.setdefault(event.delivery, verb)
    while world.inbox.has_said or unanswered:
        hear(world.acks())
        if unanswered:
            world.say(Acked(unanswered.pop(0)))
            hear([one for one in world.sent() if isinstance(one, Ack)])
    assert heard == said


def test_a_span_from_0_says_nothing_of_what_was_said_otherwise_before() -> None:
    world = attached()
    events = world.hand(5, 6)
    world.inbox.say(events[0], AckVerb.ACK)
    world.inbox.say(events[2], AckVerb.NAK)
    world.inbox.say_all(events[5])
    assert [(ack.verb, ack.spans) for ack in world.acks()] == [(AckVerb.NAK, [7, 7]), (AckVerb.ACK, [0, 10])]


def test_who_is_still_at_work_and_then_done_says_so_in_this_order() -> None:
    world = attached()
    first, second = world.hand(5, 2)
    world.inbox.say(first, AckVerb.ACK)
    world.inbox.say(second, AckVerb.PROGRESS)
    world.inbox.say(second, AckVerb.ACK)
    assert [(ack.verb, ack.spans) for ack in world.acks()] == [(AckVerb.PROGRESS, [6, 6]), (AckVerb.ACK, [5, 6])]
