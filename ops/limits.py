"""Every bound of the command line and the demo, each with its reason."""

from __future__ import annotations

__all__ = [
    "ACK_SECONDS",
    "ANSWER_SECONDS",
    "DRAIN_SECONDS",
    "FALSE_POSITIVE_TOPICS_SHOWN",
    "LINE_BYTES_MAX",
    "PATIENCE_SECONDS",
    "PIPE_WRITE_BYTES",
    "PURGE_SECONDS_MAX",
    "READ_BYTES",
    "RING_BAR_CELLS",
    "SILENCE_SECONDS",
    "TOP_SECONDS",
    "TOP_SECONDS_MAX",
    "TOP_SECONDS_MIN",
    "WAIT_SECONDS_MAX",
    "WINDOW_EVENTS",
]

READ_BYTES = 64 * 1024
"""One read of JSON lines: what a pipe holds. Some hundred events, after which the connection has its turn."""

LINE_BYTES_MAX = 8 * 1024 * 1024
"""One JSON line. An event has at most 1 MiB, and JSON may write each of its bytes as six characters."""

PIPE_WRITE_BYTES = 4096
"""One write into a pipe that has room: so much goes in without waiting, by POSIX."""

ACK_SECONDS = 5.0
"""How long `sub --durable` waits, before it ends, for the answers to its acknowledgements: those of a broker that takes
over from a dead one as well."""

DRAIN_SECONDS = 0.25
"""How long `sub` still prints what is on its way when it is told to stop."""

FALSE_POSITIVE_TOPICS_SHOWN = 5
"""Topics that `sub` names at its end, of those by which most came that it did not print: who is to blame is among the
first, and the library counts more of them."""

PATIENCE_SECONDS = 0.5
"""How often a verb looks for something that keeps it from being done: what passes sooner is not worth a word."""

SILENCE_SECONDS = 2.0
"""After how long without an answer a verb says so: a network needs less, and a person begins to wonder."""

ANSWER_SECONDS = 10.0
"""After how long a verb says that a broker took its question and is silent: a cluster that forms takes some seconds."""

WAIT_SECONDS_MAX = 30 * 24 * 3600.0
"""The longest `--wait`: for as long as any machine is away that still comes back."""

WINDOW_EVENTS = 1000
"""Events that `sub --durable --count` takes at a time and has not printed yet, at most: what brokers hand out unless
they are told otherwise."""

PURGE_SECONDS_MAX = 60.0
"""How long `schema rm --purge` waits for logs to become empty: many rounds of retention, so somebody publishes."""

RING_BAR_CELLS = 32
"""The bar of `headgate ring`: a cell is three per cent of the ring, and the rest of the row finds room beside it."""

TOP_SECONDS = 2.0
"""How often `top` looks when nobody says: time to read what changed."""

TOP_SECONDS_MIN = 0.2
"""The shortest time between two looks: each asks every broker two questions, and the answers cost a millisecond."""

TOP_SECONDS_MAX = 3600.0
"""The longest: beyond an hour a script that begins anew does the same."""
