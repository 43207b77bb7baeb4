"""Drives each server that is measured, one file each, all behind `peer.Peer`. Headgate is one of them.

`PEERS` names the others: `Nats`, `Mosquitto`, `Redis`; `Headgate` is ours. A `Peer` starts its server and makes a
`Publisher`, which writes `Chunk`s encoded before the clock starts, and a `Subscriber`, which counts what arrives
(`HeadgateSubscriber` also gives credit). A `NatsClient` does both over one connection, with TLS if asked. `BODY` is the
body of every event.
"""

from .headgate import Headgate, HeadgateSubscriber
from .mosquitto import Mosquitto
from .nats import Nats, NatsClient
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
    "NatsClient",
    "PEERS",
    "Peer",
    "Publisher",
    "Redis",
    "Subscriber",
]
