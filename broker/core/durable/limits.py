"""Every bound of durable subscriptions, each with its reason.

`DurableLimits` is handed in. The constants are what brokers rely on of each other, and what is checked of options.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "AMEND_SECONDS",
    "ASKED_BYTES_MAX",
    "ATTACH_PAUSE_SECONDS",
    "ATTACH_SECONDS",
    "BODIES_GAP_BYTES",
    "BODIES_OVERHEAD_BYTES",
    "BODIES_READ_BYTES",
    "BODIES_RECENT_BYTES",
    "COLLECT_PAGE_BYTES",
    "COLLECT_PAGE_STATES",
    "CONDITION_LENGTH_MAX",
    "COLLECT_SECONDS",
    "DURABLES_MAX",
    "FETCH_SECONDS",
    "FORMERS_BYTES",
    "FORMERS_MAX",
    "HANDED_BYTES",
    "HANDED_EVENTS",
    "HANDED_JOIN_BYTES",
    "HANDED_JOIN_MICROSECONDS",
    "HANDED_RUNS",
    "HANDED_SECONDS",
    "HANDING_PAUSE_SECONDS",
    "HANDING_PAUSE_SECONDS_MAX",
    "SURVEY_SECONDS",
    "TAKEN_AT_LEAST",
    "TAKEN_AT_ONCE",
    "TAKING_SECONDS",
    "VIEW_SECONDS",
    "WRITE_SECONDS",
    "ACK_WAIT_MAX",
    "ACK_WAIT_MIN",
    "BACKOFF_STEPS_MAX",
    "DEAD_KEPT_MAX",
    "DEFAULT_LIMITS",
    "DELAY_SECONDS_MAX",
    "DurableLimits",
    "MAX_DELIVER_MAX",
    "MAX_UNACKED_MAX",
    "MOVING_SENT_MAX",
    "NAME_LENGTH_MAX",
    "OWED_EVENTS_MAX",
    "OWED_RUNS_MAX",
    "PLACES_MAX",
    "REASON_LENGTH_MAX",
    "SECTIONS_MAX",
    "STATE_BYTES_MAX",
]

STATE_BYTES_MAX = 768 * 1024
"""A state with everything in it: it goes to another disk in one CONTROL frame of 1 MiB."""

NAME_LENGTH_MAX = 256
"""Characters of the name of a durable subscription, as of a producer's."""

CONDITION_LENGTH_MAX = 64 * 1024
"""Characters of a condition; with those of former ones (twice as much) they are less than half of a state."""

PLACES_MAX = 4096
"""Logs of one stream: some dozens of brokers, each with some epochs that retention has not taken yet."""

SECTIONS_MAX = 64
"""Changes of a condition whose events are still owed: each stays until all before its ends is settled."""

FORMERS_MAX = 8
"""Former conditions that are looked for at a change `from ack`: logs are read once for each. What was handed out by
older ones, and settled, may come again then, flagged."""

FORMERS_BYTES = 32 * 1024
"""Of all of them together: they are written with each cursor, so there is room for a few long conditions or many logs.
The oldest that do not fit are forgotten."""

ASKED_BYTES_MAX = 12 * 1024
"""Of all that XPATH asks for in a condition and in former ones: three conditions full of it. As XPath 1.0, with its
items, it is some fifteen times as long, and SUBACK carries at most 256 KiB."""

ACK_WAIT_MIN, ACK_WAIT_MAX = 0.1, 86_400.0
"""Seconds for an acknowledgement: below the former an event would come again before a busy client could answer; above
the latter nobody waits any more."""

DELAY_SECONDS_MAX = 86_400.0
"""The longest delay of a negative acknowledgement and of a step of the backoff, for the same reason."""

MAX_DELIVER_MAX = 1000
"""Deliveries before an event is given up; more is no limit at all, which is what 0 says."""

BACKOFF_STEPS_MAX = 16
"""Steps of a backoff: doubling from a second they reach nine hours; the last one repeats."""

MAX_UNACKED_MAX = 65_536
"""Events that a client may have unacknowledged: as many as the default of credit."""

DEAD_KEPT_MAX = 1000
"""Events that were given up and are remembered: of more the oldest are in the dead-letter topic alone."""

REASON_LENGTH_MAX = 120
"""Characters of the reason kept with each of them: all of them together stay below a third of a state."""

OWED_RUNS_MAX = 8192
"""Runs of positions that are handed out or to be handed out again, and so are written with each state: with their
counts 256 KiB, a third of it. Nothing new is handed out above that."""

OWED_EVENTS_MAX = 32_768
"""Events that are handed out or to be handed out again, of all clients: nothing new is handed out above that. Clients
that acknowledge every other one leave half as many runs, which a state still has room for; or each has a count of its
own."""

