"""DELTA at a reader of logs: it decides as the brokers' index does, whatever is asked and whatever comes."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.clients.checks import moves_of
from headgate.matching import deltas, parse_condition
from headgate.matching.dynamic import DumbReferences
from headgate.protocol.client import Event
from headgate.protocol.client.moves import Moves
from headgate.protocol.errors import ProtocolViolation

STREAM = (10, 16, 21, 25, 30, 25, 19, 13, 8)


def said(condition: str, **precisions: float) -> list[Any]:
    schema = {"attributes": {name: {"precision": one} for name, one in precisions.items()}}
    found: Any = moves_of(parse_condition(condition), schema)["moves"]
    return list(found)


def event(topic: str, time: float, **attributes: Any) -> Event:
    return Event("o", 1, time, topic, attributes, b"", "", 1)


def test_the_vectors_of_the_paper() -> None:
    """matching/SPEC.md, 8.2 and 8.9."""
    for condition, expected in (
        ("DELTA(p) > 5", [10, 16, 25, 19, 13]),
        ("DELTA(p) >= 5", [10, 16, 21, 30, 25, 19, 13, 8]),
        ("RISE(p) > 5", [10, 16, 25]),
        ("FALL(p) >= 20 PERCENT", [10, 8]),
    ):
        moves = Moves(said(condition))
        passed = moves.passed([event("t", 0.0, p=value) for value in STREAM])
        assert [one.attributes["p"] for one in passed] == expected
        assert moves.suppressed == len(STREAM) - len(expected)


def test_what_a_broker_says_of_a_condition() -> None:
    condition = parse_condition("a = 1 AND FALL(p) > 0.05 HEARTBEAT 60 AND DELTA(q) >= 2 PERCENT")
    assert moves_of(condition, {"attributes": {"p": {"precision": 0.01}}}) == {
        "moves": [["p", "FALL", 5, False, False, 60, 0.01], ["q", "DELTA", 2, True, True, 0, 0]],
        "rest": "`a` = 1",
    }
    assert moves_of(parse_condition("DELTA(p) > 1"), None)["rest"] == ""
    assert moves_of(parse_condition("a = 1"), None) == {}


WRONG: dict[str, Any] = {
    "short": ["p"],
    "side": ["p", "UP", 1, False, False, 0, 0],
    "text": ["p", "DELTA", "1", False, False, 0, 0],
    "name": [1, "DELTA", 1, False, False, 0, 0],
    "nan": ["p", "DELTA", math.nan, False, False, 0, 0],
    "negative": ["p", "DELTA", -1, False, False, 0, 0],
    "flag": ["p", "RISE", 1, 1, False, 0, 0],
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_what_no_broker_says(wrong: Any) -> None:
    with pytest.raises(ProtocolViolation):
        Moves([wrong])


def test_of_too_many_topics_that_which_moved_last_is_kept() -> None:
    moves = Moves(said("DELTA(p) > 5"), topics_max=2)
    passed = moves.passed([event(topic, 0.0, p=value) for topic, value in (("a", 1), ("b", 1), ("a", 9), ("c", 1))])
    assert len(passed) == 4
    assert [one.topic for one in moves.passed([event(topic, 0.0, p=1) for topic in "cb"])] == ["b"]


NUMBERS = st.one_of(
    st.integers(-20, 20),
    st.sampled_from([0.1, 0.15, 8.3, 2.5, 1e308, 2**53 + 1, 2**63, math.inf, -math.inf, math.nan, None, "7", True]),
    st.floats(),
)
ASKED = st.builds(
    "{}({{}}) {} {}{}{}".format,
    st.sampled_from(["DELTA", "RISE", "FALL"]),
    st.sampled_from([">", ">="]),
    st.sampled_from([0, 1, 5, 0.05, 2.5, 1e308]),
    st.sampled_from(["", " PERCENT"]),
    st.sampled_from(["", " HEARTBEAT 2"]),
)


@pytest.mark.slow
@given(st.lists(ASKED, min_size=1, max_size=2), st.sampled_from([None, 0.01, 1]),
       st.lists(st.tuples(st.sampled_from("ab"), NUMBERS, NUMBERS, st.integers(0, 2)), max_size=40))  # fmt: skip
def test_a_reader_decides_as_the_brokers_do(asked: list[str], precision: float | None, rows: list[Any]) -> None:
    condition = parse_condition(" AND ".join(one.format(name) for one, name in zip(asked, "pq", strict=False)))
    twin = DumbReferences([precision] * len(asked))
    twin.add(1, deltas(condition))
    moves = Moves(said(" AND ".join(one.format(name) for one, name in zip(asked, "pq", strict=False)),
                       **({} if precision is None else {"p": precision, "q": precision})))  # fmt: skip
    now = 0.0
    for topic, one, other, pause in rows:
        now += pause
        passed = moves.passed([event(topic, now, p=one, q=other)])
        assert bool(passed) == bool(twin.fire(topic, [one, other][: len(asked)], now))
