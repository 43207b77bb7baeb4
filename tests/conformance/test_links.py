"""How both clients find a broker, and another one: rounds, patience, and ends that are final."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from headgate.protocol.client import ClientLimits
from headgate.protocol.errors import CannotConnect, ConnectionLost, ErrorCode, ProtocolViolation
from headgate.protocol.messages import Error, Goodbye, Scope
from tests.support.both_worlds import WORLDS
from tests.support.fake_broker import FakeBroker, fake_broker
from tests.support.threaded import Threaded, in_thread

Fake = Threaded[FakeBroker]


@pytest.fixture
def fake() -> Iterator[Fake]:
    with in_thread(fake_broker) as threaded:
        yield threaded


@pytest.fixture
def bob() -> Iterator[Fake]:
    with in_thread(lambda: fake_broker("bob")) as threaded:
        yield threaded


@pytest.fixture(params=WORLDS.values(), ids=WORLDS)
def connect(request: pytest.FixtureRequest) -> Any:
    return request.param


def both(one: Fake, other: Fake) -> str:
    return f"{one.thing.address},{other.thing.address}"


def test_it_may_wait_for_a_broker_to_come(connect: Any, fake: Fake) -> None:
    fake.run(fake.thing.close())
    with pytest.raises(CannotConnect):
        connect(fake.thing.address, wait_seconds=0.03)
    coming = threading.Timer(0.05, lambda: fake.run(fake.thing.listen()))
    coming.start()
    connect(fake.thing.address, wait_seconds=20).close()
    coming.join()


def test_a_broker_that_never_answers_is_given_up(connect: Any, fake: Fake) -> None:
    fake.thing.silent = True
    with pytest.raises(CannotConnect, match="no answer within") as caught:
        connect(fake.thing.address, limits=ClientLimits(handshake_seconds=0.05))
    assert isinstance(caught.value.__cause__, ConnectionLost) and "no answer" in str(caught.value.__cause__)


def test_a_broker_that_hangs_up_in_the_handshake_is_no_broker(connect: Any, fake: Fake) -> None:
    fake.thing.silent = True

    def hang_up() -> None:
        fake.run(fake.thing.until(lambda: fake.thing.hellos))
        fake.call(FakeBroker.drop)

    thread = threading.Thread(target=hang_up)
    thread.start()
    with pytest.raises(CannotConnect):
        connect(fake.thing.address)
    thread.join()


def test_a_broker_that_hangs_is_passed_over(connect: Any, fake: Fake, bob: Fake) -> None:
    fake.thing.silent = True
    with connect(both(fake, bob), limits=ClientLimits(dial_seconds=0.05), shuffle=False) as client:
        assert client.broker == "bob"


def test_of_several_brokers_the_first_that_answers_is_taken(connect: Any, fake: Fake, bob: Fake) -> None:
    fake.run(fake.thing.close())
    with connect(both(fake, bob), shuffle=False) as client:
        assert (client.broker, client.address) == ("bob", bob.thing.address)
    bob.run(bob.thing.close())
    with pytest.raises(CannotConnect, match="is a broker running there") as caught:
        connect(both(fake, bob))
    assert caught.value.address == both(fake, bob)


def test_a_lost_broker_is_asked_first_and_another_one_takes_over(connect: Any, fake: Fake, bob: Fake) -> None:
    with connect(both(fake, bob), shuffle=False) as client:
        fake.call(FakeBroker.drop)
        client.publish("a")
        assert (client.broker, client.reconnects, bob.thing.hellos) == ("fake", 1, [])
        fake.run(fake.thing.close())
        client.publish("a", mode="stored")
        assert (client.broker, client.reconnects, client.address) == ("bob", 2, bob.thing.address)
        fake.run(fake.thing.listen())
        bob.call(FakeBroker.drop)
        client.publish("a", mode="stored")
        assert (client.broker, client.reconnects) == ("bob", 3), "who has the session now is asked first"


def test_a_goodbye_of_the_broker_is_a_reason_to_come_back(connect: Any, fake: Fake) -> None:
    with connect(fake.thing.address) as client:
        fake.call(lambda broker: broker.say(Goodbye(ErrorCode.SHUTTING_DOWN, "restarting")))
        client.publish("a", mode="stored")
        assert [hello.session for hello in fake.thing.hellos] == [b"", fake.thing.session.key]


def test_an_end_that_dialling_would_repeat_is_final(connect: Any, fake: Fake) -> None:
    client = connect(fake.thing.address)
    subscription = client.subscribe("a")
    fake.call(lambda broker: broker.say(Error(ErrorCode.REPLACED, Scope.CONNECTION, 0, "another one has this session")))
    with pytest.raises(ProtocolViolation, match="another one has"):
        subscription.take(20)
    with pytest.raises(ProtocolViolation):
        client.publish("a")
    assert len(fake.thing.hellos) == 1
    client.close()
