"""`streams`: a row a stream."""

from __future__ import annotations

import json

import pytest

from headgate.ops.cli import main
from tests.ops.fakes import FakeClient, use_client

ROW = {
    "stream": "quotes",
    "events": 5,
    "deliveries": 2,
    "subscriptions": 1,
    "publishers": 1,
    "attributes": ["price", "symbol"],
    "schema": True,
}


def test_for_people_and_for_programs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    use_client(monkeypatch, FakeClient({"streams": [ROW]}))
    assert main(["streams"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["quotes", "5", "2", "1", "1", "yes", "price,", "symbol"]
    assert main(["streams", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [ROW]
