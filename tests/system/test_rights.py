"""Rights at real brokers: who gets in, what each is given and may do, and what changes while it is connected."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import headgate
from headgate.broker.daemon.access import Token, User, UsersFile, hash_password, new_token
from headgate.ops.cli import main
from headgate.protocol.blocking import connect_blocking
from headgate.protocol.errors import CannotConnect, ErrorCode, EventsRefused, HeadgateError, Refused, Unauthorised
from tests.support.child_broker import Child, child_broker
from tests.support.waiting import wait_until
from tests.system.processes import environment

pytestmark = pytest.mark.slow

ROLES = """
[roles.trader]
publish   = [{ pattern = "orders/eu" }]
subscribe = [{ pattern = "quotes", where = "desk = 'FX' AND price < 1000" }, { pattern = "orders" }]
durable   = ["trader-*"]

[roles.reader]
subscribe = [{ pattern = "orders" }]

[roles.feed]
publish = [{ pattern = "quotes" }, { pattern = "orders" }]

[roles.operator]
admin = true

[roles.auditor]
audit = true
"""
PASSWORD = "correct horse"
HASH = hash_password(PASSWORD)


class Realm:
    """A broker with users of all kinds, and the files that it watches."""

    def __init__(self, folder: Path) -> None:
        self.users, self.roles = folder / "users.toml", folder / "roles.toml"
        self.roles.write_text(ROLES)
        self.tokens: dict[str, str] = {}
        with UsersFile(self.users).changing() as users:
            for name, role in (
                ("ann", "trader"),
                ("bob", "trader reader"),
                ("feed", "feed"),
                ("op", "operator"),
                ("au", "auditor"),
            ):
                token, number, digest = new_token()
                self.tokens[name] = token
                users[name] = User(HASH, role.split(), [], {number: Token(digest)})
        (folder / "pw").write_text(f"{PASSWORD}\n")
        (folder / "wrong").write_text("wrong horse\n")
        self.password, self.wrong = str(folder / "pw"), str(folder / "wrong")
        self.address = ""

    def of(self, name: str) -> list[str]:
        """Words of a command for that user."""
        return ["--server", self.address, "--token", self.tokens[name]]

    async def connect(self, name: str) -> headgate.Client:
        """A client of that user."""
        return await headgate.connect(self.address, name=name, token=self.tokens[name], retry_seconds=5)


@asynccontextmanager
async def realm(folder: Path, **settings: Any) -> AsyncIterator[tuple[Realm, Child]]:
    made = Realm(folder)
    async with child_broker(folder, users=made.users, roles=made.roles, **settings) as child:
        made.address = child.address
        yield made, child


async def command(*words: str) -> int:
    return await asyncio.to_thread(main, list(words))


async def listen(*words: str) -> asyncio.subprocess.Process:
    """`headgate sub` as a process: it minds signals."""
    pipe = asyncio.subprocess.PIPE
    program = (sys.executable, "-m", "headgate.ops.cli", "sub")
    return await asyncio.create_subprocess_exec(*program, *words, stdout=pipe, stderr=pipe, env=environment())


async def test_the_command_line_as_it_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with realm(tmp_path) as (made, child):
        at = ["--server", made.address]
        ann = [*at, "--user", "ann", "--password-file", made.password]
        feed = [*at, "--token", made.tokens["feed"]]
        assert await command("status", *at) == 1
        assert "wants to know who you are" in capsys.readouterr().err
        assert await command("status", *at, "--user", "ann", "--password-file", made.wrong) == 1
        assert "password is wrong" in capsys.readouterr().err
        assert await command("status", *ann) == 1
        assert "for an operator" in capsys.readouterr().err
        assert await command("status", *at, "--token", made.tokens["op"]) == 0
        refused = await listen("secrets", *ann)
        assert b"do not let you read 'secrets'" in (await refused.communicate())[1] and refused.returncode == 1
        hearing = await listen("quotes", "--where", "volume > 10", "--json", "--count", "2", *ann)
        async with await made.connect("op") as operator:
            while not (rows := await operator.ask("subs")):
                await asyncio.sleep(0.05)
        assert rows[0]["condition"] == "`volume` > 10 AND `desk` = 'FX' AND `price` < 1000" and rows[0]["user"] == "ann"
        capsys.readouterr()
        lines = tmp_path / "lines"
        quotes = [("FX", 5, 50), ("EQ", 5, 50), ("FX", 5, 5), ("FX", 5000, 50), ("FX", 6, 60)]
        events = [
            {"topic": "quotes/a", "attrs": dict(zip(("desk", "price", "volume"), one, strict=True))} for one in quotes
        ]
        lines.write_text("".join(f"{json.dumps(event)}\n" for event in events))
        assert await command("pub", "--jsonl", str(lines), *feed) == 0
        printed, _ = await asyncio.wait_for(hearing.communicate(), 60)
        assert [json.loads(line)["attrs"]["price"] for line in printed.splitlines()] == [5, 6]
        # One batch of one stream: what is outside of the right is refused, and the rest is there.
        async with await made.connect("bob") as client:
            orders = await client.subscribe("orders")
            mixed = ["orders/eu", "orders/us", "orders/eu/x", "orders"]
            lines.write_text("".join(f"{json.dumps({'topic': topic})}\n" for topic in mixed))
            assert await command("pub", "--jsonl", str(lines), *ann) == 1
            told = capsys.readouterr().err
            assert "2 of 4 events, the first is number 1" in told and "published 2 events" in told
            assert [(await anext(orders)).topic for _ in range(2)] == ["orders/eu", "orders/eu/x"]
        event = ["--event", json.dumps({"topic": "quotes/a", "attrs": {"desk": "EQ", "price": 1}})]
        assert await command("explain", "quotes", "--json", *event, *ann) == 0
        explained = json.loads(capsys.readouterr().out)
        assert explained["withheld"] == "withheld by your rights" and not explained["delivered"]
        assert "desk" not in json.dumps(explained["predicates"])
        assert PASSWORD not in child.stderr and not any(token in child.stderr for token in made.tokens.values())


async def test_both_libraries_and_every_kind_of_refusal(tmp_path: Path) -> None:
    async with realm(tmp_path) as (made, _):
        for who in (
            {},
            {"user": "ann", "password": "wrong horse"},
            {"user": "eve", "password": "x"},
            {"token": "hg_x"},
        ):
            with pytest.raises(Unauthorised):
                await headgate.connect(made.address, **who, wait_seconds=30)
        with pytest.raises(Unauthorised):
            await asyncio.to_thread(connect_blocking, made.address)

        def publish() -> None:
            with connect_blocking(made.address, user="ann", password=PASSWORD) as client:
                client.publish("orders/eu", {"n": 1})
                with pytest.raises(EventsRefused) as refused:
                    client.publish_batch(["orders/eu", "orders", "orders/eu"], {"n": [2, 3, 4]}, [b""] * 3)
                assert refused.value.rows == (1,)
                with pytest.raises(Refused, match="publish this to 'quotes'"):
                    client.publish("quotes")

        async with await made.connect("bob") as client:
            orders = await client.subscribe("orders")
            await asyncio.to_thread(publish)
            assert [(await anext(orders)).attributes["n"] for _ in range(3)] == [1, 2, 4]
            for verb in ("status", "schema.list", "logs"):
                with pytest.raises(Refused) as said:
                    await client.ask(verb)
                assert said.value.code == ErrorCode.FORBIDDEN
            # Events that come together and are published one by one: each is told of itself alone.
        async with await made.connect("ann") as client:
            receipts = [client.publish(topic) for topic in ("orders/eu", "orders/us", "orders/eu")]
            told = await asyncio.gather(*receipts, return_exceptions=True)
            assert [isinstance(one, HeadgateError) for one in told] == [False, True, False]


async def test_stored_streams_are_read_and_kept_by_right(tmp_path: Path) -> None:
    async with realm(tmp_path, log_copies=1) as (made, _):
        async with await made.connect("op") as operator:
            for stream in ("quotes", "orders"):
                await operator.ask("schema.put", stream=stream, schema={"durability": "stored"})
        async with (
            await made.connect("feed") as feed,
            await made.connect("ann") as ann,
            await made.connect("bob") as bob,
        ):
            mine = await ann.subscribe("quotes", durable="trader-1", takeover=True)
            with pytest.raises(Refused, match="another user's"):
                await bob.subscribe("quotes", durable="trader-1", takeover=True)
            with pytest.raises(Refused, match="durable subscription 'other'"):
                await bob.subscribe("quotes", durable="other")
            for n, desk in enumerate(["FX", "EQ", "FX"]):
                await feed.publish("quotes/a", {"n": n, "desk": desk, "price": 1}, mode="stored")
            got = []
            for _ in range(2):
                event = await anext(mine)
                got.append(event.attributes["n"])
                await event.ack()
            assert got == [0, 2]
            with pytest.raises(Refused, match="another user's"):
                await bob.ask("durable_seek", name="trader-1", to="start")
            assert [row["name"] for row in await ann.ask("durables")] == ["trader-1"] and await bob.ask(
                "durables"
            ) == []
            # The owner may change what is asked for, and gets of that what is allowed.
            assert await command("durable", "set", "trader-1", "--where", "n > 2", *made.of("ann")) == 0
            for n, desk in enumerate(["FX", "EQ", "FX"], 2):
                await feed.publish("quotes/a", {"n": n, "desk": desk, "price": 1}, mode="stored")
            event = await anext(mine)
            assert event.attributes["n"] == 4
            assert await command("durable", "list", *made.of("ann")) == 0
            assert await command("dead", "list", "trader-1", *made.of("ann")) == 0
            assert await command("durable", "show", "trader-1", *made.of("bob")) == 1
            assert await command("ring", *made.of("ann")) == 1
            past = await bob.subscribe("quotes", start="start")
            assert [(await anext(past)).attributes["n"] for _ in range(2)] == [0, 2]
            with pytest.raises(Refused, match="rights do not let you read"):
                await feed.subscribe("quotes", start="start")
            # Numbered by a producer: what is refused is left out, and the others are stored in order.
            receipts = [
                ann.publish(f"orders/{place}", {"n": n}, mode="stored") for n, place in enumerate(["eu", "us", "eu"])
            ]
            told = await asyncio.gather(*receipts, return_exceptions=True)
            assert [isinstance(one, HeadgateError) for one in told] == [False, True, False]
            orders = await bob.subscribe("orders", start="start")
            assert [(await anext(orders)).attributes["n"] for _ in range(2)] == [0, 2]


async def test_what_changes_holds_while_connected(tmp_path: Path) -> None:
    async with (
        realm(tmp_path) as (made, child),
        await made.connect("feed") as feed,
        await made.connect("ann") as ann,
        await made.connect("bob") as bob,
    ):
        quotes, orders = await ann.subscribe("quotes"), await ann.subscribe("orders")
        theirs = await bob.subscribe("orders")

        async def publish(n: int, desk: str = "FX") -> None:
            await feed.publish("quotes", {"n": n, "desk": desk, "price": 1})

        await publish(1)
        assert (await anext(quotes)).attributes["n"] == 1
        made.roles.write_text(
            ROLES.replace("desk = 'FX' AND", "desk = 'EQ' AND").replace(', { pattern = "orders" }]', "]", 1)
        )
        changed = time.monotonic()
        with pytest.raises(Refused, match="do not let you read 'orders'"):
            await asyncio.wait_for(anext(orders), 10)
        assert time.monotonic() - changed < 10
        await wait_until(lambda: bool(quotes.gaps), 10)
        assert quotes.gaps[-1].reason == "your rights have changed"
        await publish(2)
        await publish(3, "EQ")
        assert (await anext(quotes)).attributes["n"] == 3
        assert theirs.lost == 0
        made.roles.write_text("[roles.trader]\nsubscribed = []\n")
        await wait_until(lambda: bool(child.lines("users and roles not read again")), 10)
        await publish(4, "EQ")
        assert (await anext(quotes)).attributes["n"] == 4, "what cannot be understood changes nothing"
        made.roles.write_text(ROLES)
        assert await command("user", "rm", "bob", "--users", str(made.users)) == 0
        with pytest.raises(HeadgateError, match="bob is no user"):
            await asyncio.wait_for(anext(theirs), 10)
        assert await command("token", "revoke", made.tokens["ann"], "--users", str(made.users)) == 0
        with pytest.raises(HeadgateError, match="no longer good"):
            await asyncio.wait_for(anext(quotes), 10)
        with pytest.raises(Unauthorised):
            await made.connect("ann")
        await publish(5)


async def test_who_publishes_faster_than_its_role_allows_is_slowed_and_nobody_else(tmp_path: Path) -> None:
    made = Realm(tmp_path)
    made.roles.write_text(ROLES.replace("[roles.trader]", "[roles.trader]\nevents_per_second = 100"))
    async with child_broker(tmp_path, users=made.users, roles=made.roles) as child:
        made.address = child.address
        async with (
            await headgate.connect(made.address, token=made.tokens["ann"], heartbeat_seconds=0.25) as ann,
            await made.connect("feed") as feed,
            await made.connect("bob") as bob,
        ):
            orders = await bob.subscribe("orders")
            began = time.monotonic()
            slowed = asyncio.create_task(_publish_batches(ann, 4))
            for n in range(500):
                await feed.publish("orders/us", {"n": n})
            await slowed
            # The first batch is what a second allows, the second one is a debt, and each after it waits a second.
            assert time.monotonic() - began > 1.5
            got = [await anext(orders) for _ in range(500 + 4 * 100)]
            theirs = [event.attributes["n"] for event in got if event.topic == "orders/us"]
            mine = [event.attributes["n"] for event in got if event.topic == "orders/eu"]
            assert (theirs, mine) == (list(range(500)), list(range(400)))
            assert (ann.reconnects, feed.reconnects, bob.reconnects, orders.lost) == (0, 0, 0, 0)


async def _publish_batches(client: headgate.Client, count: int) -> None:
    for first in range(0, 100 * count, 100):
        await client.publish_batch("orders/eu", {"n": list(range(first, first + 100))}, [b""] * 100)


async def test_the_admin_port_wants_a_name_but_for_health(tmp_path: Path) -> None:
    async with realm(tmp_path) as (made, child):
        admin = child.lines("listening")[-1]["admin"]

        def get(path: str, authorization: str = "") -> int:
            request = urllib.request.Request(f"http://{admin}{path}")
            if authorization:
                request.add_header("Authorization", authorization)
            try:
                with urllib.request.urlopen(request, timeout=10) as answer:
                    return int(answer.status)
            except urllib.error.HTTPError as error:
                return error.code

        def basic(name: str, password: str) -> str:
            return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()

        codes = {
            ("/healthz", ""): 200,
            ("/readyz", ""): 200,
            ("/metrics", ""): 401,
            ("/nothing", ""): 401,
            ("/metrics", basic("op", "wrong horse")): 401,
            ("/metrics", basic("ann", PASSWORD)): 403,
            ("/metrics", basic("op", PASSWORD)): 200,
            ("/metrics", f"Bearer {made.tokens['au']}"): 200,
            ("/metrics", "Basic !"): 401,
        }
        answers = await asyncio.gather(*(asyncio.to_thread(get, *asked) for asked in codes))
        assert dict(zip(codes, answers, strict=True)) == codes


async def test_a_certificate_says_who_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "certificates"
    assert main(["cert", "init", str(folder), "--brokers", "a"]) == 0
    assert main(["cert", "init", str(tmp_path / "other"), "--brokers", "a"]) == 0
    tls = {"tls_cert": folder / "a.pem", "tls_key": folder / "a.key", "tls_ca": folder / "ca.pem"}
    ca, client = folder / "ca.pem", {"tls_cert": folder / "client.pem", "tls_key": folder / "client.key"}
    foreign = {"tls_cert": tmp_path / "other" / "client.pem", "tls_key": tmp_path / "other" / "client.key"}
    async with realm(tmp_path, **tls, tls_client_certs="optional") as (made, child):
        with pytest.raises(Unauthorised, match="of no user here"):
            await headgate.connect(made.address, tls_ca=ca, **client)
        assert await command("user", "set", "ann", "--certificate", "cn:client", "--users", str(made.users)) == 0
        await wait_until(lambda: len(child.lines("users and roles")) > 1, 10)
        async with await headgate.connect(made.address, tls_ca=ca, **client) as ann:
            with pytest.raises(Refused, match="ann may not ask status"):
                await ann.ask("status")
            # What is said counts before what is shown.
            async with await headgate.connect(made.address, tls_ca=ca, token=made.tokens["op"], **client) as operator:
                assert (await operator.ask("status"))["broker"]
            with pytest.raises(CannotConnect):
                await headgate.connect(made.address, tls_ca=ca, **foreign)
            orders = await ann.subscribe("orders")
            assert await command("user", "set", "ann", "--certificate", "cn:other", "--users", str(made.users)) == 0
            with pytest.raises(HeadgateError, match="no longer good"):
                await asyncio.wait_for(anext(orders), 10)
