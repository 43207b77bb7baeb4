"""The blocking world: the client for threads and Spark tasks, on a plain socket, without a thread or loop of its own.

    with connect_blocking("127.0.0.1:7400") as client:
        client.publish("quotes/NYSE/OTE", {"price": 8.5}, b"...")

`connect_blocking` gives a `BlockingClient`; it has `Subscription`s of `Event`s, and a `Producer` for whoever counts its
own events. What a client does is in `protocol/client`, without I/O; here is how it waits. It lives while it is called:
one turn of the link sends what may be sent, waits for the socket, and hands what came to the conversation; without a
connection a turn is a pause or an attempt. `driver` takes turns until what a task waits for is there, or the time of
the call is over; a replay goes on with the next call. `sharing` lets one thread at a time take turns for all who wait.
"""

from .client import BlockingClient, connect_blocking
from .producer import Producer
from .subscription import Event, Subscription

__all__ = ["BlockingClient", "Event", "Producer", "Subscription", "connect_blocking"]
