"""Brokers that fetch the keys of web tokens: from nothing, over a change of keys, an outage, and its end."""

from __future__ import annotations

import asyncio
import json
import signal
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import headgate
from headgate.broker.daemon.access import Issuer, IssuerLimits
from headgate.ops.cli import main
from headgate.protocol.errors import HeadgateError, Unauthorised
from tests.broker.daemon.access.test_web_tokens import AUDIENCE, ISSUER, ec_key, public_keys, signed
from tests.support.child_broker import child_broker
from tests.support.live_broker import LiveBroker, live_broker
from tests.support.served_broker import free_address
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

ROLES = '[roles.reader]\nsubscribe = [{ pattern = "orders" }]\n'
LIMITS = IssuerLimits(fetch_seconds=0.5, refresh_seconds=1e6, retry_seconds=0.3, unknown_seconds=1e6, kept_seconds=1e6)


def token_of(user: str, *key: Any) -> str:
    return signed(*key, sub=user, roles=["reader"], exp=int(time.time() + 600))


class Idp:
    """An issuer whose answer is what `say` says now."""

    def __init__(self) -> None:
        self.address = free_address()
        self.body = json.dumps({"keys": public_keys()}).encode()
        self.status, self.asked = 200, 0
        self._runner: web.AppRunner | None = None

    async def start(self, security: ssl.SSLContext | None = None) -> None:
        application = web.Application()
        application.router.add_get("/jwks", self._answer)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        host, _, port = self.address.rpartition(":")
        await web.TCPSite(self._runner, host, int(port), ssl_context=security).start()

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _answer(self, request: web.Request) -> web.Response:
        self.asked += 1
        return web.Response(status=self.status, body=self.body)


@asynccontextmanager
async def idp() -> AsyncIterator[Idp]:
    made = Idp()
    try:
        yield made
    finally:
        await made.stop()


def settings_of(folder: Path, address: str) -> dict[str, Any]:
    (folder / "users.toml").write_text("")
    (folder / "roles.toml").write_text(ROLES)
    files = {"users": folder / "users.toml", "roles": folder / "roles.toml"}
    return {**files, "jwt_keys": address, "jwt_issuer": ISSUER, "jwt_audience": AUDIENCE}


@asynccontextmanager
async def broker_of(folder: Path, issuer: Idp, limits: IssuerLimits = LIMITS) -> AsyncIterator[LiveBroker]:
    async with live_broker(**settings_of(folder, f"http://{issuer.address}/jwks")) as broker:
        known_to(broker).limits = limits
        yield broker


def known_to(broker: LiveBroker) -> Issuer:
    """What that broker knows of its issuer."""
    assert broker.daemon.door is not None and broker.daemon.door.keeper.issuer is not None
    return broker.daemon.door.keeper.issuer


def outcomes(broker: LiveBroker) -> dict[str, int]:
    return known_to(broker).outcomes


async def test_a_broker_starts_without_its_issuer_and_lets_in_when_that_is_there(tmp_path: Path) -> None:
    async with idp() as issuer, broker_of(tmp_path, issuer) as broker:
        for _ in range(2):
            with pytest.raises(HeadgateError, match=r"keys of the issuer.*try again in a moment"):
                await headgate.connect(broker.address, token=token_of("ann"))
        assert broker.daemon.door is not None and broker.daemon.door.failures["jwt_no_keys"] >= 2
        await wait_until(lambda: outcomes(broker).get("unreachable", 0) >= 2, 10)
        await issuer.start()
        async with await headgate.connect(broker.address, token=token_of("ann"), wait_seconds=20) as ann:
            await ann.subscribe("orders")
        assert outcomes(broker)["good"] == issuer.asked == 1


