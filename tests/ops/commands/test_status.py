"""`status`: everything the broker says, for people and for programs."""

from __future__ import annotations

import json

import pytest

from headgate.ops.cli import main
from tests.ops.fakes import FakeClient, use_client

STATUS = {
    "broker": "b1",
    "origin": "ab-1",
    "events_received": 1234,
    "drops": {"slow": 2, "lost": 0},
    "brokers": 3,
    "role": "mesh",
    "settled": True,
}


def test_for_people_and_for_programs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    use_client(monkeypatch, FakeClient({"status": STATUS}))
    assert main(["status"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "events received  1234" in lines
    assert "drops            slow 2, lost 0" in lines
    assert {"brokers          3", "role             mesh", "settled          yes"} <= set(lines)
    assert main(["status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == STATUS
