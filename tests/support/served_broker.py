"""`headgate serve` as a process on a port of its own, that can be killed and comes back with the same data."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from headgate.protocol.blocking import connect_blocking
from tests.system.processes import COMMAND, environment

__all__ = ["ServedBroker", "free_address", "served_broker"]

SECONDS_MAX = 30.0


def free_address() -> str:
    """An address that nobody has, as far as one can know."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


class ServedBroker:
    """A broker with its data in this folder."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder = folder
        self.address = free_address()
        self.log = folder / "broker.log"
        self._words = words
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, again or for the first time; returns when it answers."""
        places = ("--listen", self.address, "--peer-listen", free_address(), "--admin", free_address())
        command = [*COMMAND, "serve", *places, "--data", str(self.folder / "data"), *self._words]
        with self.log.open("ab") as errors:
            self._process = subprocess.Popen(command, stderr=errors, env=environment())
        with connect_blocking(self.address, wait_seconds=SECONDS_MAX):
            pass

    def kill(self) -> None:
        """SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(SECONDS_MAX)

    def stop(self) -> None:
        """In good order."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(SECONDS_MAX)
            finally:
                self._process.kill()
                self._process.wait()

    def store(self, *streams: str) -> None:
        """Let these streams be kept."""
        with connect_blocking(self.address) as client:
            for stream in streams:
                client.ask("schema.put", stream=stream, schema={"durability": "stored"})

    def events(self, stream: str) -> int:
        """How many events the logs of a stream have."""
        with connect_blocking(self.address) as client:
            return sum(log.next for log in client.logs(stream))


@contextmanager
def served_broker(folder: Path, *words: str) -> Iterator[ServedBroker]:
    """A broker for the block."""
    broker = ServedBroker(folder, *words)
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()
