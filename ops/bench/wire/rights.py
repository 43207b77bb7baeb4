"""`headgate bench rights`: what TLS, names, rights and their conditions cost, beside a broker without, in one run.

One publisher and one subscriber with the shipped client; each broker is a process of its own, on a core of its own.
Every event passes the condition, so all deliver the same; the condition is said by the subscriber, by its right, or by
nobody. The client has the other core and is the bottleneck: what a broker spends on an event tells its own cost.
Brokers take turns, round by round, and a cell is the median. Only the ratios mean anything.

Where nats-server is installed, it takes its turns without and with TLS: a bare client sends it records of the same
length, in writes of as many, and its ratio is to itself without.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from rich.table import Table

from headgate.protocol.aio import connect
from headgate.protocol.data import Scalar, pack_record

from ..kit import Child, Cores, MeasurementFailed, Server, cpu_seconds, running
from ..limits import CHUNK_EVENTS
from ..peers import BODY, Nats, NatsClient
from .report import console, short

__all__ = ["CASES", "Case", "Cost", "add_arguments", "measure", "run", "secured"]

_TOPIC = "bench/rights"
_CONDITION = "price < 1000 AND symbol = 'OTE'"
_COLUMNS: dict[str, list[Scalar]] = {"symbol": ["OTE"] * CHUNK_EVENTS, "price": [8.5] * CHUNK_EVENTS}
_BODIES = [BODY] * CHUNK_EVENTS
_LONE_EVENTS = 200
_ROLES = {
    "": '[roles.all]\npublish = [{ pattern = "bench" }]\nsubscribe = [{ pattern = "bench" }]\n',
    "limits": '[roles.all]\npublish = [{ pattern = "bench" }]\nsubscribe = [{ pattern = "bench" }]\n'
    "events_per_second = 1_000_000_000\nbytes_per_second = 1_000_000_000_000\n",
    "condition": '[roles.all]\npublish = [{ pattern = "bench" }]\n'
    f'subscribe = [{{ pattern = "bench", where = "{_CONDITION}" }}]\n',
    "both": f'[roles.all]\npublish = [{{ pattern = "bench", where = "{_CONDITION}" }}]\n'
    f'subscribe = [{{ pattern = "bench", where = "{_CONDITION}" }}]\n',
}


@dataclass(frozen=True, slots=True)
class Case:
    """One kind of broker and subscriber."""

    name: str
    tls: bool = False
    roles: str | None = None
    where: str = ""
    nats: bool = False


CASES = (
    Case("open"),
    Case("open, the subscriber says the condition", where=_CONDITION),
    Case("TLS", tls=True),
    Case("names", roles=""),
    Case("names, and limits that nobody meets", roles="limits"),
    Case("a right with the condition", roles="condition"),
    Case("that, and another to publish", roles="both"),
    Case("TLS and a right with the condition", tls=True, roles="condition"),
    Case("nats-server", nats=True),
    Case("nats-server, TLS", tls=True, nats=True),
)


def installed() -> tuple[Case, ...]:
    """What can be measured here."""
    has_nats = Nats().version() is not None
    return tuple(case for case in CASES if has_nats or not case.nats)


class Cost(NamedTuple):
    """Deliveries a second, the median time of a lone event, and processor time of the broker for each, in seconds."""

    rate: float
    lone: float
    spent: float


def secured(folder: Path, password: str = "") -> str:
    """Make certificates of the broker `bench` and a user `ann`, with the role `all`, in a folder; returns its token."""
    from headgate.broker.daemon.access import Token, User, UsersFile, new_token
    from headgate.ops.commands import cert

    arguments = argparse.Namespace(action="init", folder=folder, brokers="bench", hosts="", days=1)
    with redirect_stdout(StringIO()):
        cert.run(arguments)
    with UsersFile(folder / "users.toml").changing() as users:
        token, number, digest = new_token()
        users["ann"] = User(password, ["all"], tokens={number: Token(digest)})
    return token


class _Realm:
    """Certificates, users and roles for every case, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.token = secured(folder)
        for name, text in _ROLES.items():
            (folder / f"roles-{name}.toml").write_text(text, encoding="utf-8")

    def command(self, case: Case) -> Callable[[int, Path], list[str]]:
        """What starts a broker for it."""
        if case.nats:
            return Nats(str(self.folder / "bench") if case.tls else "").command

        def words(port: int, folder: Path) -> list[str]:
            line = [sys.executable, "-m", "headgate.ops.cli", "serve", "--listen", f"127.0.0.1:{port}"]
            line += ["--peer-listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data", str(folder / "data")]
            if case.tls:
                pair = self.folder / "bench"
                line += ["--tls-cert", f"{pair}.pem", "--tls-key", f"{pair}.key"]
            if case.roles is not None:
                roles = self.folder / f"roles-{case.roles}.toml"
                line += ["--users", str(self.folder / "users.toml"), "--roles", str(roles)]
            return line

        return words

    def client(self, case: Case) -> dict[str, Any]:
        """What its client gives `connect`."""
        tls = {"tls_ca": str(self.folder / "ca.pem")} if case.tls else {}
        return tls | ({"token": self.token} if case.roles is not None else {})


