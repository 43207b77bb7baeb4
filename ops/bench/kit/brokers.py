"""A cluster of real processes: `headgate serve` on the loopback, which can be killed, paused, resumed and restarted.

Every broker keeps its name, its three ports and its data folder through all its lives, so that clients and the other
brokers find it where it was. Its log of each life is a file of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from socket import create_server
from tempfile import TemporaryDirectory
from typing import Any

from headgate.protocol.aio import connect
from headgate.protocol.errors import HeadgateError

from ..limits import SETTLE_SECONDS_MAX, START_SECONDS_MAX
from .harness import SOURCES, MeasurementFailed

__all__ = ["Fleet", "Member", "fleet", "ring_of"]

_ASK_SECONDS = 2.0
_POLL_SECONDS = 0.05
_PORTS = range(20_000, 32_000)
"""Below those that systems give to outgoing connections."""


class Member:
    """One broker of the cluster: its ports and folder over all its incarnations, and its process while it runs."""

    def __init__(
        self, name: str, ports: Sequence[int], folder: Path, seeds: Sequence[str], options: Sequence[str] = ()
    ) -> None:
        clients, peers, admin = (f"127.0.0.1:{port}" for port in ports)
        self.name = name
        self.address = clients
        self.peer_address = peers
        self.admin = admin
        self.lives = 0
        self.stopped = False
        self._folder = folder
        self._seeds = [seed for seed in seeds if seed != peers]
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of this incarnation."""
        assert self._process is not None, "it was started"
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether its process exists, paused or not."""
        return self._process is not None and self._process.poll() is None

    def start(self, *wrapper: str) -> None:
        """Start the process. `wrapper` are words before the module, such as those that profile it."""
        self.lives += 1
        command = [sys.executable, *wrapper, "-m", "headgate.ops.cli", "serve", "--name", self.name]
        command += ["--listen", self.address, "--peer-listen", self.peer_address, "--admin", self.admin]
        command += ["--data", str(self._folder / self.name), "--log-format", "json", *self._options]
        for seed in self._seeds:
            command += ["--join", seed]
        clean = {name: value for name, value in os.environ.items() if not name.startswith("HEADGATE_")}
        path = [str(SOURCES), *filter(None, [clean.get("PYTHONPATH")])]
        with self.log(self.lives).open("wb") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=clean | {"PYTHONPATH": os.pathsep.join(path)},
                start_new_session=True,
            )
        self.stopped = False

    def log(self, life: int) -> Path:
        """The log of an incarnation; the first is 1."""
        return self._folder / f"{self.name}-{life}.log"

    def lines(self) -> list[dict[str, Any]]:
        """The logs of all incarnations."""
        texts = [self.log(life).read_text(encoding="utf-8", errors="replace") for life in range(1, self.lives + 1)]
        whole = [line for text in texts for line in text.splitlines() if line.startswith("{") and line.endswith("}")]
        return [json.loads(line) for line in whole]

    def faults(self) -> list[str]:
        """Lines that no healthy broker logs."""
        return [json.dumps(line) for line in self.lines() if line.get("level") in ("error", "critical")]

    def kill(self) -> None:
        """Kill it with SIGKILL; returns when the process is gone."""
        assert self._process is not None, "it was started"
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Pause it with SIGSTOP."""
        os.kill(self.pid, signal.SIGSTOP)
        self.stopped = True

    def wake(self) -> None:
        """Resume it with SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)
        self.stopped = False

    def end(self) -> None:
        """Stop it with SIGTERM, and with SIGKILL when that is not enough."""
        if self._process is None or not self.alive:
            return
        if self.stopped:
            self.wake()
        self._process.terminate()
        try:
            self._process.wait(START_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()

    async def listening(self) -> None:
        """Wait until it listens. Raises MeasurementFailed with the end of its log when it ends instead."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while '"listening"' not in self.log(self.lives).read_text(encoding="utf-8", errors="replace"):
            if not self.alive or time.monotonic() > deadline:
                words = self.log(self.lives).read_text(encoding="utf-8", errors="replace").splitlines()[-3:]
                raise MeasurementFailed(self.name, f"does not listen: {' / '.join(words) or 'it said nothing'}")
            await asyncio.sleep(_POLL_SECONDS)