VIEW_SECONDS = 0.3
"""How long links and neighbours have been the same before a broker asks for the states in its arc: brokers that start
together find each other within that."""

COLLECT_SECONDS = 2.0
"""After so long a broker that was asked for states and did not answer is asked again."""

COLLECT_PAGE_BYTES = 512 * 1024
"""States in one answer: half of what a CONTROL may have."""

COLLECT_PAGE_STATES = 4096
"""And so many, however small they are: what a reader takes."""

WRITE_SECONDS = 1.0
"""After so long without an answer a state is written to one more broker: longer than a busy disk takes."""

ATTACH_SECONDS = 8.0
"""How long a client waits for its coordinator: longer than brokers take to find one dead and to take over."""

ATTACH_PAUSE_SECONDS = 0.1
"""Between two tries to bring a client to its coordinator."""

SURVEY_SECONDS = 2.0
"""How long brokers are waited for that were asked where their logs end; the logs of others begin by time then."""

TAKEN_AT_ONCE = 200
"""Subscriptions that are taken over, or fed anew, before other inputs have their turn: some hundredths of a second."""

TAKEN_AT_LEAST = 3
"""So many are, however many states of others are on their way to disks."""

TAKING_SECONDS = 0.25
"""After so long more are taken over although so many states are still on their way to disks."""

AMEND_SECONDS = 20.0
"""How long a new condition waits for logs to be read: what is not acknowledged may be a few million events."""

DURABLES_MAX = 100_000
"""Durable subscriptions that one broker coordinates: some 4 KiB each while they are idle."""

BODIES_RECENT_BYTES = 16 * 1024 * 1024
"""Batches kept in memory for who is handed them at once: some tenths of a second of a fast publisher."""

BODIES_READ_BYTES = 512 * 1024
"""Bytes of rows read at a time: one wait for the disk for a thousand events of usual size."""

BODIES_OVERHEAD_BYTES = 1000
"""What a batch in memory costs beside its records: the objects around it."""

BODIES_GAP_BYTES = 64 * 1024
"""Bytes of rows between two events that are wanted, and read with them: as long as asking the disk again takes."""

FETCH_SECONDS = 2.0
"""After so long without an answer another broker is asked for events."""

HANDED_BYTES = 16 * 1024 * 1024
"""Bytes sent to a client for one durable subscription and not settled; at least one message."""

HANDED_EVENTS = 1024
"""Events looked for at a time, and sent in one message at most."""

HANDED_SECONDS = 60.0
"""After so long what was sent does not count as on its way any more: twice the usual wait for an acknowledgement, after
which it is handed out again under other numbers."""

HANDED_RUNS = MAX_UNACKED_MAX
"""Runs of delivery numbers that a client was sent and says nothing of: when there are more the oldest are forgotten. A
client has no more events than that at a time, so these were handed out again under other numbers."""

MOVING_SENT_MAX = MAX_UNACKED_MAX
"""Events that a client with DELTA was sent and has not settled: it has no more at a time, so the oldest beyond that
were settled under other numbers."""

HANDED_JOIN_BYTES = 128 * 1024
"""Events of several rows in one message, as long as they are small: a message costs as much as ten of them."""

HANDED_JOIN_MICROSECONDS = 10_000
"""They have one time then, that of the first; those of one turn of the loop have one as well when they are live."""

HANDING_PAUSE_SECONDS, HANDING_PAUSE_SECONDS_MAX = 0.25, 2.0
"""After so long events that no broker had are looked for again, each time after twice as long, and no longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DurableLimits:
    """Bounds what one durable subscription keeps in its coordinator's memory."""

    waiting_runs: int = 1_000_000
    """Runs of positions that wait: 16 MB. Of more the logs are read again when half of them is handed out."""
    waiting_keys: int = 4_000_000
    """Hashes of keys of positions that wait, where events of one key stay together: 16 MB as well."""
    owed_runs: int = OWED_RUNS_MAX
    """Runs handed out or to be handed out again, above which nothing new is handed out."""
    owed_events: int = OWED_EVENTS_MAX
    """Events, likewise."""
    held: int = 1024
    """Events passed over because the client of their key has no room: behind so many the others wait as well."""
    hand_out_events: int = 4096
    """Events of one hand-out: a batch has no more, nor has the portion in which they reach the client."""
    handed_ahead: int = 4096
    """Events of a log that are marked as handed out before they are: a write of the state for half of them, and about
    as many may be flagged as redelivered after a takeover although they never went out."""
    clients: int = 1024
    """Clients of one durable subscription: more workers share several of them."""
    dead: int = DEAD_KEPT_MAX
    """Events that were given up and are remembered."""
    keys_remembered: int = 65_536
    """Keys whose client is remembered until clients come or go: computing it anew costs a microsecond a client."""


DEFAULT_LIMITS = DurableLimits()
