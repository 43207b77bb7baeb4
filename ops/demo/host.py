"""The demo's broker: a process of its own on free ports, with a data folder that goes when it ends."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from protocol.aio.tasks import Tasks
from protocol.errors import CannotConnect

from .limits import LOG_LINES_KEPT, START_SECONDS

__all__ = ["BrokerProcess", "running_broker"]

_ROOT = Path(__file__).resolve().parent.parent.parent


@asynccontextmanager
async def running_broker() -> AsyncIterator[BrokerProcess]:
    """A broker that runs inside the `async with`."""
    with TemporaryDirectory(prefix="headgate-demo-") as folder:
        broker = BrokerProcess()
        try:
            await broker.start(Path(folder))
            yield broker
        finally:
            await broker.stop()


class BrokerProcess:
    """`python -m broker` and what it says."""

    def __init__(self) -> None:
        self.address = ""
        self.admin = ""
        self.last_words: deque[str] = deque(maxlen=LOG_LINES_KEPT)
        self._process: asyncio.subprocess.Process | None = None
        self._tasks = Tasks()

    async def start(self, folder: Path) -> None:
        """Start it and wait until it listens. Raises CannotConnect with its last words."""
        # In a session of its own, so that Ctrl-C reaches the demo alone, which then stops the broker in order.
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "broker"),
            env=_environment(folder),
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

    async def _wait_listening(self, errors: asyncio.StreamReader) -> None:
        async for line in errors:
            text = line.decode("utf-8", "replace").strip()
            self.last_words.append(text)
            if said := _listening(text):
                self.address, self.admin = said
                return
        raise CannotConnect("the demo's broker", "it ended at once: " + " / ".join(self.last_words))

    async def _listen_on(self, errors: asyncio.StreamReader) -> None:
        """Nobody may write into a full pipe for ever."""
        async for line in errors:
            self.last_words.append(line.decode("utf-8", "replace").strip())


def _environment(folder: Path) -> dict[str, str]:
    """The caller's environment without its own brokers' settings, and with ours."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HEADGATE_")}
    path = [str(_ROOT), *filter(None, [environment.get("PYTHONPATH")])]
    return environment | {
        "PYTHONPATH": os.pathsep.join(path),
        "HEADGATE_LISTEN": "127.0.0.1:0",
        "HEADGATE_ADMIN": "127.0.0.1:0",
        "HEADGATE_DATA": str(folder / "data"),
        "HEADGATE_NAME": "demo",
        "HEADGATE_LOG_FORMAT": "json",
    }


def _listening(text: str) -> tuple[str, str] | None:
    """(clients' address, admin's address) when this log line says that the broker listens."""
    try:
        line = json.loads(text)
    except ValueError:
        return None
    if not isinstance(line, dict) or line.get("event") != "listening":
        return None
    return str(line["clients"]), str(line["admin"])
