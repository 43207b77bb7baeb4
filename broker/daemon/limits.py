"""Every bound of the daemon, each with its reason; those of its log are in `log/limits.py`.

`DaemonLimits` is handed in. The constants are what nobody has to choose.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headgate.broker.core.limits import DEFAULT_LIMITS as NODE_LIMITS
from headgate.broker.core.limits import Limits
from headgate.protocol.wire import SessionLimits

__all__ = [
    "ADMIN_KEEPALIVE_SECONDS",
    "ADMIN_LINE_LENGTH_MAX",
    "BACKLOG",
    "CONNECTIONS_MAX_DEFAULT",
    "DEFAULT_LIMITS",
    "DESCRIPTORS_RESERVED",
    "DIALS_UNTOLD",
    "DRAIN_SECONDS_DEFAULT",
    "DaemonLimits",
    "FAULT_PAUSE_SECONDS",
    "CERTIFICATES_LOOK_SECONDS",
    "CLOSE_SECONDS",
    "FEW_EFFECTS_MAX",
    "HANDSHAKE_REASONS_MAX",
    "HANDSHAKE_TOLD_SECONDS",
    "LOG_CLOSE_SECONDS",
    "LOG_EVENTS_MAX",
    "LOG_LINES_PER_SECOND_MAX",
    "LOG_TEXT_LENGTH_MAX",
    "FREED_BYTES_KEPT",
    "GC_THRESHOLDS",
    "LARGE_READ_BYTES",
    "MAPPED_BYTES_MIN",
    "PEER_CLOSE_SECONDS",
    "PEER_CONNECTIONS_MAX",
    "READY_LOOK_SECONDS",
    "START_PATIENCE_SECONDS",
    "THREAD_SWITCH_SECONDS",
    "TIMER_SECONDS_MIN",
    "TURN_BYTES_MAX",
    "TURN_MESSAGES_MAX",
    "TURN_READS_MAX",
    "WALL_CLOCK_SECONDS",
]

CONNECTIONS_MAX_DEFAULT = 10_000
"""Sockets of clients. Above it a newcomer is turned away, so that descriptors stay for disk and admin."""

PEER_CONNECTIONS_MAX = 256
"""Sockets of other brokers: a full mesh of 64, dialled from both sides under two names while they find together."""

PEER_CLOSE_SECONDS = 0.2
"""How long the last words to a broker may take. A dead one never reads them, and until then nobody does its work."""

DIALS_UNTOLD = 3
"""Dials that fail before the operator hears of it: brokers that start together need one or two."""

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

GC_THRESHOLDS = (100_000, 50, 100)
"""Containers alive beyond the last collection before the next one: some ten MiB of garbage in cycles at the most."""

CERTIFICATES_LOOK_SECONDS = 5.0
"""How often the files of certificates are looked at: six of them, and a renewed one is needed within days."""

LARGE_READ_BYTES = 64 * 1024
"""A read of at least this came from a socket that holds more; a lone client's batch is smaller."""

FEW_EFFECTS_MAX = 8
"""So few are of an event that came alone: each is written before the next is looked at. Among many, several may go to
one connection, and are written together."""

CLOSE_SECONDS = 30e-6
"""A read that comes so soon after the last input was handled was ready together with it: one turn of the loop takes a
third of that between two reads. A publisher that is alone is many times further behind."""

TURN_READS_MAX = 1000
"""Reads that are one turn: more connections than this with something to say share enough already."""

TURN_BYTES_MAX = 8 * 1024 * 1024
"""Bytes of the reads of one turn: as many as uvloop reads of one socket in one of its own."""

TURN_MESSAGES_MAX = 256
"""A read with so many messages has nothing to share with the next one; a storm of requests is handled a read at a time,
and others have their turn in between."""

FREED_BYTES_KEPT = 32 * 1024 * 1024
"""Freed memory that is not given back to the system: what a turn takes, in and out, and once more."""

MAPPED_BYTES_MIN = 4 * 1024 * 1024
"""Pieces from this size on are mapped one by one and given back when freed: what is as large as a whole frame."""

ADMIN_LINE_LENGTH_MAX = 4096
"""One line of a request to the admin port: `GET /metrics HTTP/1.1` fits many times, and a web token as bearer once."""

HANDSHAKE_TOLD_SECONDS = 1.0
"""How often the log says that TLS handshakes fail for one reason; the metric counts each."""

HANDSHAKE_REASONS_MAX = 256
"""Reasons of failed handshakes that are told apart; OpenSSL has fewer that a stranger can bring about."""

ADMIN_KEEPALIVE_SECONDS = 75.0
"""How long a scraper's connection may idle: longer than the usual minute between two scrapes."""

LOG_LINES_PER_SECOND_MAX = 20
"""Lines of one kind in a second: enough to see what happens; a flood of hostile clients must not fill the disk."""

LOG_TEXT_LENGTH_MAX = 500
"""Characters of one value in a line. Clients choose some of them, their names for one."""

LOG_EVENTS_MAX = 256
"""Kinds of lines that are counted apart; there are some dozens, and all are written in the source."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonLimits:
    """Bounds what one daemon dials, tells, exports and keeps; `node` bounds its Node."""

    node: Limits = NODE_LIMITS
    session: SessionLimits = field(default_factory=SessionLimits)
    """Of connections of clients and of links to brokers."""
    close_seconds: float = 1.0
    """How long the last words to a client may take: as at a client's own end."""
    records_bytes: int = 64 * 1024 * 1024
    """The file of small records. Ten thousand schemas are far less; a larger file is not ours."""
    dials: int = 64
    """Brokers dialled at one time: a whole mesh. A forged list of thousands is worked off, and starves nobody."""
    dial_seconds: float = 2.0
    """How long a broker's machine may take to accept a connection; one that is gone must not hold a dial for long."""
    refusals_told: int = 64
    """Newcomers above `connections_max` that are told why and given a moment to read it; further ones are just cut."""
    stream_series: int = 100
    """Streams with time series of their own, the busiest ones; the rest is in the totals."""
    durable_series: int = 100
    """Durable subscriptions with time series of their own, five each: those for which most waits. The rest is in the
    totals, and `/metrics/detailed` tells of any; of so many in one answer."""


DEFAULT_LIMITS = DaemonLimits()

DESCRIPTORS_RESERVED = 128 + PEER_CONNECTIONS_MAX + DEFAULT_LIMITS.dials
"""Descriptors that clients never get: other brokers, the disk, the admin port, newcomers on their way out."""
