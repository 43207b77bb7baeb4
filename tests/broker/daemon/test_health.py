"""The admin port, asked over real sockets."""

from __future__ import annotations

import pytest

from headgate.broker.core.inputs import Drain
from headgate.broker.daemon.health import Health
from headgate.broker.daemon.limits import ADMIN_LINE_LENGTH_MAX
from tests.support.http import get, request
from tests.support.live_broker import live_broker


async def test_health_readiness_and_metrics() -> None:
    async with live_broker() as broker:
        health = await get(broker.admin, "/healthz")
        assert (health.status, health.text) == (200, "ok\n")
        ready = await get(broker.admin, "/readyz")
        assert (ready.status, ready.text) == (200, "ready\n")
        metrics = await get(broker.admin, "/metrics")
        assert metrics.status == 200
        assert metrics.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert "headgate_uptime_seconds" in metrics.text


async def test_a_broker_without_its_place_in_the_cluster_is_starting() -> None:
    async with live_broker(join="127.0.0.1:1") as broker:
        ready = await get(broker.admin, "/readyz")
        assert (ready.status, ready.text) == (503, "starting\n")


async def test_a_broker_that_drains_is_alive_and_not_ready() -> None:
    async with live_broker() as broker:
        broker.daemon.driver.feed(Drain())
        ready = await get(broker.admin, "/readyz")
        assert (ready.status, ready.text) == (503, "draining\n")
        assert (await get(broker.admin, "/healthz")).status == 200


async def test_metrics_that_fail_are_a_500_and_the_rest_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> bytes:
        raise RuntimeError("a fault of ours")

    health = Health(broken, lambda names: b"", lambda: "")
    await health.listen("127.0.0.1", 0)
    try:
        assert (await get(health.address, "/metrics")).status == 500
        assert (await get(health.address, "/healthz")).status == 200
    finally:
        await health.close()
    assert "a fault of ours" in caplog.text


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET /nowhere HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n", 404),
        (b"POST /metrics HTTP/1.1\r\nHost: b\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", 405),
        (b"GET /" + b"x" * 2 * ADMIN_LINE_LENGTH_MAX + b" HTTP/1.1\r\nHost: b\r\n\r\n", 400),
        (b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 2 * ADMIN_LINE_LENGTH_MAX + b"\r\n\r\n", 400),
        (b"\x00\x00\x00\x05hello\r\n\r\n", 400),
    ],
    ids=["nowhere", "post", "long line", "long header", "not http"],
)
async def test_other_requests_are_refused(data: bytes, status: int) -> None:
    async with live_broker() as broker:
        assert (await request(broker.admin, data)).status == status
        assert (await get(broker.admin, "/healthz")).status == 200


async def test_metrics_of_durable_subscriptions_want_their_names() -> None:
    async with live_broker() as broker:
        refused = await get(broker.admin, "/metrics/detailed")
        assert refused.status == 400 and "subscription=NAME" in refused.text
        assert (await get(broker.admin, "/metrics/detailed?subscription=orders")).status == 200


async def test_it_listens_on_ipv6_too() -> None:
    async with live_broker(admin="[::1]:0") as broker:
        assert broker.admin.startswith("[::1]:")
        assert (await get(broker.admin, "/healthz")).status == 200


async def test_closing_what_never_listened_is_fine() -> None:
    await Health(lambda: b"", lambda names: b"", lambda: "").close()
