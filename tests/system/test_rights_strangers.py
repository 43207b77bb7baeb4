"""Strangers at a broker that asks who its clients are: what they may cost, and that nobody else notices them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import headgate
from headgate.protocol.errors import ErrorCode
from headgate.protocol.limits import HANDSHAKE_FRAME_LENGTH_MAX
from headgate.protocol.messages import Ask, Error, Goodbye, Hello, Ping, Subscribe, Welcome
from tests.support.child_broker import child_broker
from tests.support.raw_client import RawClient, framed
from tests.system.test_rights import PASSWORD, Realm, realm

pytestmark = pytest.mark.slow


async def test_nothing_is_said_before_it_is_known_who_speaks(tmp_path: Path) -> None:
    async with realm(tmp_path) as (made, child):
        hello = Hello(credentials="password ann:wrong horse")
        silent = await RawClient.connect(made.address)
        for said, code in (
            (framed(Hello()), ErrorCode.UNAUTHORISED),
            (framed(hello), ErrorCode.UNAUTHORISED),
            (framed(hello, hello), ErrorCode.PROTOCOL),
            (framed(Subscribe(1, 1, "orders")), ErrorCode.PROTOCOL),
            (framed(hello, Subscribe(1, 1, "orders")), ErrorCode.PROTOCOL),
            (framed(Ask(1, "status", {})), ErrorCode.PROTOCOL),
            (framed(Ping(1)), ErrorCode.PROTOCOL),
            ((HANDSHAKE_FRAME_LENGTH_MAX + 1).to_bytes(4, "big"), ErrorCode.TOO_LARGE),
            (b"GET / HTTP/1.1\r\n\r\n", ErrorCode.TOO_LARGE),
            (framed(Hello(credentials="password " + "x" * 240)), ErrorCode.UNAUTHORISED),
            (framed(Hello(credentials="password ann\0:x")), ErrorCode.UNAUTHORISED),
        ):
            client = await RawClient.connect(made.address)
            await client.write(said)
            heard = await client.hear_the_end()
            assert [type(one) for one in heard] == [Error] and heard[0].code == code, said
            await client.close()
        gone = await RawClient.connect(made.address)
        await gone.say(hello, Goodbye(0, ""))
        gone.reset()
        assert (await silent.refusal()).code == ErrorCode.TIMEOUT, "five seconds, whatever it does not say"
        await silent.close()
        assert not child.lines("fault while handling an input")


async def test_right_after_wrong_and_a_session_of_somebody_else(tmp_path: Path) -> None:
    async with realm(tmp_path) as (made, _):
        wrong = await RawClient.connect(made.address)
        await wrong.say(Hello(credentials="password ann:wrong horse"))
        assert (await wrong.refusal()).code == ErrorCode.UNAUTHORISED
        first = await RawClient.connect(made.address)
        await first.say(Hello(name="first", credentials=f"password ann:{PASSWORD}"))
        welcome = await first.hear_a(Welcome)
        await first.say(Subscribe(1, 1, "orders"))
        thief = await RawClient.connect(made.address)
        await thief.say(Hello(name="thief", session=welcome.session, credentials=f"token {made.tokens['bob']}"))
        other = await thief.hear_a(Welcome)
        assert not other.resumed and other.session != welcome.session
        again = await RawClient.connect(made.address)
        await again.say(Hello(name="again", session=welcome.session, credentials=f"token {made.tokens['ann']}"))
        assert (await again.hear_a(Welcome)).resumed
        # A HELLO in an open session is no way to become somebody else.
        await again.say(Hello(credentials=f"token {made.tokens['op']}"))
        assert (await again.refusal()).code == ErrorCode.PROTOCOL
        for client in (wrong, first, thief, again):
            await client.close()


async def test_a_crowd_of_strangers_changes_nothing_for_those_who_are_in(tmp_path: Path) -> None:
    async with realm(tmp_path) as (made, _), await made.connect("feed") as feed, await made.connect("ann") as ann:
        orders = await ann.subscribe("orders")
        idle = [await RawClient.connect(made.address) for _ in range(300)]
        crowd = [asyncio.create_task(_guess(made, number)) for number in range(200)]
        for number in range(500):
            await feed.publish("orders", {"n": number})
            assert (await anext(orders)).attributes == {"n": number}
        kinds = await asyncio.gather(*crowd)
        assert set(kinds) <= {"refused", "busy", "cut"}
        assert (feed.reconnects, ann.reconnects, orders.lost) == (0, 0, 0)
        for client in idle:
            await client.close()
        async with await headgate.connect(made.address, user="bob", password=PASSWORD, wait_seconds=20) as late:
            await late.subscribe("orders")


async def _guess(made: Realm, number: int) -> str:
    client = await RawClient.connect(made.address)
    await client.say(Hello(credentials=f"password ann:guess {number}"))
    heard = await client.hear_the_end()
    await client.close()
    if not heard:
        return "cut"
    assert isinstance(heard[0], Error)
    return {ErrorCode.UNAUTHORISED: "refused", ErrorCode.TOO_MANY: "busy"}[ErrorCode(heard[0].code)]


async def test_a_broker_does_not_start_half_set_up(tmp_path: Path) -> None:
    made = Realm(tmp_path)
    with pytest.raises(AssertionError, match="headgate user add"):
        async with child_broker(tmp_path, users=tmp_path / "none", roles=made.roles):
            pass
    async with child_broker(tmp_path) as plain, await headgate.connect(plain.address, token="hg_x") as client:
        await client.publish("quotes")
