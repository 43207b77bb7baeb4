"""What the audit is told of durable subscriptions: what each wants and from when on, and what became of its events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from headgate.protocol.messages import Handed

from .state import DurableState

__all__ = ["DurableWatch"]


class DurableWatch(Protocol):
    """Watches durable subscriptions; it knows which streams are audited."""

    def wanted(self, state: DurableState, action: str, reason: str = "") -> None:
        """At its coordinator: it is in force as it is now, or over, or lost events to retention."""

    def handed(self, number: int, name: str, message: Handed) -> None:
        """At the home of a client, by the number of its part: these events went out."""

    def answered(self, number: int, verb: int, spans: Sequence[int]) -> None:
        """At its home: the client said that of these delivery numbers."""

    def left(self, number: int) -> None:
        """At its home: the client takes part no more."""
