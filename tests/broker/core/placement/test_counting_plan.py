"""The plan of counting: what is put on lists, what is left for the home to look at, and what is anchored instead."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.keyspace import (
    Dimension,
    count_dimension,
    declared_domain,
    equal_dimension,
    equality_key,
    key_of,
    topic_dimension,
)
from headgate.broker.core.placement import Anchor, Counted
from headgate.broker.core.placement.counting_plan import plan_counted, plan_counting
from headgate.broker.core.placement.placement import Wish
from headgate.broker.core.placement.planner import plan_anchored
from headgate.matching import Value, evaluate, parse_condition, parse_pattern

SCHEMA: dict[str, Any] = {
    "attributes": {
        "price": {"type": "float", "min": 0, "max": 20, "precision": 0.01},
        "volume": {"type": "int", "min": 0, "max": 100},
        "symbol": {"type": "string"},
        "live": {"type": "bool"},
        "weight": {"type": "float"},
    }
}
PRICE = declared_domain("quotes", "price", 0, 20, 0.01)
VOLUME = declared_domain("quotes", "volume", 0, 100, 1)
assert PRICE is not None and VOLUME is not None
QUOTES = parse_pattern("quotes")
SYMBOL, PRICES, VOLUMES = count_dimension("symbol"), count_dimension("price", PRICE), count_dimension("volume", VOLUME)


def planned(condition: str) -> Counted | str:
    return plan_counting(QUOTES, parse_condition(condition) if condition else None, SCHEMA)


def parts(condition: str) -> dict[Dimension, tuple[Value, ...]]:
    counted = planned(condition)
    assert isinstance(counted, Counted), counted
    return {part.dimension: part.about for part in counted.parts}


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("symbol = 'OTE'", {SYMBOL: ("OTE",)}),
        ("symbol IN ('OTE', 'IBM')", {SYMBOL: ("OTE", "IBM")}),
        ("symbol = 'OTE' OR symbol = 'IBM'", {SYMBOL: ("OTE", "IBM")}),
        ("live", {count_dimension("live"): (True,)}),
        ("price > 8.30 AND price < 8.70", {PRICES: (830, 870)}),
        ("price BETWEEN 8.30 AND 8.70", {PRICES: (830, 870)}),
        ("price = 8.4", {PRICES: (840, 840)}),
        ("price < 0.1 OR price > 19.9", {PRICES: (0, 10, 1990, 2000)}),
        ("price BETWEEN 1 AND 2 OR price = 5 OR price BETWEEN 2 AND 3", {PRICES: (100, 300, 500, 500)}),
        (
            " OR ".join(f"price BETWEEN {n} AND {n}.1" for n in range(16)),
            {PRICES: tuple(end for n in range(16) for end in (100 * n, 100 * n + 10))},
        ),
        (
            "price = 0 OR price = 3 OR " + " OR ".join(f"price BETWEEN {n} AND {n}.1" for n in range(4, 20)),
            {PRICES: (0, 0, 300, 300, 400, 610, *(end for n in range(7, 20) for end in (100 * n, 100 * n + 10)))},
        ),
        (f"price IN ({', '.join(str(n / 100) for n in range(17))})", {PRICES: (0, 16)}),
        ("volume IN (0, 1) OR volume > 99", {VOLUMES: (0, 1, 99, 100)}),
        ("price IN (8.4, 2, 8.401)", {PRICES: (200, 200, 840, 840)}),
        ("price = '8.4'", {count_dimension("price"): ("8.4",)}),
        ("price IN ('8.4', 2)", {count_dimension("price"): ("8.4", 2)}),
        ("symbol = 'OTE' AND volume > 90 AND price < 1", {SYMBOL: ("OTE",), VOLUMES: (90, 100), PRICES: (0, 100)}),
        ("symbol = 'OTE' AND exchange = 'NYSE'", {SYMBOL: ("OTE",)}),
        ("symbol = 'OTE' AND price > 1", {SYMBOL: ("OTE",)}),
        ("symbol = 'OTE' AND weight > 1 AND name LIKE 'a%'", {SYMBOL: ("OTE",)}),
        ("symbol = 'OTE' AND NOT (price > 1 AND live)", {SYMBOL: ("OTE",)}),
    ],
)
def test_values_and_ranges_that_a_condition_needs_are_counted(condition: str, wanted: dict[Dimension, Any]) -> None:
    assert parts(condition) == wanted


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("", "no condition"),
        ("exchange = 'NYSE'", "asks no attribute that the schema declares"),
        ("symbol = 'OTE' OR price < 1", "asks no attribute"),
        ("NOT symbol = 'OTE'", "asks no attribute"),
        ("symbol <> 'OTE'", "asks no attribute"),
        ("weight > 1", "asks no attribute"),
        ("symbol = 'OTE' AND symbol = 'IBM'", "asks no attribute"),
        ("price > 1", "too much"),
        (f"symbol IN ({', '.join(repr(str(number)) for number in range(17))})", "too much"),
    ],
)
def test_what_cannot_be_counted_and_why(condition: str, why: str) -> None:
    said = planned(condition)
    assert isinstance(said, str) and why in said


def test_a_schema_that_declares_nothing_lets_nothing_be_counted() -> None:
    schemas: tuple[dict[str, Any] | None, ...] = (None, {}, {"attributes": None}, {"attributes": {}})
    for schema in schemas:
        assert isinstance(plan_counting(QUOTES, parse_condition("symbol = 'OTE'"), schema), str)


def test_values_that_are_equal_are_on_one_list() -> None:
    counted = planned("weight IN (1, 1.0, 2)")
    assert isinstance(counted, Counted)
    assert [segment.low for segment in counted.segments] == [
        equality_key("quotes", "weight", 1),
        equality_key("quotes", "weight", 2),
    ]


def test_where_a_subscription_rests() -> None:
    condition = parse_condition("symbol = 'OTE' AND price < 1")
    resting = plan_counted(Wish(QUOTES, condition, SCHEMA, [], True))
    assert isinstance(resting, Counted) and resting.dimensions == (SYMBOL, PRICES)
    anchor = plan_anchored(Wish(QUOTES, condition, SCHEMA, [], False))
    assert anchor.dimensions == (equal_dimension("symbol"),) and not anchor.uncounted
    resting = plan_counted(Wish(QUOTES, parse_condition("price > 1"), SCHEMA, [], False))
    assert isinstance(resting, Anchor) and "too much" in resting.uncounted


def test_the_bound_of_dimensions_holds_for_lists_too() -> None:
    condition = parse_condition("symbol = 'OTE' AND price < 1")
    for used, counted in (
        ([SYMBOL, VOLUMES], True),
        ([PRICES, SYMBOL, VOLUMES], True),
        ([VOLUMES, topic_dimension(1)], False),
    ):
        resting = plan_counted(Wish(QUOTES, condition, SCHEMA, used, False, 3))
        assert isinstance(resting, Counted) if counted else isinstance(resting, Anchor) and resting.uncounted
    full = [VOLUMES, topic_dimension(1), topic_dimension(2)]
    assert plan_counted(Wish(QUOTES, condition, SCHEMA, full, False, 3)).dimensions == (topic_dimension(1),)
    assert plan_anchored(Wish(QUOTES, condition, SCHEMA, full, False, 3)).dimensions == (topic_dimension(1),)


CONDITIONS = [
    parse_condition(text)
    for text in (
        *(
            "price > 18",
            "price BETWEEN 3 AND 5 AND volume = 7",
            "symbol = 'a' AND price <= 2.005",
            "live AND volume < 9",
        ),
        *("price = 5 OR price = 7.5", "price IN (1, 2.005, 3) AND symbol IN ('a', 'b')", "weight = 1", "weight = 0"),
        *("symbol = 'a' OR symbol = 'b' AND price < 3", "volume >= 99.5", "price = 1e9 AND volume = -3"),
    )
]
values = st.one_of(
    st.sampled_from([None, "a", "b", "7", True, False, 7, 7.0, 1, 0.0, -0.0, 2.005, 2.0049999, 1e9, -3, float("nan")]),
    st.floats(-1, 21),
    st.integers(0, 100),
)


@given(st.sampled_from(CONDITIONS), st.fixed_dictionaries(dict.fromkeys(SCHEMA["attributes"], values)))
def test_an_event_that_matches_has_a_key_on_every_dimension(condition: Any, event: dict[str, Value]) -> None:
    """The soundness of counting: whoever is wanted is met c3 times."""
    counted = plan_counting(QUOTES, condition, SCHEMA)
    assert isinstance(counted, Counted)
    assert len(set(counted.dimensions)) == len(counted.parts)
    met = 0
    for part in counted.parts:
        key = key_of("quotes", part.dimension, "quotes/x", event)
        times = 0 if key is None else sum(segment.covers(key) for segment in part.segments)
        assert times <= 1, "on one list of a dimension"
        met += times
    assert met == len(counted.parts) or evaluate(condition, event) is not True
