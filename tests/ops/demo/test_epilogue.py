"""The epilogue: what it says where Spark cannot run, what it asks of Spark, and what it makes of the answer."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from headgate.ops.demo import epilogue
from headgate.ops.demo.audience import WISHES, Wish
from headgate.ops.demo.epilogue import STREAM, audited, play_epilogue
from headgate.ops.demo.limits import AUDIT_QUOTES, BATCH_EVENTS
from headgate.ops.demo.view import View


def line(**counts: int) -> dict[str, Any]:
    found = {"pattern": "audited", "condition": "price > 1", "expected": 5, "delivered": 5}
    return {**found, "lost": 0, "duplicate": 0, "wrong": 0, **counts}


CLEAN = {"clean": True, "events": 20_000, "lines": [line()], "troubles": []}
BAD = {"clean": False, "events": 20_000, "lines": [line(lost=2, delivered=3)], "troubles": ["one is unknown"]}


class Client:
    """Takes whatever is published."""

    def __init__(self) -> None:
        self.said: list[tuple[str, Any]] = []
        self.topics: list[str] = []
        self.patterns: list[str] = []

    async def ask(self, verb: str, **details: Any) -> None:
        self.said.append((verb, details))

    async def subscribe(self, pattern: str, where: str | None) -> Client:
        self.patterns.append(pattern)
        return self

    async def batches(self) -> AsyncIterator[list[int]]:
        yield [1, 2]
        await asyncio.Event().wait()

    async def publish_batch(self, topics: list[str], columns: Any, bodies: list[bytes], mode: str) -> None:
        assert mode == "stored"
        self.topics += topics


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    client = Client()

    @asynccontextmanager
    async def session() -> AsyncIterator[Client]:
        yield client

    async def connect(servers: str, **details: Any) -> Any:
        assert servers == "b:1,b:2"
        return session()

    monkeypatch.setattr(epilogue, "missing_parts", lambda: "")
    monkeypatch.setattr(epilogue, "connect", connect)
    return client


def test_a_wish_moves_to_the_audited_stream() -> None:
    assert audited(Wish("a", "quotes/*/IBM", "price > 1")) == Wish("a", "audited/*/IBM", "price > 1")
    assert audited(Wish("a", "quotes", "")).pattern == STREAM


async def test_where_spark_cannot_run_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epilogue, "missing_parts", lambda: "Java 17: apt install x")
    said = io.StringIO()
    assert await play_epilogue(["b:1"], 7, View(True, said)) is None
    assert "it needs Java 17: apt install x" in said.getvalue()


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (CLEAN, "Spark agrees, from the logs of 20,000 quotes: nothing lost"),
        (BAD, "2 lost  audited WHERE price > 1\n  one is unknown\nSPARK DOES NOT AGREE"),
    ],
    ids=["clean", "not clean"],
)
async def test_quotes_are_stored_and_spark_has_the_last_word(
    monkeypatch: pytest.MonkeyPatch, client: Client, told: dict[str, Any], words: str
) -> None:
    async def audit(servers: str) -> dict[str, Any]:
        return told

    monkeypatch.setattr(epilogue, "_audit", audit)
    said = io.StringIO()
    assert await play_epilogue(["b:1", "b:2"], 7, View(True, said), quiet_seconds=0.05) == told
    assert client.said == [("schema.put", {"stream": STREAM, "schema": {"attributes": {}, "audit": True}})]
    assert len(client.topics) == AUDIT_QUOTES and AUDIT_QUOTES % BATCH_EVENTS == 0
    assert {topic.split("/")[0] for topic in client.topics} == {STREAM} and len(client.patterns) == len(WISHES)
    assert words in said.getvalue()


def answering(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """The audit is this program."""
    run = asyncio.create_subprocess_exec

    async def execute(python: str, *words: str, **details: Any) -> Any:
        assert words[:3] == ("-m", "headgate.ops.cli", "audit") and "--json" in words
        return await run(sys.executable, "-c", program, **details)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", execute)


async def test_the_answer_is_the_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, f"print('noise'); print({json.dumps({'streams': [CLEAN]})!r})")
    assert await epilogue._audit("b:1") == CLEAN


async def test_an_audit_that_dies_is_not_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, "import sys; sys.exit('no memory left')")
    told = await epilogue._audit("b:1")
    assert not told["clean"] and told["troubles"] == ["the audit did not run: no memory left"]
