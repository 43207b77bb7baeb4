"""The driver owns the Node: hands it what happened, carries out its effects, arms the one timer.

Twin of `simulator/engine/world.py`. The same four steps: take an input, handle it, carry out the effects, re-arm the
deadline. There is nothing to decide here.

What the twin does not do: it outlives our own faults. An input that the Node fails on is logged and counted, and the
session that it came from ends; an effect that fails costs the link it was for. Nobody else notices.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from typing import Any, get_args

import structlog

from headgate.broker.core import Node
from headgate.broker.core.effects import Close, Dial, Effect, Halt, LogEffect, Mute, Note, Send, Store
from headgate.broker.core.inputs import Input, LinkPaused, LinkResumed, Received, RecordsRoom, Wake, WallClock
from headgate.protocol.aio import Connection
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Goodbye

from .limits import (
    CLOSE_SECONDS,
    FAULT_PAUSE_SECONDS,
    FEW_EFFECTS_MAX,
    LARGE_READ_BYTES,
    TIMER_SECONDS_MIN,
    TURN_BYTES_MAX,
    TURN_MESSAGES_MAX,
    TURN_READS_MAX,
)
from .records import Records, RecordsError

__all__ = ["MATCH_BUCKETS_SECONDS", "Driver"]

MATCH_BUCKETS_SECONDS = (1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 1.0)
"""From one event against a small index to a flood of batches in one read."""

_LAST_WORD = Goodbye(ErrorCode.GOODBYE, "a fault in the broker ended this session; what was published last may be lost")


class Driver:
    """The Node in the real world."""

    def __init__(self, node: Node, records: Records, clock: Callable[[], float] = time.monotonic) -> None:
        self.node = node
        self.clock = clock
        self.links: dict[int, Connection] = {}
        self.numbers = itertools.count(1)  # of links, never used again
        self.dial: Callable[[str], None] = lambda address: None  # set by whoever can
        self.ask_store: Callable[[LogEffect], None] = lambda effect: None  # the same, for what the log is asked
        self.halt: Callable[[str], None] = lambda reason: None
        self.match_counts = [0] * (len(MATCH_BUCKETS_SECONDS) + 1)
        self.match_seconds = 0.0
        self.faults = 0
        self.records_obstacle = ""
        self._records = records
        self._log = structlog.get_logger()
        self._timer: asyncio.Handle | None = None
        self._armed = float("inf")
        self._unflushed: dict[Connection, None] = {}
        self._few = False  # effects to carry out
        self._busy = False
        self._waiting: deque[Input] = deque()
        """What happened while an input was handled: at most a pause or an end of one for each link written to."""
        self._turn_reads = self._turn_bytes = 0
        self._handled = float("-inf")
        """When the Node had done with the last input."""
        self._carry_out: dict[type, Callable[[Any], None]] = {
            Send: self._send,
            Close: self._close,
            Mute: self._mute,
            Dial: lambda effect: self.dial(effect.address),
            Halt: lambda effect: self.halt(effect.reason),
            Store: self._store,
            Note: self._note,
        }
        self._carry_out.update(dict.fromkeys(get_args(LogEffect), self._ask_store))

    def feed(self, happened: Input, size: int = 0) -> None:
        """One thing happened. `size`: how many bytes were read, if it is a read.

        Reads that come close behind one another are one turn for the Node: under load the cost of a delivery is shared
        by the events of many reads. A read that comes alone does not wait. The Node itself asks to be woken at once
        when a turn is open, which is when the loop has handed out all that was ready.

        An input is done before the next one begins. A transport tells of its full buffer in the middle of a write:
        what the Node answers to that must not come before the rest of the write, or of other effects.
        """
        if self._busy:
            self._waiting.append(happened)
            return
        self._busy = True
        try:
            self._take(happened, size)
            while self._waiting:
                self._take(self._waiting.popleft(), 0)
        finally:
            self._busy = False

    def _take(self, happened: Input, size: int) -> None:
        now = self.clock()
        if type(happened) is Received and len(happened.messages) < TURN_MESSAGES_MAX:
            self._turn_reads += 1
            self._turn_bytes += size
            if (
                (size >= LARGE_READ_BYTES or now - self._handled < CLOSE_SECONDS)
                and self._turn_reads < TURN_READS_MAX
                and self._turn_bytes < TURN_BYTES_MAX
            ):
                happened.more = True
            else:
                self._turn_reads = self._turn_bytes = 0
        else:
            self._turn_reads = self._turn_bytes = 0
        self._handle(happened, now)

    def _handle(self, happened: Input, now: float) -> None:
        carry_out = self._carry_out
        try:
            effects = self.node.handle(happened, now)
        except Exception:
            self._failed(happened)
            return
        self._handled = handled = self.clock()
        self._few = len(effects) <= FEW_EFFECTS_MAX
        for effect in effects:
            try:
                carry_out[type(effect)](effect)
            except Exception:
                self._not_carried_out(effect)
        if self._unflushed:
            self._flush()
        # What need not be done before the writes is done behind them.
        if type(happened) is Received:
            spent = handled - now
            self.match_counts[bisect_left(MATCH_BUCKETS_SECONDS, spent)] += 1
            self.match_seconds += spent
        if self.node.next_deadline() != self._armed:
            self._arm()

    def tell_wall_clock(self) -> None:
        """Let the Node know how far the wall clock is from the steady one."""
        self.feed(WallClock(time.time() - self.clock()))

    def look_at_records(self) -> None:
        """Have what could not be kept written, if there is room by now; the Node hears whether there is."""
        self._records.catch_up()
        obstacle = self._records.obstacle
        if obstacle != self.records_obstacle:
            self.records_obstacle = obstacle
            if obstacle:
                self._log.warning("no room for records", reason=obstacle)
            else:
                self._log.info("room for records again")
            self.feed(RecordsRoom(obstacle))

    def stop(self) -> None:
        """No more wakes."""
        if self._timer is not None:
            self._timer.cancel()

    def _flush(self) -> None:
        """Write what is queued: at once, so that a lone event does not wait."""
        unflushed, self._unflushed = self._unflushed, {}
        for connection in unflushed:
            connection.flush()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline = self._armed = self.node.next_deadline()
        loop = asyncio.get_running_loop()
        if deadline == float("-inf"):
            self._timer = loop.call_soon(self._wake)
        elif deadline < float("inf"):
            self._timer = loop.call_later(max(TIMER_SECONDS_MIN, deadline - self.clock()), self._wake)

    def _wake(self) -> None:
        self._timer = None
        self._armed = float("nan")
        self.feed(Wake())

    def _failed(self, happened: Input) -> None:
        """A fault of ours. What the Node asked for before it failed goes out with its next effects."""
        self.faults += 1
        self._log.exception("fault while handling an input", input=type(happened).__name__)
        if isinstance(happened, Wake):
            self._armed = self.node.next_deadline()
            self._timer = asyncio.get_running_loop().call_later(FAULT_PAUSE_SECONDS, self._wake)
        elif isinstance(happened, Received | LinkPaused | LinkResumed):
            connection = self.links.get(happened.link)
            if connection is not None:
                connection.close(ErrorCode.GOODBYE, _LAST_WORD.text)
            if type(happened) is not Received or happened.messages[0] is not _LAST_WORD:
                # Half-changed state is no state to go on with: end the session as if its client had said goodbye.
                self.feed(Received(happened.link, [_LAST_WORD]))

    def _not_carried_out(self, effect: Effect) -> None:
        """The link that missed something must not go on as if it had not."""
        self.faults += 1
        self._log.exception("fault while carrying out an effect", effect=type(effect).__name__)
        connection = self.links.get(effect.link) if isinstance(effect, Send | Close | Mute) else None
        if connection is not None:
            connection.abort("a fault in the broker")

    def _send(self, effect: Send) -> None:
        connection = self.links.get(effect.link)
        if connection is not None and not connection.closed:
            unflushed = self._unflushed
            if unflushed and self._few and connection not in unflushed:
                self._flush()  # a lone delivery is on its way before the acknowledgement is encoded
                unflushed = self._unflushed
            connection.queue(effect.message)
            unflushed[connection] = None

    def _close(self, effect: Close) -> None:
        connection = self.links.get(effect.link)
        if connection is not None:
            connection.close()

    def _mute(self, effect: Mute) -> None:
        connection = self.links.get(effect.link)
        if connection is not None:
            connection.mute(effect.on)

    def _store(self, effect: Store) -> None:
        try:
            self._records.put(effect.key, effect.value)
        except RecordsError as error:
            self._log.error("record not stored", key=effect.key, reason=str(error))
        if self._records.obstacle != self.records_obstacle:
            asyncio.get_running_loop().call_soon(self.look_at_records)

    def _ask_store(self, effect: LogEffect) -> None:
        self.ask_store(effect)

    def _note(self, effect: Note) -> None:
        log = self._log.warning if effect.alarming else self._log.debug if effect.routine else self._log.info
        log(effect.event, **effect.facts, cause=self.node.cause.text)
