"""`streams`: a row a stream."""

from __future__ import annotations

import json

import pytest

from headgate.ops.cli import main
from tests.ops.fakes import FakeClient, ring, use_client

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
    use_client(monkeypatch, FakeClient({"ring": ring("b1"), "streams": [ROW]}))
    assert main(["streams"]) == 0
    cells = ["quotes", "b1", "5", "2", "1", "1", "yes", "price,", "symbol"]
    assert capsys.readouterr().out.splitlines()[1].split() == cells
    assert main(["streams", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"broker": "b1", **ROW}]
