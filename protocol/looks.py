"""Looks: when a live replay asks again what logs there are, and where they end.

Brokers that are away may be on their way here, as after a restart of all, so the first looks for them are soon and each
later one is less so. When nobody is away a look only marks where the logs end, once in a while.
"""

from __future__ import annotations

from .limits import REPLAY_LOOK_SECONDS, REPLAY_LOOK_SECONDS_MAX, REPLAY_LOOK_SECONDS_MIN, REPLAY_MARK_SECONDS

__all__ = ["Looks"]

_DOUBLINGS_MAX = 20
"""More would make no pause longer."""


class Looks:
    """See the head of this file."""

    def __init__(self) -> None:
        self._in_vain = 0  # in a row

    def pause(self, is_anybody_away: bool, took: float) -> float:
        """Seconds until the next one, when this one took so many: they are kept from what comes live."""
        if not is_anybody_away:
            self._in_vain = 0
            return REPLAY_MARK_SECONDS
        doublings = min(self._in_vain, _DOUBLINGS_MAX)
        self._in_vain += 1
        return min(
            min(REPLAY_LOOK_SECONDS_MIN * 2.0**doublings, REPLAY_LOOK_SECONDS) + 3 * took, REPLAY_LOOK_SECONDS_MAX
        )
