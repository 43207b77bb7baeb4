"""`durable`: which there are, how much waits for each, and what is asked of brokers to change one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.ops.cli import main
from headgate.protocol.errors import ErrorCode, Refused
from tests.ops.fakes import FakeClient, ring, use_client

Capture = pytest.CaptureFixture[str]


def row(name: str, **details: Any) -> dict[str, Any]:
    known = {"name": name, "pattern": "orders", "condition": "total > 5", "stream": "orders", "sharing": "exclusive"}
    known |= {"clients": 1, "waiting": 12, "unacked": 3, "redelivered": 1, "oldest_seconds": 4.5, "dead": 0}
    known |= {"position": "ann@5:120", "coordinator": "ann", "version": 1}  # type: ignore[dict-item]
    return known | details


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    def durables(at: str, after: str = "") -> list[dict[str, Any]]:
        names = {"ann": ["a", "c"], "bob": ["b", "c"]}[at]
        return [row(name, coordinator=at) for name in names if name > after]

    answers = {verb: row("mail") for verb in ("durable", "durable_set", "durable_seek", "durable_rm")}
    return use_client(monkeypatch, FakeClient({"ring": ring("ann", "bob"), "durables": durables, **answers}))


def test_list_is_one_row_for_each_of_the_cluster(client: FakeClient, capsys: Capture) -> None:
    assert main(["durable", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in rows] == ["a", "b", "c"]
    wanted = {"name", "pattern", "condition", "sharing", "clients", "waiting", "unacked", "redelivered"}
    assert rows[0].keys() >= wanted | {"oldest_seconds", "position"} and rows[0]["waiting"] == 12
    assert main(["durable", "list"]) == 0
    head, first, *_ = capsys.readouterr().out.splitlines()
    assert head.split()[:6] == ["name", "pattern", "condition", "sharing", "clients", "waiting"]
    assert first.split()[0] == "a" and "ann@5:120" in first
    assert main(["durable", "list", "--broker", "bob", "--json"]) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)] == ["b", "c"]


def test_show(client: FakeClient, capsys: Capture) -> None:
    assert main(["durable", "show", "mail", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["position"] == "ann@5:120"
    assert main(["durable", "show", "mail"]) == 0
    assert "waiting         12" in capsys.readouterr().out
    assert client.asked == [("durable", {"name": "mail"})] * 2
    client.answers["durable"] = Refused(ErrorCode.NOT_FOUND, "there is no durable subscription 'mail'")
    assert main(["durable", "show", "mail"]) == 1


def test_set(client: FakeClient, capsys: Capture) -> None:
    words = ["--where", "total > 9", "--from", "now", "--ack-wait", "5", "--max-deliver", "0"]
    words += ["--backoff", "1,2.5", "--max-unacked", "7", "--dead-letter", "dead/mail"]
    assert main(["durable", "set", "mail", *words]) == 0
    ((verb, asked),) = client.asked
    assert (verb, asked) == (
        "durable_set",
        {
            "name": "mail",
            "where": "total > 9",
            "from": "now",
            "ack_wait": 5.0,
            "max_deliver": 0,
            "backoff": [1.0, 2.5],
            "max_unacked": 7,
            "dead_letter": "dead/mail",
        },
    )
    assert "has changed: ack_wait" in capsys.readouterr().err
    assert main(["durable", "set", "mail", "--where", "", "--json"]) == 0
    assert client.asked[-1][1] == {"name": "mail", "where": ""}
    assert json.loads(capsys.readouterr().out)["name"] == "mail"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["set", "mail"], "say what is to change"),
        (["set", "mail", "--from", "now"], "give --where with it"),
        (["set", "mail", "--from", "start"], "invalid choice"),
        (["set", "mail", "--sharing", "shared"], "does not take --sharing"),
        (["set", "mail", "--ack-wait", "0"], "above 0"),
        (["set", "mail", "--max-deliver", "-1"], "at least 0"),
        (["set", "mail", "--max-unacked", "0"], "at least 1"),
        (["set", "mail", "--backoff", "1,x"], "as in 1,5,30"),
        (["seek", "mail", "17"], "a place is start, now, or positions"),
        (["seek", "mail", "yesterday"], "a place is start, now, or positions"),
        (["seek", "mail"], "required"),
        ([], "required"),
    ],
)
def test_usage(client: FakeClient, words: list[str], text: str, capsys: Capture) -> None:
    try:
        code = main(["durable", *words])
    except SystemExit as end:
        code = int(str(end.code))
    assert code == 2 and text in capsys.readouterr().err
    assert client.asked == []


@pytest.mark.parametrize("place", ["start", "now", "ann@5:120,bob@7:0"])
def test_seek(client: FakeClient, place: str, capsys: Capture) -> None:
    assert main(["durable", "seek", "mail", place]) == 0
    assert client.asked == [("durable_seek", {"name": "mail", "to": place})]
    assert capsys.readouterr().err == "durable subscription mail goes on from ann@5:120\n"


def test_rm(client: FakeClient, capsys: Capture) -> None:
    assert main(["durable", "rm", "mail"]) == 0
    assert client.asked == [("durable_rm", {"name": "mail"})]
    assert "mail is removed; what waited" in capsys.readouterr().err
