"""Patience: tells the user why something takes long while it does, each reason once."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

from .limits import ANSWER_SECONDS, PATIENCE_SECONDS, SILENCE_SECONDS

__all__ = ["Patience", "unanswered", "unconnected"]


class _Client(Protocol):
    """The part of a client that is used here."""

    @property
    def connected(self) -> bool: ...

    @property
    def address(self) -> str: ...


class Patience:
    """A context in which the reason `why` one waits, "" for none, is told once it has lasted for `seconds`.

    When it is over after it was told, so is `relief`, unless that is empty.
    """

    def __init__(
        self, verb: str, why: Callable[[], str], seconds: float = SILENCE_SECONDS, relief: Callable[[], str] = str
    ) -> None:
        self._verb = verb
        self._why = why
        self._seconds = seconds
        self._relief = relief
        self._reason = self._told = ""
        self._since = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Patience:
        self._again()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def look(self, now: float) -> None:
        """Tell a reason that is new and has lasted long enough."""
        reason = self._why()
        if reason != self._reason:
            self._reason, self._since = reason, now
        if reason and reason != self._told and now - self._since >= self._seconds:
            self._told = reason
            self._say(f"still trying: {reason}")
        if not reason and self._told and self._relief():
            self._told = ""
            self._say(self._relief())

    def _say(self, text: str) -> None:
        print(f"headgate {self._verb}: {text}", file=sys.stderr, flush=True)

    def _again(self) -> None:
        loop = asyncio.get_running_loop()
        self.look(loop.time())
        self._timer = loop.call_later(min(PATIENCE_SECONDS, self._seconds), self._again)


def unconnected(verb: str, client: _Client) -> Patience:
    """Tells that the connection was lost and nobody answers, and who does in the end."""
    return Patience(
        verb,
        lambda: "" if client.connected else f"the connection is lost, and no broker answers at {client.address}",
        relief=lambda: f"connected to {client.address} again",
    )


def unanswered(verb: str, client: _Client) -> Patience:
    """Tells that a broker took a question and does not answer it."""
    advice = "it may be looking for its cluster, `headgate ring` shows that"
    return Patience(
        verb, lambda: f"{client.address} has not answered yet; {advice}" if client.connected else "", ANSWER_SECONDS
    )
