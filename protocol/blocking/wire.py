"""One connection of the blocking client: a non-blocking socket around a Session, moved on by whoever calls `turn`."""

from __future__ import annotations

import selectors
import socket
import ssl
from collections import deque
from collections.abc import Callable
from contextlib import nullcontext

from ..errors import ConnectionLost
from ..messages import Message
from ..wire import WORDLESS, Role, Session
from .limits import READ_BYTES, UNSENT_BYTES_MAX
from .sharing import Sharing

__all__ = ["Wire"]


_NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


def _connected(host: str, port: int, seconds: float, security: ssl.SSLContext | None) -> socket.socket:
    plain = socket.create_connection((host, port), seconds)
    if security is None:
        return plain
    try:
        return security.wrap_socket(plain, server_hostname=host)
    except BaseException:
        plain.close()
        raise


class Wire:
    """Connects when made; raises OSError. Nothing happens on it between two turns. While it waits, `sharing` lets other
    threads have the client, and may wake it.
    """

    def __init__(
        self,
        host: str,
        port: int,
        connect_seconds: float,
        clock: Callable[[], float],
        sharing: Sharing | None = None,
        security: ssl.SSLContext | None = None,
    ) -> None:
        self._clock = clock
        self._sharing = sharing
        with nullcontext() if sharing is None else sharing.elsewhere():
            self._socket = _connected(host, port, connect_seconds, security)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._selector = selectors.DefaultSelector()
        self._wanted = selectors.EVENT_READ
        self._selector.register(self._socket, self._wanted)
        if sharing is not None:
            self._selector.register(sharing.alarm, selectors.EVENT_READ)
        self._unsent: deque[memoryview] = deque()
        self._unsent_bytes = 0
        self.session = Session(Role.CLIENT, clock())
        self.last_turn = clock()

    @property
    def paused(self) -> bool:
        """The broker reads more slowly than we write."""
        return self._unsent_bytes > UNSENT_BYTES_MAX

    def send(self, message: Message) -> None:
        """Queue a message for the next turn."""
        self.session.send(message)

    def turn(self, seconds: float | None) -> list[Message]:
        """Write what is queued, wait at most so long for something to come, and read it.

        Raises ConnectionLost or OSError when the connection has ended without a word.
        """
        self._write()
        now = self.last_turn = self._clock()
        patience = max(0.0, self.session.next_deadline() - now)
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._unsent else 0)
        if wanted != self._wanted:
            self._wanted = wanted
            self._selector.modify(self._socket, wanted)
        mask = self._select(patience if seconds is None else max(0.0, min(seconds, patience)))
        messages = self._read() if mask & selectors.EVENT_READ else []
        now = self.last_turn = self._clock()
        if not self.session.closed:
            self.session.wake(now)
        # What the session itself has to say, PONG and ERROR, and what the socket can take again.
        try:
            self._write()
        except OSError:
            # What was read was said before the end, and counts; the next turn meets the same end.
            if not messages:
                raise
        return messages

    def close(self) -> None:
        """Give the socket up."""
        self._selector.close()
        self._socket.close()

    def _select(self, seconds: float) -> int:
        """Wait at most so long; what the socket is ready for."""
        if self._sharing is None or not seconds:
            ready = self._selector.select(seconds)
        else:
            with self._sharing.elsewhere():
                ready = self._selector.select(seconds)
        if self._sharing is not None:
            self._sharing.hush()
        return sum(mask for key, mask in ready if key.fileobj is self._socket)

    def _read(self) -> list[Message]:
        try:
            data = self._socket.recv(READ_BYTES)
            while isinstance(self._socket, ssl.SSLSocket) and self._socket.pending():
                data += self._socket.recv(READ_BYTES)  # no selector tells of what is decrypted already
        except _NOT_NOW:
            return []
        if not data:
            self.session.lost(WORDLESS)
            raise ConnectionLost(WORDLESS)
        return self.session.receive(data, self._clock())

    def _write(self) -> None:
        chunks = self.session.take()
        if chunks:
            # Small frames together are one call; large records are not copied again.
            parts = chunks if sum(map(len, chunks)) > READ_BYTES else [b"".join(chunks)]
            self._unsent.extend(map(memoryview, parts))
            self._unsent_bytes += sum(map(len, parts))
        unsent = self._unsent
        while unsent:
            try:
                count = self._socket.send(unsent[0])
            except _NOT_NOW:
                return
            self._unsent_bytes -= count
            if count == len(unsent[0]):
                unsent.popleft()
            else:
                unsent[0] = unsent[0][count:]
