"""Every bound and every span of time of the keyed store, each with its reason.

`KvLimits` is handed in with `KvConfig`. The constants are what brokers rely on of each other, the wire's bounds and
the spans that follow from these.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "BROKERS_MAX",
    "DEFAULT_LIMITS",
    "FETCH_AGAIN_SECONDS",
    "FETCH_ANSWER_SECONDS",
    "FORMER_SECONDS",
    "HANDOVER_SECONDS",
    "ITEM_BYTES_MAX",
    "LEASE_SECONDS",
    "LIVES_MAX",
    "KvLimits",
    "NAME_PARTS_MAX",
    "NAME_TEXT_LENGTH_MAX",
    "NUMBERS_REMEMBERED_MAX",
    "PAGE_BYTES_MAX",
    "PAGE_ITEMS_MAX",
    "PROMOTE_SECONDS",
    "PROMOTE_WAIT_SECONDS",
    "PUT_GAPS_MAX",
    "PUT_HOPS_MAX",
    "PUT_RESEND_SECONDS_MAX",
    "PUT_RESEND_SECONDS_MIN",
    "REFUSED_SECONDS",
    "RETAIN_ITEMS_PER_TURN",
    "SETTLE_SECONDS",
    "SETTLE_SECONDS_MAX",
    "SIBLINGS_MAX",
    "SILENT_SECONDS",
    "TICKETS_MAX",
]

LEASE_SECONDS = 2.5
"""A broker that answers for keys heard within so long that it may. A little more than a link takes to be found dead
(two seconds of silence), so that a crash is not seen as a gap by those who hold replicas; and every write in keys that
have just changed hands waits as long."""

PUT_RESEND_SECONDS_MIN = 0.1
"""A put that made no progress for so long is sent again where it is not covered: many round trips of a network nearby.
An owner that was not ready, as when a cluster starts, may be so by then."""

PUT_RESEND_SECONDS_MAX = 1.0
"""Each pause is twice the one before, and no longer than this: many round trips on any network."""

PUT_HOPS_MAX = 8
"""How often a put is passed on by brokers that do not own its key. While a ring changes hands two or three happen."""

PUT_GAPS_MAX = 8
"""Uncovered stretches of one segment that are walked again at a time; the rest has its turn a second later."""

TICKETS_MAX = 2**32
"""Puts of one life: a thousand a second for fifty days. Their numbers and those of the lives share 64 bits."""

LIVES_MAX = 2**32
"""A first life is numbered by the second it began in, which fits until the year 2106, and each next one is one more."""

FETCH_AGAIN_SECONDS = 0.3
"""Who answered Busy is asked again after so long: a third of what the busy one's own asking may take."""

FETCH_ANSWER_SECONDS = 1.0
"""No page for so long: the question is asked again."""

SETTLE_SECONDS = 3.0
"""No broker has, or can give, a whole copy for so long: then what is here is all there is. Longer than LEASE_SECONDS,
so that a broker that might still answer for the keys has stopped."""

SILENT_SECONDS = 2.0
"""A broker that was heard within so long is there, and its next answer will be like its last: several of our questions.
"""

SETTLE_SECONDS_MAX = 60.0
"""Settling waits longer while copies are on their way, but never longer than this: 2 GiB at 40 MiB a second."""

PROMOTE_SECONDS = 5.0
"""A replica counts as whole so long after its grant ended, unless its owner lives and goes on without us: a grant may
outlive its owner's crash by LEASE_SECONDS, finding the crash takes two seconds, and the ring's view some more."""

PROMOTE_WAIT_SECONDS = 1.0
"""A broker with a whole replica asks one sibling whether it knows more, but waits for it no longer than this."""

FORMER_SECONDS = 10.0
"""Keys that went to a newcomer: our copy counts as whole so long, for it may come for them late, or die again; once it
came, it does so for that one alone."""

HANDOVER_SECONDS = 5.0
"""Keys handed to a newcomer are taken back when neither the view nor a link shows it so long afterwards."""

REFUSED_SECONDS = 1.0
"""A sibling that refused copies, because it believes the keys to be its own, is tried again after so long."""

RETAIN_ITEMS_PER_TURN = 5_000
"""Orphaned items that are brought to their owners at a time: a fraction of a second's work."""

BROKERS_MAX = 64
"""Brokers that one answer to a broadcast names: more than any broker copies for, or is copied by, for long."""

ITEM_BYTES_MAX = 544 * 1024
"""A condition has at most 516 KiB, in IN lists nearly all of it, and a schema 256 attributes."""

NAME_PARTS_MAX = 16
"""Parts of a name: kind, stream, home and numbers are six."""

NAME_TEXT_LENGTH_MAX = 4096
"""Characters of one part: a topic's first level is at most 1 KiB."""

PAGE_ITEMS_MAX = 500
"""Items of one message: a tenth of a second's work even when each is indexed."""

PAGE_BYTES_MAX = 384 * 1024
"""Bytes of the items of one message, as estimated; with the last one it stays below 1 MiB."""

NUMBERS_REMEMBERED_MAX = 16
"""Questions whose time of asking is remembered: four a lease, and some that overtook each other."""

SIBLINGS_MAX = 16
"""Twice the most that tests replicate to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KvLimits:
    """Bounds one store's memory, and the spans of time that are its own affair."""

    page_items: int = PAGE_ITEMS_MAX
    """Items of one message that this store sends; others take PAGE_ITEMS_MAX."""
    put_seconds: float = 30.0
    """After so long a put is given up: a crash, its repair and a settling fit in three times."""
    put_items_waiting: int = 200_000
    """Items of puts that are not placed yet: what a broker refreshes after a long partition, and about 100 MiB."""
    writes_pending: int = 10_000
    """Puts an owner has stored and not confirmed. Beyond it they are dropped, and their origins send them again."""
    retain_seconds: float = 10.0
    """Orphaned items are kept so long before they are brought to their owner and removed:
    four times a lease, so that in a join or a leave nothing is sent away only to come back."""
    check_seconds: float = 10.0
    """Owner and sibling compare count and digest so often; it costs one message of 40 bytes each."""
    tombstone_seconds: float = 600.0
    """A removal is remembered so long. Who was away for longer starts from a fresh copy anyway."""
    tombstones: int = 200_000
    """Beyond it the oldest go first: 300 removals a second are remembered for the full ten minutes."""
    items: int = 2_000_000
    """As many as subscriptions of a broker; at about 1 KiB each they fill 2 GiB."""
    pages_in_flight: int = 4
    """Pages not yet acknowledged: the pipe is full, and a write behind them waits for at most 2 MiB."""
    offer_pages: int = 64
    """Pages that a sibling offers back after one stream. What is more shows at the next comparison."""
    broadcast_seconds: float = 0.5
    """How long brokers have to answer a broadcast before its items set out along the ring: hundreds of link times."""
    broadcasts: int = 1_024
    """Broadcasts under way. Beyond them items set out along the ring, which has a bound of its own."""
    broadcast_names: int = 4_096
    """Names remembered as not copied to siblings, who were told by the origin: first uses of a minute."""
    replicas: int = 64
    """Owners we hold replicas for. As many as siblings when the ring is quiet, more for seconds while it changes."""


DEFAULT_LIMITS = KvLimits()
