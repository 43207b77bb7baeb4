"""Every bound of the store of rows, each with its reason.

`LogLimits` is handed to the store and to its writer. The constants are properties of the file, or nobody's choice.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "DEFAULT_LIMITS",
    "LOG_CACHE_BYTES",
    "LOG_JOIN_SECONDS",
    "LOG_PAGE_BYTES",
    "LOG_PROBE_BYTES",
    "LogLimits",
]

LOG_PAGE_BYTES = 8192
"""One page of log.db, written whole for every change in it."""

LOG_CACHE_BYTES = 8 * 1024 * 1024
"""Pages of log.db kept in memory: the ends of a thousand logs; readers' rows come from the system's cache."""

LOG_JOIN_SECONDS = 0.05
"""How often a stop that waits for the disk looks whether the disk has failed."""

LOG_PROBE_BYTES = 64 * 1024
"""What is written to find out whether there is room, when SQLite says only that writing failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLimits:
    """Bounds what one transaction, one answer and one start take, and what is kept over a restart."""

    commit_rows: int = 1_000
    """Rows of one transaction: more of them share one synchronisation no better, and all wait for the last."""
    commit_bytes: int = 4 * 1024 * 1024
    """The same in bytes: some ten milliseconds of a disk."""
    commits_untidied: int = 8
    """Commits of a busy disk before a checkpoint, or a trim's rows, get their turn: the write-ahead grows."""
    lookups_per_turn: int = 4
    """Reads between two commits: a reader of the whole log must not hold up those who write it."""
    checkpoint_bytes: int = 16 * 1024 * 1024
    """What the write-ahead file grows to before its pages are taken over: a start reads so much again."""
    sweep_rows: int = 500
    """Rows thrown away in one transaction after a trim, so that appends wait for it no longer than for one another."""
    aside_rows: int = 500
    """The same of rows that were put aside."""
    aside_bytes: int = 256 * 1024 * 1024
    """Rows that were put aside, altogether: a disk is bought for logs, and these are no part of one."""
    aside_seconds: float = 30 * 86_400.0
    """How long they are kept: who is told of damage looks at it within a month, or never."""
    aside_seconds_min: float = 7 * 86_400.0
    """How long they are kept however many they are: they may be the only copy, and somebody may be away for a week."""
    look_seconds: float = 600.0
    """How often a disk that nobody asks anything looks whether rows that were put aside are old by now."""
    ids_bytes: int = 1024 * 1024
    """Rows of one answer to FindIds: what a LOG_CHUNK may have."""
    checked_bytes: int = 256 * 1024 * 1024
    """A log file up to this size is checked whole at the start, in about a second; of a larger one its newest rows."""
    checked_rows: int = 64
    """The newest rows of each log, as far as those bytes go: what was written when the power failed is among them."""
    producers: int = 100_000
    """Producers kept over a restart, those that wrote last: a job of a thousand tasks a hundred times."""


DEFAULT_LIMITS = LogLimits()
