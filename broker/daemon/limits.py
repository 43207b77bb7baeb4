"""Every bound of the daemon, each with its reason."""

from __future__ import annotations

__all__ = [
    "ADMIN_KEEPALIVE_SECONDS",
    "ADMIN_LINE_LENGTH_MAX",
    "BACKLOG",
    "CONNECTIONS_MAX_DEFAULT",
    "DESCRIPTORS_RESERVED",
    "DRAIN_SECONDS_DEFAULT",
    "FAULT_PAUSE_SECONDS",
    "LOG_EVENTS_MAX",
    "LOG_LINES_PER_SECOND_MAX",
    "LOG_TEXT_LENGTH_MAX",
    "GC_THRESHOLDS",
    "LARGE_READ_BYTES",
    "RECORDS_BYTES_MAX",
    "REFUSALS_TOLD_MAX",
    "STREAM_SERIES_MAX",
    "TIMER_SECONDS_MIN",
    "WALL_CLOCK_SECONDS",
]

CONNECTIONS_MAX_DEFAULT = 10_000
"""Sockets of clients. Above it a newcomer is turned away, so that descriptors stay for disk and admin."""

DESCRIPTORS_RESERVED = 128
"""Descriptors that clients never get: the disk, the admin port, newcomers on their way out."""

REFUSALS_TOLD_MAX = 64
"""Newcomers above `connections_max` that are told why and given a moment to read it; beyond them they are just cut."""

BACKLOG = 1024
"""Connections that the kernel holds while the loop is busy; a storm of reconnects after a restart fits."""

DRAIN_SECONDS_DEFAULT = 5.0
"""How long a stop waits for clients to take what they were sent; service managers wait ten and more."""

WALL_CLOCK_SECONDS = 10.0
"""How often the Node hears how far the wall clock is from the steady one; NTP moves it by less in that time."""

TIMER_SECONDS_MIN = 0.001
"""The shortest timer: a loop's clock may be coarser than ours, and would wake many times within one tick."""

FAULT_PAUSE_SECONDS = 0.1
"""A wake that failed is tried again after this: soon for whoever waits for it, seldom for the processor."""

STREAM_SERIES_MAX = 100
"""Streams with time series of their own, the busiest ones; the rest is in the totals."""

GC_THRESHOLDS = (100_000, 50, 100)
"""Containers alive beyond the last collection before the next one: some ten MiB of garbage in cycles at the most."""

LARGE_READ_BYTES = 64 * 1024
"""A read of at least this came from a socket that holds more; a lone client's batch is smaller."""

RECORDS_BYTES_MAX = 64 * 1024 * 1024
"""The file of small records. Ten thousand schemas are far less; a larger file is not ours."""

ADMIN_LINE_LENGTH_MAX = 2048
"""One line of a request to the admin port: `GET /metrics HTTP/1.1` and ordinary headers fit many times."""

ADMIN_KEEPALIVE_SECONDS = 75.0
"""How long a scraper's connection may idle: longer than the usual minute between two scrapes."""

LOG_LINES_PER_SECOND_MAX = 20
"""Lines of one kind in a second: enough to see what happens; a flood of hostile clients must not fill the disk."""

LOG_TEXT_LENGTH_MAX = 500
"""Characters of one value in a line. Clients choose some of them, their names for one."""

LOG_EVENTS_MAX = 256
"""Kinds of lines that are counted apart; there are some dozens, and all are written in the source."""
