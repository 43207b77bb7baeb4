"""Reading logs through either client: from who wrote them, from who has a copy, and when nobody has them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from headgate.protocol.data import LogName
from headgate.protocol.errors import CannotConnect, ConnectionLost, ErrorCode, LocalError, Refused
from tests.support.both_worlds import WORLDS
from tests.support.fake_broker import FakeBroker, fake_broker
from tests.support.threaded import Threaded, in_thread

Fake = Threaded[FakeBroker]
NAME = LogName("fake", 1, 0, "quotes")


@pytest.fixture
def fake() -> Iterator[Fake]:
    with in_thread(fake_broker) as threaded:
        yield threaded


@pytest.fixture
def other() -> Iterator[Fake]:
    with in_thread(lambda: fake_broker("other")) as threaded:
        yield threaded


@pytest.fixture(params=WORLDS.values(), ids=WORLDS)
def connect(request: pytest.FixtureRequest) -> Any:
    return request.param


def publish(client: Any, *topics: str) -> None:
    for topic in topics:
        client.publish_batch(topic, None, [b"1", b"2"], mode="stored")


def know(fake: Fake, *brokers: Fake) -> None:
    """Tell it of others."""
    fake.thing.others = [one.thing for one in brokers]


def test_a_log_is_read_chunk_by_chunk(connect: Any, fake: Fake) -> None:
    with connect(fake.thing.address) as client:
        assert client.logs() == []
        publish(client, "quotes/a", "quotes/b", "quotes/c", "news")
        (info,) = client.logs("quotes")
        assert (info.name, info.first, info.next, info.holders) == (NAME, 0, 6, ("fake",))
        assert [one.name.stream for one in client.logs()] == ["news", "quotes"]
        assert client.logs(kind="deliveries") == []
        chunk = client.read_log(NAME, 0)
        assert [(row.first, row.count, row.topics) for row in chunk.rows] == [(0, 2, "quotes/a"), (2, 2, "quotes/b")]
        assert (chunk.first, chunk.next, chunk.end) == (0, 4, 6)
        chunk = client.read_log(NAME, chunk.next)
        assert [row.topics for row in chunk.rows] == ["quotes/c"] and chunk.next == chunk.end == 6
        assert client.read_log(NAME, 6).rows == []
        assert [row.first for row in client.read_log(NAME, 0, pattern="quotes/b").rows] == [2]
        assert client.log_at(NAME, 1_000_001) == 2


def test_what_is_not_there_is_refused(connect: Any, fake: Fake) -> None:
    with connect(fake.thing.address) as client:
        publish(client, "quotes")
        for name, position in ((NAME, 7), (NAME._replace(stream="news"), 0), (NAME._replace(broker="ann"), 0)):
            with pytest.raises(Refused) as caught:
                client.read_log(name, position)
            assert caught.value.code == ErrorCode.NOT_FOUND
        with pytest.raises(LocalError, match="a kind of log"):
            client.logs(kind="gossip")
        with pytest.raises(LocalError):
            client.read_log(NAME, -1)


def test_another_broker_is_asked_for_what_it_has(connect: Any, fake: Fake, other: Fake) -> None:
    with connect(other.thing.address) as client:
        publish(client, "quotes", "quotes")
    know(fake, other)
    with connect(fake.thing.address, name="me") as client:
        (info,) = client.logs("quotes")
        assert (info.name.broker, info.holders) == ("other", ("other",))
        assert len(client.read_log(info.name, 0).rows) == 2
        assert client.log_at(info.name, 0) == 0
        assert len(other.thing.hellos) == 2, "one connection for all of it"
    assert other.thing.hellos[1].name == "me"
    other.run(other.thing.until(lambda: not other.thing.connections))


def test_several_who_want_another_broker_dial_it_once(connect: Any, fake: Fake, other: Fake) -> None:
    with connect(other.thing.address) as client:
        publish(client, "quotes")
    know(fake, other)
    with connect(fake.thing.address) as client, ThreadPoolExecutor(4) as threads:
        (info,) = client.logs("quotes")
        assert len(other.thing.hellos) == 1, "to know of its logs nobody dials it"
        for chunk in threads.map(lambda _: client.read_log(info.name, 0), range(8)):
            assert len(chunk.rows) == 1
        assert len(other.thing.hellos) == 2


def test_a_copy_stands_in_for_who_wrote_it(connect: Any, fake: Fake, other: Fake) -> None:
    with connect(other.thing.address) as client:
        publish(client, "quotes", "quotes")
    fake.thing.log.broker = "other"
    fake.thing.log.rows = {"quotes": other.thing.log.rows["quotes"][:1]}
    know(fake, other)
    with connect(fake.thing.address) as client:
        (info,) = client.logs("quotes")
        assert (info.holders, info.next) == (("other", "fake"), 4)
        assert client.read_log(info.name, 0).end == 4
        other.run(other.thing.close())
        chunk = client.read_log(info.name, 0)
        assert (chunk.end, len(chunk.rows)) == (2, 1)
        assert [one.holders for one in client.logs("quotes")] == [("fake",)]


def test_nobody_who_has_it_can_be_reached(connect: Any, fake: Fake, other: Fake) -> None:
    with connect(other.thing.address) as client:
        publish(client, "quotes")
    know(fake, other)
    with connect(fake.thing.address) as client:
        (info,) = client.logs("quotes")
        know(fake)
        other.run(other.thing.close())
        with pytest.raises((CannotConnect, ConnectionLost)):
            client.read_log(info.name, 0)
        with pytest.raises(Refused, match="no broker within reach"):
            client.read_log(info.name, 0)


def test_a_connection_that_has_grown_old_is_made_anew(connect: Any, fake: Fake, other: Fake) -> None:
    with connect(other.thing.address) as client:
        publish(client, "quotes")
    know(fake, other)
    with connect(fake.thing.address) as client:
        (info,) = client.logs("quotes")
        for broker in (other, fake):
            broker.call(FakeBroker.drop)
            assert client.logs("quotes") == [info]
            broker.call(FakeBroker.drop)
            assert len(client.read_log(info.name, 0).rows) == 1


def test_a_survey_tells_who_could_not_be_asked_and_what_is_kept(connect: Any, fake: Fake, other: Fake) -> None:
    with connect(fake.thing.address) as client:
        publish(client, "quotes")
        survey = client.survey_logs("quotes")
        assert ([info.name for info in survey.logs], survey.away, survey.copies) == ([NAME], (), 1)
        assert survey.stored and fake.thing.asked[-1:] == ["survey"] and "logs" not in fake.thing.asked
        know(fake, other)
        fake.thing.away, fake.thing.copies, fake.thing.stored = ["down"], 2, False
        survey = client.survey_logs("quotes")
        assert (survey.away, survey.copies, survey.stored) == (("down",), 2, False)
        other.run(other.thing.close())
        assert client.survey_logs("quotes").away == ("down", "other")
