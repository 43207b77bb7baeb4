"""The planner: which predicate wins, and what it makes of it. That it misses nothing: tests/properties."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.broker.core.keyspace import (
    CUBE,
    EQUAL,
    TOPIC,
    Segment,
    Span,
    declared_domain,
    equal_dimension,
    equality_key,
    prefix_key,
    range_dimension,
    topic_dimension,
)
from headgate.broker.core.keyspace.dimensions import RANGE
from headgate.broker.core.placement import Anchor, plan
from headgate.broker.core.placement.planner import CLASSES, IN_KEYS_MAX, declared
from headgate.matching import Value, parse_condition, parse_pattern
from headgate.ops.bench.papers.models import Constraint, Placement, constraints_of, counting_scheme
from headgate.ops.bench.papers.models.counting import AnyOf, OneOf

PRICE = declared_domain("quotes", "price", 0.0, 20.0, 0.01)
assert PRICE is not None
SCHEMA = {
    "attributes": {
        "price": {"type": "float", "min": 0, "max": 20, "precision": 0.01},
        "volume": {"type": "int", "min": 0, "max": 1_000_000},
        "symbol": {"type": "string"},
    }
}


def anchor(condition: str, pattern: str = "quotes", *, single_key: bool = False, schema: Any = SCHEMA) -> Anchor:
    return plan(
        parse_pattern(pattern), parse_condition(condition) if condition else None, schema, single_key=single_key
    )


def points(attribute: str, *values: Value) -> tuple[Segment, ...]:
    keys = [equality_key("quotes", attribute, value) for value in values]
    return tuple(Segment(key, key) for key in sorted(key for key in keys if key is not None))


def arc(first: int, last: int) -> Segment:
    assert PRICE is not None
    return Segment(PRICE.key_of_cell(first), PRICE.key_of_cell(last))


# --- Topics -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "prefix", "depth"),
    [
        ("quotes", "quotes", 1),
        ("quotes/NYSE/OTE", "quotes/NYSE/OTE", 3),
        ("quotes/*/OTE", "quotes", 1),
        ("q/a/*", "q/a", 2),
    ],
)
def test_without_a_condition_the_longest_literal_prefix_is_the_anchor(pattern: str, prefix: str, depth: int) -> None:
    for exact in (False, True):
        found = plan(parse_pattern(pattern, exact), None, SCHEMA)
        key = prefix_key(prefix)
        assert found == Anchor(
            topic_dimension(depth), (Segment(key, key),), pattern.split("/")[0], (prefix,), found.why_topic
        )


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("", "no condition"),
        ("symbol <> 'IBM'", "asks no attribute"),
        ("symbol LIKE 'IBM'", "asks no attribute"),
        ("symbol NOT IN ('IBM')", "asks no attribute"),
        ("symbol IS NULL", "asks no attribute"),
        ("symbol = name", "asks no attribute"),
        ("weight < 5", "asks no attribute"),
        ("symbol < 'IBM'", "asks no attribute"),
        ("weight + 0 = 5", "asks no attribute"),
        ("symbol = 'IBM' OR name = 'IBM'", "asks no attribute"),
        ("symbol = 'IBM' OR TRUE", "asks no attribute"),
        ("price > 2", "too much"),
        ("price > 8.3 OR price < 8.7", "too much"),
        ("symbol = NULL", "never be true"),
        ("symbol = 'IBM' AND symbol = 'OTE'", "never be true"),
        ("price BETWEEN 2 AND 1", "never be true"),
        ("price < 1 AND price > 2", "never be true"),
        ("FALSE", "never be true"),
    ],
)
def test_what_gives_no_key_rests_at_the_topic(condition: str, why: str) -> None:
    found = anchor(condition)
    assert found.dimension == topic_dimension(1)
    assert why in found.why_topic


# --- Values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "attribute", "values"),
    [
        ("symbol = 'IBM'", "symbol", ("IBM",)),
        ("'IBM' = symbol", "symbol", ("IBM",)),
        ("5 = x", "x", (5,)),
        ("x = 5 AND y > 3 AND NOT z", "x", (5,)),
        ("x = 1 OR x = 1.0", "x", (1,)),
        ("x = 0.0 OR x = -0.0", "x", (0,)),
        ("x IN (9007199254740993)", "x", (9007199254740993,)),
        ("symbol IN ('IBM', 'OTE')", "symbol", ("IBM", "OTE")),
        ("symbol = 'IBM' OR symbol IN ('OTE', 'IBM')", "symbol", ("IBM", "OTE")),
        ("x IN (1, '1', TRUE)", "x", (1, "1", True)),
        ("x IN (1, 2) AND x IN (2, 3)", "x", (2,)),
        ("x IN (1, NULL)", "x", (1,)),
        ("NOT (symbol <> 'IBM')", "symbol", ("IBM",)),
        ("NOT (symbol <> 'IBM' AND symbol <> 'OTE')", "symbol", ("IBM", "OTE")),
        ("(x = 1 AND y = 2) OR (x = 3 AND z > 4)", "x", (1, 3)),
        ("(x = 1 AND x = 2) OR x = 3", "x", (3,)),
        ("x = 1 OR y = NULL", "x", (1,)),
        ("price = 8.3", "price", (8.3,)),
        ("active", "active", (True,)),
        ("NOT active", "active", (False,)),
    ],
)
def test_values_that_must_be_are_keys(condition: str, attribute: str, values: tuple[Value, ...]) -> None:
    found = anchor(condition)
    assert (found.dimension, found.segments) == (equal_dimension(attribute), points(attribute, *values))
    assert points(attribute, *found.about) == found.segments
    assert found.why_topic == ""


def test_a_list_of_as_many_values_as_there_may_be_keys() -> None:
    for count, kind in ((IN_KEYS_MAX, EQUAL), (IN_KEYS_MAX + 1, TOPIC)):
        listed = ", ".join(map(str, range(count)))
        assert anchor(f"x IN ({listed})").dimension.kind == kind
        assert anchor(" OR ".join(f"x = {number}" for number in range(count))).dimension.kind == kind


def test_a_longer_list_of_a_declared_attribute_may_be_a_range() -> None:
    assert anchor(f"price IN ({', '.join(f'{5 + number / 100}' for number in range(20))})").segments == (arc(500, 519),)
    assert anchor(f"price IN ({', '.join(f'{number}.5' for number in range(20))})").dimension.kind == TOPIC


# --- Ranges -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "stretches"),
    [
        ("price BETWEEN 8.30 AND 8.70", [(830, 870)]),
        ("price > 8.30 AND price < 8.70", [(830, 870)]),
        ("8.70 >= price AND 8.30 <= price", [(830, 870)]),
        ("price > 15", [(1500, 2000)]),
        ("price >= 15 AND price < 400", [(1500, 2000)]),
        ("price < 1 OR price > 19", [(0, 100), (1900, 2000)]),
        ("price < 1 OR price = 7", [(0, 100), (700, 700)]),
        ("(price < 1 OR price > 19) AND price BETWEEN 0.5 AND 19.5", [(50, 100), (1900, 1950)]),
        ("(price < 1 OR price > 19) AND (price BETWEEN 0.5 AND 2 OR price BETWEEN 3 AND 4)", [(50, 100)]),
        (
            "price IN (1, 2, 3) AND price > 1.5 AND price <> 1.7 OR price BETWEEN 5 AND 6",
            [(200, 200), (300, 300), (500, 600)],
        ),
        ("price BETWEEN 1 AND 2 OR price BETWEEN 1.5 AND 3", [(100, 300)]),
        ("price BETWEEN 1 AND 2 OR price BETWEEN 2.01 AND 3", [(100, 300)]),
        ("NOT (price < 18)", [(1800, 2000)]),
        ("NOT (price BETWEEN 1 AND 19)", [(0, 100), (1900, 2000)]),
        ("price >= 18 AND weight < 5", [(1800, 2000)]),
        ("price >= 18 AND price <> 19", [(1800, 2000)]),
        ("price BETWEEN 18 AND weight", [(1800, 2000)]),
        ("(price < 1 AND symbol = 'IBM') OR (price > 19 AND weight = 5)", [(0, 100), (1900, 2000)]),
    ],
)
def test_ranges_of_a_declared_attribute_are_arcs(condition: str, stretches: list[tuple[int, int]]) -> None:
    assert PRICE is not None
    found = anchor(condition)
    assert found.dimension == range_dimension(PRICE)
    assert found.segments == tuple(arc(first, last) for first, last in stretches)
    assert found.about == tuple(end for stretch in stretches for end in stretch)


def test_what_may_be_no_number_is_no_range() -> None:
    for condition in ("price < 1 OR price = 'none'", "price < 1 OR price", "price < 1 OR price IS NULL"):
        assert anchor(condition).dimension.kind == TOPIC
    for condition in ("price < TRUE", "price > 'a'", "price < 1 OR price > 'a'"):
        assert anchor(condition).dimension.kind == TOPIC


def test_a_range_is_an_anchor_up_to_half_of_the_ring() -> None:
    assert anchor("price < 9.99").dimension.kind == RANGE
    assert anchor("price < 10.01").dimension.kind == TOPIC


def test_more_stretches_than_there_may_be_keys_rest_at_the_topic() -> None:
    for count, kind in ((IN_KEYS_MAX, RANGE), (IN_KEYS_MAX + 1, TOPIC)):
        condition = " OR ".join(f"price BETWEEN {number / 2} AND {number / 2 + 0.1}" for number in range(count))
        assert anchor(condition).dimension.kind == kind


# --- Which one wins ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "attribute", "kind"),
    [
        ("price < 1 AND symbol IN ('IBM', 'OTE') AND name = 'x'", "name", EQUAL),
        ("price < 1 AND symbol IN ('IBM', 'OTE')", "symbol", EQUAL),
        ("a IN (1, 2, 3) AND b IN (1, 2)", "b", EQUAL),
        ("a = 1 AND b = 2", "a", EQUAL),
        ("b = 2 AND a = 1", "b", EQUAL),
        ("active AND price < 1", "price", RANGE),
        ("active = TRUE AND name = 'x'", "name", EQUAL),
        ("active = TRUE AND price < 15", "active", EQUAL),
        ("price < 5 AND volume < 1000", "volume", RANGE),
        ("price < 0.01 AND volume < 100000", "price", RANGE),
    ],
)
def test_the_best_predicate_wins(condition: str, attribute: str, kind: str) -> None:
    found = anchor(condition, "quotes/NYSE")
    assert (found.dimension.attribute, found.dimension.kind) == (attribute, kind)


@pytest.mark.parametrize(
    ("condition", "kind"),
    [
        ("symbol = 'IBM'", EQUAL),
        ("symbol IN ('IBM', 'OTE')", TOPIC),
        ("price < 1", TOPIC),
        ("active", EQUAL),
        ("", TOPIC),
    ],
)
def test_in_order_means_one_key(condition: str, kind: str) -> None:
    found = anchor(condition, single_key=True)
    assert found.dimension.kind == kind
    assert len(found.segments) == 1
    assert found.segments[0].low == found.segments[0].high


def test_classes_are_asked_in_the_order_of_the_design() -> None:
    assert list(CLASSES) == ["dynamic", "structure", "attribute", "topic"]
    # until its class is built, it rests by what else it says
    assert anchor("symbol = 'IBM' AND DELTA(price) > 0.05").dimension.kind == EQUAL


@pytest.mark.parametrize(
    ("condition", "kind"),
    [
        ("XPATH '/bib/book'", CUBE),
        ("XPATH '/bib/book' AND volume > 5", CUBE),
        ("XPATH '/bib/book' AND symbol IN ('IBM', 'OTE')", CUBE),
        ("XPATH '/bib/book' AND active", CUBE),
        ("XPATH '/bib/book' AND symbol = 'IBM'", EQUAL),
    ],
)
def test_structure_rests_on_the_cube_but_where_one_value_is_asked_for(condition: str, kind: str) -> None:
    assert anchor(condition).dimension.kind == kind
    assert anchor(condition, single_key=True).dimension.kind != CUBE, "its events would go different ways"


def test_it_rests_at_the_vertex_of_all_that_its_twigs_ask_for() -> None:
    one, other, both = (anchor(text) for text in ("XPATH 'a/b'", "XPATH 'c'", "XPATH 'a/b' AND XPATH 'c'"))
    assert both.filter == one.filter | other.filter
    vertices = both.dimension.vertices("quotes")
    (segment,) = both.segments
    assert vertices.vertex_at(segment.low) == vertices.vertex_of(both.filter)
    vertex = f"{vertices.vertex_of(both.filter):08b}"
    assert both.because() == f"it asks XPATH 'a/b' AND XPATH 'c', so it rests at vertex {vertex} of the cube of quotes"


def test_what_the_schema_says_of_structure_makes_another_cube() -> None:
    schema = {"structure.l": 512, "structure.n": 5, "structure.routing": "kbpp"}
    found = anchor("XPATH 'a/b'", schema=schema)
    assert found.dimension.wire() == ["cube", "#structure/512/1", 5, "kbpp", "fold"]
    assert found.laid is None, "events look everywhere below their key"
    learned = anchor("XPATH 'a/b'", schema={"structure.map": "3a700c"})
    assert learned.dimension.wire() == ["cube", "#structure/1024/1", 8, "kbsp", "3a700c"]
    assert str(learned.dimension) != str(anchor("XPATH 'a/b'").dimension)
    assert anchor("XPATH 'a/b'").laid is not None


# --- Schemas ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "entry",
    [
        None,
        5,
        {},
        {"type": "string", "min": 0, "max": 1, "precision": 1},
        {"type": "float", "min": 0, "precision": 0.1},
        {"type": "float", "min": 0, "max": True, "precision": 0.1},
        {"type": "float", "min": 0, "max": 2**70, "precision": 0.1},
        {"type": "float", "min": 1, "max": 0, "precision": 0.1},
        {"type": "float", "min": 0, "max": 1, "precision": 0},
        {"type": "float", "min": 0, "max": float("inf"), "precision": 1},
        {"type": "float", "min": 0, "max": float("nan"), "precision": 1},
    ],
)
def test_what_a_schema_does_not_declare_properly_has_no_domain(entry: object) -> None:
    schema = {"attributes": {"price": entry}}
    assert declared("quotes", schema, "price") is None
    assert anchor("price < 0.1", schema=schema).dimension.kind == TOPIC


def test_a_declared_domain() -> None:
    domain = declared("quotes", SCHEMA, "volume")
    assert domain is not None
    assert (domain.cells, domain.precision) == (1_000_001, 1)
    for schema in (None, {}, {"attributes": None}, {"attributes": {}}):
        assert declared("quotes", schema, "price") is None


def test_an_anchor_covers_its_keys_and_no_others() -> None:
    found = anchor("price BETWEEN 8.30 AND 8.70")
    assert PRICE is not None
    assert found.covers(PRICE.key(8.5))
    assert not found.covers(PRICE.key(8.71))
    assert not found.covers(None)


# --- For the counting placement ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("", {}),
        ("symbol <> 'IBM'", {}),
        ("symbol = 'IBM' AND symbol = 'OTE'", {}),
        ("symbol = 'IBM' AND name LIKE 'a%'", {"symbol": OneOf(("IBM",))}),
        ("price < 1 OR price = 2", {"price": AnyOf((Span(None, 1.0), Span(2.0, 2.0)))}),
        ("price < 1 OR price < 2", {"price": Span(None, 2.0)}),
        ("price > 15", {"price": Span(15.0, 20.0)}),
        ("price > 2 AND weight > 5 AND symbol IN ('a', 'b')", {"price": Span(2.0, 20.0), "symbol": OneOf(("a", "b"))}),
    ],
)
def test_what_can_be_counted(condition: str, wanted: dict[str, Constraint]) -> None:
    tree = parse_condition(condition) if condition else None
    assert constraints_of(parse_pattern("quotes"), tree, SCHEMA) == wanted


def test_a_bound_that_doubles_cannot_express_is_left_open() -> None:
    far: dict[str, Any] = {"type": "int", "min": 2**62, "max": 2**62 + 10_000}
    schema = {"attributes": {"price": far}}
    condition = parse_condition(f"price > {2**62 + 2600}")
    domain = declared("quotes", schema, "price")
    span = constraints_of(parse_pattern("quotes"), condition, schema)["price"]
    assert domain is not None
    assert isinstance(span, Span)
    assert domain.cell(2**62 + 2601) in domain.span_cells(span)


def test_the_scheme_of_a_schema() -> None:
    scheme = counting_scheme("quotes", SCHEMA, Placement.HASHED)
    assert (sorted(scheme.domains), scheme.placement) == (["price", "volume"], Placement.HASHED)
    for schema in (None, {}, {"attributes": None}):
        assert counting_scheme("quotes", schema).domains == {}
