"""Joins membership, links and the store of keys: who answers for a key, and how a message gets there.

**Contract.** `Cluster` is what the rooms above ask. `place_of(key)` is `HERE` (answered for by this broker), the
identifier of a broker to hand it to, or `WAIT` (no broker can answer just now). Call `scope(now)` first, which says
what may be answered for here; the answer is valid until `epoch` changes. `linked`, `broadcast` and `peers.tell` reach
other brokers; `take_controls` says who handles which kind of control message. What comes of an input for the parts
above is a `ClusterEvent`, taken out with `take_events`: of the store, or `Moved`, when keys may have another place now.

**How the parts meet.** Membership names the brokers before and after us; links reach them; both make the routing table
and the `View` that the store works with. The stores of two linked brokers talk by `StoreMessage`; a message for a key
travels hop by hop as `Routed` to the store of the key's owner. Every second each broker tells another one which brokers
it has links to (`Roster`); up to 64 brokers each links to every other.

**Beginning.** A broker that is alone must not believe so too soon: it begins when it knows of no other, or after asking
for a while; one that is refused by others is not alone, and waits (`serving`). Addresses that it met are kept over
restarts (`address_book`). A member's incarnation is the broker's own, shifted by `LIFE_SHIFT`, and the count of its
rebirths.

Order of reading: `cluster`, `serving`, `address_book`.
"""

from .cluster import HERE, LIFE_SHIFT, WAIT, Cluster, ClusterEvent, Moved
from .messages import Routed, StoreMessage

__all__ = [
    "Cluster",
    "ClusterEvent",
    "HERE",
    "LIFE_SHIFT",
    "Moved",
    "Routed",
    "StoreMessage",
    "WAIT",
]
