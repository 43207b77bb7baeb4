"""`dead`: what a durable subscription has given up, and what is asked to hand it out again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.ops.cli import main
from headgate.protocol.client import Chunk
from headgate.protocol.data import LogKind, LogName, Row, make_batch
from headgate.protocol.errors import ErrorCode, Refused
from tests.ops.fakes import FakeClient, use_client

Capture = pytest.CaptureFixture[str]

ROWS = [
    {"place": f"ann@5:{at}", "stream": "orders", "delivered": at - 6, "reason": why, "time": 1_700_000_000_000_000}
    for at, why in ((7, "broken"), (9, "max_deliver"))
]


class Client(FakeClient):
    """Its log has the events at 6 and 7 alone."""

    async def read_log(self, name: LogName, position: int, events: int = 0) -> Chunk:
        assert (name, events) == (LogName("ann", 5, LogKind.EVENTS, "orders"), 1)
        if position == 9:
            raise Refused(ErrorCode.NOT_FOUND, "no broker has that")
        batch = make_batch(["orders/a", "orders/b"], {"total": [5, 6]}, [b"text", b"\xff"])
        parts: list[Any] = [batch.topics, batch.lengths, {}, False, batch.records]
        return Chunk([Row(6, 2, 1, "o", 40, b"", *parts)], 0, 8, 10)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    return use_client(monkeypatch, Client({"dead": ROWS, "dead_replay": {"replayed": 2}}))


def test_list(client: FakeClient, capsys: Capture) -> None:
    assert main(["dead", "list", "mail"]) == 0
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["given", "up", "id", "stream", "delivered", "reason"]
    assert first.split()[2:] == ["ann@5:7", "orders", "1", "broken"] and "ann@5:9" in second
    assert main(["dead", "list", "mail", "--json"]) == 0
    assert [one["id"] for one in json.loads(capsys.readouterr().out)] == ["ann@5:7", "ann@5:9"]
    assert client.asked == [("dead", {"name": "mail"})] * 2


def test_list_without_a_name_tells_of_all_that_gave_something_up(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def durables(at: str, after: str = "") -> list[dict[str, Any]]:
        return [] if after else [{"name": "mail", "dead": 2}, {"name": "news", "dead": 0}]

    client = use_client(monkeypatch, FakeClient({"durables": durables, "dead": ROWS}))
    assert main(["dead", "list"]) == 0
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["given", "up", "name", "id", "stream", "delivered", "reason"]
    assert first.split()[2:] == ["mail", "ann@5:7", "orders", "1", "broken"] and "ann@5:9" in second
    assert main(["dead", "list", "--json"]) == 0
    assert [(one["name"], one["id"]) for one in json.loads(capsys.readouterr().out)] == [
        ("mail", "ann@5:7"),
        ("mail", "ann@5:9"),
    ]
    assert [asked for asked in client.asked if asked[0] == "dead"] == [("dead", {"name": "mail"})] * 2


def test_show(client: FakeClient, capsys: Capture) -> None:
    assert main(["dead", "show", "mail", "--json"]) == 0
    found, lost = json.loads(capsys.readouterr().out)
    assert (found["topic"], found["attrs"], found["body_base64"]) == ("orders/b", {"total": 6}, "/w==")
    assert lost["reason"] == "max_deliver" and "body" not in lost
    assert main(["dead", "show", "mail", "--id", "ann@5:9"]) == 0
    assert "reason     max_deliver" in capsys.readouterr().out
    assert main(["dead", "show", "mail", "--id", "ann@5:8"]) == 1
    assert "mail did not give up ann@5:8" in capsys.readouterr().err


def test_replay(client: FakeClient, capsys: Capture) -> None:
    assert main(["dead", "replay", "mail", "--all"]) == 0
    assert capsys.readouterr().err == "2 events are handed out again\n"
    assert main(["dead", "replay", "mail", "--id", "ann@5:7", "--id", "ann@5:9", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"replayed": 2}
    assert client.asked == [
        ("dead_replay", {"name": "mail", "all": True}),
        ("dead_replay", {"name": "mail", "places": ["ann@5:7", "ann@5:9"]}),
    ]
    assert main(["dead", "replay", "mail"]) == main(["dead", "replay", "mail", "--all", "--id", "x"]) == 2
