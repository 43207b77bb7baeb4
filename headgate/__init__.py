"""Headgate's front door: publish events, and subscribe to those you want in the words of a SQL WHERE clause.

A broker listens (`headgate serve`); this is how a program talks to it:

    >>> import asyncio
    >>> import headgate
    >>> async def main():
    ...     async with await headgate.connect("127.0.0.1:7400") as client:
    ...         dear = await client.subscribe("quotes", where="price > 8.50 AND symbol LIKE 'O%'")
    ...         await client.publish("quotes/NYSE/OTE", {"symbol": "OTE", "price": 8.4}, "cheap")
    ...         await client.publish("quotes/NYSE/OTE", {"symbol": "OTE", "price": 8.7}, "dear")
    ...         async for event in dear:
    ...             return event.topic, event.attributes["price"], event.text
    >>> asyncio.run(main())
    ('quotes/NYSE/OTE', 8.7, 'dear')

An **event** has a topic (levels joined by `/`; the first is the stream), attributes (null, bool, 64-bit int, float or
string; nested maps become dotted names) and a body. A **pattern** matches the topics at and below it; `*` stands for
one level. Subscribers get the event's `id` and `time` as the broker gave them.

**Publishing faster.** `publish` waits for the broker's answer each time. `publish_soon` does not; columns are faster
still. Errors of what nobody awaited come out of `flush`, and are kept in `client.failures`:

    >>> async def many():
    ...     async with await headgate.connect("127.0.0.1:7400") as client:
    ...         big = await client.subscribe("quotes", "volume >= 997")
    ...         for volume in range(1000):
    ...             client.publish_soon("quotes/NYSE/OTE", {"volume": volume})
    ...         await client.flush()
    ...         await client.publish_batch("quotes/NYSE/IBM", {"volume": [10, 2000]}, [b"first", b"second"])
    ...         found = []
    ...         async for event in big:
    ...             found.append(event.attributes["volume"])
    ...             if len(found) == 4:
    ...                 return found
    >>> asyncio.run(many())
    [997, 998, 999, 2000]

**Without asyncio**, for threads and Spark tasks, the same verbs wait by themselves:

    >>> with headgate.connect_blocking("127.0.0.1:7400") as client:
    ...     orders = client.subscribe("orders", where="body.total > 100")
    ...     client.publish("orders/web", {"body": {"total": 250}}, '{"total": 250}')
    ...     for event in orders.events(seconds=5):
    ...         print(event.attributes, event.json())
    ...         break
    {'body.total': 250} {'total': 250}

**When things go wrong.** All errors are HeadgateErrors:

    >>> with headgate.connect_blocking("127.0.0.1:7400") as client:
    ...     try:
    ...         client.subscribe("quotes/#")
    ...     except headgate.Refused as error:
    ...         print("refused")
    refused

* `CannotConnect`: no broker there.  `Refused`: the broker said no; its text says why and what to write instead.
* `LocalError`: the library said no, before anything was sent. A client belongs to the process that connected it: in a
  child that was forked since, everything raises this.
* `UnknownOutcome`: sent, and the connection and the session were lost before the answer: it may have been accepted.
* `Fenced`: somebody else publishes under this producer's name.  `OutOfSequence`: the cluster lost what came before.
* `ConnectionLost`: it was never sent, or nobody can be reached any more.

All of them can be pickled.

A lost connection is found again by itself, subscriptions and unanswered publishes included, however long it takes; or
for `retry_seconds`, after which the client is of no use. The *first* connection is tried once, or for `wait_seconds`,
and then `connect` raises CannotConnect. What happens in between is said to the logger "headgate" (or `logger=`) and to
`on_disconnected(reason)` and `on_reconnected(broker)`. Meanwhile publishes wait, 16 MiB of them and no more: bound your
own waiting with `asyncio.timeout`, or with `seconds=` of the blocking verbs, which does not end the publication.
What a subscriber then has not got, because it was too slow or away too long, is counted: `subscription.lost`,
`subscription.gaps`, `on_gap`.

**Slow subscribers.** What is not taken waits: `credit` events (65,536) or `credit_bytes` of them (16 MiB) in the
client, then at the broker within its bounds, and then the oldest are lost and told. One of several subscriptions that
nobody takes from becomes `full` (`stalls` counts how often; the logger says it), and only it waits and loses: the
others of its client go on.

**Keeping events.** A stream whose `durability` is `stored` has a log on the brokers' disks. `mode="stored"` returns
when disks have the event. If connection, session or broker are lost before the answer, the client sends it again, and
the cluster recognises it: there is no unknown outcome as long as some broker answers. A subscription may begin in the
past, with `start="start"` or at a position, and goes on with what is published, each event once:

    >>> async def later():
    ...     async with await headgate.connect("127.0.0.1:7400") as client:
    ...         await client.ask("schema.put", stream="trades", schema={"durability": "stored"})
    ...         for volume in (10, 20, 30):
    ...             await client.publish("trades/OTE", {"volume": volume}, mode="stored")
    ...         found = []
    ...         async for event in await client.subscribe("trades", "volume > 10", start="start"):
    ...             found.append((event.attributes["volume"], event.position.split(":")[1]))
    ...             if len(found) == 2:
    ...                 return found
    >>> asyncio.run(later())
    [(20, '1'), (30, '2')]

`event.position` says where it stands in its log, and is a place to begin at. `logs`, `read_log` and `log_at` read the
logs themselves: a `LogInfo` for each `LogName`, and a `Chunk` of rows at a time. `connect_blocking(…).producer(name,
epoch)` is for whoever counts its own events: a `Producer` whose batches are stored once however often they are sent.

**Subscriptions that last.** With `durable="NAME"` the cluster keeps the place of a subscription, and what matches
waits for it while nobody is there. It is handed out until it is acknowledged, at least once:

    >>> async def work():
    ...     async with await headgate.connect("127.0.0.1:7400") as client:
    ...         await client.ask("schema.put", stream="jobs", schema={"durability": "stored"})
    ...         jobs = await client.subscribe("jobs", "size > 5", durable="worker", sharing="shared", ack_wait=60)
    ...         await client.publish("jobs/mail", {"size": 7}, "hello", mode="stored")
    ...         async for event in jobs:
    ...             print(event.text, event.delivery_count, event.redelivered)
    ...             await event.ack()
    ...             return await jobs.acked()
    >>> asyncio.run(work())
    hello 1 False
    True

`nak(delay)` has an event handed out again, `in_progress()` keeps `ack_wait` from ending, `term(reason)` gives it up,
and `subscription.ack_all(event)` acknowledges everything up to one. What an application says is sent in a moment, and
counts once the broker has confirmed it: `ack(wait=True)`, or `acked()` for all. An acknowledgement that comes too
late, because the event was handed out again or the connection was lost, is False there, and counted in `stale`.

**Several brokers** of a cluster are one address list, `connect("one:7400,two:7400,three:7400")`. A client whose broker
is gone goes on with another one. There it has a new session: its subscriptions are made again, each with a gap of
unknown size (`count` 0) in `gaps` and `on_gap`, and what was under way to the old broker has an UnknownOutcome.
`await subscription.until_confirmed()` returns when everything published from then on is seen again.

**The types behind it**, for annotations: `connect` gives a `Client`, `connect_blocking` a `BlockingClient`; `subscribe`
gives a `Subscription` of `Event`s, its `amend` an `Amended`, `publish` a `Receipt`. A `Refused` carries an `ErrorCode`;
a `ProtocolViolation` says that the other side broke the protocol. `HeadgateError` is the base of all errors;
`__version__` is this library's.
"""

from headgate.protocol import (
    CannotConnect,
    ConnectionLost,
    ErrorCode,
    Fenced,
    HeadgateError,
    LocalError,
    OutOfSequence,
    ProtocolViolation,
    Refused,
    UnknownOutcome,
)
from headgate.protocol.aio import Client, Event, Receipt, Subscription, connect
from headgate.protocol.blocking import BlockingClient, Producer, connect_blocking
from headgate.protocol.client import Amended, Chunk, LogInfo
from headgate.protocol.data import LogName

__all__ = [
    "Amended",
    "BlockingClient",
    "CannotConnect",
    "Chunk",
    "Client",
    "ConnectionLost",
    "ErrorCode",
    "Event",
    "Fenced",
    "HeadgateError",
    "LocalError",
    "LogInfo",
    "LogName",
    "OutOfSequence",
    "Producer",
    "ProtocolViolation",
    "Receipt",
    "Refused",
    "Subscription",
    "UnknownOutcome",
    "__version__",
    "connect",
    "connect_blocking",
]

__version__ = "0.1.0"
