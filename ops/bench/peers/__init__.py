"""The servers that are measured, one file each, all behind `peer.Peer`. Headgate is measured as one of them.

Re-exported here: Chunk, Headgate, Mosquitto, Nats, PEERS, Peer, Publisher, Redis, Subscriber.
"""

from . import headgate
from .headgate import Headgate, HeadgateSubscriber
from .mosquitto import Mosquitto
from .nats import Nats
from .peer import BODY, Chunk, Peer, Publisher, Subscriber
from .redis import Redis

PEERS: dict[str, type[Peer]] = {"nats": Nats, "mosquitto": Mosquitto, "redis": Redis}
"""Name on the command line -> the peer."""

__all__ = [
    "BODY",
    "Chunk",
    "Headgate",
    "HeadgateSubscriber",
    "Mosquitto",
    "Nats",
    "PEERS",
    "Peer",
    "Publisher",
    "Redis",
    "Subscriber",
    "headgate",
]