def measure(case: Case, realm: _Realm, seconds: float, cores: Cores) -> Cost:
    """The cost of one case at a broker of its own. Raises MeasurementFailed."""
    with running(case.name, realm.command(case), cores.server) as server:
        work = _work_with_nats if case.nats else _work
        child = Child("client", cores.generator, work, server, seconds, case.where, realm.client(case))
        try:
            return Cost(*child.result())
        finally:
            child.end()


def _work(server: Server, seconds: float, where: str, who: dict[str, Any]) -> tuple[float, float, float]:
    return asyncio.run(_publish_and_take(server, seconds, where, who))


def _work_with_nats(server: Server, seconds: float, where: str, who: dict[str, Any]) -> tuple[float, float, float]:
    return asyncio.run(_publish_to_nats(server, seconds, who.get("tls_ca", "")))


async def _publish_to_nats(server: Server, seconds: float, ca: str) -> tuple[float, float, float]:
    record = pack_record({"symbol": "OTE", "price": 8.5}, BODY, "")
    client = await NatsClient.connect(server.port, _TOPIC, len(record), ca)

    async def all_of(data: bytes, count: int) -> None:
        client.publish(data)
        while count:
            count -= await client.take()

    lone, one, many = [], client.encode(record, 1), client.encode(record, 8 * CHUNK_EVENTS)
    for _ in range(_LONE_EVENTS):
        began = time.perf_counter()
        await all_of(one, 1)
        lone.append(time.perf_counter() - began)
    events = 0
    used, began = cpu_seconds(server.pid), time.perf_counter()
    while (now := time.perf_counter()) < began + seconds:
        await all_of(many, 8 * CHUNK_EVENTS)
        events += 8 * CHUNK_EVENTS
    spent = cpu_seconds(server.pid) - used
    client.close()
    return events / (now - began), median(lone), spent / max(1, events)


async def _publish_and_take(
    server: Server, seconds: float, where: str, who: dict[str, Any]
) -> tuple[float, float, float]:
    async with await connect(f"127.0.0.1:{server.port}", wait_seconds=10.0, **who) as client:
        subscription = await client.subscribe(_TOPIC, where or None)
        batches = subscription.batches()
        lone = []
        for number in range(_LONE_EVENTS):
            began = time.perf_counter()
            await client.publish(_TOPIC, {"symbol": "OTE", "price": 8.5, "number": number}, BODY)
            await anext(batches)
            lone.append(time.perf_counter() - began)
        events = received = 0
        used, began = cpu_seconds(server.pid), time.perf_counter()
        while (now := time.perf_counter()) < began + seconds:
            await asyncio.gather(*(client.publish_batch(_TOPIC, _COLUMNS, _BODIES) for _ in range(8)))
            events += 8 * CHUNK_EVENTS
            while received < events:
                received += len(await anext(batches))
        elapsed = now - began
        return received / elapsed, median(lone), (cpu_seconds(server.pid) - used) / max(1, received)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `headgate bench rights`."""
    parser.add_argument("--rounds", type=int, default=3, help="how often everything is measured (default 3)")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each case is measured (default 2)")
    parser.add_argument("--json", action="store_true", help="an object a case")


def run(arguments: argparse.Namespace) -> int:
    """Measure and print; 0 when every case was measured."""
    cores = Cores.chosen()
    cases = installed()
    costs: dict[Case, list[Cost]] = {case: [] for case in cases}
    failed = False
    with TemporaryDirectory(prefix="headgate-bench-") as folder:
        realm = _Realm(Path(folder))
        for _ in range(arguments.rounds):
            for case in cases:
                try:
                    costs[case].append(measure(case, realm, arguments.seconds, cores))
                except MeasurementFailed as failure:
                    print(f"failed: {failure}", file=sys.stderr)
                    failed = True
    middle = {case: _middle(rows) for case, rows in costs.items() if rows}
    _print(middle, arguments.json)
    return 1 if failed else 0


def _middle(costs: list[Cost]) -> Cost:
    return Cost(*(median(column) for column in zip(*costs, strict=True)))


def _print(middle: dict[Case, Cost], as_json: bool) -> None:
    first: dict[bool, Cost] = {}  # of each server, by whether that is nats-server
    for case, cost in middle.items():
        first.setdefault(case.nats, cost)
    if as_json:
        for case, cost in middle.items():
            ratios = {
                f"{field}_ratio": getattr(cost, field) / getattr(first[case.nats], field) for field in Cost._fields
            }
            print(json.dumps({"case": case.name, **cost._asdict(), **ratios}))
        return
    table = Table(title="published and delivered, one publisher and one subscriber", title_justify="left")
    for heading in ("broker", "events a second", "ratio", "lone event p50", "ratio", "broker CPU an event", "ratio"):
        table.add_column(heading, justify="left" if heading == "broker" else "right")
    for case, cost in middle.items():
        base = first[case.nats]
        lone = f"{cost.lone * 1e6:.0f} µs"
        rate_ratio, lone_ratio = f"{cost.rate / base.rate:.2f}", f"{cost.lone / base.lone:.2f}"
        spent = f"{cost.spent * 1e6:.2f} µs"
        table.add_row(
            case.name, short(cost.rate), rate_ratio, lone, lone_ratio, spent, f"{cost.spent / base.spent:.2f}"
        )
    if middle:
        console().print(table)
