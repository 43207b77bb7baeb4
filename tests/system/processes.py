"""Real processes: a broker on free ports, the command line beside it, and what they say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["COMMAND", "ROOT", "Broker", "environment", "headgate", "running_broker", "start", "wait_until"]

ROOT = Path(__file__).resolve().parent.parent.parent
COMMAND = (sys.executable, "-m", "headgate.ops.cli")
SECONDS_MAX = 30.0


class Broker:
    """`headgate serve`, running."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, folder: Path) -> None:
        self.process = process
        self.log = log
        self.folder = folder
        self.address = self.admin = ""

    def lines(self) -> list[dict[str, object]]:
        """What it has logged."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def listening(self) -> bool:
        """Whether it has said where it listens; then its addresses are known."""
        for line in self.lines():
            if line["event"] == "listening":
                self.address, self.admin = str(line["clients"]), str(line["admin"])
        return bool(self.address) or self.process.poll() is not None


def environment(**more: str) -> dict[str, str]:
    """The caller's environment without settings of brokers of theirs."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HEADGATE_")}
    return clean | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"} | more


def start(*words: str, **more: str) -> subprocess.Popen[bytes]:
    """A verb in the background, with pipes."""
    pipe = subprocess.PIPE
    return subprocess.Popen([*COMMAND, *words], stdin=pipe, stdout=pipe, stderr=pipe, env=environment(**more))


def headgate(*words: str, text: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    """A verb to its end."""
    return subprocess.run(
        [*COMMAND, *words],
        input=text,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        env=environment(**more),
        check=False,
    )


def wait_until(true: Callable[[], object], seconds: float = SECONDS_MAX) -> None:
    """Until it is true; fails when it does not come to that."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


@contextmanager
def running_broker(folder: Path, *words: str, **more: str) -> Iterator[Broker]:
    """A broker on free ports with its data and its log in this folder; stopped at the end."""
    log = folder / "broker.log"
    ports = ("--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data", str(folder / "data"))
    command = [*COMMAND, "serve", *ports, "--log-format", "json", *words]
    with log.open("wb") as errors:
        process = subprocess.Popen(command, stderr=errors, env=environment(**more))
        broker = Broker(process, log, folder)
        try:
            wait_until(broker.listening)
            assert broker.address, log.read_text()
            yield broker
        finally:
            process.terminate()
            try:
                process.wait(SECONDS_MAX)
            finally:
                process.kill()
                process.wait()
