"""Producers: when one is opened, what is sent again and under which number; and a broker's log as the twin."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.protocol.client import Outcome
from headgate.protocol.client.producing import Producer, ProducerState
from headgate.protocol.client.publishing import Publications
from headgate.protocol.data import make_batch
from headgate.protocol.errors import (
    ConnectionLost,
    ErrorCode,
    Fenced,
    HeadgateError,
    LocalError,
    OutOfSequence,
    ProtocolViolation,
    Refused,
    UnknownOutcome,
)
from headgate.protocol.limits import (
    OPEN_ATTEMPTS_MAX,
    PUBLISH_LENGTH_MAX,
    RETRY_DELAY_SECONDS_MAX,
    STORE_ATTEMPTS_MAX,
    STORE_TRY_SECONDS_MAX,
)
from headgate.protocol.messages import Mode, Publish


def made(strict: bool = False, batch_events: int = 1) -> tuple[Publications, Producer]:
    """Publications whose stored events are those of one producer, opened at 0."""
    producer = Producer("job", 7, strict)
    publications = Publications(Outcome, batch_events, producer)
    return publications, producer


def opened(strict: bool = False, count: int = 3) -> tuple[Publications, Producer, list[Outcome]]:
    """So many events of one batch each, taken and not released."""
    publications, producer = made(strict)
    outcomes = [publications.add("a", {"n": number}, b"", "", Mode.STORED) for number in range(count)]
    (asking,) = publications.to_open()
    asking.asked()
    asking.opened({"next": 0, "digest": b"", "epoch": 7})
    return publications, producer, outcomes


def numbers(messages: list[Publish]) -> list[tuple[int, int]]:
    """(sequence, number) of each."""
    return [(one.sequence, one.stamp.number) for one in messages if one.stamp is not None]


def test_what_is_to_be_stored_waits_until_its_producer_is_open() -> None:
    publications, producer = made()
    assert list(publications.to_open()) == []
    publications.add("a", None, b"", "", Mode.STORED)
    publications.add("a", None, b"", "", Mode.ACCEPTED)
    assert list(publications.release()) == []
    assert list(publications.to_open()) == [producer]
    producer.asked()
    assert list(publications.to_open()) == [] and list(publications.release()) == []
    producer.opened({"next": 40, "digest": b"d"})
    messages = list(publications.release())
    assert [(one.sequence, one.stamp and one.stamp.number) for one in messages] == [(1, 40), (2, None)]
    assert (producer.next, producer.digest) == (41, b"d")


def test_without_a_producer_it_is_published_like_any_other() -> None:
    publications = Publications(Outcome, 1)
    publications.add("a", None, b"", "", Mode.STORED)
    (message,) = publications.release()
    assert (message.mode, message.stamp) == (Mode.STORED, None)


@pytest.mark.parametrize("answer", [None, [], {}, {"next": -1}, {"next": "1"}, {"next": 1, "digest": "x"}])
def test_an_answer_that_is_none_is_refused(answer: object) -> None:
    with pytest.raises(ProtocolViolation):
        Producer("job", 1).opened(answer)


BAD_NAMES = ["", "x" * 257, "é" * 129, "\ud800"]


@pytest.mark.parametrize(("name", "epoch"), [*((name, 1) for name in BAD_NAMES), ("x", -1), ("x", 2**54)])
def test_a_producer_has_a_short_name_and_an_epoch(name: str, epoch: int) -> None:
    with pytest.raises(LocalError):
        Producer(name, epoch)


def test_after_a_new_session_all_goes_out_again_under_its_old_number() -> None:
    publications, producer, outcomes = opened()
    assert numbers(list(publications.release())) == [(1, 0), (2, 1), (3, 2)]
    publications.acknowledged(1)
    publications.restarted(256, "gone")
    assert [outcome.settled for outcome in outcomes] == [True, False, False]
    assert producer.wants_opening and list(publications.release()) == []
    producer.asked()
    producer.opened({"next": 2})
    assert numbers(list(publications.release())) == [(1, 1), (2, 2)]
    publications.acknowledged(2)
    assert [outcome.error for outcome in outcomes] == [None] * 3
    assert publications.idle and producer.waiting == producer.under_way == publications.bytes_waiting == 0


def test_a_resumed_session_keeps_sequences_without_a_hole() -> None:
    publications, producer, _ = opened()
    list(publications.release())
    publications.refused(1, Refused(ErrorCode.NOT_STORED, "full"))
    publications.resumed(0, 256)
    assert numbers(list(publications.release())) == [(1, 0), (2, 1), (3, 2)]
    assert not producer.wants_opening
    for sequence, code in ((1, ErrorCode.NOT_STORED), (2, ErrorCode.OUT_OF_SEQUENCE), (3, ErrorCode.OUT_OF_SEQUENCE)):
        publications.refused(sequence, Refused(code, "no"))
    publications.acknowledged(3)
    assert not producer.wants_opening, "a disk that is full is so for a moment"
    publications.rested()
    assert producer.wants_opening
    producer.asked()
    producer.opened({"next": 0})
    assert numbers(list(publications.release())) == [(4, 0), (5, 1), (6, 2)]


@pytest.mark.parametrize("code", [ErrorCode.NOT_FOUND, ErrorCode.NOT_STORED, ErrorCode.OUT_OF_SEQUENCE])
def test_a_refusal_that_may_pass_is_tried_again_and_not_for_ever(code: ErrorCode) -> None:
    publications, producer, (outcome,) = opened(count=1)
    for sequence in range(1, STORE_ATTEMPTS_MAX + 1):
        assert numbers(list(publications.release())) == [(sequence, 0)]
        assert outcome.error is None
        publications.refused(sequence, Refused(code, "no"))
        publications.acknowledged(sequence)
        assert (producer.hindrance is not None) == (code == ErrorCode.NOT_STORED)
        if not outcome.settled:
            producer.asked()
            producer.opened({"next": 0})
    if code == ErrorCode.NOT_STORED:
        assert isinstance(outcome.error, UnknownOutcome), "it may be in the log all the same"
    else:
        assert isinstance(outcome.error, Refused) and outcome.error.code == code
    assert publications.failure_count == 1 and publications.idle


def test_what_follows_a_batch_that_was_refused_for_good_is_numbered_anew() -> None:
    publications, producer, outcomes = opened()
    list(publications.release())
    publications.refused(1, Refused(ErrorCode.BAD_BATCH, "no"))
    for sequence in (2, 3):
        publications.refused(sequence, Refused(ErrorCode.OUT_OF_SEQUENCE, "no"))
    assert not producer.wants_opening, "the answers are not all there"
    publications.acknowledged(3)
    producer.asked()
    producer.opened({"next": 0})
    assert numbers(list(publications.release())) == [(4, 0), (5, 1)]
    publications.acknowledged(5)
    assert [type(outcome.error) for outcome in outcomes] == [Refused, type(None), type(None)]


def test_a_strict_producer_ends_with_the_first_refusal() -> None:
    publications, producer, outcomes = opened(strict=True)
    publications.window = 2
    list(publications.release())
    publications.refused(1, Refused(ErrorCode.BAD_BATCH, "no such column"))
    publications.refused(2, Refused(ErrorCode.OUT_OF_SEQUENCE, "no"))
    publications.acknowledged(2)
    assert list(publications.release()) == [] and publications.idle
    assert {str(outcome.error) for outcome in outcomes} == {"no such column"} == {str(producer.failure)}
    with pytest.raises(Refused, match="no such column"):
        publications.add_produced(producer, make_batch(["a"], {}, [b""]), b"", b"")
    with pytest.raises(Refused, match="no such column"):
        publications.add("a", None, b"", "", Mode.STORED)
    with pytest.raises(Refused, match="no such column"):
        list(publications.add_columns("a", {}, [b""], "", Mode.STORED))


def test_a_strict_producer_that_is_out_of_sequence_says_where() -> None:
    publications, producer, _ = opened(strict=True)
    list(publications.release())
    publications.refused(2, Refused(ErrorCode.OUT_OF_SEQUENCE, "1 is missing"))
    failure = producer.failure
    assert isinstance(failure, OutOfSequence) and (failure.producer, failure.number) == ("job", 1)


@pytest.mark.parametrize(("acknowledged", "upcoming"), [(2, 1), (0, 0)])
def test_a_strict_producer_notices_that_the_cluster_lost_something(acknowledged: int, upcoming: int) -> None:
    publications, producer, outcomes = opened(strict=True)
    list(publications.release())
    publications.acknowledged(acknowledged)
    if not acknowledged:
        publications.refused(1, Refused(ErrorCode.NOT_STORED, "full"))
        for sequence in (2, 3):
            publications.refused(sequence, Refused(ErrorCode.NOT_FOUND, "who?"))
        publications.acknowledged(3)
        producer.asked()
        producer.opened({"next": upcoming})
        assert numbers(list(publications.release())) == [(4, 0), (5, 1), (6, 2)], "nothing was lost"
        return
    publications.restarted(256, "gone")
    producer.asked()
    producer.opened({"next": upcoming})
    assert list(publications.release()) == []
    assert isinstance(producer.failure, OutOfSequence) and outcomes[2].error is producer.failure


def test_a_strict_producer_sends_nothing_that_would_leave_a_hole() -> None:
    publications, producer, outcomes = opened(strict=True)
    list(publications.release())
    publications.restarted(256, "gone")
    publications._queue.popleft()
    producer.asked()
    producer.opened({"next": 0})
    assert list(publications.release()) == []
    assert isinstance(outcomes[1].error, OutOfSequence) and "has 0 of its events" in str(outcomes[1].error)


@pytest.mark.parametrize("strict", [False, True])
def test_who_is_fenced_stops(strict: bool) -> None:
    publications, producer, outcomes = opened(strict)
    publications.window = 1
    list(publications.release())
    publications.refused(1, Refused(ErrorCode.FENCED, "epoch 9"))
    publications.acknowledged(1)
    assert list(publications.release()) == [] and publications.idle and not producer.wants_opening
    for outcome in outcomes:
        assert isinstance(outcome.error, Fenced) and (outcome.error.producer, outcome.error.epoch) == ("job", 7)
    with pytest.raises(Fenced):
        publications.add("a", None, b"", "", Mode.STORED)


def test_who_may_not_be_opened_is_told() -> None:
    publications, producer = made()
    outcome = publications.add("a", None, b"", "", Mode.STORED)
    publications.seal_all()
    for code in (*[ErrorCode.UNAVAILABLE] * OPEN_ATTEMPTS_MAX, ErrorCode.FENCED):
        publications.rested()
        assert not outcome.settled or code == ErrorCode.FENCED
        if outcome.settled:
            assert producer.failure is None, "the next event may find a cluster that is whole again"
            publications.add("a", None, b"", "", Mode.STORED)
        assert producer.wants_opening
        producer.asked()
        publications.not_opened(producer, Refused(code, "no"))
    assert isinstance(producer.failure, Fenced) and publications.idle


def test_a_producer_rests_before_it_asks_again() -> None:
    publications, producer = made()
    publications.add("a", None, b"", "", Mode.STORED)
    publications.seal_all()
    assert publications.pause_seconds is None
    pauses = []
    for _ in range(OPEN_ATTEMPTS_MAX - 1):
        producer.asked()
        publications.not_opened(producer, Refused(ErrorCode.UNAVAILABLE, "in a moment"))
        assert list(publications.to_open()) == []
        pauses.append(publications.pause_seconds or 0.0)
        publications.rested()
        assert list(publications.to_open()) == [producer]
    assert pauses == sorted(pauses) and pauses[-1] == RETRY_DELAY_SECONDS_MAX and 15 < sum(pauses) < 25
    assert "in a moment" in str(producer.hindrance)
    producer.stored(0, 1)
    assert producer.hindrance is None


def test_what_a_full_disk_refuses_is_sent_again_after_pauses_that_grow_until_it_is_stored() -> None:
    publications, producer, outcomes = opened(count=2)
    pauses = []
    for sequence in range(1, 12, 2):
        assert numbers(list(publications.release())) == [(sequence, 0), (sequence + 1, 1)]
        for one, code in ((sequence, ErrorCode.NOT_STORED), (sequence + 1, ErrorCode.NOT_STORED)):
            publications.refused(one, Refused(code, "full"))
        publications.acknowledged(sequence + 1)
        assert list(publications.to_open()) == []
        pauses.append(publications.pause_seconds or 0.0)
        publications.rested()
        assert list(publications.to_open()) == [producer]
        producer.asked()
        producer.opened({"next": 0})
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0]
    list(publications.release())
    publications.acknowledged(14)
    assert [outcome.error for outcome in outcomes] == [None, None] and producer.setbacks == 0


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("opens", [False, True])
def test_what_waits_is_given_up_when_nothing_was_stored_for_some_time(strict: bool, opens: bool) -> None:
    """A broker that waits for others says no after five seconds each time, to a batch or to whoever opens."""
    publications, producer, (outcome,) = opened(strict, count=1)
    now = 1000.0  # it was stored long ago
    publications.clock = lambda: now
    while not outcome.settled:
        list(publications.release())
        now += 5.0
        publications.refused(publications._last_sequence, Refused(ErrorCode.NOT_STORED, "too few disks"))
        publications.acknowledged(publications._last_sequence)
        publications.rested()
        while list(publications.to_open()):
            producer.asked()
            if not opens:
                producer.opened({"next": 0})
                break
            now += 5.0
            publications.not_opened(producer, Refused(ErrorCode.UNAVAILABLE, "not safe yet"))
            publications.rested()
    assert now - 1000.0 == STORE_TRY_SECONDS_MAX
    assert isinstance(outcome.error, Refused if strict else UnknownOutcome)


def test_of_what_was_sent_nobody_can_say_when_nobody_is_there() -> None:
    publications, producer, outcomes = opened(strict=True)
    publications.window = 1
    list(publications.release())
    publications.abandon(ConnectionLost("gone"), "gone")
    assert [type(outcome.error) for outcome in outcomes] == [UnknownOutcome, ConnectionLost, ConnectionLost]
    assert isinstance(producer.failure, UnknownOutcome)
    publications, producer, outcomes = opened()
    list(publications.release())
    publications.restarted(1, "gone")
    producer.asked()
    publications.not_opened(producer, Refused(ErrorCode.UNSUPPORTED, "an old broker"))
    assert [type(outcome.error) for outcome in outcomes] == [UnknownOutcome] * 3


def test_a_batch_that_is_taken_as_it_is_must_be_one() -> None:
    publications, producer, _ = opened(strict=True, count=1)
    batch = make_batch(["a"], {}, [b"x", b"y"])
    publications.add_produced(producer, batch, b"d", b"ids")
    first, second = publications.release()
    assert first.stamp is not None and second.stamp is not None
    assert (second.stamp.number, second.stamp.digest, second.stamp.ids) == (1, b"d", b"ids")
    assert second.batch is batch and producer.next == 3
    with pytest.raises(LocalError, match="fewer events"):
        publications.add_produced(producer, batch, b"", bytes(PUBLISH_LENGTH_MAX))
    batch.records += b"x"
    with pytest.raises(ProtocolViolation):
        publications.add_produced(producer, batch, b"", b"")


@dataclass
class Twin:
    """A broker with a log: it takes each number once, knows who opened, and may have lost its answers."""

    log: list[int] = field(default_factory=list)
    has_opened: bool = False
    accepted: int = 0
    answers: list[tuple[int, ErrorCode | None]] = field(default_factory=list)
    told: dict[int, ErrorCode | None] = field(default_factory=dict)
    mood: list[str] = field(default_factory=list)

    def take(self, message: Publish) -> None:
        assert message.stamp is not None and message.sequence <= self.accepted + 1, "a hole"
        if message.sequence > self.accepted:
            self.accepted = message.sequence
            self.told[message.sequence] = self.verdict(message)
        self.answers.append((message.sequence, self.told[message.sequence]))

    def verdict(self, message: Publish) -> ErrorCode | None:
        assert message.stamp is not None
        number, events = message.stamp.number, list(message.batch.column("n") or [])
        if not self.has_opened:
            return ErrorCode.NOT_FOUND
        if number + len(events) <= len(self.log):
            return None
        if number != len(self.log):
            return ErrorCode.OUT_OF_SEQUENCE
        mood = self.mood.pop() if self.mood else ""
        if mood == "spoiled":
            return ErrorCode.BAD_BATCH
        if mood != "full":
            self.log += events  # type: ignore[arg-type]
        return ErrorCode.NOT_STORED if mood else None

    def settled_up_to(self) -> int:
        """What WELCOME says is accepted: below the first refusal."""
        return next((sequence - 1 for sequence, code in sorted(self.told.items()) if code), self.accepted)


STEPS = ["add", "add", "add", "seal", "send", "send", "answer", "answer", "half an answer", "open", "resume"]
STEPS += ["restart", "forget", "full", "few", "spoiled"]
steps = st.sampled_from(STEPS)


@given(st.lists(steps, max_size=60), st.integers(1, 3), st.integers(1, 3))
def test_any_history_leaves_each_event_in_the_log_once(history: list[str], batch_events: int, window: int) -> None:
    live(history, batch_events, window)


def test_long_histories_leave_each_event_in_the_log_once() -> None:
    draw = Random(5)
    for _ in range(400):
        live(draw.choices(STEPS, k=80), draw.randint(1, 3), draw.randint(1, 4))


def live(history: list[str], batch_events: int, window: int) -> None:
    """Go through a history, and everything that is still to be said after it; then look at the log."""
    publications, producer = made(batch_events=batch_events)
    publications.window = window
    twin = Twin()
    outcomes: list[Outcome] = []
    for step in [*history, "seal", *["open", "send", "answer"] * 80]:
        if step == "add":
            outcomes.append(publications.add("a", {"n": len(outcomes)}, b"", "", Mode.STORED))
        elif step == "seal":
            publications.seal_all()
        elif step == "open":
            publications.rested()
            for asking in publications.to_open():
                asking.asked()
            if producer.state is ProducerState.ASKED:
                twin.has_opened = True
                producer.opened({"next": len(twin.log)})
        elif step == "send":
            for message in publications.release():
                twin.take(message)
        elif step in ("answer", "half an answer") and twin.answers:
            sequence, code = twin.answers[0]
            if code is not None:
                publications.refused(sequence, Refused(code, "no"))
            if step == "answer":
                publications.acknowledged(sequence)
                del twin.answers[0]
        elif step == "resume":
            twin.answers.clear()
            publications.resumed(twin.settled_up_to(), window)
        elif step == "restart":
            twin = Twin(twin.log, mood=twin.mood)
            publications.restarted(window, "gone")
        elif step == "forget":
            twin.has_opened = False
        elif step in ("full", "few", "spoiled"):
            twin.mood.append(step)
    publications.resumed(twin.settled_up_to(), window)
    assert all(outcome.settled for outcome in outcomes)
    assert publications.idle and publications.bytes_waiting == producer.waiting == producer.under_way == 0
    assert len(set(twin.log)) == len(twin.log), "once"
    assert twin.log == sorted(twin.log), "in order"
    errors: list[HeadgateError | None] = [outcome.error for outcome in outcomes]
    for number, error in enumerate(errors):
        if error is None:
            assert number in twin.log
        else:
            if isinstance(error, UnknownOutcome):
                continue
            assert isinstance(error, Refused)
            assert error.code in (ErrorCode.BAD_BATCH, ErrorCode.OUT_OF_SEQUENCE, ErrorCode.NOT_FOUND)
            assert number not in twin.log
