"""Patience: says why publishing takes long while it does, a reason once, so that nobody waits without knowing."""

from __future__ import annotations

import asyncio
import sys
from types import TracebackType
from typing import Protocol

from headgate.protocol.errors import HeadgateError

from .limits import PATIENCE_SECONDS

__all__ = ["Patience"]


class _Client(Protocol):
    """What is asked of a client here."""

    @property
    def hindrance(self) -> HeadgateError | None: ...


class Patience:
    """A context in which a client's hindrances are told on standard error."""

    def __init__(self, client: _Client) -> None:
        self._client = client
        self._told = ""
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Patience:
        self._timer = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._again)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def look(self) -> None:
        """Tell what is new."""
        hindrance = self._client.hindrance
        if hindrance is not None and str(hindrance) != self._told:
            self._told = str(hindrance)
            print(f"headgate pub: still trying: {hindrance}", file=sys.stderr, flush=True)

    def _again(self) -> None:
        self.look()
        self._timer = asyncio.get_running_loop().call_later(PATIENCE_SECONDS, self._again)
