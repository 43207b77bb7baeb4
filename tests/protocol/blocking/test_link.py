"""The link of the blocking client: dialling, and what a long silence is taken for."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from headgate.protocol.addresses import Addresses
from headgate.protocol.blocking.link import Link
from headgate.protocol.client import ClientLimits, ClientOptions, Connect, Conversation, Outcome, Retry
from headgate.protocol.errors import CannotConnect, ConnectionLost, ErrorCode, ProtocolViolation
from headgate.protocol.limits import RETRY_DELAY_SECONDS_MIN
from headgate.protocol.messages import Error, Scope
from tests.support.fake_broker import FakeBroker, fake_broker
from tests.support.threaded import Threaded, in_thread

Fake = Threaded[FakeBroker]


@pytest.fixture
def fake() -> Iterator[Fake]:
    with in_thread(fake_broker) as threaded:
        yield threaded


class Clock:
    """Real time, and as much more as a test likes."""

    def __init__(self) -> None:
        self.more = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.more


def linked(
    address: str, retry_seconds: float = 10.0, clock: Clock | None = None, limits: ClientLimits | None = None
) -> Link:
    conversation = Conversation(ClientOptions(heartbeat_seconds=15.0, limits=limits or ClientLimits()), Outcome)
    addresses = Addresses(address, lambda: 0.0, shuffle=False)
    return Link(addresses, conversation, Retry(retry_seconds, lambda: 0.0), clock or Clock())


def test_it_opens_turns_and_closes(fake: Fake) -> None:
    link = linked(fake.thing.address)
    link.open(0.0)
    assert link.connected
    link.turn(0.0)
    link.close()
    link.close()
    assert not link.connected
    fake.run(fake.thing.until(lambda: fake.thing.goodbyes == 1 and not fake.thing.connections))


def test_it_may_wait_for_a_broker_to_come(fake: Fake) -> None:
    fake.run(fake.thing.close())
    link = linked(fake.thing.address)
    with pytest.raises(CannotConnect):
        link.open(0.03)
    fake.run(fake.thing.listen())
    link.open(5.0)
    link.close()


def test_a_broker_that_never_answers_is_given_up(fake: Fake) -> None:
    fake.thing.silent = True
    with pytest.raises(CannotConnect, match="no answer within") as caught:
        linked(fake.thing.address, limits=ClientLimits(handshake_seconds=0.05)).open(0.0)
    assert isinstance(caught.value.__cause__, ConnectionLost) and "no answer" in str(caught.value.__cause__)


def test_after_a_long_silence_it_looks_before_it_speaks(fake: Fake) -> None:
    clock = Clock()
    link = linked(fake.thing.address, clock=clock)
    link.open(0.0)
    fake.run(fake.thing.until(lambda: fake.thing.sessions))
    fake.call(FakeBroker.drop)
    fake.run(fake.thing.until(lambda: not fake.thing.connections))
    clock.more = 60.0
    outcome = link._conversation.publications.add("a", None, b"", "", 1)
    link._conversation.publications.seal_all()
    fake.call(FakeBroker.forget)
    while not outcome.settled:
        link.turn(0.1)
    assert outcome.error is None, "the dead connection was noticed before the batch was entrusted to it"
    assert link.reconnects == 1
    link.close()


def test_a_pause_between_attempts_is_no_longer_than_the_caller_waits(fake: Fake) -> None:
    link = linked(fake.thing.address)
    link.open(0.0)
    fake.run(fake.thing.close())
    while link.connected:
        link.turn(0.05)
    while isinstance(link._reconnecting.begin(), Connect):
        link.turn(0.0)
    began = time.monotonic()
    for _ in range(5):
        link.turn(0.0)
    assert time.monotonic() - began < RETRY_DELAY_SECONDS_MIN / 2
    assert not link.connected and link.failure is None


def test_the_budget_ends_the_attempts(fake: Fake) -> None:
    link = linked(fake.thing.address, retry_seconds=0.03)
    link.open(0.0)
    fake.run(fake.thing.close())
    while link.failure is None:
        link.turn(None)
    assert isinstance(link.failure, ConnectionLost)
    link.turn(None)


def test_an_end_that_dialling_would_repeat_is_final(fake: Fake) -> None:
    link = linked(fake.thing.address)
    link.open(0.0)
    fake.call(lambda broker: broker.say(Error(ErrorCode.REPLACED, Scope.CONNECTION, 0, "another")))
    while link.failure is None:
        link.turn(1.0)
    assert isinstance(link.failure, ProtocolViolation)
    assert len(fake.thing.hellos) == 1


def test_of_several_brokers_the_first_that_answers_is_taken_and_another_takes_over(fake: Fake) -> None:
    with in_thread(lambda: fake_broker("bob")) as bob:
        link = linked(f"{fake.thing.address},{bob.thing.address}")
        link.open(0.0)
        assert link._conversation.broker == "fake"
        fake.call(FakeBroker.drop)
        while link.reconnects < 1:
            link.turn(0.1)
        assert link._conversation.broker == "fake", "the broker that it had is asked first"
        fake.run(fake.thing.close())
        while link.reconnects < 2:
            link.turn(0.1)
        assert (link._conversation.broker, link.addresses.last) == ("bob", bob.thing.address)
        link.close()
        other = linked(f"{fake.thing.address},{bob.thing.address}")
        other.open(0.0)
        assert other._conversation.broker == "bob"
        other.close()


def test_a_broker_that_hangs_is_passed_over(fake: Fake) -> None:
    limits = ClientLimits(dial_seconds=0.05)
    fake.thing.silent = True
    with in_thread(lambda: fake_broker("bob")) as bob:
        link = linked(f"{fake.thing.address},{bob.thing.address}", limits=limits)
        link.open(0.0)
        assert link._conversation.broker == "bob"
        link.close()
        bob.run(bob.thing.close())
        fake.run(fake.thing.close())
        with pytest.raises(CannotConnect) as caught:
            linked(f"{fake.thing.address},{bob.thing.address}", limits=limits).open(0.0)
        assert caught.value.address == f"{fake.thing.address},{bob.thing.address}"


def test_a_link_that_was_closed_stays_so(fake: Fake) -> None:
    link = linked(fake.thing.address)
    link.open(0.0)
    link.close()
    link.turn(0.0)
    assert not link.connected and len(fake.thing.hellos) == 1
