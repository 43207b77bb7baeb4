"""`tree`: what each broker says of its vertices, as one walk."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headgate.ops.cli import main
from tests.ops.fakes import FakeClient, ring, use_client

CUBE = {"cube": "the cube", "column": "#structure/1024/1", "bits": 4, "routing": "kbsp", "begins": 0b1011}
VERTICES = {
    "b1": [
        {"vertex": 0b1011, "rest": 0, "edges": [[3, 2, True], [1, 1, False], [0, 1, True]]},
        {"vertex": 0b1010, "rest": 1, "edges": []},
    ],
    "b2": [{"vertex": 0b0011, "rest": 0, "edges": [[1, 1, True]]}, {"vertex": 0b0001, "rest": 3, "edges": []}],
}


def cubes(**arguments: Any) -> list[dict[str, Any]]:
    known = VERTICES.get(arguments.get("at", ""), [])
    return [{**CUBE, "vertices": known if "columns" in arguments else []}]


def test_the_walk_is_drawn_over_brokers(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    client = FakeClient({"ring": ring("b1", "b2"), "cubes": cubes})
    use_client(monkeypatch, client)
    assert main(["tree", "library", "--event", '{"xml": "<bib><book/></bib>"}']) == 0
    assert capsys.readouterr().out.splitlines() == [
        "the cube: 3 edges, 1 of them to another broker",
        "1011 on b1, nobody rests here; not on over -1 (1 filter)",
        "├─ -3 0011 on b2, nobody rests here",
        "│  └─ -1 0001 on b2, 3 rest here",
        "└─ -0 1010 on b1, 1 rest here",
    ]
    asked = [details for verb, details in client.asked if verb == "cubes" and "columns" in details]
    assert {details["at"] for details in asked} == {"b1", "b2"}
    assert all(details["columns"]["#structure/1024/1"] for details in asked)


def test_as_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    use_client(monkeypatch, FakeClient({"ring": ring("b1", "b2"), "cubes": cubes}))
    assert main(["tree", "library", "--json", "--event", '{"json": {"bib": {"book": 1}}}']) == 0
    (walk,) = json.loads(capsys.readouterr().out)
    assert (walk["edges_local"], walk["edges_remote"]) == (2, 1)
    assert [visit["vertex"] for visit in walk["visits"]] == ["1011", "0011", "0001", "1010"]


def test_where_no_cube_is_in_use(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    use_client(monkeypatch, FakeClient({"ring": ring("b1"), "cubes": []}))
    assert main(["tree", "library", "--event", '{"xml": "<a/>"}']) == 0
    assert "no subscription to library rests on a cube" in capsys.readouterr().out


def test_an_event_without_a_document_goes_nowhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = [{**CUBE, "begins": None, "vertices": []}]
    use_client(monkeypatch, FakeClient({"ring": ring("b1"), "cubes": nowhere}))
    assert main(["tree", "library", "--event", '{"attrs": {"a": 1}}']) == 0
    assert "has no document" in capsys.readouterr().out
