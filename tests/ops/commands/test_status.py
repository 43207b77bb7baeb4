"""`status`: everything the broker says, for people and for programs."""

from __future__ import annotations

import json

import pytest

from headgate.ops.cli import main
from tests.ops.fakes import FakeClient, ring, use_client

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
    use_client(monkeypatch, FakeClient({"ring": ring("b1"), "status": STATUS}))
    assert main(["status"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "events received  1234" in lines
    assert "drops            slow 2, lost 0" in lines
    assert {"brokers          3", "role             mesh", "settled          yes"} <= set(lines)
    assert main(["status", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == STATUS | {"cluster": [STATUS], "missing": []}


def test_of_several_brokers_a_row_each(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def status(at: str) -> dict[str, object]:
        return STATUS | {"broker": at}

    use_client(monkeypatch, FakeClient({"ring": ring("b2", "b1", down=["b3"]), "status": status}))
    assert main(["status"]) == 0
    printed = capsys.readouterr()
    head, one, two, *_ = printed.out.splitlines()
    assert (head.split()[0], one.split()[0], two.split()[0]) == ("broker", "b1", "b2")
    assert printed.err == "headgate status: b3 is missing: b2 cannot reach it\n"
    assert main(["status", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["broker"] == "b2", "who was asked stands where it always stood"
    assert [row["broker"] for row in answer["cluster"]] == ["b1", "b2"]
    assert answer["missing"] == [{"broker": "b3", "reason": "b2 cannot reach it"}]
    assert main(["status", "--broker", "b1"]) == 0
    assert "broker           b1" in capsys.readouterr().out
