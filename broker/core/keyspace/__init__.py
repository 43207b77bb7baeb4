"""Computes where on the ring things live: keys of values and topics, arcs of brokers, next hops. It has no state.

**Theory.** The ring is the numbers from 0 to 2^64 - 1 in a circle (Chord). A broker's *identifier* is a number on it
(`hash_identifier`), and so is a *key*. A key belongs to its `successor`, the first broker at or after it: a broker owns
the arc from the broker before it, which is left out, up to itself. `between`, `in_arc` and `distance` are the
arithmetic, on `RING_SIZE` numbers.

**Arcs.** An `Arc` is (after, last]: never empty, and the whole ring when both ends are equal. A `Scope` is what one
broker may answer for: a union of arcs, the moment until which that holds, and an epoch that counts its changes.
`NOTHING` is the scope of no keys.

**Keys.** `equality_key` is the key of `attribute = value`, `prefix_key` of a topic's first levels. A `Domain`
(`declared_domain`, `default_precision`) lays the numbers of a declared attribute around the ring in order, cell by
cell, so that a range of values, a `Span`, is an arc of keys: a `Segment`.

**Dimensions.** A dimension (`Dimension`) is one way to place subscriptions: by topic (`topic_dimension`, kind `TOPIC`),
by the value of an attribute (`equal_dimension`, `EQUAL`), by cells of a range (`range_dimension`), or for counting
(`count_dimension`, `COUNT`). An event has at most one key in each dimension (`key_of`, the plain form), so it meets
each subscription there at most once. `parse_dimension` reads one that another broker wrote. For batches, `RowKeys`
gives the key of each row, and `DimensionPlaces` what its caller made of that key (a broker to send to); both remember
their results within the bound of one `KeyMemory`.

**The cube.** One dimension is a hypercube of Bloom keys (`cube_dimension`, `CUBE`). Its `Vertices` lie on the ring in
the order of their numbers; a subscription rests at one (`AtVertex`), and an event goes from one to the next, a `Step`
(`parse_step`), by one of `ROUTINGS`: `KBSP`, `KBPP` or `FLOOD`. `is_cube` says whether there is one of that form.

**Routing.** A `RoutingTable` names the next hop of a key; `Way` is how far the search has come, and only ever grows, so
a message arrives even if the tables on its path disagree. Up to `MESH_BROKERS_MAX` brokers link to all others, and a
message needs one hop.

Order of reading: `identifiers`, `arcs`, `keys`, `vertices`, `dimensions`, `routing`.
"""

from .arcs import NOTHING, Arc, Scope
from .dimensions import (
    COUNT,
    CUBE,
    EQUAL,
    FLOOD,
    KBPP,
    KBSP,
    ROUTINGS,
    TOPIC,
    AtVertex,
    Dimension,
    DimensionPlaces,
    KeyMemory,
    RowKeys,
    Step,
    count_dimension,
    cube_dimension,
    equal_dimension,
    key_of,
    parse_dimension,
    parse_step,
    range_dimension,
    topic_dimension,
)
from .identifiers import RING_SIZE, between, distance, hash_identifier, in_arc, successor
from .keys import Domain, Segment, Span, declared_domain, default_precision, equality_key, prefix_key
from .routing import MESH_BROKERS_MAX, RoutingTable, Way
from .vertices import Vertices, is_cube

__all__ = [
    "AtVertex",
    "COUNT",
    "CUBE",
    "FLOOD",
    "KBPP",
    "KBSP",
    "ROUTINGS",
    "Step",
    "Vertices",
    "cube_dimension",
    "parse_step",
    "Domain",
    "EQUAL",
    "KeyMemory",
    "MESH_BROKERS_MAX",
    "NOTHING",
    "RING_SIZE",
    "RoutingTable",
    "RowKeys",
    "Scope",
    "Segment",
    "Dimension",
    "DimensionPlaces",
    "Span",
    "Arc",
    "TOPIC",
    "Way",
    "between",
    "count_dimension",
    "declared_domain",
    "default_precision",
    "distance",
    "equal_dimension",
    "equality_key",
    "hash_identifier",
    "in_arc",
    "is_cube",
    "key_of",
    "parse_dimension",
    "prefix_key",
    "range_dimension",
    "successor",
    "topic_dimension",
]
