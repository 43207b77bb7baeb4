"""`headgate bench strangers`: 2,000 handshakes that fail, beside a client that works: it must not lose an event.

One broker with TLS, users and web tokens. A client publishes one small event after another at a steady pace and hears
them itself; first alone, then while a crowd comes, each time anew, in every way that a stranger can fail. Every event
has a number: what is missing, twice, or out of order makes the bench fail, and so does a stranger who gets in. Beside
that stands what the crowd costs: the time of a delivery, with it beside without, in one run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import ssl
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from rich.table import Table

from headgate.protocol.aio import Client, Subscription, Tasks, connect
from headgate.protocol.limits import HANDSHAKE_SECONDS_MAX
from headgate.protocol.messages import Hello
from headgate.protocol.wire import encode_chunks, frame

from ..kit import Child, Cores, MeasurementFailed, Server, running
from .report import console
from .rights import secured

__all__ = ["WAYS", "Outcome", "Times", "add_arguments", "measure", "run"]

_AT_A_TIME = 128
"""Strangers at a time: half of those that one address may have."""

_PACE_SECONDS = 0.002
_EVENTS_MIN = 2
_LATE_SECONDS = 30.0
_TOPIC = "bench/strangers"
_ISSUER, _AUDIENCE = "https://issuer.example", "bench"
_WELCOME_TYPE = 2
_ROLES = '[roles.all]\npublish = [{ pattern = "bench" }]\nsubscribe = [{ pattern = "bench" }]\n'

WAYS = ("plain", "half", "bytes", "nobody", "password", "token", "forged")
"""How strangers fail: without TLS, in the middle of its handshake, with bytes that are no frame, without credentials,
with a wrong password, with a token that nobody has, and with a web token that another key has signed."""


class Times(NamedTuple):
    """Of deliveries: how many, and the median and the 99th percentile of their seconds."""

    events: int
    middle: float
    slow: float

    @classmethod
    def of(cls, seconds: list[float]) -> Times:
        """Of at least two."""
        cuts = quantiles(seconds, n=100)
        return cls(len(seconds), cuts[49], cuts[98])


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it; `wrong` says what must not have been."""

    alone: Times
    beside: Times
    strangers: dict[str, int]
    wrong: tuple[str, ...]


class Realm:
    """Certificates, a user, the keys of an issuer, and what strangers say, in one folder."""

    def __init__(self, folder: Path) -> None:
        import jwt
        from cryptography.hazmat.primitives.asymmetric import ec
        from jwt.algorithms import ECAlgorithm

        from headgate.broker.daemon.access import hash_password, new_token

        self.folder = folder
        self.token = secured(folder, hash_password("correct horse"))
        (folder / "roles.toml").write_text(_ROLES, encoding="utf-8")
        ours, another = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        key = json.loads(ECAlgorithm.to_jwk(ours.public_key())) | {"kid": "k"}
        (folder / "jwks.json").write_text(json.dumps({"keys": [key]}), encoding="utf-8")
        claims = {"iss": _ISSUER, "aud": _AUDIENCE, "sub": "ann", "roles": ["all"], "exp": int(time.time()) + 86_400}
        self.said = {
            "password": "password ann:wrong horse",
            "token": f"token {new_token()[0]}",
            "forged": f"token {jwt.encode(claims, another, 'ES256', headers={'kid': 'k'})}",
        }

    def command(self, port: int, folder: Path) -> list[str]:
        """What starts the broker."""
        own = self.folder
        line = [sys.executable, "-m", "headgate.ops.cli", "serve", "--listen", f"127.0.0.1:{port}"]
        line += ["--peer-listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data", str(folder / "data")]
        line += ["--tls-cert", str(own / "bench.pem"), "--tls-key", str(own / "bench.key")]
        line += ["--users", str(own / "users.toml"), "--roles", str(own / "roles.toml")]
        return [*line, "--jwt-keys", str(own / "jwks.json"), "--jwt-issuer", _ISSUER, "--jwt-audience", _AUDIENCE]


def measure(count: int, seconds: float, cores: Cores) -> Outcome:
    """So many strangers beside a client. Raises MeasurementFailed."""
    with TemporaryDirectory(prefix="headgate-bench-") as folder:
        realm = Realm(Path(folder))
        with running("strangers", realm.command, cores.server) as server:
            return asyncio.run(_measure(server, realm, count, seconds, cores))


async def _measure(server: Server, realm: Realm, count: int, seconds: float, cores: Cores) -> Outcome:
    at: dict[str, Any] = {"tls_ca": str(realm.folder / "ca.pem"), "token": realm.token}
    async with await connect(f"127.0.0.1:{server.port}", wait_seconds=10.0, **at) as client:
        subscription = await client.subscribe(_TOPIC)
        until = time.perf_counter() + seconds
        alone = await _talk(client, subscription, 0, lambda: time.perf_counter() < until)
        crowd = Child("strangers", cores.generator, _come, server.port, count, realm.said)
        try:
            result = asyncio.get_running_loop().run_in_executor(None, crowd.result)
            beside = await _talk(client, subscription, len(alone), lambda: not result.done())
            strangers = await result
        finally:
            crowd.end()
        wrong = [f"{strangers[name]} strangers: {name}" for name in strangers if name not in ("refused", "cut")]
        if subscription.lost or client.reconnects:
            wrong.append(f"the client lost {subscription.lost} events and its connection {client.reconnects} times")
        return Outcome(Times.of(alone), Times.of(beside), dict(sorted(strangers.items())), tuple(wrong))


