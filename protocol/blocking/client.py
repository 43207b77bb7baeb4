"""The blocking client, for threads and Spark tasks: the verbs of the asyncio client on a plain socket, no thread.

It lives while it is called: `publish` reads acknowledgements while it waits for its own, a subscription reads while
it waits for events, and heartbeats are answered by both. A client that does neither for two heartbeats is closed by
the broker; the next call dials again by itself (a new session, if that took longer than the broker's grace).
Nobody watches the clock between two calls either: what `publish_soon` took waits for company until its batch is full,
or until a call comes after `linger_seconds`, or until `flush`.

**Without a broker** it looks for one for ever, as the asyncio client does: a call waits meanwhile. `seconds=` bounds
the waiting of one call: `publish`, `publish_batch` and `flush` raise UnknownOutcome when they are over, for the events
are still there and go out when a broker answers; `ask` raises ConnectionLost. `retry_seconds` bounds its life.

Any number of threads may use one client, and any of them may close it: what is waited for elsewhere ends then. One at a
time moves the connection on, for all who wait (`sharing.py`). A subscription that several threads take from gives each
event to one of them. A `Producer` counts, and serves one thread.
"""

from __future__ import annotations

import random
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
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
    Outcome,
    Replaying,
    Retry,
    Survey,
    Task,
    Telling,
    body_bytes,
    check_seconds,
    document_body,
    durable_options,
    kind_number,
    mode_number,
    producing,
    remember,
    subscribe_options,
)
from ..data import Batch, LogName, Scalar
from ..errors import ConnectionLost, EventsRefused, HeadgateError, LocalError, UnknownOutcome
from ..limits import (
    CREDIT_BYTES_DEFAULT,
    CREDIT_DEFAULT,
    HEARTBEAT_SECONDS_DEFAULT,
    LINGER_EVENTS_DEFAULT,
    LINGER_SECONDS_DEFAULT,
)
from ..messages import Gap
from ..security import PLAIN, SCHEME, File, Tls, credentials_of, named_in
from .driver import drive, run
from .limits import INFLIGHT_DEFAULT
from .link import Link
from .producer import Producer
from .sharing import Sharing
from .subscription import Event, Subscription

__all__ = ["BlockingClient", "connect_blocking"]


