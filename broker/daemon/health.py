"""The admin port: /metrics and /metrics/detailed, /healthz (the process lives), /readyz (it takes clients).

Where clients are asked who they are, so is whoever wants metrics; the two of health are open, so that a probe needs
neither a name nor a certificate.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Sequence

from aiohttp import web

from .access import Door, Guest, NotLetIn
from .limits import ADMIN_KEEPALIVE_SECONDS, ADMIN_LINE_LENGTH_MAX
from .security import Certificates, proved_by

__all__ = ["Health"]

_METRICS_HEADERS = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}


_OPEN = ("/healthz", "/readyz")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def _credentials(header: str) -> str:
    """What HELLO would have of an Authorization header."""
    kind, _, said = header.strip().partition(" ")
    if kind.lower() == "bearer":
        return f"token {said.strip()}"
    if kind.lower() != "basic":
        return ""
    try:
        return f"password {base64.b64decode(said.strip(), validate=True).decode()}"
    except ValueError:  # UnicodeDecodeError is one
        return "password"


def _refused(text: str, status: int = 401) -> web.Response:
    headers = {"WWW-Authenticate": 'Basic realm="headgate"'} if status == 401 else {}
    return web.Response(status=status, text=text, headers=headers)


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
        self.door: Door | None = None
        """Set before it listens, where those who ask for more than health say who they are."""
        self.asks_certificates = False
        """The same, where a certificate is enough."""

    async def listen(self, host: str, port: int) -> None:
        """Serve from now on. Raises OSError."""
        application = web.Application(client_max_size=4096, middlewares=[self._guard])
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

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Health is for everybody; all else for operators and auditors, by name."""
        if request.path in _OPEN or (self.door is None and not self.asks_certificates):
            return await handler(request)
        transport = request.transport
        proved = proved_by(None if transport is None else transport.get_extra_info("peercert"))
        if self.door is None:
            return await handler(request) if proved else _refused("show a certificate that --tls-ca has signed\n")
        found: asyncio.Future[Guest | NotLetIn] = asyncio.get_running_loop().create_future()

        def told(guest: Guest | NotLetIn) -> None:
            if not found.done():
                found.set_result(guest)

        self.door.verify(_credentials(request.headers.get("Authorization", "")), proved, request.remote or "", told)
        guest = await found
        if isinstance(guest, NotLetIn):
            return _refused(f"{guest.text}\n", 503 if guest.busy else 401)
        rights = self.door.keeper.policy.rights_of(guest.user, guest.roles)
        if rights is None or not (rights.admin or rights.audit):
            return _refused(f"{guest.user} is neither operator nor auditor (admin = true, audit = true)\n", 403)
        return await handler(request)

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
