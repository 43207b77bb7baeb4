"""Stores items at the brokers that own their keys, with copies: who answers for a key has every confirmed write.

    store.view(View(...), now)              the ring changed
    store.all_new(since, now)               nobody in it has answered for keys yet: LEASE_SECONDS need not be waited for
    store.peer_up(broker, now)              a new link; peer_down when it ends
    store.handle(broker, message, now)      a store message came, over the link or routed here
    ticket = store.put(items, now)          answered by the effect Placed or Unplaced
    store.tick(now)                         at the latest at store.timers.next
    store.scope(now).covers(key)            may this broker answer for the key?

`KvStore` is the store of one broker, made from a `KvConfig` with its `KvLimits`. An `Item` has a name, a segment of
keys, a version and a value; of two versions of an item the newer is kept, so copies may be merged in any order. An item
is kept at every owner of a key of its segment, and at that owner's next r brokers, its *siblings*. The part that holds
the store is told by effects:

    Tell, Route         send this message (`Put`, `Stored`, `Copy`, `TellAll`, ...) to a broker, or to a key's owner
    Added, Removed      an item is kept here from now on, or no more
    Placed, Unplaced    a put is confirmed for all of its keys, or was given up

The promise:

    Once Placed, an item is known to every broker whose scope covers one of its keys, at any later moment, until a
    newer version is put. Up to r crashes between repairs do not break it; where there are no more than r brokers, all
    but one of them may crash, for there are no more copies than brokers.

Why it holds. (1) A write is confirmed only by a broker that holds a lease on the keys, from its first sibling or by
being alone. (2) The owner confirms when every sibling has acknowledged the write, and every other broker that it
granted the keys has acknowledged too, or its grant has run out. An acknowledgement is for one put of one incarnation.
Incarnations number their puts differently; otherwise the acknowledgement of an old put could confirm a new one. (3) A
grant never outlasts the owner's own lease. (4) A broker that takes keys over is the one that is asked for that lease:
it refuses the lease from then on, refuses writes of the former owner, and confirms nothing before all former leases are
over. (5) It answers for the keys only with a whole copy and with a lease of its own, which its first sibling gives to
one broker at a time. A copy is *whole* when it has every confirmed write; it ceases to be when its owner may have
confirmed a write without it. (6) An item is deleted only when no broker may still answer for its keys. All times count
from the moment of asking, so a broker that stood still finds all its leases and grants over.

When a whole cluster was started again at once, there is no copy to wait for, and no lease or grant that somebody could
use: brokers that agree on that (`cluster/cold_start`) say so with `all_new`, and their keys are ready at once.

What it does not promise: two halves of a cluster that both believe the other dead go on apart, and merge afterwards. A
new owner asks only the brokers on its successor list for a copy. If more newcomers than that stand between it and the
broker that has the copy, the copy is not found.

An item of the whole ring (the interest of a stream, a schema) is told to all brokers at once and confirmed when their
answers cover the ring: two link times at any number of brokers (`broadcast`).

Order of reading: `messages` (items, messages, effects), `items` (merging, tombstones, digests), `writes` (put, copy,
confirm; orphaned items), `broadcast`, `ownership` (our arc: gained, fetched, ready, handed on), `leases` (from the
first sibling), `replication` (siblings' copies of our keys and ours of others'), `handover` (snapshots for who gains
keys), `store` (which calls the others), `config`, `limits`.
"""

from .config import KvConfig
from .limits import LEASE_SECONDS, KvLimits
from .messages import Added, Copy, Item, Placed, Put, Removed, Route, Stored, Tell, TellAll, Unplaced, View
from .store import KvStore

__all__ = [
    "Added",
    "Copy",
    "Item",
    "KvStore",
    "KvConfig",
    "KvLimits",
    "LEASE_SECONDS",
    "Placed",
    "Put",
    "Removed",
    "Route",
    "Stored",
    "Tell",
    "TellAll",
    "Unplaced",
    "View",
]
