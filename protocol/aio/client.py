"""The asyncio client: publish, subscribe, ask. Import it as `headgate.connect` and `headgate.Client`.

**Publishing.** Events of a stream travel in batches. A batch goes out when it holds `batch_events`, when
`linger_seconds` are over, and at once when nothing else is under way: so a lone `publish` waits for nobody, and a busy
publisher fills batches. Order is kept within a stream.

**Outcomes.** `publish` returns when the broker has the event, and raises Refused when it said no. When the connection
breaks, the client dials again and goes on with its session: the broker recognises what it already has, so nothing is
lost or doubled. If the session is gone too, because the broker is and another one stands in, what was sent without an
answer gets UnknownOutcome: it may or may not have been accepted, and the library does not guess. Except for what was
published with mode "stored": that is sent again, because every broker recognises it by its producer and number.
Subscriptions are made again, and each is told of a gap of unknown size; one with `start` reads what it missed.

**Without a broker.** A client looks for one for ever, with pauses that grow to two seconds. Meanwhile publishes wait,
up to 16 MiB of them; then `publish` waits for room and `publish_soon` refuses. Whoever cannot wait puts
`asyncio.timeout` around `publish`, which ends the waiting and not the publication: it may still go out.
`retry_seconds` ends the client: what was never sent gets ConnectionLost then, and so do all subscriptions. The logger
and the two hooks say what happens: `on_disconnected(reason)`, `on_reconnected(broker)`. `close` waits for what was
published while there is a connection, and looks for one that is lost meanwhile for 30 seconds.

**Credit.** `credit` deliveries, and `credit_bytes`, may wait in a client untaken; what is more waits at the broker. Of
several subscriptions one that is not taken from becomes `full`: it has that much for itself, and the others go on.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from types import TracebackType
from typing import Any

from ..addresses import Addresses
from ..client import (
    Body,
    Chunk,
    ClientCore,
    ClientOptions,
    Conversation,
    DurableInbox,
    Hook,
    Inbox,
    Log,
    LogInfo,
    Replaying,
    Retry,
    Survey,
    Telling,
    body_bytes,
    check_seconds,
    document_body,
    durable_options,
    kind_number,
    mode_number,
    remember,
    subscribe_options,
)
from ..data import LogName, Scalar
from ..errors import EventsRefused, HeadgateError, LocalError
from ..limits import (
    CREDIT_BYTES_DEFAULT,
    CREDIT_DEFAULT,
    HEARTBEAT_SECONDS_DEFAULT,
    LINGER_EVENTS_DEFAULT,
    LINGER_SECONDS_DEFAULT,
)
from ..messages import Gap
from ..security import PLAIN, SCHEME, File, Tls, credentials_of, named_in
from .driver import run
from .link import Link
from .receipt import Receipt, check_loop, current_loop
from .subscription import Event, Subscription

__all__ = ["Client", "connect"]


async def connect(
    address: str = "127.0.0.1:7400",
    *,
    name: str = "",
    credit: int = CREDIT_DEFAULT,
    credit_bytes: int = CREDIT_BYTES_DEFAULT,
    linger_seconds: float = LINGER_SECONDS_DEFAULT,
    batch_events: int = LINGER_EVENTS_DEFAULT,
    retry_seconds: float | None = None,
    heartbeat_seconds: float = HEARTBEAT_SECONDS_DEFAULT,
    wait_seconds: float = 0.0,
    shuffle: bool = True,
    producer: str | None = None,
    tls_ca: File | None = None,
    tls_cert: File | None = None,
    tls_key: File | None = None,
    user: str | None = None,
    password: str | None = None,
    token: str | None = None,
    on_disconnected: Hook | None = None,
    on_reconnected: Hook | None = None,
    logger: Log | None = None,
) -> Client:
    """A connected client. Raises CannotConnect when no broker answers, at once or after `wait_seconds` of trying, and
    LocalError for an argument that is none.

    Several brokers are written with commas between them, "a:7400,b:7400". They are tried in any order, or with
    `shuffle=False` as written; a client that has lost its broker goes on with the next one that answers.
    `linger_seconds=0` turns batching off. `credit` and `credit_bytes` bound what waits in this process. `producer`
    names whoever publishes with mode "stored", across restarts: whoever uses a name last shuts out the others. Without
    it each client is somebody new, and with "" what is stored is not recognised when it is sent again.

    "tls://a:7400" is spoken to over TLS, and so is any address with one of the `tls_` files: the authority that signed
    the broker's certificate (else the system's are trusted), and a certificate with its key for a broker that asks.

    A broker that asks who this is is told `user` and `password`, or a `token`; it may take the certificate for that.

    A connection that is lost later is looked for for ever, or for `retry_seconds`. The hooks, functions of one string,
    are told of both, and `logger` (or the logger "headgate") says it in words.
    """
    check_seconds("wait_seconds", wait_seconds)
    producer = secrets.token_hex(8) if producer is None else producer
    epoch = time.time_ns() // 1000
    options = ClientOptions(
        name,
        credit,
        linger_seconds,
        batch_events,
        heartbeat_seconds,
        producer,
        epoch,
        credit_bytes,
        credentials=credentials_of(user, password, token),
    )
    addresses, retry = (
        Addresses(address, random.random, shuffle, Tls.of(tls_ca, tls_cert, tls_key)),
        Retry(retry_seconds, random.random),
    )
    client = Client(addresses, options, retry, telling=Telling(logger, on_disconnected, on_reconnected))
    await client.open(wait_seconds)
    return client


class Client(ClientCore):
    """A connection to a cluster for one event loop; made by `connect`, best used in `async with`."""

    sharing = nullcontext()  # one loop, one thread

    def __init__(
        self,
        addresses: Addresses,
        options: ClientOptions,
        retry: Retry,
        clock: Callable[[], float] = time.monotonic,
        telling: Telling | None = None,
    ) -> None:
        conversation = Conversation(options, Receipt)
        self._telling = telling or Telling()
        conversation.deliveries.on_full = self._telling.full
        self._link: Link = Link(addresses, conversation, retry, clock, self._changed, self._telling)
        super().__init__(options, conversation, self._link, clock)
        self._linger_seconds = options.linger_seconds
        self._linger: asyncio.Handle | None = None
        self._loop: asyncio.AbstractEventLoop
        self._room: list[asyncio.Future[None]] = []
        self._acks_turn: asyncio.Handle | None = None
        self.dialling = asyncio.Lock()  # other brokers, one at a time

    # --- Publishing --------------------------------------------------------------------------------------------------

    async def publish(
        self,
        topic: str,
        attributes: Mapping[str, Any] | None = None,
        body: Body = b"",
        *,
        document: Any = None,
        content_type: str = "",
        mode: str | int = "accepted",
    ) -> None:
        """Publish one event; returns when the broker has it. Nested attributes become dotted names.

        `document` is the body as a document, XML (bytes or a string) or anything that JSON can write: it is read here,
        so that brokers can filter on its structure (XPATH), and refused when it is none. A `body` whose `content_type`
        is XML or JSON is filtered on as well, and sent whatever it is.

        Modes: `fire` returns when it was sent, `accepted` when the broker has it, `stored` when its disks have it.
        Raises Refused, UnknownOutcome, ConnectionLost, or LocalError for what is no event.
        """
        if self._publications.full:
            await self.ready()
        receipt = self.publish_soon(topic, attributes, body, document=document, content_type=content_type, mode=mode)
        row = receipt.events - 1
        try:
            await receipt
        except EventsRefused as refused:
            if row in refused.rows:
                raise

    def publish_soon(
        self,
        topic: str,
        attributes: Mapping[str, Any] | None = None,
        body: Body = b"",
        *,
        document: Any = None,
        content_type: str = "",
        mode: str | int = "accepted",
    ) -> Receipt:
        """Publish one event without waiting. Await the receipt, or `flush`, to hear of errors.

        Raises LocalError when too much is waiting already; `await client.ready()` before going on.
        """
        publications, opened = self._publications, None
        if document is not None:
            body, content_type, opened = document_body(document, body, content_type)
        elif type(body) is not bytes:
            body, content_type = body_bytes(body, content_type)
        if self._closed or self._link.failure is not None or publications.full or current_loop() is not self._loop:
            self.check_usable()
            raise LocalError("too much is waiting for the broker: `await client.ready()` before publishing more")
        receipt = publications.add(topic, attributes, body, content_type, mode_number(mode), opened)
        if publications.releasable:
            self._link.pump()
            if self._linger_seconds:
                # A batch was filled: let the broker work on it while the next one fills.
                self._link.flush()
        if self._linger is None and publications.collecting:
            idle = publications.idle and self._link.connected
            loop = self._loop
            self._linger = (
                loop.call_soon(self._turn_over) if idle else loop.call_later(self._linger_seconds, self._turn_over)
            )
        return receipt  # type: ignore[return-value]  # the conversation makes Receipts

    async def publish_batch(
        self,
        topics: str | Sequence[str],
        attributes: Mapping[str, Sequence[Scalar]] | None,
        bodies: Sequence[bytes],
        *,
        content_type: str = "",
        mode: str | int = "accepted",
    ) -> None:
        """Publish columns of events, the fast way: one topic for all or one each, attribute columns, bodies.

        Returns when the broker has them all. Raises the first error, after the outcome of all is known.
        """
        number = mode_number(mode)
        receipts = []
        self.check_usable()
        for receipt in self._publications.add_columns(topics, attributes, bodies, content_type, number):
            receipt.awaiters += receipt.events
            receipts.append(receipt)
            self._link.pump()
            self._link.flush()
            if self._publications.full:
                await self.ready()
        for receipt in receipts:
            await receipt.wait()  # type: ignore[attr-defined]  # the conversation makes Receipts
        for receipt in receipts:
            receipt.result()

    async def ready(self) -> None:
        """Wait until there is room for more."""
        self.check_usable()
        while not self._publications.roomy:
            waiter = self._loop.create_future()
            self._room.append(waiter)
            await waiter
            self.check_usable()

    async def flush(self) -> None:
        """Wait for everything published so far; raises the first error since the last flush that nobody awaited."""
        self.check_usable()
        self._turn_over()
        for outcome in self._publications.pending():
            await outcome.wait()  # type: ignore[attr-defined]  # the conversation makes Receipts
        error = self._publications.take_unreported()
        if error is not None:
            raise error

    # --- Subscribing and asking --------------------------------------------------------------------------------------

    async def subscribe(
        self,
        pattern: str,
        where: str | None = None,
        *,
        exact: bool = False,
        durable: str | None = None,
        start: str | int | None = None,
        ordered: bool = False,
        slow: str | None = None,
        on_gap: Callable[[Gap], None] | None = None,
        sharing: str | None = None,
        ack_wait: float | None = None,
        max_deliver: int | None = None,
        backoff: Sequence[float] | None = None,
        max_unacked: int | None = None,
        dead_letter: str | None = None,
        takeover: bool = False,
        window: int | None = None,
        limit: int | None = None,
    ) -> Subscription:
        """Subscribe; when this returns, every event published from now on is seen. Raises Refused.

        `exact` turns off matching below the pattern. `on_gap` is called when the broker had to drop something. With
        `slow` = "conflate" the broker keeps the newest event of each topic for a client that does not keep up, instead
        of dropping the oldest; with "conflate:symbol" of each value of that attribute; "widen:0.5" lets the bands of
        DELTA grow up to 0.5 as well until it keeps up.
        `start` begins in the past of a stored stream: "start" is as far back as its logs go, a number a position in its
        only log, and "ann@1763492000:120,bob@1763492007:7" one in each, as events have them (`position`): that event
        comes first. Logs not named are read from their beginning. "now" begins at their ends. With any of these, what
        is missed later on is read from the logs as well, and `on_gap` only hears of what cannot be.

        The rest is for a **durable** subscription, whose place the cluster keeps under the name `durable`: what
        matches waits for it, whoever dies, and is handed out until it is acknowledged (`await event.ack()`), at
        least once. It is made by the first who asks, and from then on attached to; with the pattern "" and nothing
        else, to whatever there is. `start` says where a new one begins: "now", "start", or positions. `sharing` is
        "exclusive" (one client; `takeover` sends away the one there is), "failover", "shared", or "key:ATTRIBUTE". An
        event that is not acknowledged within `ack_wait` seconds, counted from when it was handed out or this client
        last settled one before it, is handed out again, after the pauses of `backoff`,
        and given up after `max_deliver` times, to the topic `dead_letter` as well. A client has at most `max_unacked`
        of them at a time, at most `window` where it wants fewer, and `limit` in all until it comes back.
        """
        options = subscribe_options(exact, ordered, slow) | durable_options(
            durable,
            start,
            sharing=sharing,
            ack_wait=ack_wait,
            max_deliver=max_deliver,
            backoff=backoff,
            max_unacked=max_unacked,
            dead_letter=dead_letter,
            takeover=takeover,
            window=window,
            limit=limit,
        )

        def made(inbox: Inbox, replaying: Replaying | None) -> Subscription:
            return Subscription(self, inbox, on_gap, replaying)

        return await run(self.subscribing(pattern, where, options, start, Event, made))

    async def unsubscribe(self, inbox: Inbox) -> None:
        """What `Subscription.close` does."""
        self.check_loop()
        await run(self.unsubscribing(inbox))

    def say_acks(self, inbox: DurableInbox) -> None:
        """Send what was said of events at the end of the loop's turn, or with the next answer when too few came."""
        if self._acks_turn is None and inbox.takes_acks:
            self.check_loop()
            self._acks_turn = self._loop.call_soon(self._turn_of_acks)

    async def ask(self, verb: str, **arguments: Any) -> Any:
        """Ask the broker itself: status, streams, subs, … Raises Refused."""
        return await run(self.asking(verb, arguments))

    # --- Logs --------------------------------------------------------------------------------------------------------

    async def logs(self, stream: str | None = None, kind: str | int = "events") -> list[LogInfo]:
        """The logs of a stream, or of all, that some broker within reach has: events, deliveries or subscriptions."""
        return await run(self.over_logs().find(stream, kind_number(kind)))

    async def survey_logs(self, stream: str, kind: str | int = "events") -> Survey:
        """The logs of a stream's events, and whose could not be had."""
        return await run(self.over_logs().survey(stream, kind_number(kind)))

    async def read_log(
        self, name: LogName, position: int, events: int = 0, pattern: str = "", where: str = ""
    ) -> Chunk:
        """Rows of a log from a position on, from a broker that has it. With a pattern or a condition the matching
        events.
        """
        return await run(self.over_logs().read(name, position, events, pattern, where))

    async def log_at(self, name: LogName, time: int) -> int:
        """The first position of a log at or after that time, in microseconds since 1970 UTC."""
        return await run(self.over_logs().position_at(name, time))

    # --- Beginning and end -------------------------------------------------------------------------------------------

    async def open(self, wait_seconds: float = 0.0) -> None:
        """What `connect` does."""
        self._loop = asyncio.get_running_loop()
        self._telling.later = self._loop.call_soon
        await self._link.open(wait_seconds)
        remember(self)

    async def another(self, address: str) -> Client:
        """A client of another broker. One that does not answer is passed over, not waited for."""
        known = self._link.addresses.tls
        secure, tls = ("", PLAIN) if known is None else (SCHEME, known)
        who = named_in(self._credentials)
        return await connect(
            f"{secure}{address}",
            name=self._name,
            retry_seconds=0.0,
            tls_ca=tls.ca,
            tls_cert=tls.cert,
            tls_key=tls.key,
            user=who.user,
            password=who.password,
            token=who.token,
        )

    async def close(self) -> None:
        """Wait for what was published or acknowledged, say goodbye, end subscriptions. Raises what `flush` would."""
        if self._closed:
            return
        if isinstance(self._link.failure, LocalError):
            self._closed = True  # in a child of the process that connected there is nothing to end
            return
        self.check_loop()
        try:
            if self._link.connected:
                self._link.bound(self._conversation.limits.ending_seconds)
                await self.flush()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self.limits.ack_seconds):
                        await run(self.settled_everywhere())
        finally:
            self._closed = True
            self._conversation.end_inboxes()
            self._cancel_linger()
            if self._logs is not None:
                await run(self._logs.close())
            await self._link.close()
            self._conversation.finish()
            self._wake_room()
        # Without a connection nothing was waited for: what is lost with the client must not be lost in silence.
        if (error := self._publications.take_unreported()) is not None:
            raise error

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.close()
        except HeadgateError:
            # What ended the block says more than what it left behind, which `failures` still has.
            if error is None:
                raise

    def pump(self) -> None:
        """Send what may be sent; subscriptions call it when credit may be due."""
        self._link.pump()

    def check_loop(self) -> None:
        """Raises LocalError in any loop but the client's own, and in any other process."""
        if isinstance(self._link.failure, LocalError):
            raise self._link.failure
        check_loop(self._loop)

    # --- Inside ------------------------------------------------------------------------------------------------------

    def check_usable(self) -> None:
        """Raises what ended this client."""
        self.check_loop()
        super().check_usable()

    def _turn_over(self) -> None:
        self._cancel_linger()
        self._publications.seal_all()
        self._link.pump()
        self._link.flush()

    def _turn_of_acks(self) -> None:
        self._acks_turn = None
        self._conversation.acknowledge()
        self._link.pump()
        self._link.flush()

    def _cancel_linger(self) -> None:
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None

    def _changed(self) -> None:
        publications = self._publications
        if publications.collecting and publications.idle:
            self._turn_over()
        if self._room and (publications.roomy or self._link.failure is not None):
            self._wake_room()

    def _wake_room(self) -> None:
        for waiter in self._room:
            if not waiter.done():
                waiter.set_result(None)
        self._room.clear()
