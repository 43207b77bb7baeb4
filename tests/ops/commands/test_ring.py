"""`ring`: each arc in its place, the form and health of the whole in words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.ops.cli import main
from headgate.ops.commands.ring import bar_of, summary_of
from tests.ops.fakes import FakeClient, use_client

QUARTER = 1 << 62


def broker(name: str, after: int, identifier: int, **details: Any) -> dict[str, Any]:
    share = ((identifier - after) % (1 << 64) or (1 << 64)) / (1 << 64)
    known = {
        "name": name,
        "identifier": f"{identifier:016x}",
        "after": f"{after:016x}",
        "share": share,
        "address": f"{name}:7401",
        "client_address": f"{name}:7400",
        "life": 3,
        "state": "up",
        "replicas": [],
        "subscriptions": 7,
    }
    return known | details


def cluster(**details: Any) -> dict[str, Any]:
    brokers = [
        broker("b3", 2 * QUARTER, 4 * QUARTER - 1, replicas=["b1", "b2"], subscriptions=None),
        broker("b1", 4 * QUARTER - 1, QUARTER, replicas=["b2", "b3"]),
        broker("b2", QUARTER, 2 * QUARTER, state="down", replicas=["b3", "b1"]),
    ]
    known = {"broker": "b1", "role": "mesh", "settled": True, "replicas": 2, "scope": 0.75, "items": 1234}
    return known | {"brokers": brokers} | details


def test_the_one_broker(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    answer = cluster(brokers=[broker("b1", 5, 5)], scope=1.0)
    client = use_client(monkeypatch, FakeClient({"ring": answer}))
    assert main(["ring"]) == 0
    out = capsys.readouterr().out
    assert "one broker, b1: it owns the whole ring" in out and "█" * 32 in out and "100.0%" in out
    assert main(["ring", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == answer
    assert client.asked == [("ring", {})] * 2


def test_who_is_not_let_in_says_by_whom_and_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = [{"address": "one:7401", "reason": "two brokers are named b1"}]
    alone = [broker("b1", 5, 5, state="joining")]
    use_client(monkeypatch, FakeClient({"ring": cluster(brokers=alone, settled=False, refused=refused)}))
    assert main(["ring"]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first == "b1 is not let into its cluster: it takes no events, and asks again"
    assert second == "not let in by one:7401: two brokers are named b1"
    assert summary_of(cluster(cluster="staging")).startswith("3 brokers form the cluster staging, a mesh")


def test_several_in_the_order_of_the_ring(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    use_client(monkeypatch, FakeClient({"ring": cluster()}))
    assert main(["ring"]) == 0
    first, _, heads, *rows, _, last = capsys.readouterr().out.splitlines()
    assert first == (
        "3 brokers form a mesh, in which each knows all, b2 down; settled; each key has its owner and 1 copy beside it"
    )
    columns = ["broker", "ring", "share", "arc", "state", "life", "copies at", "subscriptions", "clients", "peers"]
    assert heads.split() == " ".join(columns).split()
    assert [row.replace("→", "").split()[0] for row in rows] == ["b1", "b2", "b3"]
    assert "→" in rows[0] and not any("→" in row for row in rows[1:])
    assert "█" * 8 + "·" * 24 in rows[0] and "·" * 8 + "█" * 8 + "·" * 16 in rows[1] and "·" * 16 + "█" * 16 in rows[2]
    assert "40000000… .. 80000000…" in rows[1] and " down " in rows[1] and "b3, b1" in rows[1]
    assert last == "→ b1 was asked: it holds 1234 items, and matches events itself for 75.0% of the keys"


def test_who_cannot_be_reached_is_named() -> None:
    away = [{"name": "b2", "address": "b2:7401"}, {"name": "", "address": "b9:7401"}]
    assert ", b2, b9:7401 down; settled" in summary_of(cluster(away=away))
    alone = summary_of(cluster(brokers=[broker("b1", 5, 5)], away=away))
    assert alone == "one broker, b1: it owns the whole ring; b2, b9:7401 cannot be reached"


def test_a_ring_that_is_not_settled_says_so() -> None:
    text = summary_of(cluster(role="ring", settled=False))
    assert "form a ring, b2 down; not settled: keys are on their way" in text


def test_more_copies_than_there_are_other_brokers_cannot_be() -> None:
    brokers = [broker(f"b{number}", number, number + 1) for number in range(5)]
    assert summary_of(cluster(brokers=brokers)).endswith("2 copies beside it")
    assert summary_of(cluster(brokers=brokers, replicas=8)).endswith("4 copies beside it")


@given(st.lists(st.integers(0, (1 << 64) - 1), min_size=2, max_size=6, unique=True), st.integers(1, 80))
def test_bars_lie_side_by_side(identifiers: list[int], cells: int) -> None:
    identifiers.sort()
    bars = [bar_of(after, own, cells) for after, own in zip([identifiers[-1], *identifiers], identifiers, strict=False)]
    assert all(len(bar) == cells and "█" in bar for bar in bars)
    for column in zip(*bars, strict=True):
        assert "█" in column, "every cell belongs to somebody"


def test_an_arc_over_zero_has_two_ends() -> None:
    assert bar_of(3 * QUARTER - 1, QUARTER - 1, 8) == "██····██"
    assert bar_of(7, 7, 8) == "████████"
