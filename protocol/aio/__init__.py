"""The asyncio world: the client on an event loop, and the connection that the daemon uses too.

    async with await connect("127.0.0.1:7400") as client:
        await client.publish("quotes/NYSE/OTE", {"price": 8.5}, b"...")

`connect` gives a `Client`; it gives `Receipt`s of what is published and `Subscription`s of `Event`s. What a client does
is in `protocol/client`, without I/O; here is how it waits. `driver` awaits what a task wants. The client's link is the
`ConnectionHandler` of one `Connection` after another: messages that came go to the conversation, and then what may be
sent is sent. A lone event goes out at once, company waits for `linger_seconds` on the loop's timer. `Tasks` owns the
one asyncio task there may be, the one that reconnects.

A `Connection` is a protocol around a session: READ_BYTES is what one read takes at most, WRITE_BUFFER_HIGH where it
tells its handler to stop. A client belongs to the loop that connected it.
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
