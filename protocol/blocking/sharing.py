"""Sharing: one client for several threads. (Leader and followers, with a pipe to wake the leader.)

One lock guards the whole client. Of the threads that wait for something one at a time is the leader: it moves the
connection on, and gives the lock away while it waits for the socket. The others wait until the leader has had a turn
and look whether what they wait for has come; when the leader has what it wanted, another one takes over:

    follower --nobody leads--> leader --select, without the lock--> leader --it is done--> gone, the others are woken

Whoever gives the leader something to send, or ends the client, wakes it (`wake`).
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType

__all__ = ["Sharing"]


class Sharing:
    """The lock of a client, entered by a thread as often as it likes; `alarm` is the end of the pipe to watch."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._turned = threading.Condition(self._lock)
        self._leader: int | None = None
        self.alarm, self._bell = socket.socketpair()
        self.alarm.setblocking(False)
        self._bell.setblocking(False)
        self._rung = False

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    @property
    def led(self) -> bool:
        """Another thread moves the connection on."""
        return self._leader is not None and self._leader != threading.get_ident()

    @contextmanager
    def leading(self) -> Iterator[None]:
        """Move the connection on in this block; those who wait look again after it."""
        before, self._leader = self._leader, threading.get_ident()
        try:
            yield
        finally:
            self._leader = before
            self._turned.notify_all()

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """Wait for the world in this block, without the lock, however often this thread has it."""
        if not self._lock._is_owned():  # type: ignore[attr-defined]  # as threading.Condition does, here and below
            yield
            return
        saved = self._lock._release_save()  # type: ignore[attr-defined]
        try:
            yield
        finally:
            self._lock._acquire_restore(saved)  # type: ignore[attr-defined]

    def follow(self, seconds: float | None) -> None:
        """Wait until the leader has had a turn, or `tell_all` was called; at most so long."""
        self._turned.wait(seconds)

    def tell_all(self) -> None:
        """Let everybody look whether what they wait for has come, the leader as well."""
        self._turned.notify_all()
        self.wake()

    def wake(self) -> None:
        """The leader has something to do before the socket has."""
        if self.led and not self._rung:
            self._rung = True
            with suppress(OSError):
                self._bell.send(b"!")

    def hush(self) -> None:
        """The leader is awake."""
        if self._rung:
            self._rung = False
            with suppress(OSError):
                self.alarm.recv(1024)

    def close(self) -> None:
        """Nobody waits any more."""
        self.alarm.close()
        self._bell.close()
