"""Every bound of the core, each with its reason."""

from __future__ import annotations

__all__ = [
    "ANSWER_LENGTH_MAX",
    "ANSWER_ROWS_MAX",
    "DRAIN_BYTES_PER_STEP",
    "ERROR_TEXT_LENGTH_MAX",
    "GATHERED_BYTES_MAX",
    "GATHERED_EVENTS_MAX",
    "KNOWN_TOPICS_BYTES_MAX",
    "OUTBOX_BYTES_DEFAULT",
    "OUTBOX_BYTES_TOTAL_DEFAULT",
    "PLANS_MAX",
    "PUBLISHED_STREAMS_MAX",
    "REMEMBERED_TEXT_LENGTH_MAX",
    "ROUTE_NUMBERS_MAX",
    "SCHEMAS_MAX",
    "SCHEMA_ATTRIBUTES_MAX",
    "SESSIONS_MAX",
    "SESSION_GRACE_SECONDS",
    "STREAMS_MAX",
    "SUBSCRIPTIONS_MAX",
    "SUBSCRIPTIONS_PER_SESSION_MAX",
    "TOPIC_OVERHEAD_BYTES",
    "WITHDRAWN_MAX",
]

SESSIONS_MAX = 20_000
"""Client sessions, connected or in grace. Twice the ten thousand sockets that one process is commonly given."""

SESSION_GRACE_SECONDS = 10.0
"""How long a session outlives its connection: enough for a client's reconnect, short enough to forget the dead."""

SUBSCRIPTIONS_PER_SESSION_MAX = 16_384
"""A DELIVER names the subscriptions of an event in one list, and that is how long a list may be on the wire."""

REMEMBERED_TEXT_LENGTH_MAX = 200
"""Of a refusal's text that is kept for a client that may not have heard it: a window of them stays below 100 KiB."""

ROUTE_NUMBERS_MAX = 16_384
"""Subscriptions named in one DELIVER, all its runs together. At nine bytes each they leave room beside the records of
the largest PUBLISH; a batch that needs more goes out in several portions."""

ERROR_TEXT_LENGTH_MAX = 8_000
"""Characters of a refusal. An error text quotes what was wrong; a client's text of 64 KiB, with every character
escaped, would not fit the frame that an ERROR may have."""

ANSWER_LENGTH_MAX = 512 * 1024
"""Characters of the rows of one ANSWER as Python writes them: at four bytes each half of a frame."""

SUBSCRIPTIONS_MAX = 2_000_000
"""All of a broker; at about 1 KiB each they fill 2 GiB."""

PUBLISHED_STREAMS_MAX = 1_000
"""Streams of one session whose publishers hear of interest; the oldest is forgotten, and told again when it comes."""

STREAMS_MAX = 10_000
"""Streams come into being by use, so a publisher of random first levels must meet an end."""

GATHERED_BYTES_MAX = 512 * 1024
"""Records of one read that go out together: two full reads of a socket, and an eighth of what a frame may be."""

GATHERED_EVENTS_MAX = 2048
"""Events of one read that go out together. More gains nothing, and it is half of what a batch may have."""

KNOWN_TOPICS_BYTES_MAX = 128 * 1024 * 1024
"""What all streams together remember topics with (checked ones, their lanes, what the index made of them). A hundred
thousand topics of usual length fit ten times; beyond it all are forgotten at once and checked anew."""

TOPIC_OVERHEAD_BYTES = 600
"""What one remembered topic costs beside its letters, in all three places together: measured about that."""

PLANS_MAX = 16_384
"""Remembered answers to `which sessions are these subscriptions of`; one is kept per set of matches, so traffic that
always matches another set must not fill the memory."""

OUTBOX_BYTES_DEFAULT = 64 * 1024 * 1024
"""What waits for one slow subscriber before the oldest is dropped: seconds of an ordinary stream."""

OUTBOX_BYTES_TOTAL_DEFAULT = 512 * 1024 * 1024
"""What waits for all slow subscribers together; above it whoever queues drops of its own first."""

DRAIN_BYTES_PER_STEP = 1024 * 1024
"""Of an outbox that may flow again, so much goes out before other inputs have their turn."""

SCHEMAS_MAX = 10_000
"""One a stream, so as many as streams."""

SCHEMA_ATTRIBUTES_MAX = 256
"""As many as an event may have."""

WITHDRAWN_MAX = 16_384
"""Subscriptions that ended while something waited for their session: all it may have at a time. One that ends more
without reading loses what waits, as the slow subscriber that it is."""

ANSWER_ROWS_MAX = 1_000
"""Rows of one ANSWER; `subs` asks on with `after` for more."""
