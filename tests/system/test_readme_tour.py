"""The README is true: its blocks are pasted word for word, its programs are run, and what it shows is what comes."""

from __future__ import annotations

import os
import re
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
ONE_BROKER = "127.0.0.1:7400"
SPARK_BROKERS = "one:7400,two:7400"


@dataclass
class Block:
    """Lines that are pasted in one go, and those that the README shows below them."""

    pasted: str
    shown: list[str] = field(default_factory=list)


def fences(language: str, text: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def section(heading: str) -> str:
    return README.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def programs(address: str) -> list[str]:
    """The Python programs that connect to this address."""
    return [program for program in fences("python") if address in program]


def blocks(heading: str) -> list[Block]:
    found: list[Block] = []
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```", section(heading), flags=re.MULTILINE | re.DOTALL):
        if language == "sh":
            found.append(Block(text))
        else:
            found[-1].shown += text.splitlines()
    return found


def normal(line: str) -> str:
    """A line without what differs from run to run: ids, times of day, widths of columns."""
    line = re.sub(r'"id":"[0-9a-f]+-[0-9a-f]+\.\d+"', '"id":"…"', line)
    line = re.sub(r'"time":\d+(\.\d+)?', '"time":…', line)
    line = re.sub(r"^\d\d:\d\d:\d\d\.\d{3} ", "…: ", line)
    return " ".join(line.split())


class Terminal:
    """A shell that reads what is pasted. Everything that is started there writes into one file."""

    def __init__(self, folder: Path, **settings: str) -> None:
        (folder / ".venv" / "bin").mkdir(parents=True)
        (folder / ".venv" / "bin" / "activate").touch()
        shim = folder / ".venv" / "bin" / "headgate"
        shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m headgate.ops.cli "$@"\n')
        shim.chmod(0o755)
        self._screen = folder / "screen"
        path = f"{shim.parent}{os.pathsep}{os.environ['PATH']}"
        with self._screen.open("ab") as screen:
            self._shell = subprocess.Popen(
                ["bash"], stdin=subprocess.PIPE, stdout=screen, stderr=screen, cwd=folder,
                env=environment(PATH=path, **settings), start_new_session=True,
            )  # fmt: skip

    def paste(self, text: str) -> None:
        """Write a block into the shell at once, and wait until it has come to its end."""
        mark = f"pasted-{self._screen.stat().st_size}"
        assert self._shell.stdin is not None
        # As a terminal has it, whoever runs in the foreground could read what was pasted behind it.
        self._shell.stdin.write(f"{text}\necho code=$? {mark}\n".encode())
        self._shell.stdin.flush()
        wait_until(lambda: mark in self._screen.read_text(), 60)
        assert f"code=0 {mark}" in self._screen.read_text(), self._screen.read_text()

    def lines(self) -> list[str]:
        """What is to be seen, in its normal form."""
        return [normal(line) for line in self._screen.read_text().splitlines()]

    def close(self) -> None:
        """Stop whatever was left."""
        assert self._shell.stdin is not None
        self._shell.stdin.write(b"kill $(jobs -p) 2>/dev/null; wait\n")
        self._shell.stdin.close()
        self._shell.wait(60)


def free_address() -> str:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def test_the_tour(tmp_path: Path) -> None:
    address = free_address()
    terminal = Terminal(tmp_path, HEADGATE_LISTEN=address, HEADGATE_SERVER=address, HEADGATE_ADMIN="127.0.0.1:0")
    found = blocks("A five-minute tour")
    try:
        for block in found:
            before = len(terminal.lines())
            terminal.paste(block.pasted)
            shown = [normal(line) for line in block.shown]
            wait_until(lambda shown=shown, before=before: set(shown) <= set(terminal.lines()[before:]), 15)  # type: ignore[misc]  # bound now
    finally:
        terminal.close()
    typed = set(re.findall(r"headgate (\w+)", "".join(block.pasted for block in found)))
    assert typed == {"serve", "sub", "pub", "explain", "schema", "durable", "streams", "subs", "status"}
    assert sum('"topic":' in line and '"id":' in line for line in terminal.lines()) == 1
    assert not [line for line in terminal.lines() if "cannot connect" in line or "Traceback" in line]


def test_three_brokers_and_what_is_kept_pasted_in_one_go(tmp_path: Path) -> None:
    """But for the audit, for which Spark takes half a minute: `tests/system/test_audit.py` runs it."""
    text = blocks("Three brokers")[0].pasted
    kept = [line for line in blocks("Kept, replayed, audited")[0].pasted.splitlines() if "headgate audit" not in line]
    for port in sorted(set(re.findall(r"127\.0\.0\.1:(74\d\d)", text))):
        text = text.replace(f"127.0.0.1:{port}", free_address())
    server = re.findall("--listen ([0-9.:]+)", text)[0]
    terminal = Terminal(tmp_path, HEADGATE_SERVER=server, HEADGATE_LOG_LEVEL="warning")
    try:
        terminal.paste(text)
        terminal.paste("\n".join(kept))
        lines = terminal.lines()
    finally:
        terminal.close()
    assert any("broker" in line and "ring" in line for line in lines)
    assert "stream trades has its schema" in lines and "published 1 event" in lines
    assert [line for line in lines if "trades/NYSE/IBM price=182.1" in line], lines


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with running_broker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.mark.parametrize(
    ("place", "printed"),
    [(0, "quotes/ATHEX/OTE {'symbol': 'OTE', 'price': 8.7} dear\n"), (1, "{'total': 250}\n"), (2, "")],
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
    assert len(fences("python")) == len(programs(ONE_BROKER)) + len(programs(SPARK_BROKERS)) == 4
