"""Reading logs through an asyncio client: from who wrote them, from who has a copy, and when nobody has them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from headgate.protocol.aio import Client, connect
from headgate.protocol.data import LogName
from headgate.protocol.errors import CannotConnect, ConnectionLost, ErrorCode, LocalError, Refused
from tests.support.fake_broker import FakeBroker, fake_broker

NAME = LogName("fake", 1, 0, "quotes")


async def publish(client: Client, *topics: str) -> None:
    for topic in topics:
        await client.publish_batch(topic, None, [b"1", b"2"], mode="stored")


def know(fake: FakeBroker, *brokers: FakeBroker) -> None:
    """Tell it of others, and of where they listen."""
    rows: list[dict[str, Any]] = [{"name": one.name, "client_address": one.address} for one in brokers]
    fake.answers["ring"] = {"brokers": rows}


async def test_a_log_is_read_chunk_by_chunk() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        assert await client.logs() == []
        await publish(client, "quotes/a", "quotes/b", "quotes/c", "news")
        (info,) = await client.logs("quotes")
        assert (info.name, info.first, info.next, info.holders) == (NAME, 0, 6, ("fake",))
        assert [one.name.stream for one in await client.logs()] == ["news", "quotes"]
        assert await client.logs(kind="deliveries") == []
        chunk = await client.read_log(NAME, 0)
        assert [(row.first, row.count, row.topics) for row in chunk.rows] == [(0, 2, "quotes/a"), (2, 2, "quotes/b")]
        assert (chunk.first, chunk.next, chunk.end, chunk.covered) == (0, 4, 6, {"fake": 4})
        assert [row.first for row in (await client.read_log(NAME, 0, pattern="quotes/b")).rows] == [2]
        assert await client.log_at(NAME, 1_000_001) == 2


async def test_what_is_not_there_is_refused() -> None:
    async with fake_broker() as fake, await connect(fake.address) as client:
        await publish(client, "quotes")
        for name, position in ((NAME, 7), (NAME._replace(stream="news"), 0), (NAME._replace(broker="ann"), 0)):
            with pytest.raises(Refused) as caught:
                await client.read_log(name, position)
            assert caught.value.code == ErrorCode.NOT_FOUND
        with pytest.raises(LocalError, match="a kind of log"):
            await client.logs(kind="gossip")


async def test_another_broker_is_asked_for_what_it_has() -> None:
    async with fake_broker() as fake, fake_broker("other") as other:
        async with await connect(other.address) as client:
            await publish(client, "quotes", "quotes")
        know(fake, fake, other)
        async with await connect(fake.address, name="me") as client:
            (info,) = await client.logs("quotes")
            chunks = await asyncio.gather(*[client.read_log(info.name, 0) for _ in range(3)])
            assert [len(chunk.rows) for chunk in chunks] == [2, 2, 2]
            assert len(other.hellos) == 2, "one connection for all of it"
        assert other.hellos[1].name == "me"
        await other.until(lambda: not other.connections)


async def test_a_copy_stands_in_for_who_wrote_it() -> None:
    async with fake_broker() as fake, fake_broker("other") as other:
        async with await connect(other.address) as client:
            await publish(client, "quotes", "quotes")
        fake.log.broker = "other"
        fake.log.rows = {"quotes": other.log.rows["quotes"][:1]}
        know(fake, fake, other)
        async with await connect(fake.address) as client:
            (info,) = await client.logs("quotes")
            assert (info.holders, info.next) == (("other", "fake"), 4)
            assert (await client.read_log(info.name, 0)).end == 4
            await other.close()
            chunk = await client.read_log(info.name, 0)
            assert (chunk.end, len(chunk.rows)) == (2, 1)
            assert [one.holders for one in await client.logs("quotes")] == [("fake",)]


async def test_nobody_who_has_it_can_be_reached() -> None:
    async with fake_broker() as fake, fake_broker("other") as other:
        async with await connect(other.address) as client:
            await publish(client, "quotes")
        know(fake, fake, other)
        async with await connect(fake.address) as client:
            (info,) = await client.logs("quotes")
            know(fake, fake)
            await other.close()
            with pytest.raises((CannotConnect, ConnectionLost)):
                await client.read_log(info.name, 0)
            with pytest.raises(Refused, match="no broker within reach"):
                await client.read_log(info.name, 0)


async def test_a_connection_that_has_grown_old_is_made_anew() -> None:
    async with fake_broker() as fake, fake_broker("other") as other:
        async with await connect(other.address) as client:
            await publish(client, "quotes")
        know(fake, fake, other)
        async with await connect(fake.address) as client:
            (info,) = await client.logs("quotes")
            for broker in (other, fake):
                broker.drop()
                assert await client.logs("quotes") == [info]
                broker.drop()
                assert len((await client.read_log(info.name, 0)).rows) == 1


async def test_a_survey_tells_who_could_not_be_asked_and_what_is_kept() -> None:
    async with fake_broker() as fake, fake_broker("other") as other, await connect(fake.address) as client:
        await publish(client, "quotes")
        survey = await client.survey_logs("quotes")
        assert ([info.name for info in survey.logs], survey.away, survey.copies) == ([NAME], (), 1)
        assert survey.stored, "a broker that does not say"
        know(fake, fake, other)
        fake.answers["ring"]["brokers"] += [{"name": "down", "client_address": "127.0.0.1:1", "state": "down"}]
        fake.answers["ring"]["log_copies"] = 2
        fake.answers["schema.get"] = {"schema": {"durability": "memory"}}
        survey = await client.survey_logs("quotes")
        assert (survey.away, survey.copies, survey.stored) == (("down",), 2, False)
        await other.close()
        assert (await client.survey_logs("quotes")).away == ("down", "other")
