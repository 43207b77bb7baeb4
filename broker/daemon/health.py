"""The admin port: /metrics and /metrics/detailed, /healthz (the process lives), /readyz (it takes clients)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from aiohttp import web

from .limits import ADMIN_KEEPALIVE_SECONDS, ADMIN_LINE_LENGTH_MAX
from .security import Certificates

__all__ = ["Health"]

_METRICS_HEADERS = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}


class Health:
    """A small HTTP server beside the broker; `obstacle` is why clients should not come, empty when they may.

    `detailed` tells the metrics of durable subscriptions of these names, those that are coordinated here.
    """

    def __init__(
        self,
        metrics: Callable[[], bytes],
        detailed: Callable[[Sequence[str]], bytes],
        obstacle: Callable[[], str],
    ) -> None:
        self._metrics = metrics
        self._detailed = detailed
        self._obstacle = obstacle
        self._runner: web.AppRunner | None = None
        self.address = ""
        self.security: Certificates | None = None
        """Set before it listens, where that is over TLS."""

    async def listen(self, host: str, port: int) -> None:
        """Serve from now on. Raises OSError."""
        application = web.Application(client_max_size=4096)
        application.add_routes(
            [
                web.get("/metrics", self._get_metrics),
                web.get("/metrics/detailed", self._get_detailed),
                web.get("/healthz", self._get_health),
                web.get("/readyz", self._get_ready),
            ]
        )
        self._runner = web.AppRunner(
            application,
            access_log=None,
            keepalive_timeout=ADMIN_KEEPALIVE_SECONDS,
            max_line_size=ADMIN_LINE_LENGTH_MAX,
            max_field_size=ADMIN_LINE_LENGTH_MAX,
        )
        await self._runner.setup()
        security = None if self.security is None else self.security.listening
        await web.TCPSite(self._runner, host, port, ssl_context=security).start()
        name = self._runner.addresses[0]
        self.address = f"[{name[0]}]:{name[1]}" if ":" in name[0] else f"{name[0]}:{name[1]}"

    async def close(self) -> None:
        """Stop serving."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _get_metrics(self, request: web.Request) -> web.Response:
        return web.Response(body=self._metrics(), headers=_METRICS_HEADERS)

    async def _get_detailed(self, request: web.Request) -> web.Response:
        names = request.query.getall("subscription", [])
        if not names:
            text = "say which durable subscriptions: /metrics/detailed?subscription=NAME&subscription=NAME\n"
            return web.Response(status=400, text=text)
        return web.Response(body=self._detailed(names), headers=_METRICS_HEADERS)

    async def _get_health(self, request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _get_ready(self, request: web.Request) -> web.Response:
        obstacle = self._obstacle()
        return web.Response(status=503, text=f"{obstacle}\n") if obstacle else web.Response(text="ready\n")
