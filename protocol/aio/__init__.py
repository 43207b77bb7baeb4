"""The asyncio world. `connection` is the body of every connection, here and in the daemon; `client` is the client.

Re-exported here: Client, connect, Event, Receipt, Subscription, Connection, ConnectionHandler, Tasks; READ_BYTES is
what one read takes at most, WRITE_BUFFER_HIGH where a connection tells its handler to stop.

    async with await connect("127.0.0.1:7400") as client:
        await client.publish("quotes/NYSE/OTE", {"price": 8.5}, b"...")

Inside: a Client holds a Conversation (pure, one folder up) and a Link, which keeps it connected; `tasks` owns the one
task there may be, the one that reconnects. Logs asks other brokers for theirs, each over a client of its own.
"""

from . import client, connection
from .client import Client, connect
from .connection import Connection, ConnectionHandler
from .limits import READ_BYTES, WRITE_BUFFER_HIGH
from .receipt import Receipt
from .subscription import Event, Subscription
from .tasks import Tasks

__all__ = [
    "Client",
    "Connection",
    "ConnectionHandler",
    "Event",
    "READ_BYTES",
    "Receipt",
    "Subscription",
    "Tasks",
    "WRITE_BUFFER_HIGH",
    "client",
    "connect",
    "connection",
]
