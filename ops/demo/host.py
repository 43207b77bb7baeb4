"""The demo's brokers: processes of their own on free ports, with data folders that go when they end.

Several of them form one cluster: each is told the addresses of all, and the play begins when all see each other.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from headgate.protocol.aio import Tasks, connect
from headgate.protocol.errors import CannotConnect

from .limits import LOG_LINES_KEPT, SETTLE_SECONDS, START_SECONDS, TICK_SECONDS
from .secure import OPEN, Realm, made_realm

__all__ = ["BrokerProcess", "running_brokers"]

_ROOT = Path(__file__).resolve().parent.parent.parent


@asynccontextmanager
async def running_brokers(count: int, secure: bool = False) -> AsyncIterator[tuple[list[BrokerProcess], Realm]]:
    """Brokers that run inside the `async with`, as one cluster. Raises CannotConnect when they do not become one."""
    names = ["demo"] if count == 1 else [f"demo-{number}" for number in range(1, count + 1)]
    peers = _free_addresses(count)
    with TemporaryDirectory(prefix="headgate-demo-") as folder:
        realm = made_realm(Path(folder) / "realm", names) if secure else OPEN
        brokers = [BrokerProcess(name, peer, peers, realm) for name, peer in zip(names, peers, strict=True)]
        try:
            await asyncio.gather(*(broker.start(Path(folder)) for broker in brokers))
            if count > 1:
                await _settled(brokers, realm)
            yield brokers, realm
        finally:
            await asyncio.gather(*(broker.stop() for broker in brokers))


class BrokerProcess:
    """The process `python -m headgate.broker` and its log. `peer` is its own address among `peers`."""

    def __init__(self, name: str, peer: str, peers: Sequence[str], realm: Realm = OPEN) -> None:
        self.name = name
        self._realm = realm
        self.address = ""
        self.admin = ""
        self.last_words: deque[str] = deque(maxlen=LOG_LINES_KEPT)
        self._peer = peer
        self._others = [one for one in peers if one != peer]
        self._process: asyncio.subprocess.Process | None = None
        self._tasks = Tasks()

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process is not None, "it was started"
        return self._process.pid

    async def start(self, folder: Path) -> None:
        """Start it and wait until it listens. Raises CannotConnect with its last words."""
        # In a session of its own, so that Ctrl-C reaches the demo alone, which then stops the broker in order.
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "headgate.broker"),
            env=self._environment(folder),
            stdin=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stderr is not None, "its errors were asked for"
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._wait_listening(self._process.stderr)
        except TimeoutError as error:
            raise CannotConnect("the demo's broker", f"it did not listen within {START_SECONDS:g} seconds") from error
        self._tasks.start(self._listen_on(self._process.stderr), "the demo's broker log")

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        assert self._process is not None, "it was started"
        self._process.send_signal(signal.SIGKILL)

    async def stop(self) -> None:
        """Ask it to stop, wait for it, and insist when it does not."""
        process = self._process
        if process is not None and process.returncode is None:
            process.terminate()
            try:
                async with asyncio.timeout(START_SECONDS):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()
        await self._tasks.stop()

    def _environment(self, folder: Path) -> dict[str, str]:
        """The caller's environment without its own brokers' settings, and with ours."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("HEADGATE_")}
        path = [str(_ROOT), *filter(None, [environment.get("PYTHONPATH")])]
        join = {"HEADGATE_JOIN": ",".join(self._others)} if self._others else {}
        return {
            **environment,
            "PYTHONPATH": os.pathsep.join(path),
            "HEADGATE_LISTEN": "127.0.0.1:0",
            "HEADGATE_PEER_LISTEN": self._peer,
            "HEADGATE_ADMIN": "127.0.0.1:0",
            "HEADGATE_DATA": str(folder / self.name),
            "HEADGATE_NAME": self.name,
            "HEADGATE_LOG_FORMAT": "json",
            **join,
            **self._realm.of_broker(self.name),
        }

    async def _wait_listening(self, errors: asyncio.StreamReader) -> None:
        async for line in errors:
            text = line.decode("utf-8", "replace").strip()
            self.last_words.append(text)
            if said := _listening(text):
                self.address, self.admin = said
                return
        raise CannotConnect("the demo's broker", "it ended at once: " + " / ".join(self.last_words))

    async def _listen_on(self, errors: asyncio.StreamReader) -> None:
        """Read its log until it ends, so that the pipe never fills."""
        async for line in errors:
            self.last_words.append(line.decode("utf-8", "replace").strip())


async def _settled(brokers: Sequence[BrokerProcess], realm: Realm) -> None:
    """Until every broker sees all of them, and their keys have found their places."""
    try:
        async with asyncio.timeout(SETTLE_SECONDS):
            for broker in brokers:
                async with await connect(broker.address, name="demo", **realm.of_client("feed")) as client:
                    while not _is_whole(await client.ask("ring"), len(brokers)):
                        await asyncio.sleep(TICK_SECONDS)
    except TimeoutError as error:
        words = f"{len(brokers)} brokers did not become one cluster within {SETTLE_SECONDS:g} seconds"
        raise CannotConnect("the demo's brokers", words) from error


def _is_whole(ring: dict[str, Any], count: int) -> bool:
    up = [broker for broker in ring["brokers"] if broker["state"] == "up"]
    return len(up) == count and ring["settled"] is True


def _free_addresses(count: int) -> list[str]:
    """Free addresses, chosen before any broker listens, so that each broker can be given all of them."""
    with ExitStack() as stack:
        listeners = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [f"127.0.0.1:{listener.getsockname()[1]}" for listener in listeners]


def _listening(text: str) -> tuple[str, str] | None:
    """(clients' address, admin's address) when this log line says that the broker listens."""
    try:
        line = json.loads(text)
    except ValueError:
        return None
    if not isinstance(line, dict) or line.get("event") != "listening":
        return None
    return str(line["clients"]), str(line["admin"])
