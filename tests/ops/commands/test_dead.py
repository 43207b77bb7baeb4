"""`dead`: what a durable subscription has given up, and what is asked to hand it out again."""

from __future__ import annotations

import json

import pytest

from headgate.ops.cli import main
from tests.ops.fakes import FakeClient, use_client

Capture = pytest.CaptureFixture[str]

ROWS = [
    {"id": "o.7", "topic": "orders/a", "delivered": 5, "reason": "max_deliver", "time": 1_700_000_000_000_000},
    {
        "id": "o.9",
        "topic": "orders/b",
        "delivered": 1,
        "reason": "broken",
        "time": 1_700_000_000_000_000,
        "attributes": {"total": 5},
        "body": b"\xff",
    },
]


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    return use_client(monkeypatch, FakeClient({"dead": ROWS, "dead_replay": {"replayed": 2}}))


def test_list(client: FakeClient, capsys: Capture) -> None:
    assert main(["dead", "list", "mail"]) == 0
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["given", "up", "id", "topic", "delivered", "reason"]
    assert first.split()[2:] == ["o.7", "orders/a", "5", "max_deliver"] and "o.9" in second
    assert main(["dead", "list", "mail", "--json"]) == 0
    assert [sorted(one) for one in json.loads(capsys.readouterr().out)] == [sorted(ROWS[0])] * 2
    assert client.asked == [("dead", {"name": "mail"})] * 2


def test_show(client: FakeClient, capsys: Capture) -> None:
    assert main(["dead", "show", "mail", "--id", "o.9", "--json"]) == 0
    (shown,) = json.loads(capsys.readouterr().out)
    assert (shown["id"], shown["attributes"], shown["body_base64"]) == ("o.9", {"total": 5}, "/w==")
    assert main(["dead", "show", "mail"]) == 0
    assert "reason     max_deliver" in capsys.readouterr().out
    assert main(["dead", "show", "mail", "--id", "o.8"]) == 1
    assert "mail did not give up o.8" in capsys.readouterr().err


def test_replay(client: FakeClient, capsys: Capture) -> None:
    assert main(["dead", "replay", "mail", "--all"]) == 0
    assert capsys.readouterr().err == "2 events are handed out again\n"
    assert main(["dead", "replay", "mail", "--id", "o.7", "--id", "o.9", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"replayed": 2}
    assert client.asked == [
        ("dead_replay", {"name": "mail", "all": True}),
        ("dead_replay", {"name": "mail", "ids": ["o.7", "o.9"]}),
    ]
    assert main(["dead", "replay", "mail"]) == main(["dead", "replay", "mail", "--all", "--id", "x"]) == 2