class Fleet:
    """All brokers of one cluster."""

    def __init__(self, count: int, folder: Path, ports_among: range = _PORTS, options: Sequence[str] = ()) -> None:
        ports = _free_ports(3 * count, ports_among)
        seeds = [f"127.0.0.1:{port}" for port in ports[1::3]]
        self.members = [Member(f"b{one}", ports[3 * one : 3 * one + 3], folder, seeds, options) for one in range(count)]

    @property
    def addresses(self) -> list[str]:
        """The addresses for clients, in the order of the names."""
        return [member.address for member in self.members]

    def named(self, name: str) -> Member:
        """The broker of that name."""
        return next(member for member in self.members if member.name == name)

    def addresses_from(self, first: int) -> str:
        """The addresses of all brokers for a client, beginning with this one."""
        addresses = self.addresses
        return ",".join(addresses[first % len(addresses) :] + addresses[: first % len(addresses)])

    async def start(self, *wrapper: str) -> None:
        """Start all, and wait until they are one cluster."""
        for member in self.members:
            member.start(*wrapper)
        await self.together()

    async def together(self) -> None:
        """Wait until all listen and are one cluster."""
        await asyncio.gather(*(member.listening() for member in self.members))
        await self.settled()

    async def settled(self, seconds: float = SETTLE_SECONDS_MAX) -> float:
        """Wait until every broker sees all living ones and answers for its keys; returns the seconds."""
        began = time.monotonic()
        alive = [member for member in self.members if member.alive and not member.stopped]
        rings: list[dict[str, Any] | None] = [None] * len(alive)
        while time.monotonic() < began + seconds:
            rings = await asyncio.gather(*(ring_of(member.address) for member in alive))
            if all(ring is not None and _whole(ring, len(alive)) for ring in rings):
                return time.monotonic() - began
            await asyncio.sleep(_POLL_SECONDS)
        views = [_words(member, ring) for member, ring in zip(alive, rings, strict=True)]
        raise MeasurementFailed("the cluster", f"did not settle within {seconds:g} seconds: {'; '.join(views)}")

    def end(self) -> None:
        """Stop all brokers."""
        for member in self.members:
            if member.alive and member.stopped:
                member.wake()
        for member in self.members:
            member.end()


def _free_ports(count: int, among: range) -> list[int]:
    """Free ports below those of outgoing connections, so that they stay free while their broker is dead."""
    ports: list[int] = []
    with ExitStack() as stack:
        for port in Random().sample(among, len(among)):
            try:
                stack.enter_context(create_server(("127.0.0.1", port)))
            except OSError:
                continue
            ports.append(port)
            if len(ports) == count:
                return ports
    raise MeasurementFailed("this machine", f"has no {count} free ports from {among.start} to {among.stop - 1}")


def _words(member: Member, ring: dict[str, Any] | None) -> str:
    """One broker's view of the cluster as a text."""
    if ring is None:
        return f"{member.name} does not say"
    others = ", ".join(f"{broker['name']} {broker['state']}" for broker in ring["brokers"])
    return f"{member.name} in a {ring['role']}, {'settled' if ring['settled'] else 'not settled'}, sees {others}"


def _whole(ring: dict[str, Any], count: int) -> bool:
    up = [broker for broker in ring["brokers"] if broker["state"] == "up"]
    return len(up) == count and ring["settled"] is True


async def ring_of(address: str) -> dict[str, Any] | None:
    """The ring as that broker sees it; None when it does not say."""
    try:
        async with asyncio.timeout(_ASK_SECONDS), await connect(address, retry_seconds=0.0) as client:
            ring: dict[str, Any] = await client.ask("ring")
            return ring
    except (HeadgateError, OSError, TimeoutError):
        return None


@asynccontextmanager
async def fleet(
    count: int, folder: Path | None = None, *wrapper: str, options: Sequence[str] = ()
) -> AsyncIterator[Fleet]:
    """A settled cluster, ended after the block; without a folder its data and logs go with it. `options` are more words
    of `headgate serve`.
    """
    with TemporaryDirectory(prefix="headgate-fleet-") as own:
        cluster = Fleet(count, folder or Path(own), options=options)
        try:
            await cluster.start(*wrapper)
            yield cluster
        finally:
            cluster.end()
