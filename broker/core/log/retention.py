"""Retention: old rows leave the logs that are held here, by the settings of their streams, oldest first.

Every holder of a log looks after its own copy: settings are known everywhere, and a reader who asks for what is gone
sees from `first` that it is. The newest row always stays under a bound in bytes, for no row is larger than the bound.

Nothing behind the high watermark is let go of: it may still have to be taken back, or delivered.
"""

from __future__ import annotations

from typing import Any

from ..clock import Clock
from ..delivery import Streams, StreamSettings
from ..limits import RETENTION_PAUSE_SECONDS
from ..timers import Timers
from .log import HeldLog, Log

__all__ = ["RETENTION", "Retention"]

RETENTION = "retention"
"""Key of the timer: logs are looked at."""


class Retention:
    """Trims the logs that are here to what the settings of their streams keep."""

    def __init__(self, log: Log, streams: Streams, timers: Timers, clock: Clock) -> None:
        self._log = log
        self._streams = streams
        self._asked: dict[HeldLog, None] = {}
        self.clock = clock
        self._timers = timers
        self.trimmed = 0

    def begin(self, now: float) -> None:
        """There is a disk."""
        self._timers.at(RETENTION, now + RETENTION_PAUSE_SECONDS)

    def trim(self, now: float) -> None:
        """Look at every log; the disk says where to cut."""
        self.begin(now)
        for held in list(self._log.logs.values()):
            settings = self._streams.settings_of(held.name.stream)
            if held not in self._asked and held.first < held.next:
                self._look_at(held, settings, self.clock.us(now))

    def _look_at(self, held: HeldLog, settings: StreamSettings, now_us: int) -> None:
        age, size = settings.retention_seconds, settings.retention_bytes
        if age is not None and held.first_time < (oldest := now_us - int(age * 1e6)):
            self._asked[held] = None
            self._log.find_time(held.name, max(0, oldest), lambda found, now: self._cut(held, found))
        elif size is not None and held.bytes > size:
            self._asked[held] = None
            self._log.find_size(held.name, int(size), lambda found, now: self._cut(held, found))

    def _cut(self, held: HeldLog, found: Any) -> None:
        del self._asked[held]
        if found is not None:
            found = min(found, held.readable)
        if found is not None and held.first < found <= held.next:
            self.trimmed += found - held.first
            self._log.trim(held.name, found)
