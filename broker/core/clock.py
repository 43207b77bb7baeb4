"""Tells wall-clock times: the host says how far its monotonic clock is from it, and parts that write times ask here."""

from __future__ import annotations

__all__ = ["Clock"]


class Clock:
    """Turns a moment of the host's clock into microseconds since 1970."""

    __slots__ = ("offset",)

    def __init__(self) -> None:
        self.offset = 0.0

    def us(self, now: float) -> int:
        """The time of day at that moment."""
        return int((now + self.offset) * 1e6)
