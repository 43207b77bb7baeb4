"""The blocking world: `client` for threads and Spark tasks, on a plain socket, without a thread or a loop of its own.

Re-exported here: BlockingClient, connect_blocking, Event, Subscription, Producer.

    with connect_blocking("127.0.0.1:7400") as client:
        client.publish("quotes/NYSE/OTE", {"price": 8.5}, b"...")

Inside: a BlockingClient holds a Conversation (pure, one folder up) and a Link, which moves a Wire on when called. Logs
asks other brokers for theirs, each over a client of its own.
"""

from .client import BlockingClient, connect_blocking
from .producer import Producer
from .subscription import Event, Subscription

__all__ = ["BlockingClient", "Event", "Producer", "Subscription", "connect_blocking"]
