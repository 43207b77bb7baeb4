"""Safeguards: rules that a promise rests on, each with a name by which a simulation can switch it off.

A broker has them all, and no setting takes one away. Code asks `NodeConfig.safeguards` at the place of the rule; a
campaign without one of them must break a promise, else the rule guards nothing, or a checker sleeps.
"""

from __future__ import annotations

from enum import StrEnum

__all__ = ["SAFEGUARDS", "Safeguard"]


class Safeguard(StrEnum):
    """What is wrong without it is said below each."""

    # --- clients and their sessions ---

    DEDUPE = "dedupe"
    """A batch that is sent again counts again."""
    SECOND_ANSWER = "second-answer"
    """A batch that is sent again is recognised, and not answered."""
    DERIVE = "derive"
    """A match column that the publisher did not send counts as absent."""
    GRACE = "grace"
    """A session ends with its connection."""
    WITHDRAW = "withdraw"
    """What waits for a subscription is sent even after its end."""
    CREDIT = "credit"
    """Deliveries flow, whatever the subscriber allowed."""
    PAUSE = "pause"
    """What comes while a connection takes nothing is thrown away, and nobody counts it."""
    ORDER = "order"
    """Of what waits, the newest goes first."""
    BOUND = "bound"
    """Outboxes grow without end."""
    OUTBOX = "outbox"
    """What waits is lost with the connection, and nobody counts it."""
    GAP = "gap"
    """What was dropped is not announced."""
    SECOND_GAP = "second-gap"
    """A GAP is said once, whether it came in or not."""
    IN_FLIGHT = "in-flight"
    """What was on a connection that broke counts as received."""

    # --- the ring ---

    RING_BUSY = "ring-busy"
    """A member answers questions in the middle of a step, while its pointers are undefined."""
    RING_NOTIFY = "ring-notify"
    """When a new successor proves dead, the old one is not notified, and keeps its dead predecessor."""
    RING_ONE_SUCCESSOR = "ring-one-successor"
    """A newcomer learns one successor instead of a list, and makes the rest up."""
    RING_PADDING = "ring-padding"
    """A list that lost its head stays short until the next stabilization: no promise breaks by it alone."""
    RING_REPEAT_LAST = "ring-repeat-last"
    """A list that lost its head is filled up with its last entry again, not with an artificial member."""
    RING_ROUND = "ring-round"
    """A list that reaches round to its owner counts as a list, with fewer members than it needs."""
    RING_UNCHECKED = "ring-unchecked"
    """A new successor is adopted on hearsay, before it has answered."""

    # --- the store of subscriptions ---

    LEASES = "leases"
    """A broker answers for keys as long as it believes that they are its own, or that it holds a copy of them."""
    LEASE_FROM_ASKING = "lease-from-asking"
    """A lease counts from the moment when the answer came, not from that of asking."""
    LAPSE = "lapse"
    """A broker that was without a lease for a while goes on where it was."""
    GRANTS_AWAITED = "grants-awaited"
    """A write is confirmed while a broker that is a sibling no more may still answer without it."""
    WAIT_AFTER_GAINING = "wait-after-gaining"
    """A broker that gained keys confirms writes in them at once, while another may still answer for them."""
    HANDOVER_AT_FETCH = "handover-at-fetch"
    """An owner goes on confirming writes after it has given its keys away."""
    PROMOTION_WITH_COPY = "promotion-with-copy"
    """A broker without a copy of the keys that it gains takes them over all the same."""
    TOP_UP = "top-up"
    """A new sibling is not given what was written before it was one."""
    TICKETS_OF_A_LIFE = "tickets-of-a-life"
    """Two lives of a broker give their writes the same numbers."""
    HANDED_OFF_ONCE = "handed-off-once"
    """What was handed on counts as whole for as long as it is remembered."""
    HANDED_OFF_FOR_CLAIMANT = "handed-off-for-claimant"
    """What was handed on counts as whole for a lease, whichever broker came for it."""
    COPY_FOR_CLAIMANT = "copy-for-claimant"
    """A copy that a new owner came for counts as whole for a lease, for any broker."""
    LEFT_OUT_IS_TOLD = "left-out-is-told"
    """A broker that is a sibling no more is not told so, and believes its copy whole."""
    SLEEP_NOTICED = "sleep-noticed"
    """Who stood still takes keys over with what it held before."""
    COLD_START_AGREED = "cold-start-agreed"
    """A broker that has just started takes its keys at once, though others have copies of them, or may answer."""
    BROADCAST_COVERED = "broadcast-covered"
    """A broadcast is confirmed although some keys of the ring have no owner that answered for them."""
    BROADCAST_READY = "broadcast-ready"
    """A broadcast is confirmed by an owner's answer although another broker may still answer for its keys."""
    COPIES_BEFORE_CONFIRM = "copies-before-confirm"
    """A write is confirmed before the siblings have it."""

    # --- placing subscriptions, and finding them ---

    PLACED_BEFORE_SUBACK = "placed-before-suback"
    """SUBACK before the subscription has come to rest."""
    USE_KNOWN_BEFORE_SUBACK = "use-known-before-suback"
    """SUBACK before every broker knows what is in use."""
    EDGES_BEFORE_SUBACK = "edges-before-suback"
    """SUBACK before events on the cube find the way to where the subscription rests."""
    WITHDRAWN_AT_ONCE = "withdrawn-at-once"
    """An ended subscription stays in its home's own index until its removal has gone round."""
    CANDIDATES_CHECKED = "candidates-checked"
    """A candidate is taken for a match; wants a stream whose placement is counting."""
    LISTS_BY_LEASE = "lists-by-lease"
    """A broker that is asked for a list says what it has, whether it answers for the key or not; wants counting."""
    LOCAL_FILTER = "local-filter"
    """A broker that gets an event matches it with all that rests with it, whatever it was asked for."""
    WAIT_WITHOUT_KEYS = "wait-without-keys"
    """Who answers for no key takes its idea of what is in use for the truth."""
    LOSSES_TOLD = "losses-told"
    """What was lost on the way is not told to any broker."""

    # --- subscriptions that are amended ---

    AMENDED_DECIDED_ONCE = "amended-decided-once"
    """Each version of an amended subscription that brings an event decides anew whether the client gets it."""
    AMENDED_FORMER_RESTS = "amended-former-rests"
    """The former version of an amended subscription is withdrawn at the point, whatever is on its way to it."""
    AMENDED_ANSWER_BEHIND = "amended-answer-behind"
    """The answer to an amendment goes before what waits for the client by the old words."""

    # --- conditions with DELTA ---

    FORGOTTEN_AFTER_DROP = "forgotten-after-drop"
    """What a slow client was not sent, because its outbox was full, counts as what it has."""
    FORGOTTEN_AFTER_LOSS = "forgotten-after-loss"
    """What was lost with a client's connection counts as what it has."""
    OWN_REFERENCE = "own-reference"
    """A fresh subscription counts as having what others with the same condition were sent."""
    DELTA_AT_ONE_KEY = "delta-at-one-key"
    """A subscription with DELTA may rest on an arc, at several brokers, from which events come in any order."""

    # --- the log ---

    SYNC_BEFORE_ACK = "sync-before-ack"
    """A batch is acknowledged before any disk has it."""
    COPIES_BEFORE_ACK = "copies-before-ack"
    """Our own disk is enough."""
    DELIVER_AT_HIGH_WATERMARK = "deliver-at-high-watermark"
    """Events are delivered when our own disk has them."""
    EPOCH_CHECK = "epoch-check"
    """A broker that comes back asks no other, and does not mind that a copy is longer than its log."""
    DEDUPE_STORED = "dedupe-stored"
    """What comes again is new."""
    ROLLBACK = "rollback"
    """What a full disk did not take counts as published."""
    SAFE_BEFORE_OPEN = "safe-before-open"
    """Who opens a producer is told of batches that are on their way."""
    RECONCILE = "reconcile"
    """A broker that meets others again asks none about rows that are on its disk alone."""
    FENCES = "fences"
    """What comes here as a copy is taken, whatever was said to the broker that opened its producer."""
    OTHER_FOLLOWER = "other-follower"
    """A follower whose disk is full is offered the same rows again, and no other broker is asked."""

    # --- durable subscriptions ---

    CURSOR_ON_DISKS = "cursor-on-disks"
    """The state of a durable subscription is in memory alone."""
    DURABLE_FENCE = "durable-fence"
    """A broker keeps what an older coordinator of a durable subscription wants it to keep."""
    CURRENT_ACKS = "current-acks"
    """An acknowledgement of an old delivery is confirmed, and the event comes again all the same."""
    AMEND_AT_POINT = "amend-at-point"
    """A new condition that is to hold from now on holds for all that waits."""

    # --- rights ---

    RIGHTS_AT_READING = "rights-at-reading"
    """What was allowed when it was matched is handed out, and what is in a log is read, whatever the rights of now."""

    __hash__ = str.__hash__  # in C: that of Enum is not


SAFEGUARDS = frozenset(Safeguard)
"""What every broker has."""
