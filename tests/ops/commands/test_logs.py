"""`logs`: every log once, whoever has it, with places that can be given to `sub --from`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.ops.cli import main
from tests.ops.fakes import FakeClient, ring, use_client

NOW = 1_795_000_000_000_000


def row(broker: str, upcoming: int, own: bool, first: int = 0, kind: str = "events") -> dict[str, Any]:
    times = {"first_time": NOW - 7_200_000_000, "last_time": NOW - 5_000_000}
    log = {"broker": broker, "epoch": 1763492000, "kind": kind, "stream": "trades", "first": first, "next": upcoming}
    return log | times | {"own": own, "open": own, "bytes": 4_000}


HELD = {
    "b0": [row("b0", 1_200, True, first=20), row("b1", 7, False)],
    "b1": [row("b0", 1_100, False, first=20), row("b1", 7, True)],
}


def logs(at: str, after: int = 0, kind: str = "", stream: str = "") -> list[dict[str, Any]]:
    return HELD[at][after : after + 1]


def test_each_log_once_with_who_has_it_and_its_places(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("headgate.ops.commands.logs._wall_clock", lambda: NOW / 1e6)
    client = use_client(monkeypatch, FakeClient({"ring": ring("b0", "b1", down=["b2"]), "logs": logs}))
    assert main(["logs", "--stream", "trades"]) == 0
    printed = capsys.readouterr()
    _, first, second, _, advice = printed.out.splitlines()
    assert first.split()[:4] == ["trades", "events", "b0@1763492000:20", "b0@1763492000:1200"]
    assert "2 h ago" in first and "5 s ago" in first and first.endswith("b0, b1 (to 1100)")
    assert second.rstrip().endswith("b1, b0")
    assert advice.endswith("headgate sub trades --from b0@1763492000:1200,b1@1763492000:7")
    assert printed.err == "headgate logs: b2 is missing: b0 cannot reach it\n"
    assert ("logs", {"at": "b1", "stream": "trades", "kind": "events", "after": 2}) in client.asked


def test_for_programs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    use_client(monkeypatch, FakeClient({"ring": ring("b0", "b1"), "logs": logs}))
    assert main(["logs", "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert (first["log"], first["from"], first["end"]) == ("b0@1763492000", "b0@1763492000:20", "b0@1763492000:1200")
    assert (first["events"], first["last_time"]) == (1_180, pytest.approx(NOW / 1e6 - 5))
    assert [(one["broker"], one["next"]) for one in first["holders"]] == [("b0", 1_200), ("b1", 1_100)]
    assert second["holders"][0]["broker"] == "b1"


def test_all_kinds_and_no_logs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    client = use_client(monkeypatch, FakeClient({"logs": []}))
    assert main(["logs", "--kind", "all", "--json"]) == 0
    assert client.asked[1] == ("logs", {"at": "b1", "after": 0})
    assert json.loads(capsys.readouterr().out) == []
    assert main(["logs"]) == 0
    assert "--from" not in capsys.readouterr().out
