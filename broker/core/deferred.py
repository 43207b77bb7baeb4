"""Deferred: an answer that is not known yet. The part that asked is told when it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Deferred"]


class Deferred:
    """The place of an answer: `tell` is set by who waits for it, `say` called by who knows it, in either order."""

    __slots__ = ("_answer", "_known", "_tell")

    def __init__(self) -> None:
        self._known = False
        self._answer: Any = None
        self._tell: Callable[[Any], None] | None = None

    @property
    def tell(self) -> Callable[[Any], None] | None:
        """Who waits for it."""
        return self._tell

    @tell.setter
    def tell(self, tell: Callable[[Any], None]) -> None:
        self._tell = tell
        if self._known:
            tell(self._answer)

    def say(self, answer: Any) -> None:
        """This is the answer; a Refused is one as well. Only the first counts."""
        if self._known:
            return
        self._known, self._answer = True, answer
        if self._tell is not None:
            self._tell(answer)
