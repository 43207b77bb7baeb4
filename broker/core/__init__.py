"""The core: one broker as a pure state machine. No sockets, no clock, no randomness of its own, no logging.

    effects  = node.handle(input, now)     this happened; the host carries out the effects, in order
    deadline = node.next_deadline()        the host hands in a Wake at that time

**The Node** (`Node`, made from a `NodeConfig`; `NodeStatistics` is its snapshot) holds the parts, hands each input to
the part that handles it, and passes the events of one part to others. Parts of different rooms do not call each other
back: they return events or keep them in a list that the Node takes (`Streams.changes`, `Log.landed`, `Cluster.events`),
and ask the host by appending to one list of effects. Three objects are shared by all parts: `timers` (when each wants
to be woken), `clock` (the time of day) and `cause` (why the present input happened).

**Rooms**, from the top down; a room imports only from those below it in this list, by their faces alone:

    clients      what a client says, its publishes, questions and the audit
    forwarding   sends the rows of a batch to the brokers that answer for their keys
    log          stored streams, their copies, their producers
    placement    where a subscription rests, and what is in use of each stream
    cluster      joins kv, links and membership: who answers for a key
    kv           the replicated store of subscriptions and schemas
    links        the one link to each other broker, and its account of events
    delivery     streams, plans, sessions of clients and their outboxes
    membership   which brokers there are: the mesh and the ring
    keyspace     keys, arcs of the ring, dimensions, routing

Order of reading: `inputs` and `effects` (what can happen, what the Node can ask for), `node`, then the room of interest
by its manual. `messages` declares what brokers say to each other, `store` what the disk of a host promises, `log_state`
what a log and a producer are on disk; GLOSSARY.md has the words.
"""

from .config import NodeConfig
from .node import Node
from .statistics import NodeStatistics

__all__ = ["Node", "NodeConfig", "NodeStatistics"]
