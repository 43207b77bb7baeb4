"""The core: one broker as a pure state machine. No sockets, no clock, no randomness of its own, no logging.

Order of reading: `inputs` and `effects` (what can happen, what it can ask for), `node` (the machine), `clients` (what a
client says), `dissemination` (one batch to those who want it), `subscribers` (credit, outboxes, slow consumers),
`streams`, `questions` (what it answers about itself), `config`, `limits`, `statistics`.

Several brokers: `rendezvous` (a subscription's life; with `usage`, `schemas`), `forwarding` (rows to whoever answers
for their keys; with `allowed`, `waiting`, `losses`), `planner` and `shelves` (where what rests), `cluster` (joins the
rest; with `standing`, `acquaintances`), `keyed` (what lives at a key; `keyed_*`, `replicas`), `chord` (who is there;
`ring`, `joining`, `mesh`, `healing`, `walk`, `identity`, `letters`, `chord_*`), `routing`, `keys`, `identifiers`,
`members`, `peers` (links; `peer_*`), and `ring_view` and `planner_words` for people.

Proven by themselves and used by simulations, papers and benches alone: `ring_invariant`, `counting`, and of `multicast`
everything but its segments.

Re-exported: Node, NodeConfig, NodeStatistics.
"""

from .config import NodeConfig
from .node import Node
from .statistics import NodeStatistics

__all__ = ["Node", "NodeConfig", "NodeStatistics"]
