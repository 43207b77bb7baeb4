"""A server of one connection that follows a script: takes some bytes, says something, and keeps what it was told."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Scripted", "scripted"]

Answer = Callable[[bytes], bytes]


class Scripted:
    """What the server heard so far, and where it listens."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.heard = b""

    def serve(self, answer: Answer) -> None:
        """Give everything heard so far to `answer`, and say what it returns, until the other side closes."""
        connection, _ = self._listener.accept()
        with connection:
            while data := connection.recv(65536):
                self.heard += data
                said = answer(self.heard)
                if said:
                    connection.sendall(said)

    def close(self) -> None:
        """Listen no more."""
        self._listener.close()


@contextmanager
def scripted(answer: Answer) -> Iterator[Scripted]:
    """A scripted server in a thread that ends with its connection."""
    server = Scripted()
    thread = threading.Thread(target=server.serve, args=(answer,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        thread.join(5)
        server.close()
