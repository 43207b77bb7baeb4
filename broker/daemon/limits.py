"""Every bound of the daemon, each with its reason."""

from __future__ import annotations

__all__ = [
    "ADMIN_KEEPALIVE_SECONDS",
    "ADMIN_LINE_LENGTH_MAX",
    "BACKLOG",
    "CONNECTIONS_MAX_DEFAULT",
    "DESCRIPTORS_RESERVED",
    "DIALS_MAX",
    "DIALS_UNTOLD",
    "DIAL_SECONDS_MAX",
    "DRAIN_SECONDS_DEFAULT",
    "FAULT_PAUSE_SECONDS",
    "FEW_EFFECTS_MAX",
    "LOG_CACHE_BYTES",
    "LOG_CHECKED_BYTES",
    "LOG_CHECKED_ROWS",
    "LOG_CHECKPOINT_BYTES",
    "LOG_CLOSE_SECONDS",
    "LOG_COMMIT_BYTES_MAX",
    "LOG_COMMIT_ROWS_MAX",
    "LOG_COMMITS_UNTIDIED_MAX",
    "LOG_EVENTS_MAX",
    "LOG_IDS_BYTES",
    "LOG_JOIN_SECONDS",
    "LOG_LINES_PER_SECOND_MAX",
    "LOG_LOOKUPS_PER_TURN",
    "LOG_PAGE_BYTES",
    "LOG_PRODUCERS_MAX",
    "LOG_PROBE_BYTES",
    "LOG_SWEEP_ROWS",
    "LOG_TEXT_LENGTH_MAX",
    "FREED_BYTES_KEPT",
    "GC_THRESHOLDS",
    "HELD_READS_MAX",
    "LARGE_READ_BYTES",
    "MAPPED_BYTES_MIN",
    "PEER_CLOSE_SECONDS",
    "PEER_CONNECTIONS_MAX",
    "READY_LOOK_SECONDS",
    "RECORDS_BYTES_MAX",
    "REFUSALS_TOLD_MAX",
    "START_PATIENCE_SECONDS",
    "STREAM_SERIES_MAX",
    "THREAD_SWITCH_SECONDS",
    "TIMER_SECONDS_MIN",
    "WALL_CLOCK_SECONDS",
]

CONNECTIONS_MAX_DEFAULT = 10_000
"""Sockets of clients. Above it a newcomer is turned away, so that descriptors stay for disk and admin."""

PEER_CONNECTIONS_MAX = 256
"""Sockets of other brokers: a full mesh of 64, dialled from both sides under two names while they find together."""

PEER_CLOSE_SECONDS = 0.2
"""How long the last words to a broker may take. A dead one never reads them, and until then nobody does its work."""

DIALS_MAX = 64
"""Brokers dialled at one time: a whole mesh. A forged list of thousands is worked off, and starves nobody."""

DIALS_UNTOLD = 3
"""Dials that fail before the operator hears of it: brokers that start together need one or two."""

DIAL_SECONDS_MAX = 2.0
"""How long a broker's machine may take to accept a connection; one that is gone must not hold a dial for long."""

DESCRIPTORS_RESERVED = 128 + PEER_CONNECTIONS_MAX + DIALS_MAX
"""Descriptors that clients never get: other brokers, the disk, the admin port, newcomers on their way out."""

REFUSALS_TOLD_MAX = 64
"""Newcomers above `connections_max` that are told why and given a moment to read it; beyond them they are just cut."""

BACKLOG = 1024
"""Connections that the kernel holds while the loop is busy; a storm of reconnects after a restart fits."""

DRAIN_SECONDS_DEFAULT = 5.0
"""How long a stop waits for clients to take what they were sent; service managers wait ten and more."""

WALL_CLOCK_SECONDS = 10.0
"""How often the Node hears how far the wall clock is from the steady one; NTP moves it by less in that time."""

