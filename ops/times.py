"""Times as people type them: `2026-11-19T06:00`, local unless it names a zone, and `-10m`, so long ago."""

from __future__ import annotations

import re
from datetime import datetime

from .exits import UsageError

__all__ = ["parse_time"]

_AGO = re.compile(r"-(\d{1,9})([a-z]*)", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ][^@]*)?", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def parse_time(text: str, now: float) -> float | None:
    """Seconds since 1970, None for what is no time at all. Raises UsageError for a time that is written wrongly.

    >>> parse_time("-10m", 1000.0), parse_time("1970-01-02T00:00:10Z", 1e9), parse_time("start", 1000.0)
    (400.0, 86410.0, None)
    """
    ago = _AGO.fullmatch(text)
    if ago:
        if ago[2] not in _SECONDS:
            raise UsageError(f"--from {text}: write a number and s, m, h, d or w, as in -90s, -10m, -2h or -7d")
        return now - int(ago[1]) * _SECONDS[ago[2]]
    if not _DATE.fullmatch(text):
        return None
    try:
        seconds = datetime.fromisoformat(text).timestamp()  # without a zone it is local time
    except (ValueError, OverflowError, OSError) as error:
        advice = "as in 2026-11-19T06:00 for local time, 2026-11-19T06:00Z or 2026-11-19T06:00+02:00"
        raise UsageError(f"--from {text}: {error}; write it {advice}") from error
    if seconds > now:
        raise UsageError(f"--from {text}: that is still to come; `now` begins with what comes next")
    return seconds
