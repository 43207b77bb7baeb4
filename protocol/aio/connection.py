"""An asyncio protocol around a Session: the body of every connection, in the client and in the daemon.

What it adds to the session is only what a socket needs:

* **One write a loop turn.** `send` queues; the first one of a turn schedules one flush for all. `flush` writes now.
* **One timer.** Armed for the session's deadline, and not touched when bytes come: when it fires too early it is
  armed anew. A deadline can move closer in two ways only: the handshake ends (armed anew at once), or a frame begins
  (never sooner than `frame_seconds` from then, so no timer is armed for longer than that).
* **A close that is heard.** Closing a socket with unread bytes in it resets the connection and may destroy our last
  words on their way. So the closing side shuts down only its sending half, throws away what still comes, and ends
  when the other side has closed as well or `close_seconds` are over.
* **Reads go to one place.** A buffer that all connections of a server may share, for what a read brings is taken out
  of it before the next one. So it stays in the processor's cache, and nothing is made for a read and thrown away.
* **Back-pressure.** `write_paused`, `on_paused` and `on_resumed` tell that the peer does not keep up. Nothing is held
  back here: who sends decides. `on_paused` may come in the middle of a write; what is sent then goes behind it.

No call here waits, and none starts a task.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol, cast

from ..errors import ErrorCode, HeadgateError
from ..messages import Goodbye, Message, Ping
from ..wire import WORDLESS, Session, State
from .limits import CLOSE_SECONDS_MAX, JOIN_BYTES_MAX, READ_BYTES, WRITE_BUFFER_HIGH, WRITE_BUFFER_LOW

__all__ = ["Connection", "ConnectionHandler"]


class ConnectionHandler(Protocol):
    """Who is told what a connection lives through. An exception from here ends the connection, and is logged."""

    def on_opened(self, connection: Connection) -> None:
        """The socket is connected; the handshake is still to come."""

    def on_messages(self, connection: Connection, messages: list[Message]) -> None:
        """Messages of one read, in order; the last one may have ended the session."""

    def on_paused(self, connection: Connection) -> None:
        """WRITE_BUFFER_HIGH bytes are unsent: the peer reads more slowly than we write."""

    def on_resumed(self, connection: Connection) -> None:
        """WRITE_BUFFER_LOW is reached again."""

    def on_closed(self, connection: Connection, failure: HeadgateError | None) -> None:
        """The socket is gone; said once. No failure means that one side said goodbye."""


class Connection(asyncio.BufferedProtocol):
    """One connection; give `lambda: Connection(session, handler, clock)` to `create_connection` or `create_server`."""

    def __init__(
        self,
        session: Session,
        handler: ConnectionHandler,
        clock: Callable[[], float],
        buffer: memoryview | None = None,
    ) -> None:
        self.session = session
        self.peer = ""
        self.write_paused = False
        self.read_bytes = 0  # of the latest read
        self._paused_at = 0.0
        self.close_seconds = CLOSE_SECONDS_MAX
        self._handler = handler
        self._clock = clock
        self._buffer = memoryview(bytearray(READ_BYTES)) if buffer is None else buffer
        self._transport: asyncio.Transport | None = None
        self._loop: asyncio.AbstractEventLoop
        self._timer: asyncio.TimerHandle | None = None
        self._grace: asyncio.TimerHandle | None = None
        self._scheduled = False
        self._writing = False
        self._opening = True
        self._reading = True
        self._muted = False

    @property
    def closed(self) -> bool:
        """Nothing more may be sent."""
        return self.session.state is State.CLOSED

    @property
    def bytes_in(self) -> int:
        """Bytes received so far."""
        return self.session.bytes_received

    @property
    def bytes_out(self) -> int:
        """Bytes handed to the socket so far."""
        return self.session.bytes_sent

    @property
    def certificate(self) -> dict[str, Any] | None:
        """What the other side has shown, over TLS."""
        return None if self._transport is None else self._transport.get_extra_info("peercert")

    # --- What the owner says -----------------------------------------------------------------------------------------

    def send(self, message: Message) -> None:
        """Queue a message for the end of this turn. Raises LocalError when the session may not say it now."""
        self.queue(message)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush_scheduled)

    def queue(self, message: Message) -> None:
        """Queue a message for the next `flush`, which the caller sees to."""
        self.session.send(message)

    def flush(self) -> None:
        """Write what is queued now; close when the session is over."""
        transport = self._transport
        if transport is None or self._writing:
            return  # a pause was told in the middle of a write: what its handler sends goes behind it
        session = self.session
        self._writing = True
        try:
            while chunks := session.take():
                self._write(transport, chunks)
        finally:
            self._writing = False
        if self._opening and session.state is not State.OPENING:
            self._opening = False
            self._arm(self._clock())
        if session.state is State.CLOSED and self._grace is None:
            self._finish(transport)

    def close(self, code: int = ErrorCode.GOODBYE, text: str = "") -> None:
        """Say goodbye, write everything, then close. Safe to call twice."""
        if not self.session.closed:
            self.session.send(Goodbye(code, text))
        self.flush()

    def abort(self, reason: str = "cut on this side") -> None:
        """Close at once; what was not written is lost."""
        self.session.lost(reason)
        if self._transport is not None:
            self._transport.abort()

    def pause_reading(self) -> None:
        """Read nothing more for now: the peer's own socket fills up, and it has to wait."""
        if self._reading and self._transport is not None and not self._transport.is_closing():
            self._reading = False
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        if not (self._reading or self._muted) and self._transport is not None and not self._transport.is_closing():
            self._reading = True
            self._transport.resume_reading()

    def mute(self, on: bool) -> None:
        """Read nothing until it is said otherwise; the other side hears meanwhile that we live."""
        self._muted = on
        if on:
            self.pause_reading()
        elif not self.write_paused:
            self.resume_reading()

    # --- What the loop says ------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is there."""
        # uvloop's transports are transports by behaviour, not by class.
        transport = cast(asyncio.Transport, transport)
        self._loop = asyncio.get_running_loop()
        self._transport = transport
        self.peer = _address_text(transport.get_extra_info("peername"))
        transport.set_write_buffer_limits(high=WRITE_BUFFER_HIGH, low=WRITE_BUFFER_LOW)
        self._arm(self._clock())
        self._handler.on_opened(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next read goes."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """It went there; nothing refers to it afterwards."""
        self.read_bytes = nbytes
        messages = self.session.receive(self._buffer[:nbytes], self._clock())
        if messages:
            self._handler.on_messages(self, messages)
        # What the session itself had to say (PONG, ERROR) is queued without our `send`.
        if not self._scheduled:
            self.flush()

    def eof_received(self) -> None:
        """The other side sends no more: without a goodbye that is a loss."""
        self.session.lost(WORDLESS)

    def connection_lost(self, error: Exception | None) -> None:
        """The socket is gone."""
        self.session.lost(str(error) if error else "the connection was closed")
        self._transport = None
        for handle in (self._timer, self._grace):
            if handle is not None:
                handle.cancel()
        self._handler.on_closed(self, self.session.failure)

    def pause_writing(self) -> None:
        """The transport holds more than WRITE_BUFFER_HIGH."""
        self.write_paused = True
        self._paused_at = self._clock()
        self._handler.on_paused(self)

    def resume_writing(self) -> None:
        """The transport holds less than WRITE_BUFFER_LOW."""
        self.write_paused = False
        self._handler.on_resumed(self)

    # --- Inside ------------------------------------------------------------------------------------------------------

    def _flush_scheduled(self) -> None:
        self._scheduled = False
        self.flush()

    def _write(self, transport: asyncio.Transport, chunks: list[bytes]) -> None:
        if len(chunks) == 1:
            transport.write(chunks[0])
        elif sum(map(len, chunks)) <= JOIN_BYTES_MAX:
            transport.write(b"".join(chunks))
        else:
            # Some asyncio versions never pause the protocol in writelines (CVE-2024-12254); write always does.
            transport.writelines(chunks[:-1])
            transport.write(chunks[-1])

    def _arm(self, now: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        delay = min(self.session.next_deadline() - now, self.session.limits.frame_seconds)
        # A loop's clock may be coarser than ours: without a floor it would wake many times within one tick.
        self._timer = self._loop.call_later(max(delay, 0.001), self._wake)

    def _wake(self) -> None:
        self._timer = None
        if self.session.closed:
            return
        now = self._clock()
        # While we do not read, the silence is ours and proves nothing about the other side.
        if not self._reading:
            if self.write_paused and now - self._paused_at >= 2 * self.session.heartbeat_seconds:
                self.abort(f"took nothing of what it was sent for {2 * self.session.heartbeat_seconds:g} seconds")
                return
            if self._muted and not self.write_paused:
                self.session.send(Ping(int(now)))
                self.flush()
            self._timer = self._loop.call_later(self.session.heartbeat_seconds, self._wake)
            return
        self.session.wake(now)
        self.flush()
        if not self.session.closed:
            self._arm(now)

    def _finish(self, transport: asyncio.Transport) -> None:
        self._grace = self._loop.call_later(self.close_seconds, transport.abort)
        if self._timer is not None:
            self._timer.cancel()
        if transport.is_closing():
            return
        self.mute(False)
        self.resume_reading()
        try:
            if transport.can_write_eof():
                transport.write_eof()
            else:
                transport.close()
        except OSError:  # the other side has reset the connection, and the loop has not said so yet
            transport.abort()


def _address_text(name: Any) -> str:
    if isinstance(name, tuple) and len(name) >= 2:
        host, port = name[0], name[1]
        return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"
    return str(name or "unknown")
