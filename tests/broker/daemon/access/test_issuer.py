"""Keys of web tokens at an address: when they are fetched, what is believed of an answer, and for how long."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.daemon.access import (
    AccessError,
    Door,
    DoorLimits,
    Gatekeeper,
    Issuer,
    IssuerLimits,
    Unfetched,
    WebTokenRules,
    fetch,
    keys_address,
)
from headgate.broker.daemon.access.limits import WEB_KEYS_BYTES_MAX
from tests.broker.daemon.access.test_access import asked
from tests.broker.daemon.access.test_web_tokens import AUDIENCE, ISSUER, NOW, public_keys, signed

LIMITS = IssuerLimits()
QUICK = IssuerLimits(fetch_seconds=0.1)
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def answering(handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    """The address of an issuer that answers so."""
    application = web.Application()
    application.router.add_get("/{path:.*}", handler)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/jwks"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def saying(handler: Handler) -> AsyncIterator[str]:
    """The address of somebody who need not speak HTTP at all."""

    talking: list[asyncio.Task[Any] | None] = []

    async def on_client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talking.append(asyncio.current_task())
        with suppress(ConnectionError, asyncio.CancelledError):
            await handler(reader, writer)
        writer.close()

    server = await asyncio.start_server(on_client, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/jwks"
    finally:
        server.close()
        for task in filter(None, talking):
            task.cancel()
            await asyncio.wait([task])


async def why_not(address: str, limits: IssuerLimits = LIMITS) -> str:
    with pytest.raises(Unfetched) as caught:
        await fetch(address, limits)
    assert str(caught.value)
    return caught.value.kind


async def test_what_is_fetched_is_what_was_answered() -> None:
    data = json.dumps({"keys": public_keys()}).encode()

    async def answer(request: web.Request) -> web.Response:
        assert request.headers["Accept-Encoding"] == "identity"
        return web.Response(body=data)

    async with answering(answer) as address:
        assert await fetch(address, LIMITS) == data


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_nobody_is_sent_elsewhere(status: int) -> None:
    asked_for = []

    async def answer(request: web.Request) -> web.Response:
        asked_for.append(request.path)
        return web.Response(status=status, headers={"Location": "/other"})

    async with answering(answer) as address:
        assert await why_not(address) == "redirect"
    assert asked_for == ["/jwks"]


@pytest.mark.parametrize(
    ("status", "headers", "body", "kind"),
    [
        (500, {}, b"", "status"),
        (404, {}, b'{"keys": []}', "status"),
        (204, {}, b"", "status"),
        (200, {"Content-Encoding": "gzip"}, gzip.compress(b"{}" + b" " * 10**6), "garbage"),
        (200, {}, b" " * (WEB_KEYS_BYTES_MAX + 1), "too_large"),
    ],
)
async def test_an_answer_that_is_none(status: int, headers: dict[str, str], body: bytes, kind: str) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status, headers=headers, body=body)

    async with answering(answer) as address:
        assert await why_not(address) == kind


async def test_an_answer_without_end_is_left_at_its_bound() -> None:
    sent = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        while sent < 2**30:
            await response.write(b" " * 65536)
            sent += 65536
        return response

    async with answering(answer) as address:
        assert await why_not(address) == "too_large"
    assert sent < 64 * WEB_KEYS_BYTES_MAX  # what sockets hold, and no more


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"])
async def test_who_says_nothing_more_is_not_waited_for(said: bytes) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        await reader.read()  # to the end, which comes when the other side has had enough
        await reader.read()

    async with saying(silent) as address:
        assert await why_not(address, QUICK) == "slow"


@pytest.mark.slow
@pytest.mark.parametrize("piece", [b"X-More: more\r\n", b"x" * 1000, b"HTTP/1.1 100 Continue\r\n\r\n"])
async def test_headers_without_end_are_not_gathered(piece: bytes) -> None:
    sent = 0

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        if not piece.startswith(b"HTTP"):
            writer.write(b"HTTP/1.1 200 OK\r\nX-More: ")
        while True:
            writer.write(piece)
            sent += len(piece)
            await writer.drain()

    async with saying(endless) as address:
        assert await why_not(address, QUICK) in ("unreachable", "slow")
    assert sent < 2**25  # what sockets hold, and what is passed over within that time


@pytest.mark.parametrize(
    "said",
    [b"SSH-2.0-OpenSSH\r\n", b"\x16\x03\x01\0\0", b"HTTP/1.1 abc\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x"],
)
async def test_what_is_no_http_is_no_answer(said: bytes) -> None:
    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said + b"\r\n\r\n")
        await writer.drain()

    async with saying(other) as address:
        assert await why_not(address) == "unreachable"
    assert await why_not(address) == "unreachable"  # nobody is there any more


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("http://id.example/jwks", "https://"),
        ("http://10.0.0.1/jwks", "https://"),
        ("http://localhost.example/jwks", "https://"),
        ("http://127.0.0.1@id.example/jwks", "no name and no password"),
        ("https://ann:secret@id.example/jwks", "no name and no password"),
        ("ftp://id.example/jwks", "an address like"),
        ("file://localhost/keys", "an address like"),
        ("https:///jwks", "is no address"),
        ("https://id.example/jwks#keys", "is no address"),
        ("https://id.example:0/jwks", "is no address"),
        ("https://id.example:99999/jwks", "ort"),
        ("https://id.example/a b", "no blanks"),
        ("https://id.example/\n", "no blanks"),
        ("https://id.example/é", "no blanks"),
        (f"https://id.example/{'x' * 2048}", "at most 2048"),
        ("https://[::1/jwks", "IPv6"),
    ],
)
def test_addresses_that_are_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        keys_address(text)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "https://id.example/jwks?v=1",
        "http://127.0.0.1:8000/jwks",
        "http://localhost/k",
        "http://[::1]:1/k",
        "HTTP://127.1.1.1/k",
    ],
)
def test_addresses_that_are_good(text: str) -> None:
    assert keys_address(text) == text


def test_keys_are_fetched_at_once_then_at_times_and_sooner_after_a_failure() -> None:
    issuer = Issuer("https://id.example", 100.0, LIMITS)
    assert issuer.is_due(100.0) and issuer.age(130.0) == 30.0
    issuer.begin(100.0)
    assert not issuer.is_due(1e9) and issuer.ask_for_unknown(100.0)
    issuer.succeed(101.0)
    assert not issuer.is_due(399.0) and issuer.is_due(400.0) and issuer.age(131.0) == 30.0
    issuer.begin(400.0)
    assert issuer.fail("slow") and not issuer.is_due(409.0) and issuer.is_due(410.0)
    issuer.begin(410.0)
    assert not issuer.fail("status")  # said once, as long as nothing comes between
    assert issuer.outcomes == {"good": 1, "slow": 1, "status": 1}
    issuer.ask()
    assert issuer.is_due(410.0)


def test_keys_that_cannot_be_fetched_again_are_good_for_a_while() -> None:
    issuer = Issuer("https://id.example", 0.0, LIMITS)
    assert not issuer.is_over(1e9)  # there are none
    issuer.succeed(0.0)
    for now in range(10, 3600, 10):
        issuer.fail("unreachable")
        assert not issuer.is_over(now)
    assert issuer.is_over(3600.0) and not issuer.is_over(3601.0)
    issuer.succeed(4000.0)
    assert not issuer.is_over(7599.0) and issuer.is_over(7600.0)


@pytest.mark.slow
@given(st.lists(st.tuples(st.floats(0, 40), st.sampled_from(["unknown", "good", "bad", "look"])), max_size=60))
def test_strangers_have_keys_fetched_once_in_a_while_at_most(steps: list[tuple[float, str]]) -> None:
    issuer, now, began = Issuer("https://id.example", 0.0, LIMITS), 0.0, [0.0]
    issuer.begin(0.0)
    issuer.succeed(0.0)
    for seconds, what in steps:
        now += seconds
        if what == "unknown":
            worth = issuer.ask_for_unknown(now)
            assert worth == (issuer.fetching or issuer.is_due(now))
        elif what == "look" and issuer.is_due(now):
            issuer.begin(now)
            began.append(now)
        elif issuer.fetching:
            if what == "good":
                issuer.succeed(now)
            elif what == "bad":
                issuer.fail("slow")
    pauses = [later - sooner for sooner, later in pairwise(began)]
    assert all(pause >= LIMITS.retry_seconds for pause in pauses)
    if not issuer.outcomes["slow"]:
        assert all(pause >= LIMITS.unknown_seconds for pause in pauses)


def keeper_of(folder: Path) -> Gatekeeper:
    users, roles = folder / "users.toml", folder / "roles.toml"
    users.write_text("")
    roles.write_text('[roles.trader]\nsubscribe = [{ pattern = "quotes" }]\n')
    return Gatekeeper(users, roles, NOW, WebTokenRules("https://id.example/jwks", ISSUER, AUDIENCE))


def test_brokers_that_have_fetched_at_other_moments_have_one_version(tmp_path: Path) -> None:
    keeper = keeper_of(tmp_path)
    version, credentials = keeper.policy.version, keeper.policy.issuers
    assert not credentials
    keys = [json.dumps({"keys": rows}).encode() for rows in (public_keys(), public_keys()[1:])]
    assert keeper.use_keys(keeper.keys_of(keys[0]), NOW)
    assert len(keeper.policy.issuers) == 3 and keeper.policy.version == version
    assert not keeper.use_keys(keeper.keys_of(keys[0]), NOW)
    for garbage in (b"", b"[]", b"<html>", b'{"keys": []}', b"\xff", b"[" * 10**5):
        with pytest.raises(AccessError):
            keeper.keys_of(garbage)
    # Files that are read anew leave the keys as they are.
    (tmp_path / "roles.toml").write_text("")
    assert keeper.look(NOW) and len(keeper.policy.issuers) == 3 and keeper.policy.version != version
    assert keeper.use_keys(keeper.keys_of(keys[1]), NOW) and len(keeper.policy.issuers) == 2
    assert keeper.use_keys(None, NOW) and not keeper.policy.issuers


async def test_the_door_waits_a_moment_for_a_key_that_is_being_fetched(tmp_path: Path) -> None:
    keeper, asked_for = keeper_of(tmp_path), []
    before, after = (keeper.keys_of(json.dumps({"keys": rows}).encode()) for rows in (public_keys()[1:], public_keys()))

    class Answering(Issuer):
        """Has its keys at once whenever somebody misses one."""

        def ask_for_unknown(self, now: float) -> bool:
            asked_for.append(now)
            keeper.use_keys(after, NOW)
            return True

    door = Door(keeper, DoorLimits(failure_seconds=0.0), lambda: NOW)
    try:
        found = await asked(door, f"token {signed()}")
        assert (found.kind, found.busy) == ("jwt_no_keys", True) and "try again" in found.text
        keeper.use_keys(before, NOW)
        keeper.issuer = Answering("https://id.example/jwks", NOW)
        assert (await asked(door, f"token {signed()}")).user == "ann" and len(asked_for) == 1
        found = await asked(door, f"token {signed(kid='x')}")
        assert (found.kind, found.busy, len(asked_for)) == ("jwt_key", True, 3)  # not for ever
        assert (await asked(door, f"token {signed(aud='x')}")).kind == "jwt_audience" and len(asked_for) == 3
        keeper.issuer = Issuer("https://id.example/jwks", 0.0)
        keeper.issuer.begin(1e12)
        keeper.issuer.succeed(1e12)
        found = await asked(door, f"token {signed(kid='x')}")
        assert (found.kind, found.busy) == ("jwt_key", False)  # it was asked a moment ago
    finally:
        door.close()
