"""`subs`: every page is asked for."""

from __future__ import annotations

import json

import pytest

from headgate.ops.cli import main
from tests.ops.fakes import FakeClient, use_client

ROWS = [
    {"id": number, "client": "c", "pattern": f"a/{number}", "exact": False, "condition": "", "connected": True}
    for number in range(1, 6)
]


def page(after: int = 0) -> list[dict[str, object]]:
    return ROWS[after : after + 2]


def test_all_pages_in_order(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    client = use_client(monkeypatch, FakeClient({"subs": page}))
    assert main(["subs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == ROWS
    assert [arguments.get("after") for _, arguments in client.asked] == [None, 2, 4, 5]


def test_for_people(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    use_client(monkeypatch, FakeClient({"subs": page}))
    assert main(["subs"]) == 0
    assert [line.split()[2] for line in capsys.readouterr().out.splitlines()[1:]] == [row["pattern"] for row in ROWS]
