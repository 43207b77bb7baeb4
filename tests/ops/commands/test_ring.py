"""`ring`: one broker is the whole ring."""

from __future__ import annotations

import json

import pytest

from ops.cli import main
from tests.ops.fakes import FakeClient, use_client


def test_the_one_broker(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    use_client(monkeypatch, FakeClient({"status": {"broker": "b1", "origin": "ab-1"}}))
    assert main(["ring"]) == 0
    assert "one broker, b1: it owns the whole ring" in capsys.readouterr().out
    assert main(["ring", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"brokers": [{"broker": "b1", "origin": "ab-1", "share": 1.0}]}
