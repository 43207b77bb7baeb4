"""Every bound of the simulator, each with its reason."""

from __future__ import annotations

__all__ = [
    "APART_SECONDS",
    "CALM_AFTER_HARM_SECONDS",
    "CALM_SECONDS",
    "CLIENTS_MAX",
    "CLOSE_SECONDS_MAX",
    "DIAL_SECONDS_MAX",
    "DISK_IDS_BYTES",
    "DISK_ROWS_MAX",
    "DISK_SECONDS_MAX",
    "DISK_SECONDS_MIN",
    "JOBS_MAX",
    "LEAVE_SECONDS",
    "DRAIN_SECONDS",
    "LOG_SETTLE_SECONDS",
    "LOOK_SECONDS",
    "LOST_ON_THE_WAY_SECONDS",
    "LOST_WITH_STUCK_SECONDS",
    "NODES_MAX",
    "PEER_CLOSE_SECONDS",
    "PROBE_SECONDS",
    "QUIET_SECONDS",
    "REPAIR_SECONDS",
    "REPORTED_FAILURES_MAX",
    "SETTLE_SECONDS",
    "START_SECONDS",
    "STEPS_MAX",
    "TRACE_VALUE_LENGTH_MAX",
    "UNACKNOWLEDGED_MAX",
]

CLIENTS_MAX = 1_000
"""The checkers compare every event with every subscription; beyond this a step takes seconds."""

NODES_MAX = 1_000
"""Brokers of one world: at a few hundred a virtual second takes a real one."""

STEPS_MAX = 100_000_000
"""A run that never ends is not a test."""

CLOSE_SECONDS_MAX = 2.0
"""How long the last messages on a closing connection may be under way before it is cut; as in the daemon."""

DIAL_SECONDS_MAX = 2.0
"""How long a broker tries to connect to an address that does not answer; as in the daemon."""

LOST_WITH_STUCK_SECONDS = 20.0
"""When a broker dies while another is out of reach, what waited for that one since then may be lost."""

LOST_ON_THE_WAY_SECONDS = 0.5
"""What was accepted anywhere so long before a broker's death may have been on its way through it: several hops, with
reads that bring only a part of what was sent."""

START_SECONDS = 8.0
"""By then the brokers that started are one cluster."""

SETTLE_SECONDS = 45.0
"""From the end of all faults to an answer for everything: detection, repair, and one round of refreshing."""

REPAIR_SECONDS = 15.0
"""How long after its return a broker still counts as in trouble: it takes back its keys and its neighbours' copies."""

APART_SECONDS = 20.0
"""How long after a partition nothing is promised: two rings find each other, and every home puts its items again."""

CALM_SECONDS = 3.0
"""How long the ring has to be sound again before it is judged again: what was said before is over by then."""

LOOK_SECONDS = 0.1
"""How often the checkers of brokers' state look."""

PROBE_SECONDS = 20.0
"""How long the last events may take to everybody who wants them."""

LEAVE_SECONDS = 1.0
"""From the order to stop to the end of the process: only the last messages go out."""

PEER_CLOSE_SECONDS = 0.2
"""The same between brokers, as in the daemon: a dead broker never reads them."""

QUIET_SECONDS = 30.0
"""Virtual seconds from the end of all faults to the last answer: three times the slowest reconnect."""

UNACKNOWLEDGED_MAX = 8
"""Batches a simulated client has under way: enough to lose several in one cut, few enough to hear about them soon."""

TRACE_VALUE_LENGTH_MAX = 200
"""Characters of one value in a trace line; longer ones are cut, their length is kept."""

REPORTED_FAILURES_MAX = 100
"""Failing seeds that a campaign prints; the rest is counted."""

JOBS_MAX = 64
"""Processes of one campaign: each takes some 80 MB."""

DISK_SECONDS_MIN = 0.0005
"""The fastest a simulated disk synchronises: a good one."""

DISK_SECONDS_MAX = 0.01
"""The slowest, while it is well: a spinning one."""

DISK_ROWS_MAX = 32
"""Rows of one transaction: few, so that a short run has many of them and crashes fall between them."""

DISK_IDS_BYTES = 4096
"""Rows of one answer to FindIds, so that there are answers that do not hold all."""

CALM_AFTER_HARM_SECONDS = 8.0
"""After a broker came back with a harmed disk nothing else goes wrong for so long: it hears what copies know, and is
given anew those that it had."""

LOG_SETTLE_SECONDS = 40.0
"""From the end of all faults to an answer for every batch: links, copies that catch up, and several tries."""

DRAIN_SECONDS = 7.0
"""Without a hand-out for so long nothing waits for a client that is there: twice the longest time for an
acknowledgement, and a pause."""
