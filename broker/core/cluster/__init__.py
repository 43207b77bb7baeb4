"""Joins membership, links and the store of keys: who answers for a key, and how a message gets there.

**Contract.** `Cluster` is what the rooms above ask. `place_of(key)` is `HERE` (this broker answers for the key), the
identifier of the broker to hand the row to, or `WAIT` (no broker can answer just now). Call `scope(now)` before it:
that fixes which keys this broker may answer for at this moment, and places are valid until `epoch` changes. `linked`,
`broadcast` and `peers.tell` reach other brokers; `take_controls` says who handles which kind of control message. What
an input means for the parts above is a `ClusterEvent`, taken out with `take_events`: an event of the store, or `Moved`
when keys may have another place now.

**How the parts meet.** Membership names the brokers before and after us on the ring; links reach them. From both,
`Cluster` makes the routing table and the `View` that the store works with. The stores of two linked brokers talk by
`StoreMessage`; a message for a key travels hop by hop as `Routed` to the store of the key's owner. Every second each
broker tells another one which brokers it has links to (`Roster`); up to 64 brokers each links to every other.

**Beginning.** A broker that reaches no other must not believe too soon that it is alone: it begins to answer for keys
when it never knew of another, or after asking for a while; a broker that others refuse is not alone, and waits
(`serving`); when all brokers start at once, they find that out and do not wait (`cold_start`). Addresses of other
brokers are kept over restarts (`address_book`). A member's incarnation is the broker's own, shifted by
`LIFE_SHIFT`, plus the count of its rebirths.

Order of reading: `cluster`, `serving`, `cold_start`, `address_book`.
"""

from .cluster import HERE, LIFE_SHIFT, WAIT, Cluster, ClusterEvent, Moved
from .messages import Roster, Routed, StoreMessage

__all__ = [
    "Cluster",
    "ClusterEvent",
    "HERE",
    "LIFE_SHIFT",
    "Moved",
    "Roster",
    "Routed",
    "StoreMessage",
    "WAIT",
]
