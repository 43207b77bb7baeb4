"""`schema`: put from a file, standard input or the word itself; get gives back what put takes."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from headgate.matching.cube import named
from headgate.matching.structure import parse_twig
from headgate.ops.cli import main
from headgate.protocol.errors import ErrorCode, Refused
from tests.ops.fakes import FakeClient, use_client

SCHEMA = {"attributes": {"price": {"type": "float", "min": 0, "max": 10.5}, "symbol": {"type": "string"}}}
ENTRY = {"stream": "quotes", "schema": SCHEMA}


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    answers = {"schema.put": ENTRY, "schema.get": ENTRY, "schema.rm": ENTRY, "schema.list": [ENTRY]}
    return use_client(monkeypatch, FakeClient(answers))


@pytest.mark.parametrize("form", ["word", "file", "flag", "input"])
def test_put(client: FakeClient, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps(SCHEMA)
    file = tmp_path / "schema.json"
    file.write_text(text)
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    words = {"word": [text], "file": [str(file)], "flag": ["--file", str(file)], "input": ["-"]}[form]
    assert main(["schema", "put", "quotes", *words]) == 0
    assert client.asked == [("schema.put", {"stream": "quotes", "schema": SCHEMA, "replace": False})]


def test_put_says_what_changed_and_what_holds_without_being_said(
    client: FakeClient, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = {"durability": {"old": None, "new": "stored"}, "attributes.size": {"old": {"type": "int"}, "new": None}}
    defaults = {"attributes": {"price": {"precision": 0.25}}}
    client.answers["schema.put"] = {**ENTRY, "changed": changed, "defaults": defaults}
    assert main(["schema", "put", "quotes", "{}", "--replace"]) == 0
    assert client.asked == [("schema.put", {"stream": "quotes", "schema": {}, "replace": True})]
    told = capsys.readouterr().err
    assert '  durability: not set -> "stored"\n  attributes.size: {"type": "int"} -> not set\n' in told
    assert "attributes.price: precision 0.25, because it says none" in told
    client.answers["schema.put"] = {**ENTRY, "changed": {}}
    assert main(["schema", "put", "quotes", "{}"]) == 0
    assert "nothing changed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "give one FILE"),
        (["{}", "--file", "x"], "give one FILE"),
        (["no/such/file"], "cannot read no/such/file"),
        (["{"], "is not JSON"),
    ],
)
def test_put_usage(client: FakeClient, words: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "put", "quotes", *words]) == 2
    assert text in capsys.readouterr().err
    assert client.asked == []


def test_a_schema_is_an_object(client: FakeClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "list").write_text("[]")
    assert main(["schema", "put", "quotes", str(tmp_path / "list")]) == 2
    assert "a schema is an object" in capsys.readouterr().err


def test_get_prints_what_put_takes(client: FakeClient, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "get", "quotes"]) == 0
    assert json.loads(capsys.readouterr().out) == SCHEMA
    assert main(["schema", "get", "quotes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == ENTRY


def test_list(client: FakeClient, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "list"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split("  ")[1].strip() == "price float 0..10.5, symbol string"
    client.answers["schema.list"] = [{**ENTRY, "defaults": {"attributes": {"price": {"precision": 0.5}}}}]
    assert main(["schema", "list"]) == 0
    assert "price float 0..10.5 by 0.5, symbol string" in capsys.readouterr().out
    client.answers["schema.list"] = [ENTRY]
    assert main(["schema", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [ENTRY]


def test_rm_and_the_server_after_the_action(client: FakeClient, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "rm", "quotes", "--server", "h:1"]) == 0
    assert (client.asked, client.address) == ([("schema.rm", {"stream": "quotes"})], "h:1")
    assert "no schema any more" in capsys.readouterr().err


@pytest.mark.parametrize(("setting", "says"), [({"durability": "stored"}, True), ({"audit": True}, True), ({}, False)])
def test_rm_says_what_becomes_of_what_is_stored(
    client: FakeClient, capsys: pytest.CaptureFixture[str], setting: dict[str, Any], says: bool
) -> None:
    client.answers["schema.rm"] = {"stream": "quotes", "schema": setting}
    assert main(["schema", "rm", "quotes"]) == 0
    assert ("stays readable: `headgate schema rm --purge` removes that too" in capsys.readouterr().err) == says


@pytest.mark.parametrize(("left", "code"), [(0, 0), (3, 1)])
def test_purge(
    client: FakeClient, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], left: int, code: int
) -> None:
    async def purge(found: FakeClient, stream: str) -> tuple[int, int]:
        assert (found, stream) == (client, "quotes")
        return 1_200, left

    monkeypatch.setattr("headgate.ops.commands.schema.purge", purge)
    assert main(["schema", "rm", "quotes", "--purge"]) == code
    told = capsys.readouterr().err
    assert "1200 entries of its logs are gone" in told
    assert ("3 are left, because it was published to" in told) == bool(left)
    assert main(["schema", "rm", "quotes", "--purge", "--json"]) == code
    assert json.loads(capsys.readouterr().out) == {"stream": "quotes", "gone": 1_200, "left": left}


def test_a_refusal(client: FakeClient) -> None:
    client.answers["schema.rm"] = Refused(ErrorCode.NOT_FOUND, "no schema")
    assert main(["schema", "rm", "quotes"]) == 1


def book(number: int) -> str:
    return f"<bib><book><common/><n{number % 4}/></book></bib>"


def subscription(number: int) -> dict[str, Any]:
    return {"id": number, "condition": f"`n` > 1 AND XPATH 'common' AND XPATH 'n{number % 4}'" if number else "`n` > 1"}


@pytest.mark.parametrize("dry", [False, True])
def test_a_key_map_is_learned_from_subscriptions_and_documents(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], dry: bool
) -> None:
    rows = lambda **arguments: [] if "after" in arguments else [subscription(number) for number in range(9)]  # noqa: E731
    missing = Refused(ErrorCode.NOT_FOUND, "no schema")
    client = use_client(monkeypatch, FakeClient({"schema.get": missing, "subs": rows, "schema.put": ENTRY}))
    (tmp_path / "one.xml").write_text(book(0))
    (tmp_path / "two.json").write_text(json.dumps({"bib": {"book": {"common": 1, "n1": 2}}}))
    (tmp_path / "more.jsonl").write_text("".join(json.dumps({"xml": book(number)}) + "\n" for number in range(10)))
    files = [str(path) for path in sorted(tmp_path.iterdir())]
    assert main(["schema", "learn", "quotes", "--documents", *files, *["--dry-run"][: int(dry)]]) == 0
    told = capsys.readouterr().err
    assert "learned from 12 documents and 8 subscriptions" in told and "come by: 0% -> 0%" in told
    puts = [details["schema"] for verb, details in client.asked if verb == "schema.put"]
    assert len(puts) == (not dry)
    for schema in puts:
        keys = named(schema["structure.map"], 1024, 8)
        twigs = [parse_twig(f"n{number}").filter(1024, 1) for number in range(4)]
        assert len({keys.key(one) for one in twigs}) == 4 and not keys.key(parse_twig("common").filter(1024, 1))


@pytest.mark.parametrize(
    ("count", "conditions", "text"),
    [
        (3, ["XPATH 'a'"], "at least 10 documents, and here are 3 of 3"),
        (10, ["", "`n` = 1"], "no subscription to quotes"),
        (10, ["XPATH 'common'"], "every document has what is asked for"),
    ],
)
def test_of_too_little_no_map_is_learned(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    count: int,
    conditions: list[str],
    text: str,
) -> None:
    rows = [{"id": number, "condition": condition} for number, condition in enumerate(conditions)]
    answers = {"schema.get": ENTRY, "subs": lambda **arguments: [] if "after" in arguments else rows}
    client = use_client(monkeypatch, FakeClient(answers))
    (tmp_path / "d.jsonl").write_text("".join(json.dumps({"xml": book(number)}) + "\n" for number in range(count)))
    assert main(["schema", "learn", "quotes", "--documents", str(tmp_path / "d.jsonl")]) != 0
    assert text in capsys.readouterr().err
    assert not [verb for verb, _ in client.asked if verb == "schema.put"]
