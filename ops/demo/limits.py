"""Every number of the demo, each with its reason."""

from __future__ import annotations

__all__ = [
    "ARRIVAL_SECONDS",
    "BATCH_EVENTS",
    "EXAMPLES_MAX",
    "LATENCY_SAMPLES",
    "LINE_SECONDS",
    "LOG_LINES_KEPT",
    "PROOF_PROCESSES",
    "RATE_DEFAULT",
    "RETRY_SECONDS",
    "SECONDS_DEFAULT",
    "START_SECONDS",
    "SYMBOLS",
    "TABLE_SECONDS",
    "TICK_SECONDS",
]

SECONDS_DEFAULT = 20.0
"""Long enough to watch, short enough to wait for."""

RATE_DEFAULT = 10_000
"""Events a second. Two cores carry several times that; it is the proof that takes its time, some seconds for 20."""

SYMBOLS = 200
"""As many as an index has, more than anybody would subscribe to one by one."""

TICK_SECONDS = 0.01
"""The feed publishes what is due a hundred times a second."""

BATCH_EVENTS = 500
"""At most so many at a time, as the client itself would collect."""

TABLE_SECONDS = 0.5
"""Between two pictures of the live table; drawing one takes some milliseconds, in which nothing else happens."""

LINE_SECONDS = 4.0
"""Between two lines where there is no terminal."""

LATENCY_SAMPLES = 8_192
"""The newest samples of each subscriber, of which the percentiles are taken."""

START_SECONDS = 15.0
"""A broker starts in a second; a busy machine may need more."""

RETRY_SECONDS = 3.0
"""The broker is a child of ours on the same machine: one that does not answer for this long is gone."""

ARRIVAL_SECONDS = 10.0
"""What was published and does not arrive within this is called missing."""

PROOF_PROCESSES = 2
"""The brute-force evaluation takes a few seconds for each; more processes would each make the quotes again."""

EXAMPLES_MAX = 5
"""Quote numbers named in a verdict that is not `exact`."""

LOG_LINES_KEPT = 20
"""The broker's last words, shown when it fails."""
