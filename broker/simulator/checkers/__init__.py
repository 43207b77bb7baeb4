"""Checkers of promises: one class for each, during a run and at its end; the first that fails ends the run.

    checker    Checker: hooks for all that happens, which do nothing
    clients    what clients of one broker see, CHECKERS: NothingUnexpected, OnlyMatching, OnlyInForce,
               NoDuplicates, PublisherOrder, NothingLost, PublishedOnce, CreditKept, BoundedOutboxes, AllAnswered,
               DeservedEndings, SoundNode; and clients of a cluster, CLUSTER_CHECKERS: OnlyAsked,
               OrderOfOneAnchor, AcceptedOnce, DeliveredOrAnnounced, Answered
    delta      subscriptions with DELTA: BoundKept
    state      what only an oracle sees of a cluster, STATE_CHECKERS (StateChecker): FreshScopes, OneOwner, Replicated,
               SameSummaries, EdgesLaid, NothingWaits; scope_of is what a broker may answer for
    ring       the ring's invariant, RING_CHECKERS and STORM_CHECKERS (RingChecker): InvariantHolds, Consequences,
               OneQuery, ServesWhenAdopted, NobodyStartsOver; RingKept in a whole cluster
    log        what disks keep (LogChecker): OnEnoughDisks, OnlyOnce, SeenWhenSafe, PositionsStand, ComesBackWhole,
               StoredElsewhere; Disks is what is on them, names_of the events in a row
    durable    what clients of durable subscriptions are handed (DurableChecker): NothingOwed, Wanted, InLogOrder,
               Flagged, CursorStands

A checker compares with the history and the world, never with the broker's own idea of what is right.
"""

from .checker import Checker
from .clients import (
    CHECKERS,
    CLUSTER_CHECKERS,
    AcceptedOnce,
    AllAnswered,
    Answered,
    BoundedOutboxes,
    CreditKept,
    DeliveredOrAnnounced,
    DeservedEndings,
    NoDuplicates,
    NothingLost,
    NothingUnexpected,
    OnlyAsked,
    OnlyInForce,
    OnlyMatching,
    OrderOfOneAnchor,
    PublishedOnce,
    PublisherOrder,
    SoundNode,
)
from .delta import BoundKept
from .durable import CursorStands, DurableChecker, Flagged, InLogOrder, NothingOwed, Wanted
from .log import (
    ComesBackWhole,
    Disks,
    LogChecker,
    OnEnoughDisks,
    OnlyOnce,
    PositionsStand,
    SeenWhenSafe,
    StoredElsewhere,
    names_of,
)
from .ring import (
    RING_CHECKERS,
    STORM_CHECKERS,
    Consequences,
    InvariantHolds,
    NobodyStartsOver,
    OneQuery,
    RingChecker,
    RingKept,
    ServesWhenAdopted,
)
from .state import (
    STATE_CHECKERS,
    EdgesLaid,
    FreshScopes,
    NothingWaits,
    OneOwner,
    Replicated,
    SameSummaries,
    StateChecker,
    scope_of,
)

__all__ = [
    "CHECKERS",
    "CLUSTER_CHECKERS",
    "RING_CHECKERS",
    "STATE_CHECKERS",
    "STORM_CHECKERS",
    "AcceptedOnce",
    "AllAnswered",
    "Answered",
    "BoundKept",
    "BoundedOutboxes",
    "Checker",
    "ComesBackWhole",
    "Consequences",
    "CreditKept",
    "CursorStands",
    "DeliveredOrAnnounced",
    "DeservedEndings",
    "Disks",
    "DurableChecker",
    "Flagged",
    "EdgesLaid",
    "FreshScopes",
    "InLogOrder",
    "InvariantHolds",
    "LogChecker",
    "NoDuplicates",
    "NobodyStartsOver",
    "NothingLost",
    "NothingOwed",
    "NothingUnexpected",
    "NothingWaits",
    "OnEnoughDisks",
    "OneOwner",
    "OneQuery",
    "OnlyAsked",
    "OnlyInForce",
    "OnlyMatching",
    "OnlyOnce",
    "OrderOfOneAnchor",
    "PositionsStand",
    "PublishedOnce",
    "PublisherOrder",
    "Replicated",
    "RingChecker",
    "RingKept",
    "SameSummaries",
    "SeenWhenSafe",
    "ServesWhenAdopted",
    "SoundNode",
    "StateChecker",
    "StoredElsewhere",
    "Wanted",
    "names_of",
    "scope_of",
]
