"""The admin port: /metrics, /healthz (the process lives), /readyz (it takes clients)."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from .limits import ADMIN_KEEPALIVE_SECONDS, ADMIN_LINE_LENGTH_MAX

__all__ = ["Health"]


class Health:
    """A small HTTP server beside the broker; `obstacle` is why clients should not come, empty when they may."""

    def __init__(self, metrics: Callable[[], bytes], obstacle: Callable[[], str]) -> None:
        self._metrics = metrics
        self._obstacle = obstacle
        self._runner: web.AppRunner | None = None
        self.address = ""

    async def listen(self, host: str, port: int) -> None:
        """Serve from now on. Raises OSError."""
        application = web.Application(client_max_size=4096)
        application.add_routes(
            [
                web.get("/metrics", self._get_metrics),
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
        await web.TCPSite(self._runner, host, port).start()
        name = self._runner.addresses[0]
        self.address = f"[{name[0]}]:{name[1]}" if ":" in name[0] else f"{name[0]}:{name[1]}"

    async def close(self) -> None:
        """Stop serving."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _get_metrics(self, request: web.Request) -> web.Response:
        return web.Response(body=self._metrics(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    async def _get_health(self, request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _get_ready(self, request: web.Request) -> web.Response:
        obstacle = self._obstacle()
        return web.Response(status=503, text=f"{obstacle}\n") if obstacle else web.Response(text="ready\n")
