"""The core: one broker as a pure state machine. No sockets, no clock, no randomness of its own, no logging.

    effects  = node.handle(input, now)     one thing happened: do these, in order
    deadline = node.next_deadline()        hand in a Wake at that time

**The Node** (`Node`, made from a `NodeConfig`; `NodeStatistics` is its snapshot) holds the parts, hands each input to
the part that it concerns, and passes on what a part says to another one. Parts of different rooms do not call each
other back: they return events or keep them in a list that the Node takes (`Streams.changes`, `Log.landed`,
`Cluster.events`), and ask the host by appending to one list of effects. Three objects are shared by all parts: `timers`
(when each wants to be woken), `clock` (the time of day) and `cause` (why the present input happened).

**Rooms**, from the bottom up; a room imports from those above it in this list, by their faces alone:

    keyspace     keys, arcs of the ring, dimensions, routing
    membership   which brokers there are: the mesh and the ring
    delivery     streams, plans, sessions of clients and their outboxes
    links        the one link to each other broker, and its account of events
    kv           the replicated store of subscriptions and schemas
    cluster      joins membership, links and the store: who answers for a key
    placement    where a subscription rests, and what is in use of each stream
    log          stored streams, their copies, their producers
    forwarding   rows of a batch to the brokers that answer for their keys
    clients      what a client says, its publishes, questions and the audit

Order of reading: `inputs` and `effects` (what can happen, what it can ask for), `node`, then the room of interest by
its manual. `messages` declares what brokers say to each other, `store` what a disk of a host promises, `log_state` what
it holds; GLOSSARY.md has the words.
"""

from .config import NodeConfig
from .node import Node
from .statistics import NodeStatistics

__all__ = ["Node", "NodeConfig", "NodeStatistics"]
