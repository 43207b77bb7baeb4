"""Log lines: structlog as JSON (under a service manager) or as coloured text (at a terminal).

Much of what is logged was chosen by strangers, so three things happen to every line. Floods are cut: of one kind of
line there are at most LOG_LINES_PER_SECOND_MAX a second, and the next one says how many were `suppressed`. Secrets are
struck out by name. Texts are tamed: shortened, and control characters escaped, since a terminal would obey them.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable

import structlog

from .limits import LOG_EVENTS_MAX, LOG_LINES_PER_SECOND_MAX, LOG_TEXT_LENGTH_MAX

__all__ = ["FloodGate", "configure_logs", "redact", "tame"]

_SECRET = frozenset({"credentials", "password", "secret", "token", "session_key"})
_OWN = frozenset({"event", "exception", "exc_info", "level", "timestamp"})


class FloodGate:
    """A structlog processor that lets a bounded number of lines of each kind through in a second."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kinds: dict[str, list[int]] = {}

    def __call__(self, logger: object, name: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        """The line, or DropEvent."""
        second = int(self._clock())
        kind = str(event.get("event"))
        if kind not in self._kinds and len(self._kinds) >= LOG_EVENTS_MAX:
            self._kinds.clear()
        state = self._kinds.setdefault(kind, [second, 0, 0])
        if state[0] != second:
            state[0], state[1] = second, 0
        if state[1] >= LOG_LINES_PER_SECOND_MAX:
            state[2] += 1
            raise structlog.DropEvent
        state[1] += 1
        if state[2]:
            event["suppressed"] = state[2]
            state[2] = 0
        return event


def redact(logger: object, name: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Secrets are named, never shown; of an object that may hold one, only its kind is."""
    for key, value in event.items():
        if key in _SECRET:
            event[key] = "(redacted)"
        elif key not in _OWN and not isinstance(value, str | int | float | None):
            event[key] = f"({type(value).__name__})"
    return event


def tame(logger: object, name: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Texts short and printable."""
    for key, value in event.items():
        if key not in _OWN and isinstance(value, str):
            if len(value) > LOG_TEXT_LENGTH_MAX:
                value = f"{value[:LOG_TEXT_LENGTH_MAX]}… ({len(value)} characters)"
            event[key] = value if value.isprintable() else repr(value)[1:-1]
    return event


def configure_logs(level: str, form: str) -> None:
    """Set up structlog once; `auto` is text at a terminal and JSON elsewhere."""
    json = form == "json" or (form == "auto" and not sys.stderr.isatty())
    renderer = structlog.processors.JSONRenderer() if json else _console_renderer()
    structlog.configure(
        processors=[
            FloodGate(),
            redact,
            tame,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info if json else _unchanged,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,
    )


def _console_renderer() -> structlog.dev.ConsoleRenderer:
    """Text, in colours where a terminal shows them and nobody said NO_COLOR."""
    if sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
        return structlog.dev.ConsoleRenderer()
    return structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)


def _unchanged(logger: object, name: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    return event
