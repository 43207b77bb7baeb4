"""The core: one broker as a pure state machine. No sockets, no clock, no randomness of its own, no logging.

Order of reading: `inputs` and `effects` (what can happen, what it can ask for), `node` (the machine), `clients` (what a
client says), `dissemination` (one batch to those who want it), `subscribers` (credit, outboxes, slow consumers),
`streams`, `questions` (what it answers about itself), `config`, `limits`, `statistics`.

Groundwork of the ring, proven by itself and not yet part of the Node: `identifiers`, `members`, `chord` (with `ring`,
`joining`, `mesh`, `healing`, `walk`, `identity`, `chord_messages`, `chord_config`), `ring_invariant`, `routing`,
`multicast`, `keys`, `counting`.

Re-exported: Node, NodeConfig, NodeStatistics.
"""

from .config import NodeConfig
from .node import Node
from .statistics import NodeStatistics

__all__ = ["Node", "NodeConfig", "NodeStatistics"]
