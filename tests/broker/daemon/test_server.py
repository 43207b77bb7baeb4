"""Sockets: numbered, counted, bounded, and let go of."""

from __future__ import annotations

import asyncio

import pytest
import structlog

import headgate
from headgate.broker.core.inputs import Input, LinkDown
from headgate.broker.daemon.limits import DaemonLimits
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Error, Goodbye, Hello, Scope, Welcome
from headgate.protocol.wire import SessionLimits
from tests.support.live_broker import LiveBroker, live_broker
from tests.support.raw_client import RawClient, framed
from tests.support.waiting import wait_until


def watched(broker: LiveBroker) -> list[Input]:
    """Every input from now on."""
    inputs: list[Input] = []
    feed = broker.daemon.driver.feed

    def watching(happened: Input, more_follows: bool = False) -> None:
        inputs.append(happened)
        feed(happened, more_follows)

    broker.daemon.driver.feed = watching  # type: ignore[method-assign]  # the real one, and a look at it
    return inputs


async def test_links_are_numbered_and_never_reused() -> None:
    async with live_broker() as broker:
        driver, server = broker.daemon.driver, broker.daemon.server
        first, second = await RawClient.greeted(broker.address), await RawClient.greeted(broker.address)
        assert list(driver.links) == [1, 2] and server.connections == 2
        await first.close()
        await wait_until(lambda: server.connections == 1)
        third = await RawClient.greeted(broker.address)
        assert list(driver.links) == [2, 3]
        for client in (second, third):
            await client.close()
        await wait_until(lambda: not driver.links)


@pytest.mark.parametrize("way", ["hang up", "reset", "goodbye", "abort"])
async def test_the_node_hears_of_every_end_once(way: str) -> None:
    async with live_broker() as broker:
        inputs = watched(broker)
        client = await RawClient.greeted(broker.address)
        if way == "hang up":
            await client.close()
        elif way == "reset":
            client.reset()
        elif way == "goodbye":
            await client.say(Goodbye(ErrorCode.GOODBYE, ""))
        else:
            broker.daemon.driver.links[1].abort("because")
        await wait_until(lambda: not broker.daemon.driver.links)
        downs = [one for one in inputs if isinstance(one, LinkDown)]
        assert [down.link for down in downs] == [1]
        assert (downs[0].reason == "goodbye") == (way == "goodbye"), downs
        await client.close()


async def test_bytes_are_counted_beyond_the_end_of_a_connection() -> None:
    async with live_broker() as broker:
        server = broker.daemon.server
        client = await RawClient.connect(broker.address)
        hello = framed(Hello())
        await client.write(hello)
        welcome = await client.hear()
        assert isinstance(welcome, Welcome)
        counted = (server.bytes_in, server.bytes_out)
        assert counted == (len(hello), len(framed(welcome)))
        await client.close()
        await wait_until(lambda: not server.connections)
        assert (server.bytes_in, server.bytes_out) == counted


async def test_over_the_bound_newcomers_are_told_and_turned_away() -> None:
    async with live_broker(connections_max=2) as broker:
        inside = [await RawClient.greeted(broker.address) for _ in range(2)]
        outside = await RawClient.connect(broker.address)
        refusal = await outside.refusal()
        assert (refusal.code, refusal.scope) == (ErrorCode.TOO_MANY, Scope.CONNECTION)
        assert refusal.text == "this broker has its 2 connections already: try again in a moment"
        await outside.close()
        assert broker.daemon.server.refused == 1
        with pytest.raises(headgate.CannotConnect, match="its 2 connections already"):
            await headgate.connect(broker.address)
        assert [type(await client.subscribe(1, "a")).__name__ for client in inside] == ["Suback"] * 2
        await inside[0].close()
        await wait_until(lambda: broker.daemon.server.connections < 2)
        again = await RawClient.greeted(broker.address)
        for client in (inside[1], again):
            await client.close()


async def test_a_crowd_over_the_bound_is_cut_without_a_word() -> None:
    async with live_broker(DaemonLimits(refusals_told=1), connections_max=1) as broker:
        inside = await RawClient.greeted(broker.address)
        told, cut = await RawClient.connect(broker.address), await RawClient.connect(broker.address)
        assert await cut.hear_the_end() == []
        assert isinstance((await told.hear_the_end())[0], Error)
        assert broker.daemon.server.refused == 2
        for client in (inside, told, cut):
            await client.close()


async def test_only_broken_rules_count_as_violations() -> None:
    async with live_broker() as broker:
        server = broker.daemon.server
        with structlog.testing.capture_logs() as lines:
            lost, polite, rude = [await RawClient.greeted(broker.address) for _ in range(3)]
            lost.reset()
            await polite.say(Goodbye(ErrorCode.GOODBYE, ""))
            await rude.say(Hello())
            assert (await rude.refusal()).code == ErrorCode.PROTOCOL
            for client in (lost, polite, rude):
                await client.close()
            await wait_until(lambda: not server.connections)
        assert server.violations == 1
        (line,) = [line for line in lines if line["log_level"] == "warning"]
        assert line["event"] == "client broke the protocol" and line["peer"].startswith("127.0.0.1:")
        assert "HELLO" in line["reason"]


async def test_silence_is_told_and_is_no_violation() -> None:
    async with live_broker(DaemonLimits(session=SessionLimits(handshake_seconds=0.05))) as broker:
        with structlog.testing.capture_logs() as lines:
            silent = await RawClient.connect(broker.address)
            assert (await silent.refusal()).code == ErrorCode.TIMEOUT
            await silent.close()
            await wait_until(lambda: not broker.daemon.server.connections)
        assert broker.daemon.server.violations == 0
        (line,) = [line for line in lines if line["log_level"] == "warning"]
        assert (line["event"], line["reason"]) == ("client did not answer in time", "no handshake within 0.05 seconds")


async def test_after_it_stopped_accepting_nobody_gets_in_and_who_is_in_stays() -> None:
    async with live_broker() as broker:
        client = await RawClient.greeted(broker.address)
        broker.daemon.server.stop_accepting()
        with pytest.raises(OSError):  # refused or reset, as the kernel likes
            await (await RawClient.connect(broker.address)).hear()
        assert type(await client.subscribe(1, "a")).__name__ == "Suback"
        await client.close()


async def test_strangers_are_dismissed_and_guests_are_not() -> None:
    async with live_broker() as broker:
        guest, stranger = await RawClient.greeted(broker.address), await RawClient.connect(broker.address)
        await wait_until(lambda: broker.daemon.server.connections == 2)
        broker.daemon.server.dismiss_strangers()
        (goodbye,) = await stranger.hear_the_end()
        assert isinstance(goodbye, Goodbye) and goodbye.code == ErrorCode.SHUTTING_DOWN
        assert type(await guest.subscribe(1, "a")).__name__ == "Suback"
        for client in (guest, stranger):
            await client.close()


async def test_abort_all_leaves_nobody() -> None:
    async with live_broker() as broker:
        clients = [await RawClient.greeted(broker.address), await RawClient.connect(broker.address)]
        await wait_until(lambda: broker.daemon.server.connections == 2)
        broker.daemon.server.abort_all()
        for client in clients:
            assert await client.hear_the_end() == []
            await client.close()
        await wait_until(lambda: not broker.daemon.server.connections)


async def test_it_listens_on_ipv6_and_says_so_in_brackets() -> None:
    async with live_broker(listen="[::1]:0") as broker:
        assert broker.address.startswith("[::1]:")
        async with asyncio.timeout(10), await headgate.connect(broker.address) as client:
            assert client.broker == "test"
