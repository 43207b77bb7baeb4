"""The link of the blocking client: dialling, and what a long silence is taken for."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from headgate.protocol.addresses import Addresses
from headgate.protocol.blocking.link import Link
from headgate.protocol.client import ClientOptions, Connect, Conversation, Outcome, Retry
from headgate.protocol.limits import RETRY_DELAY_SECONDS_MIN
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


def linked(address: str, clock: Clock | None = None) -> Link:
    conversation = Conversation(ClientOptions(heartbeat_seconds=15.0), Outcome)
    addresses = Addresses(address, lambda: 0.0, shuffle=False)
    return Link(addresses, conversation, Retry(10.0, lambda: 0.0), clock or Clock())


def test_it_opens_turns_and_closes(fake: Fake) -> None:
    link = linked(fake.thing.address)
    link.open(0.0)
    assert link.connected
    link.turn(0.0)
    link.close()
    link.close()
    assert not link.connected
    fake.run(fake.thing.until(lambda: fake.thing.goodbyes == 1 and not fake.thing.connections))


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


def test_a_link_that_was_closed_stays_so(fake: Fake) -> None:
    link = linked(fake.thing.address)
    link.open(0.0)
    link.close()
    link.turn(0.0)
    assert not link.connected and len(fake.thing.hellos) == 1
