"""One question to every broker: all are asked through one, and who does not answer is named and holds nothing up."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.ops.cli import main
from headgate.protocol.errors import ErrorCode, Refused
from tests.ops.fakes import FakeClient, ring, use_client


def subs(at: str, after: int = 0, stream: str = "") -> list[dict[str, Any]]:
    if at == "b2":
        raise Refused(ErrorCode.UNAVAILABLE, "b2 did not answer: the link to it broke")
    if stream == "bad":
        raise Refused(ErrorCode.BAD_REQUEST, "no such stream")
    return [{"id": number, "client": f"of {at}", "stream": stream} for number in (1, 2, 3)][after : after + 2]


def test_each_broker_is_asked_page_by_page(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    use_client(monkeypatch, FakeClient({"ring": ring("b0", "b1"), "subs": subs}))
    assert main(["subs", "--json"]) == 0
    printed = capsys.readouterr()
    assert [(row["broker"], row["id"]) for row in json.loads(printed.out)] == [
        *[("b0", number) for number in (1, 2, 3)],
        *[("b1", number) for number in (1, 2, 3)],
    ]
    assert printed.err == ""


def test_who_is_missing_is_named_and_the_others_are_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    client = FakeClient({"ring": ring("b0", "b1", "b2", down=["b3"], away=["b4:7401"]), "subs": subs})
    use_client(monkeypatch, client)
    assert main(["subs", "--json"]) == 0
    printed = capsys.readouterr()
    assert {row["broker"] for row in json.loads(printed.out)} == {"b0", "b1"}
    assert printed.err.splitlines() == [
        "headgate subs: b2 is missing: b2 did not answer: the link to it broke",
        "headgate subs: b3 is missing: b0 cannot reach it",
        "headgate subs: b4:7401 is missing: b0 cannot reach it",
    ]
    assert "b3" not in {arguments.get("at") for _, arguments in client.asked}, "who is down is not waited for"


def test_one_broker_alone(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    client = use_client(monkeypatch, FakeClient({"ring": ring("b0", "b1", "b2"), "subs": subs}))
    assert main(["subs", "--json", "--broker", "b1", "--stream", "quotes"]) == 0
    assert {row["broker"] for row in json.loads(capsys.readouterr().out)} == {"b1"}
    assert client.asked[1] == ("subs", {"at": "b1", "stream": "quotes"})
    assert main(["subs", "--broker", "b2"]) == 1, "then a broker that does not answer is an error"
    assert "b2 did not answer" in capsys.readouterr().err


def test_a_question_that_is_refused_as_such_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use_client(monkeypatch, FakeClient({"ring": ring("b0", "b1"), "subs": subs}))
    assert main(["subs", "--stream", "bad"]) == 1
    assert "no such stream" in capsys.readouterr().err
