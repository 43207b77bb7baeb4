"""`python -m headgate.broker` as a child process, for what only a process can show: signals, exit codes, death."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.waiting import wait_until

__all__ = ["Child", "child_broker"]

_ROOT = Path(__file__).resolve().parent.parent.parent
_SECONDS_MAX = 30.0


class Child:
    """One broker process; its log is JSON in a file."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.log = log

    @property
    def stderr(self) -> str:
        """All that it has said so far."""
        return self.log.read_text(encoding="utf-8")

    def lines(self, event: str = "") -> list[dict[str, Any]]:
        """Its log lines, of one kind or all."""
        whole = self.stderr.splitlines(keepends=True)
        found = [json.loads(line) for line in whole if line.startswith("{") and line.endswith("\n")]
        return [line for line in found if event in ("", line["event"])]

    @property
    def address(self) -> str:
        """Where clients connect."""
        return str(self.lines("listening")[-1]["clients"])

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to it, and to nobody else."""
        self.process.send_signal(number)

    async def exit(self) -> int:
        """Its exit code, once it has one."""
        await wait_until(lambda: self.process.poll() is not None, _SECONDS_MAX)
        return self.process.returncode


@asynccontextmanager
async def child_broker(folder: Path, before: tuple[str, ...] = (), **settings: Any) -> AsyncIterator[Child]:
    """A broker that listens; whatever happened to it, it is gone after the block. `before` is what runs it."""
    given = {
        "listen": "127.0.0.1:0",
        "peer_listen": "127.0.0.1:0",
        "admin": "127.0.0.1:0",
        "data": str(folder / "data"),
        "log_format": "json",
    }
    ours = {name: value for name, value in (given | settings).items() if not name.isupper()}
    variables = {f"HEADGATE_{name}".upper(): str(value) for name, value in ours.items()}
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("HEADGATE_", "NOTIFY_"))}
    log = folder / f"broker-{len(list(folder.glob('broker-*')))}.log"
    environment = clean | {"PYTHONPATH": str(_ROOT)} | variables
    # What belongs to the service manager keeps its own name.
    for name in [name for name in settings if name.isupper()]:
        environment[name] = str(settings[name])
    with log.open("wb") as stderr:
        command = [*before, sys.executable, "-m", "headgate.broker"]
        process = subprocess.Popen(command, stderr=stderr, env=environment, cwd=folder)
    child = Child(process, log)
    try:
        await wait_until(lambda: child.lines("listening") or process.poll() is not None, _SECONDS_MAX)
        assert process.poll() is None, child.stderr
        yield child
    finally:
        process.kill()
        process.wait()
