"""The servers that are measured, one file each, all behind `peer.Peer`. Headgate is measured as one of them.

Re-exported here: Chunk, Headgate, Mosquitto, Nats, PEERS, Peer, Publisher, Redis, Subscriber.
"""

from .headgate import Headgate
from .mosquitto import Mosquitto
from .nats import Nats
from .peer import Chunk, Peer, Publisher, Subscriber
from .redis import Redis

__all__ = ["PEERS", "Chunk", "Headgate", "Mosquitto", "Nats", "Peer", "Publisher", "Redis", "Subscriber"]

PEERS: dict[str, type[Peer]] = {"nats": Nats, "mosquitto": Mosquitto, "redis": Redis}
"""Name on the command line -> the peer."""
