"""`producers`: a row a producer of a job, with what its mark says."""

from __future__ import annotations

import json

import pytest

from headgate.ops.cli import main
from headgate.protocol.spark.writing import Mark
from tests.ops.fakes import FakeClient, use_client

MARK = Mark(4, 1_763_492_000_000_000, "guarded", 100).with_digest(b"d" * 32)
ROWS = [
    {"name": "quotes/nightly/0", "epoch": 7, "next": 120, "digest": MARK},
    {"name": "quotes/nightly/1", "epoch": 7, "next": 5, "digest": b""},
]
ANSWER = {"producers": ROWS, "next": None, "known": 12, "limit": 200_000}


def test_for_people_and_for_programs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    use_client(monkeypatch, FakeClient({"producers": ANSWER}))
    assert main(["producers", "quotes/nightly"]) == 0
    out, err = capsys.readouterr()
    words = [line.split() for line in out.splitlines()]
    assert words[1] == ["quotes/nightly/0", "120", "guarded", "4", "20", "2025-11-18T18:53:20+00:00"]
    assert words[2] == ["quotes/nightly/1", "5", "-", "-", "-", "-"]
    assert "125 events, 2 partitions. This broker remembers the 200,000 producers" in err
    assert main(["producers", "quotes/nightly", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["partitions"], found["events"], found["limit"]) == (2, 125, 200_000)
    assert found["producers"][0]["mode"] == "guarded"


def test_a_job_that_nobody_remembers(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    use_client(monkeypatch, FakeClient({"producers": ANSWER | {"producers": []}}))
    assert main(["producers", "nightly"]) == 1
    assert "STREAM/PRODUCERID" in capsys.readouterr().err
