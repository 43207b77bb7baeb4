"""`subs`: every page is asked for."""

from __future__ import annotations

import json

import pytest

from headgate.ops.cli import main
from tests.ops.fakes import FakeClient, ring, use_client

PACE = {"address": "127.0.0.1:9", "pace": "no credit", "waiting_events": 7, "dropped": 2}
ROWS = [
    {"id": number, "client": "c", "pattern": f"a/{number}", "exact": False, "condition": "", "connected": True, **PACE}
    for number in range(1, 6)
]


def page(at: str, after: int = 0) -> list[dict[str, object]]:
    return ROWS[after : after + 2]


def test_all_pages_in_order(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    client = use_client(monkeypatch, FakeClient({"ring": ring("b1"), "subs": page}))
    assert main(["subs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"broker": "b1", **row} for row in ROWS]
    assert [arguments.get("after") for verb, arguments in client.asked if verb == "subs"] == [None, 2, 4, 5]


def test_for_people(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    use_client(monkeypatch, FakeClient({"ring": ring("b1"), "subs": page}))
    assert main(["subs"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[:5] == ["broker", "id", "client", "address", "pattern"]
    assert [line.split()[4] for line in lines] == [row["pattern"] for row in ROWS]
    assert {tuple(line.split()[-4:]) for line in lines} == {("no", "credit", "7", "2")}