def connect_blocking(
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
) -> BlockingClient:
    """A connected client. Raises CannotConnect when no broker answers, at once or after `wait_seconds` of trying, and
    LocalError for an argument that is none.

    Several brokers are written with commas between them, and `producer` is the name under which it publishes what is to
    be stored; that, `user`, `password` and `token`, `retry_seconds`, the hooks and the logger are as for the asyncio
    client. The hooks are called in the thread that finds out, during its call.
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
    client = BlockingClient(addresses, options, retry, telling=Telling(logger, on_disconnected, on_reconnected))
    client.open(wait_seconds)
    return client


class BlockingClient(ClientCore):
    """A connection to a cluster for threads; made by `connect_blocking`, best used in `with`."""

    def __init__(
        self,
        addresses: Addresses,
        options: ClientOptions,
        retry: Retry,
        clock: Callable[[], float] = time.monotonic,
        telling: Telling | None = None,
    ) -> None:
        conversation = Conversation(options, Outcome)
        self.sharing: Sharing = Sharing()
        self._hooks: deque[Callable[[], None]] = deque()  # of the application, to be called: two a lost connection
        self._telling = telling or Telling()
        self._telling.later = self._hooks.append
        conversation.deliveries.on_full = self._telling.full
        self._link: Link = Link(addresses, conversation, retry, clock, self._telling, self.sharing)
        super().__init__(options, conversation, self._link, clock)
        self._linger_seconds = options.linger_seconds
        self._opened_batch = clock()
        self._finished = False
        self.dialling = threading.Lock()  # other brokers, one at a time

    # --- Publishing --------------------------------------------------------------------------------------------------

    def publish(
        self,
        topic: str,
        attributes: Mapping[str, Any] | None = None,
        body: Body = b"",
        *,
        document: Any = None,
        content_type: str = "",
        mode: str | int = "accepted",
        seconds: float | None = None,
    ) -> None:
        """Publish one event; returns when the broker has it. Modes and errors as in the asyncio client.

        Raises UnknownOutcome when there was no answer in so many seconds.
        """
        with self.sharing:
            deadline = self._deadline(seconds)
            outcome = self._take(topic, attributes, body, document, content_type, mode, deadline)
            outcome.awaiters += 1
            row = outcome.events - 1
            self._publications.seal_all()
            self._wait_until(lambda: outcome.settled, deadline, 1)
            try:
                outcome.result()
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
    ) -> None:
        """Publish one event without waiting for its answer: `flush` tells of errors. Waits only for room."""
        with self.sharing:
            self._take(topic, attributes, body, document, content_type, mode)
            publications = self._publications
            if publications.collecting and self.clock() - self._opened_batch >= self._linger_seconds:
                publications.seal_all()
            if publications.releasable:
                self._turn(0.0)

    def publish_batch(
        self,
        topics: str | Sequence[str],
        attributes: Mapping[str, Sequence[Scalar]] | None,
        bodies: Sequence[bytes],
        *,
        content_type: str = "",
        mode: str | int = "accepted",
        seconds: float | None = None,
    ) -> None:
        """Publish columns of events, the fast way: one topic for all or one each, attribute columns, bodies.

        Returns when the broker has them all. Raises the first error, after the outcome of all is known; or
        UnknownOutcome when it was not known in so many seconds: what there was no room for was not taken then.
        """
        with self.sharing:
            self.check_usable()
            deadline = self._deadline(seconds)
            number = mode_number(mode)
            outcomes = []
            for outcome in self._publications.add_columns(topics, attributes, bodies, content_type, number):
                outcome.awaiters += outcome.events
                outcomes.append(outcome)
                self._turn(0.0)
                self._wait_for_room(deadline, len(bodies))
            self._wait_until(lambda: all(one.settled for one in reversed(outcomes)), deadline, len(bodies))
            for outcome in outcomes:
                outcome.result()

    def ready(self) -> None:
        """Wait until there is room for more; publishing does so by itself."""
        with self.sharing:
            self.check_usable()
            self._wait_for_room()

    def flush(self, seconds: float | None = None) -> None:
        """Wait for everything published so far; raises the first error since the last flush, or UnknownOutcome when
        there was no answer in so many seconds.
        """
        with self.sharing:
            self.check_usable()
            self._publications.seal_all()
            publications = self._publications
            self._wait_until(lambda: publications.idle, self._deadline(seconds), publications.events_waiting)
            error = self._publications.take_unreported()
            if error is not None:
                raise error

    # --- Subscribing and asking --------------------------------------------------------------------------------------

    def subscribe(
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

        `start` begins in the past of a stored stream, and makes up for what is missed; `durable` and all behind it are
        about a subscription whose place the cluster keeps: see the asyncio client.
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

        return run(self.subscribing(pattern, where, options, start, Event, made))

    def unsubscribe(self, inbox: Inbox) -> None:
        """What `Subscription.close` does."""
        run(self.unsubscribing(inbox))

    def say_acks(self, inbox: DurableInbox) -> None:
        """Send what was said of events at once, for nobody knows when the next call comes."""
        with self.sharing:
            self._conversation.acknowledge(inbox)
            self._turn(0.0)

    def ask(self, verb: str, seconds: float | None = None, **arguments: Any) -> Any:
        """Ask the broker itself: status, streams, subs, … Raises Refused, and ConnectionLost when there was no answer
        in so many seconds.
        """
        task = Task(self.asking(verb, arguments))
        if not drive(task, None if seconds is None else self.clock() + seconds):
            raise ConnectionLost(f"no answer within {seconds:g} seconds")
        return task.result

    # --- Logs --------------------------------------------------------------------------------------------------------

    def producer(self, name: str, epoch: int, *, inflight: int = INFLIGHT_DEFAULT) -> Producer:
        """Publish as this producer; older epochs of it are shut out from now on. Raises Refused, or Fenced."""
        with self.sharing:
            self.check_usable()
            state = self._conversation.producer(name, epoch, strict=True)
            self._conversation.open_producer(state)
            self.wait(lambda: not state.eager)
            if (failure := state.failure or self._link.failure) is not None:
                self.end_producer(state)
                raise failure
            return Producer(self, state, inflight)

    def produce(self, state: producing.Producer, batch: Batch, digest: bytes, ids: bytes, inflight: int) -> None:
        """What `Producer.publish` does."""
        with self.sharing:
            self.check_usable()
            self.wait(lambda: state.waiting < inflight)
            self._wait_for_room()
            self._publications.add_produced(state, batch, digest, ids)
            self._turn(0.0)

    def end_producer(self, state: producing.Producer) -> None:
        """What `Producer.close` does, after it has flushed."""
        with self.sharing:
            self._conversation.close_producer(state)

    def logs(self, stream: str | None = None, kind: str | int = "events") -> list[LogInfo]:
        """The logs of a stream, or of all, that some broker within reach has: events, deliveries or subscriptions."""
        return run(self.over_logs().find(stream, kind_number(kind)))

    def survey_logs(self, stream: str, kind: str | int = "events") -> Survey:
        """The logs of a stream's events, and whose could not be had."""
        return run(self.over_logs().survey(stream, kind_number(kind)))

    def read_log(self, name: LogName, position: int, events: int = 0, pattern: str = "", where: str = "") -> Chunk:
        """Rows of a log from a position on, from a broker that has it. With a pattern or a condition the matching
        events.
        """
        return run(self.over_logs().read(name, position, events, pattern, where))

    def log_at(self, name: LogName, time: int) -> int:
        """The first position of a log at or after that time, in microseconds since 1970 UTC."""
        return run(self.over_logs().position_at(name, time))

    def producer_ids(self, producer: str, after: int) -> list[str]:
        """The ids of a producer's events from its event `after` on, some at a time, from a broker that has them.

        Raises Refused when no broker within reach has that event.
        """
        return run(self.over_logs().ids(producer, after))

    # --- Beginning and end -------------------------------------------------------------------------------------------

    def open(self, wait_seconds: float = 0.0) -> None:
        """What `connect_blocking` does."""
        try:
            self._link.open(wait_seconds)
        except BaseException:
            self.sharing.close()
            raise
        remember(self)

    def forked(self, error: LocalError) -> None:
        """This is a child of the process that connected."""
        self.sharing = Sharing()  # whoever held the lock is not in this process
        super().forked(error)

    def another(self, address: str) -> BlockingClient:
        """A client of another broker. One that does not answer is passed over, not waited for."""
        known = self._link.addresses.tls
        secure, tls = ("", PLAIN) if known is None else (SCHEME, known)
        who = named_in(self._credentials)
        return connect_blocking(
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

    def close(self) -> None:
        """Wait for what was published or acknowledged, say goodbye, end subscriptions. Raises what `flush` would."""
        with self.sharing:
            if self._closed:
                return
            if isinstance(self._link.failure, LocalError):
                self._closed = True  # in a child of the process that connected there is nothing to end
                return
            try:
                if self._link.connected:
                    self._link.bound(self._conversation.limits.ending_seconds)
                    self.flush()
                    drive(Task(self.settled_everywhere()), self.clock() + self.limits.ack_seconds)
            finally:
                self._end()
            # Without a connection nothing was waited for: what is lost with the client must not be lost in silence.
            if (error := self._publications.take_unreported()) is not None:
                raise error

    def _end(self) -> None:
        """End it once, and everything that waits for it in other threads."""
        if self._closed:
            return
        self._closed = True
        self._conversation.end_inboxes()
        while self.sharing.led:
            self.sharing.tell_all()
            self.sharing.follow(None)
        if self._logs is not None:
            run(self._logs.close())
        self._link.close()
        self._conversation.finish()
        self._finished = True
        self.sharing.tell_all()
        self.sharing.close()

    def __enter__(self) -> BlockingClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except HeadgateError:
            # What ended the block says more than what it left behind, which `failures` still has.
            if error is None:
                raise

    def give_credit(self) -> None:
        """Tell the broker what was consumed, if it is time; subscriptions call it."""
        conversation = self._conversation
        if (conversation.deliveries.credit_due or conversation.acks_due) and not self._closed:
            with self.sharing:
                self._turn(0.0)

    def wait(self, done: Callable[[], bool], seconds: float | None = None) -> bool:
        """Read and write until it is done, or so many seconds have passed, and once at least; tells which."""
        deadline = None if seconds is None else self.clock() + seconds
        left = seconds
        with self.sharing:
            self.sharing.wake()  # there may be something to send
            while not done():
                if self._link.failure is not None or self._finished or (left is not None and left < 0):
                    return False
                if self._closed or self.sharing.led:
                    self.sharing.follow(left)
                else:
                    self._turn(left, done)
                left = None if deadline is None else deadline - self.clock()
            return True

    # --- Inside ------------------------------------------------------------------------------------------------------

    def _turn(self, seconds: float | None, done: Callable[[], bool] = lambda: False) -> None:
        if self.sharing.led:
            self.sharing.wake()
            return
        with self.sharing.leading():
            self._link.turn(seconds, done)
        while self._hooks:
            self._hooks.popleft()()

    def _deadline(self, seconds: float | None) -> float | None:
        return None if seconds is None else self.clock() + seconds

    def _wait_until(self, done: Callable[[], bool], deadline: float | None, events: int) -> None:
        """Wait, for these events; raises UnknownOutcome when that time came first."""
        seconds = None if deadline is None else max(0.0, deadline - self.clock())
        if not self.wait(done, seconds) and self._link.failure is None:
            raise UnknownOutcome(events, "no answer in the time that was given; they go out when a broker answers")

    def _take(
        self,
        topic: str,
        attributes: Mapping[str, Any] | None,
        body: Body,
        document: Any,
        content_type: str,
        mode: str | int,
        deadline: float | None = None,
    ) -> Outcome:
        self.check_usable()
        publications, opened = self._publications, None
        if document is not None:
            body, content_type, opened = document_body(document, body, content_type)
        elif type(body) is not bytes:
            body, content_type = body_bytes(body, content_type)
        if publications.full:
            self._wait_for_room(deadline)
        if not publications.collecting:
            self._opened_batch = self.clock()
        return publications.add(topic, attributes, body, content_type, mode_number(mode), opened)

    def _wait_for_room(self, deadline: float | None = None, events: int = 1) -> None:
        if self._publications.full:
            self._wait_until(lambda: self._publications.roomy, deadline, events)
            self.check_usable()
