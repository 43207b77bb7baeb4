"""The core: one broker as a pure state machine. No sockets, no clock, no randomness of its own, no logging.

Order of reading: `inputs` and `effects` (what can happen, what it can ask for), `node` (the tables), `messages` (how
brokers' messages are declared), `timers`, `clock`, `store` (what a host's disk promises), `log_state`, `deferred`,
`config`, `limits`, `statistics`.

Then the rooms, from the ground up: `keyspace`, `membership`, `delivery`, `links`, `kv`, `cluster`, `placement`, `log`,
`forwarding`, `clients`. Each has a manual in its `__init__`.

Re-exported: Node, NodeConfig, NodeStatistics.
"""

from .config import NodeConfig
from .node import Node
from .statistics import NodeStatistics

__all__ = ["Node", "NodeConfig", "NodeStatistics"]