async def test_a_new_key_is_fetched_when_a_token_names_it_and_strangers_cannot_repeat_that(tmp_path: Path) -> None:
    limits = IssuerLimits(fetch_seconds=2, refresh_seconds=1e6, unknown_seconds=0.0)
    async with idp() as issuer:
        issuer.body = json.dumps({"keys": public_keys()[:1]}).encode()
        await issuer.start()
        async with broker_of(tmp_path, issuer, limits) as broker:
            await wait_until(lambda: "good" in outcomes(broker), 10)
            issuer.body = json.dumps({"keys": public_keys()}).encode()
            # One connection, tried once.
            async with await headgate.connect(broker.address, token=token_of("ann", ec_key(), "ES256", "e")):
                assert issuer.asked == 2
            known_to(broker).limits = LIMITS
            for number in range(5):
                with pytest.raises(Unauthorised, match="unknown, revoked or expired"):
                    await headgate.connect(broker.address, token=token_of("ann", None, "RS256", f"x{number}"))
            assert issuer.asked == 2


@pytest.mark.parametrize("answer", ["gone", "status", "huge", "garbage", "empty"])
async def test_the_last_good_keys_hold_over_an_outage_and_not_for_ever(answer: str, tmp_path: Path) -> None:
    limits = IssuerLimits(fetch_seconds=1, refresh_seconds=0.2, retry_seconds=0.2, unknown_seconds=1e6, kept_seconds=4)
    async with idp() as issuer:
        await issuer.start()
        async with broker_of(tmp_path, issuer, limits) as broker:
            await wait_until(lambda: outcomes(broker).get("good", 0) >= 2, 10)
            async with await headgate.connect(broker.address, token=token_of("ann"), retry_seconds=5) as ann:
                orders = await ann.subscribe("orders")
                began = time.monotonic()
                if answer == "gone":
                    await issuer.stop()
                elif answer == "status":
                    issuer.status = 503
                else:
                    issuer.body = {"huge": b" " * 10**6, "garbage": b"<html>", "empty": b'{"keys": []}'}[answer]
                kind = {"gone": "unreachable", "huge": "too_large", "status": "status"}.get(answer, "garbage")
                await wait_until(lambda: outcomes(broker).get(kind, 0) >= 2, 10)
                async with await headgate.connect(broker.address, token=token_of("bob")):
                    pass
                with pytest.raises(HeadgateError, match="no longer good"):
                    await asyncio.wait_for(anext(orders), 30)
                assert time.monotonic() - began > 3
            with pytest.raises(HeadgateError, match="try again in a moment"):
                await headgate.connect(broker.address, token=token_of("bob"))
            if answer == "gone":
                await issuer.start()
                async with await headgate.connect(broker.address, token=token_of("bob"), wait_seconds=20):
                    pass


async def test_a_real_broker_over_https_and_a_key_that_the_issuer_took_out(tmp_path: Path) -> None:
    made = tmp_path / "certificates"
    assert main(["cert", "init", str(made), "--brokers", "idp"]) == 0
    security = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    security.load_cert_chain(made / "idp.pem", made / "idp.key")
    async with idp() as issuer:
        await issuer.start(security)
        settings = settings_of(tmp_path, f"https://{issuer.address}/jwks")
        async with child_broker(tmp_path, **settings) as child:
            # An issuer whose certificate nobody of the system's authorities has signed is not believed.
            await wait_until(lambda: child.lines("keys of web tokens not fetched"), 20)
            assert "certificate" in child.lines("keys of web tokens not fetched")[0]["reason"].lower()
            assert issuer.asked == 0
        async with child_broker(tmp_path, SSL_CERT_FILE=made / "ca.pem", **settings) as child:
            await wait_until(lambda: child.lines("keys of web tokens fetched"), 20)
            async with await headgate.connect(child.address, token=token_of("ann"), retry_seconds=5) as ann:
                orders = await ann.subscribe("orders")
                issuer.body = json.dumps({"keys": public_keys()[1:]}).encode()
                child.signal(signal.SIGHUP)  # an operator need not wait for the next time
                with pytest.raises(HeadgateError, match="no longer good"):
                    await asyncio.wait_for(anext(orders), 10)
            assert len(child.lines("keys of web tokens fetched")) == 2
            assert not child.lines("fault in the event loop")