READY_LOOK_SECONDS = 0.25
"""How often a broker that starts looks whether it may take clients: the service manager is told so much late."""

START_PATIENCE_SECONDS = 30.0
"""How long the service manager is asked to wait on, each time: a start that hangs is still ended after that."""

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

FEW_EFFECTS_MAX = 8
"""So few are of an event that came alone: each is written before the next is looked at. Among many, several may go to
one connection, and are written together."""

HELD_READS_MAX = 32
"""Reads of one socket that are handled as one, at most 8 MiB: as many as uvloop makes of one socket in one turn."""

FREED_BYTES_KEPT = 32 * 1024 * 1024
"""Freed memory that is not given back to the system: what a turn takes, in and out, and once more."""

MAPPED_BYTES_MIN = 4 * 1024 * 1024
"""Pieces from this size on are mapped one by one and given back when freed: what is as large as a whole frame."""

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

LOG_PAGE_BYTES = 8192
"""One page of log.db, written whole for every change in it."""

LOG_CACHE_BYTES = 8 * 1024 * 1024
"""Pages of log.db kept in memory: the ends of a thousand logs; readers' rows come from the system's cache."""

LOG_COMMIT_ROWS_MAX = 1_000
"""Rows of one transaction: more of them share one synchronisation no better, and all wait for the last."""

LOG_COMMIT_BYTES_MAX = 4 * 1024 * 1024
"""The same in bytes: some ten milliseconds of a disk."""

LOG_COMMITS_UNTIDIED_MAX = 8
"""Commits of a busy disk before a checkpoint, or a trim's rows, get their turn: the write-ahead grows."""

LOG_CHECKPOINT_BYTES = 16 * 1024 * 1024
"""What the write-ahead file grows to before its pages are taken over: a start reads so much again."""

LOG_CHECKED_BYTES = 256 * 1024 * 1024
"""A log file up to this size is checked whole at the start, in about a second; of a larger one the newest rows are."""

LOG_CHECKED_ROWS = 64
"""The newest rows of each log, as far as those bytes go: what was written when the power failed is among them."""

LOG_SWEEP_ROWS = 500
"""Rows thrown away in one transaction after a trim, so that appends wait for it no longer than for one another."""

LOG_LOOKUPS_PER_TURN = 4
"""Reads between two commits: a reader of the whole log must not hold up those who write it."""

LOG_IDS_BYTES = 1024 * 1024
"""Rows of one answer to FindIds: what a LOG_CHUNK may have."""

LOG_JOIN_SECONDS = 0.05
"""How often a stop that waits for the disk looks whether the disk has failed."""

LOG_PRODUCERS_MAX = 100_000
"""Producers kept over a restart, those that wrote last: a job of a thousand tasks a hundred times."""

LOG_PROBE_BYTES = 64 * 1024
"""What is written to find out whether there is room, when SQLite says only that writing failed."""

DISK_MARGIN_BYTES = 64 * 1024 * 1024
"""Free bytes of a disk that the log leaves alone: within them its write-ahead file is taken over into log.db, and what
is trimmed is thrown away, so retention can make room on a disk that the log has filled."""

DISK_MARGIN_SHARE = 8
"""The same of a small disk: one eighth of it."""

RESERVE_BYTES = 1024 * 1024
"""What is kept ahead for small files and for recovery, in a file: some hundred pages of log.db."""

RESERVE_SHARE = 16
"""The same of a small disk: one sixteenth of it."""

RESERVE_BYTES_MIN = 16 * 1024
"""A smaller reserve is not tried for: it would not hold records.json and a page."""

LOG_CLOSE_SECONDS = 10.0
"""How long a stop waits for the disk: what is pending is some MiB, and a slow disk writes one in a second."""

THREAD_SWITCH_SECONDS = 0.0005
"""How long the loop may keep the interpreter when the log's thread wants it, and the other way round. At the usual 5 ms
an acknowledgement was measured to take ten times as long under load."""
