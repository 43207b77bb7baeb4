"""Every bound of the simulator, each with its reason."""

from __future__ import annotations

__all__ = [
    "CLIENTS_MAX",
    "CLOSE_SECONDS_MAX",
    "QUIET_SECONDS",
    "REPORTED_FAILURES_MAX",
    "STEPS_MAX",
    "TRACE_VALUE_LENGTH_MAX",
    "UNACKNOWLEDGED_MAX",
]

CLIENTS_MAX = 1_000
"""The checkers compare every event with every subscription; beyond this a step takes seconds."""

STEPS_MAX = 100_000_000
"""A run that never ends is not a test."""

CLOSE_SECONDS_MAX = 2.0
"""How long the last words on a closing connection may be under way before it is torn down; as in the daemon."""

QUIET_SECONDS = 30.0
"""Virtual seconds from the end of all faults to the last answer: three times the slowest reconnect."""

UNACKNOWLEDGED_MAX = 8
"""Batches a simulated client has under way: enough to lose several in one cut, few enough to hear about them soon."""

TRACE_VALUE_LENGTH_MAX = 200
"""Characters of one value in a trace line; longer ones are cut, their length is kept."""

REPORTED_FAILURES_MAX = 100
"""Failing seeds that a campaign prints; the rest is counted."""
