"""The README is true: its tour is typed word for word, its programs are run, and what it shows is what comes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.served_broker import served_broker
from tests.support.spark_run import spark_session
from tests.system.processes import ROOT, Broker, environment, running_broker, wait_until

pytestmark = pytest.mark.slow

README = (ROOT / "README.md").read_text(encoding="utf-8")
ACTIVATE = ". .venv/bin/activate"
SERVE = "headgate serve "
KILL = "kill %"
ONE_BROKER = "127.0.0.1:7400"
SPARK_BROKERS = "one:7400,two:7400"


@dataclass
class Step:
    """A line typed, and the lines that the README shows below it."""

    command: str
    shown: list[str] = field(default_factory=list)


def fences(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def programs(address: str) -> list[str]:
    """The Python programs that connect to this address."""
    return [program for program in fences("python") if address in program]


def steps() -> list[Step]:
    found: list[Step] = []
    for line in "".join(fences("console")).splitlines():
        if line.startswith("$ "):
            found.append(Step(line[2:]))
        else:
            found[-1].shown.append(line)
    return found


def normal(line: str) -> str:
    """A line without what differs from run to run: ids, times of day, widths of columns."""
    line = re.sub(r'"id":"[0-9a-f]+-[0-9a-f]+\.\d+"', '"id":"…"', line)
    line = re.sub(r'"time":\d+(\.\d+)?', '"time":…', line)
    line = re.sub(r"^\d\d:\d\d:\d\d\.\d{3} ", "…: ", line)
    return " ".join(line.split())


class Terminal:
    """One terminal of the tour: everything that is typed there writes into one file."""

    def __init__(self, folder: Path, **settings: str) -> None:
        (folder / "bin").mkdir()
        shim = folder / "bin" / "headgate"
        shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m headgate.ops.cli "$@"\n')
        shim.chmod(0o755)
        self._screen = folder / "screen"
        self._screen.touch()
        self._folder = folder
        path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        self._environment = environment(PATH=path, **settings)
        self.background: list[subprocess.Popen[bytes]] = []

    def type(self, command: str) -> None:
        """Run a line to its end, or in the background."""
        with self._screen.open("ab") as screen:
            words = ["sh", "-c", f"exec {command[:-1]}" if command.endswith("&") else command]
            process = subprocess.Popen(words, stdout=screen, stderr=screen, env=self._environment, cwd=self._folder)
        if command.endswith("&"):
            self.background.append(process)
        else:
            assert process.wait(30) == 0, f"{command}\n{self._screen.read_text()}"

    def lines(self) -> list[str]:
        """What is to be seen, in its normal form."""
        return [normal(line) for line in self._screen.read_text().splitlines()]

    def close(self) -> list[int]:
        """Stop what runs in the background; the exit codes."""
        for process in self.background:
            process.send_signal(signal.SIGTERM)
        return [process.wait(30) for process in self.background]


def is_there(address: str) -> bool:
    import socket

    host, _, port = address.partition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def free_address() -> str:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def test_the_tour(tmp_path: Path) -> None:
    address = free_address()
    settings = {"HEADGATE_LISTEN": address, "HEADGATE_SERVER": address, "HEADGATE_ADMIN": "127.0.0.1:0"}
    terminal = Terminal(tmp_path, **settings)
    typed = []
    try:
        for step in steps():
            if step.command == ACTIVATE or step.command.startswith(KILL):
                continue
            before = len(terminal.lines())
            terminal.type(step.command)
            typed.append(step.command.split()[1])
            if step.command.startswith(SERVE):
                wait_until(lambda: is_there(address), 15)
            shown = [normal(line) for line in step.shown]
            wait_until(lambda shown=shown, before=before: set(shown) <= set(terminal.lines()[before:]), 15)  # type: ignore[misc]  # bound now
    finally:
        codes = terminal.close()
    assert codes == [0] * 3
    expected = {"serve", "sub", "pub", "explain", "schema", "streams", "subs", "status"}
    assert expected <= {*typed, "pub"}
    assert sum('"topic":' in line and '"id":' in line for line in terminal.lines()) == 1


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with running_broker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.mark.parametrize(
    ("place", "printed"),
    [(0, "quotes/ATHEX/OTE {'symbol': 'OTE', 'price': 8.7} dear\n"), (1, "{'total': 250}\n")],
)
def test_the_programs(broker: Broker, place: int, printed: str) -> None:
    program = programs(ONE_BROKER)[place]
    command = [sys.executable, "-c", program.replace(ONE_BROKER, broker.address)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, env=environment(), check=False)
    assert (done.stdout, done.stderr, done.returncode) == (printed, "", 0)


def test_the_program_for_spark(tmp_path: Path) -> None:
    (program,) = programs(SPARK_BROKERS)
    with spark_session() as spark, served_broker(tmp_path) as served:
        served.store("trades")
        names = {"spark": spark, "quotes": spark.range(100).selectExpr("CAST(id AS DOUBLE) AS price")}
        exec(program.replace(SPARK_BROKERS, served.address), names)
        assert {row.topic for row in names["stored"].collect()} == {"trades/all"}
        assert {row.attributes.price for row in names["stored"].collect()} == {float(price) for price in range(100)}


def test_every_program_is_run() -> None:
    assert len(fences("python")) == len(programs(ONE_BROKER)) + len(programs(SPARK_BROKERS)) == 3
