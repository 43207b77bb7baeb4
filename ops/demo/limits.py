"""Every number of the demo, each with its reason."""

from __future__ import annotations

__all__ = [
    "ARRIVAL_SECONDS",
    "ARRIVAL_TICK_SECONDS",
    "AUDIT_QUIET_SECONDS",
    "AUDIT_QUOTES",
    "AUDIT_SECONDS_MAX",
    "AUDIT_SETTLE_SECONDS",
    "BATCH_EVENTS",
    "BROKERS_DEFAULT",
    "BROKERS_MAX",
    "EXAMPLES_MAX",
    "IN_FLIGHT_SECONDS",
    "KILL_SHARE",
    "LATENCY_SAMPLES",
    "LINE_SECONDS",
    "LOG_LINES_KEPT",
    "ORDERED_BROKERS_MAX",
    "ORDERS_ARRIVAL_SECONDS",
    "ORDER_PAUSE_SECONDS",
    "PROOF_PROCESSES",
    "RATE_DEFAULT",
    "RETRY_SECONDS",
    "SECONDS_DEFAULT",
    "SETTLE_SECONDS",
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

SETTLE_SECONDS = 30.0
"""Brokers of one machine find each other within a few seconds; a busy one may need more."""

RETRY_SECONDS = 3.0
"""The brokers are children of ours on the same machine: when none answers for this long, all are gone."""

ARRIVAL_SECONDS = 10.0
"""What was published and does not arrive within this is called missing."""

PROOF_PROCESSES = 2
"""The brute-force evaluation takes a few seconds for each; more processes would each make the quotes again."""

EXAMPLES_MAX = 5
"""Quote numbers named in a verdict that is not `exact`."""

LOG_LINES_KEPT = 20
"""How many of the last lines of a broker's log are kept, to be shown when it fails."""

ARRIVAL_TICK_SECONDS = 0.5
"""How often it is looked for what is still missing; each look compares every quote."""

BROKERS_DEFAULT = 3
"""The fewest that leave a cluster when one dies."""

BROKERS_MAX = 16
"""As many as a client may be told of, and more than two cores are good for."""

ORDERED_BROKERS_MAX = 3
"""Up to here every broker has a copy of everything, and matches what is published at it, in order. With more of them
the parts of one subscription may lie on several brokers, whose deliveries overtake one another."""

KILL_SHARE = 0.5
"""Half way: the second half shows that the cluster goes on."""

IN_FLIGHT_SECONDS = 1.0
"""Quotes published so long before the kill may still have been on their way. On one machine it is milliseconds; but
the feed may be ahead of a busy broker by a second."""

ORDER_PAUSE_SECONDS = 0.02
"""Between two orders: some dozens a second, each answered when two disks have it."""

ORDERS_ARRIVAL_SECONDS = 20.0
"""An order that has not come after such a silence is called missing: its broker and who took it were killed, and others
have to take over from both."""

AUDIT_QUOTES = 20_000
"""Of the epilogue: two seconds of the feed. Spark itself takes longer to start."""

AUDIT_QUIET_SECONDS = 1.0
"""When nothing has come for so long, everything has."""

AUDIT_SETTLE_SECONDS = 3.0
"""On one machine, deliveries are in the log within half a second; Spark takes longer than this to start anyway."""

AUDIT_SECONDS_MAX = 300.0
"""Java, Spark and the verdict take half a minute on two cores; on a very busy machine several times that."""
