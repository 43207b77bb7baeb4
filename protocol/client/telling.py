"""Telling: what happens to a client's connection, said to a logger and to the application's two hooks.

A hook runs when the host has time for it (`later`), so that it may use the client, and what it raises is logged and
goes no further. The logger `headgate` says nothing by itself unless the application has configured logging.
"""

from __future__ import annotations

import inspect
import logging
import math
from collections.abc import Callable
from typing import Any

from ..errors import LocalError
from .receiving import Inbox

__all__ = ["Hook", "Log", "Telling", "check_hooks"]

Hook = Callable[[str], Any]
"""Called with the reason why the connection was lost, or with the name of the broker that was found."""

Log = logging.Logger | logging.LoggerAdapter[Any]

LOGGER = logging.getLogger("headgate")
LOGGER.addHandler(logging.NullHandler())


def check_hooks(logger: object, **hooks: object) -> None:
    """Raises LocalError for what cannot be called, or is no logger."""
    if logger is not None and not isinstance(logger, logging.Logger | logging.LoggerAdapter):
        raise LocalError(f"logger is a logging.Logger or None (the logger 'headgate'), not {logger!r}")
    for name, hook in hooks.items():
        if hook is None:
            continue
        if not callable(hook):
            raise LocalError(f"{name} is a function of one string, or None, not {hook!r}")
        if inspect.iscoroutinefunction(hook):
            raise LocalError(f"{name} is a plain function, which may start a task, and not an `async def`")


class Telling:
    """Tells a logger and two hooks what happens to a connection.

    `later` runs a function in a moment, where it does not harm the connection.
    """

    def __init__(
        self,
        logger: Log | None = None,
        on_disconnected: Hook | None = None,
        on_reconnected: Hook | None = None,
    ) -> None:
        check_hooks(logger, on_disconnected=on_disconnected, on_reconnected=on_reconnected)
        self.log: Log = LOGGER if logger is None else logger
        self.later: Callable[[Callable[[], None]], object] = lambda function: function()
        self._on_disconnected = on_disconnected
        self._on_reconnected = on_reconnected

    def disconnected(self, address: str, reason: str, retry_seconds: float) -> None:
        """The connection is gone, and looked for."""
        how_long = "until a broker answers" if math.isinf(retry_seconds) else f"for {retry_seconds:g} seconds"
        self.log.warning("lost the connection to %s: %s; trying again %s", address, reason, how_long)
        self._call(self._on_disconnected, reason)

    def failed(self, address: str, reason: str) -> None:
        """An attempt came to nothing."""
        self.log.debug("no connection to %s: %s", address, reason)

    def reconnected(self, address: str, broker: str, resumed: bool) -> None:
        """There is a connection again."""
        session = "with its session" if resumed else "in a new session: subscriptions are made again, with a gap"
        self.log.info("connected again to broker %s at %s, %s", broker, address, session)
        self._call(self._on_reconnected, broker)

    def ended(self, address: str, reason: str) -> None:
        """Nobody is looked for any more."""
        self.log.error("gave up the connection to %s: %s; this client is of no use any more", address, reason)

    def full(self, inbox: Inbox) -> None:
        """A subscription is not taken from, and the broker keeps what comes for it."""
        text = "subscription %d to %s is full: %d events (%d bytes) wait to be taken, and more waits at the broker"
        self.log.warning(text, inbox.number, inbox.request.pattern, inbox.events_waiting, inbox.bytes_waiting)

    def _call(self, hook: Hook | None, word: str) -> None:
        if hook is not None:
            self.later(lambda: self._run(hook, word))

    def _run(self, hook: Hook, word: str) -> None:
        try:
            hook(word)
        except Exception:
            # The application's own trouble: the client goes on, and whoever reads the log sees it.
            self.log.exception("the hook %r failed", hook)