async def _talk(client: Client, subscription: Subscription, first: int, goes_on: Callable[[], bool]) -> list[float]:
    """Publish at the pace while that is so, and hear all of it: how long each took. Raises MeasurementFailed."""
    sent: list[float] = []
    heard: list[float] = []
    tasks = Tasks()
    hearing = tasks.start(_hear(subscription, first, sent, heard), "hear")
    try:
        due = time.perf_counter()
        while (goes_on() or len(sent) < _EVENTS_MIN) and not hearing.done():
            number = first + len(sent)
            sent.append(time.perf_counter())
            await client.publish(_TOPIC, {"number": number})
            due += _PACE_SECONDS
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
        late = time.perf_counter() + _LATE_SECONDS
        while len(heard) < len(sent) and not hearing.done():
            if time.perf_counter() > late:
                raise MeasurementFailed("strangers", f"{len(sent) - len(heard)} events did not come")
            await asyncio.sleep(_PACE_SECONDS)
        if hearing.done():
            await hearing
    finally:
        await tasks.stop()
    return heard


async def _hear(subscription: Subscription, first: int, sent: list[float], heard: list[float]) -> None:
    """Each event in its turn. Raises MeasurementFailed when another one comes, or none any more."""
    async for event in subscription:
        number = len(heard)
        if event.attributes != {"number": first + number}:
            raise MeasurementFailed("strangers", f"event {first + number} is missing: {event.attributes} came instead")
        heard.append(time.perf_counter() - sent[number])
    raise MeasurementFailed("strangers", "the subscription ended")


def _come(port: int, count: int, said: dict[str, str]) -> Counter[str]:
    """The crowd, in a process of its own: what became of each."""
    return asyncio.run(_crowd(port, count, said))


async def _crowd(port: int, count: int, said: dict[str, str]) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    places = asyncio.Semaphore(_AT_A_TIME)

    async def one(number: int) -> None:
        async with places:
            way = WAYS[number % len(WAYS)]
            try:
                outcomes[await asyncio.wait_for(_stranger(port, way, said), 4 * HANDSHAKE_SECONDS_MAX)] += 1
            except TimeoutError:
                outcomes["kept waiting"] += 1

    await asyncio.gather(*(one(number) for number in range(count)))
    return outcomes


async def _stranger(port: int, way: str, said: dict[str, str]) -> str:
    """Fail in one way; whether it was refused, cut, or let in."""
    context: ssl.SSLContext | None = None
    if way not in ("plain", "half"):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # a stranger does not care
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    except OSError:
        return "cut"
    try:
        writer.write(_words(way, said))
        await writer.drain()
        answer = await reader.read(4096)
    except OSError:
        return "cut"
    finally:
        writer.transport.abort()
    if len(answer) < 6 or context is None:
        return "cut"
    return "let in" if answer[5] == _WELCOME_TYPE else "refused"


def _words(way: str, said: dict[str, str]) -> bytes:
    if way == "plain":
        return b"GET / HTTP/1.1\r\n\r\n"
    if way == "half":
        return b"\x16\x03\x01\x02\x00\x01"  # the beginning of a ClientHello
    if way == "bytes":
        return os.urandom(64)
    return b"".join(frame(encode_chunks(Hello(credentials=said.get(way, "")))))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `headgate bench strangers`."""
    parser.add_argument("--strangers", type=int, default=2000, help="handshakes that fail (default 2000)")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long the client is alone before (default 5)")
    parser.add_argument("--json", action="store_true", help="one object")


def run(arguments: argparse.Namespace) -> int:
    """Measure and print; 0 when nothing is missing and nobody got in."""
    try:
        outcome = measure(arguments.strangers, arguments.seconds, Cores.chosen())
    except MeasurementFailed as failure:
        print(f"failed: {failure}", file=sys.stderr)
        return 1
    _print(outcome, arguments.json)
    for text in outcome.wrong:
        print(f"failed: {text}", file=sys.stderr)
    return 1 if outcome.wrong else 0


def _print(outcome: Outcome, as_json: bool) -> None:
    ratios: dict[str, Any] = {
        f"{field}_ratio": getattr(outcome.beside, field) / getattr(outcome.alone, field) for field in ("middle", "slow")
    }
    if as_json:
        row = {"alone": outcome.alone._asdict(), "beside": outcome.beside._asdict(), "strangers": outcome.strangers}
        print(json.dumps({**row, **ratios}))
        return
    table = Table(title="a client that publishes and hears 500 events a second", title_justify="left")
    for heading in ("", "events, none missing", "p50", "ratio", "p99", "ratio"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, times in (("alone", outcome.alone), ("beside strangers", outcome.beside)):
        middle, slow = (value / first for value, first in zip(times[1:], outcome.alone[1:], strict=True))
        table.add_row(
            name,
            str(times.events),
            f"{times.middle * 1e6:.0f} µs",
            f"{middle:.2f}",
            f"{times.slow * 1e6:.0f} µs",
            f"{slow:.2f}",
        )
    console().print(table)
    console().print(", ".join(f"{count} strangers {name}" for name, count in outcome.strangers.items()))
