"""`explain`: the event as any form of line, the verdicts in words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.ops.cli import main
from headgate.ops.commands.explain import read_event
from headgate.ops.exits import UsageError
from headgate.protocol.errors import ErrorCode, Refused
from tests.ops.fakes import FakeClient, use_client

ANSWER: dict[str, Any] = {
    "pattern": "quotes/*",
    "exact": False,
    "stream": "quotes",
    "condition": "`price` > 8",
    "lives_on": "b1",
    "because": "it is alone",
}


def answer(verdict: str, topic_matches: bool | None = True) -> dict[str, Any]:
    told = {} if topic_matches is None else {"topic_matches": topic_matches}
    delivered = verdict == "true" and topic_matches is not False
    predicates = [{"predicate": "`price` > 8", "verdict": verdict}]
    return ANSWER | told | {"predicates": predicates, "verdict": verdict, "delivered": delivered}


@pytest.mark.parametrize(
    ("text", "event"),
    [
        ('{"topic": "a", "attrs": {"x": {"y": 1}}}', {"topic": "a", "attrs": {"x.y": 1}}),
        ('{"attrs": {"x": 1}}', {"attrs": {"x": 1}}),
        ('{"topic": "a"}', {"topic": "a", "attrs": {}}),
        ('{"topic": "a", "json": {"x": 1}, "body": ""}', {"topic": "a", "attrs": {"body.x": 1}}),
        ('{"price": 8.5, "deep": {"x": null}}', {"attrs": {"price": 8.5, "deep.x": None}}),
        ("{}", {"attrs": {}}),
    ],
)
def test_forms_of_an_event(text: str, event: dict[str, Any]) -> None:
    assert read_event(text) == event


@pytest.mark.parametrize("text", ["{", "[]", "3", '{"attrs": 3}'])
def test_what_is_no_event(text: str) -> None:
    with pytest.raises(UsageError):
        read_event(text)


def test_of_a_stored_stream_it_says_how_many_producers_are_remembered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use_client(monkeypatch, FakeClient({"explain": ANSWER | {"producers": {"known": 1_200, "limit": 200_000}}}))
    assert main(["explain", "quotes/*"]) == 0
    assert "1,200 are remembered here, of 200,000 at most" in capsys.readouterr().out


def test_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    client = use_client(monkeypatch, FakeClient({"explain": answer("true")}))
    event = '{"topic": "quotes/a", "attrs": {"price": 9}}'
    assert main(["explain", "quotes/*", "--where", "price > 8", "--exact", "--event", event, "--json"]) == 0
    expected = {"pattern": "quotes/*", "condition": "price > 8", "exact": True, "event": json.loads(event)}
    assert client.asked == [("explain", expected)]


@pytest.mark.parametrize(
    ("told", "last"),
    [
        (answer("true"), "delivered: the condition is true"),
        (answer("false"), "not delivered: the condition is false"),
        (answer("unknown", None), "not delivered: the condition is unknown"),
        (answer("true", False), "not delivered: the topic is not one of the pattern's"),
    ],
)
def test_verdicts_in_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], told: dict[str, Any], last: str
) -> None:
    use_client(monkeypatch, FakeClient({"explain": told}))
    assert main(["explain", "quotes/*", "--where", "price > 8", "--event", '{"price": 9}']) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith(last)
    assert f"  {told['verdict']:<7}  `price` > 8" in lines


def test_without_an_event(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    use_client(monkeypatch, FakeClient({"explain": ANSWER | {"condition": ""}}))
    assert main(["explain", "quotes/*"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "lives on   b1: it is alone"
    assert "every event" in lines[1]


def test_where_it_lives_in_a_cluster(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    told = ANSWER | {"lives_on": ["b1", "b2"], "because": "it asks x", "shelf": "quotes by x", "keys": ["0a", "ff"]}
    use_client(monkeypatch, FakeClient({"explain": told}))
    assert main(["explain", "quotes/*"]) == 0
    assert capsys.readouterr().out.splitlines()[2:] == [
        "lives on   b1, b2: it asks x",
        "shelf      quotes by x",
        "keys       0a, ff",
    ]


def test_a_bad_condition_shows_its_caret(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = "condition, column 1: expected a name\n  = 3\n  ^"
    use_client(monkeypatch, FakeClient({"explain": Refused(ErrorCode.BAD_CONDITION, text)}))
    assert main(["explain", "quotes", "--where", "= 3"]) == 1
    assert capsys.readouterr().err == f"headgate explain: {text}\n"


def test_what_is_unknown_says_why_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    told = answer("unknown", None)
    told["predicates"] = [
        {"predicate": text, "verdict": "unknown", "why": f"no {why}"} for text, why in ("aa", "bb", "ca")
    ]
    use_client(monkeypatch, FakeClient({"explain": told}))
    assert main(["explain", "quotes/*", "--where", "price > 8", "--event", '{"price": 9}']) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "not delivered: the condition is unknown: no a; no b"


def test_a_counted_one_has_a_subid(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    use_client(monkeypatch, FakeClient({"explain": ANSWER | {"subid": {"c1": "00ff", "c2": None, "c3": 2}}}))
    assert main(["explain", "quotes/*", "--where", "price > 8"]) == 0
    assert "subID      c1 00ff (this broker), c2 its number here when it is made, c3 2" in capsys.readouterr().out


DURABLE: dict[str, Any] = {
    "name": "mailer",
    "pattern": "orders/*",
    "condition": "`total` > 9",
    "exact": False,
    "coordinator": "ann",
    "generation": 7,
    "keepers": ["ann", "bob"],
    "logs": [{"log": "bob@5", "settled": 120, "fed": 140}],
    "sections": [{"condition": "`total` > 5", "before": "bob@5:130"}],
    "waiting": 12,
    "unacked": 3,
    "clients": ["worker"],
}


def test_a_durable_subscription_is_explained_by_its_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = answer("true") | {"pattern": "orders/*", "condition": "`total` > 9", "keys": ["00"], "shelf": "s"}
    client = use_client(monkeypatch, FakeClient({"durable": DURABLE, "explain": told}))
    assert main(["explain", "--durable", "mailer", "--event", '{"topic": "orders/1", "attrs": {"total": 10}}']) == 0
    asked = {"pattern": "orders/*", "condition": "`total` > 9", "exact": False}
    event = {"topic": "orders/1", "attrs": {"total": 10}}
    assert client.asked == [("durable", {"name": "mailer"}), ("explain", asked | {"event": event})]
    out = capsys.readouterr().out
    for words in (
        "lives on    ann: it coordinates this name, in generation 7",
        "kept by     ann, bob",
        "bob@5: settled before 120, looked at before 140",
        "12, and 3 handed out to 1 clients",
        "bob@5:130: what matches `total` > 5 as well",
        "delivered: the condition is true",
    ):
        assert words in out
    assert "keys" not in out and "it is alone" not in out
    assert main(["explain", "--durable", "mailer", "--json"]) == 0
    answered = json.loads(capsys.readouterr().out)
    assert answered["durable"] == DURABLE and "lives_on" not in answered


@pytest.mark.parametrize("words", [[], ["a", "--durable", "b"], ["--durable", "b", "--where", "x > 1"]])
def test_either_a_pattern_or_a_name(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *words]) == 2
    assert "--durable NAME" in capsys.readouterr().err
