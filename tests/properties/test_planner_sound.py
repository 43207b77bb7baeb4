"""Whatever a subscription asks for: if it is true of an event, the event's key on its dimension lies in its anchor.

This is all that the ring relies on. Random conditions with every awkward value in them, and every row of a small world
in which sides of an OR meet, negations cancel and bounds touch.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import product
from math import inf, nan, nextafter
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.broker.core.keyspace import EQUAL, Dimension, RowKeys, key_of
from headgate.broker.core.keyspace.dimensions import RANGE
from headgate.broker.core.placement import Anchor, Counted, CountedPart, SubscriptionId, met, plan
from headgate.broker.core.placement.counting_lists import CountingLists
from headgate.broker.core.placement.counting_plan import plan_counting
from headgate.broker.core.placement.planner import IN_KEYS_MAX
from headgate.matching import Pattern, Tree, Value, evaluate, parse_condition, to_text
from headgate.matching.tree import (
    Attribute,
    Between,
    Compare,
    Literal,
    Not,
    children,
    conjunction,
    disjunction,
    membership,
)
from headgate.ops.bench.papers.models import CountingStore, Placement, constraints_of, counting_scheme
from tests.matching.samples import NAMES, random_row, random_tree, random_value
from tests.properties.test_matching_small_worlds import CONDITIONS

RANDOMS = st.randoms(use_true_random=False)

TOPICS = ("s", "s/x", "s/y", "s/x/x", "s/x/y", "s/xy/x", "s/x/x/x")
LEVELS = ("x", "y", "xy", "*", "*")
BOUNDS = (-(2.0**63), -7, -1.5, -1, 0, 0.5, 1, 3, 8.3, 10, 2**31, 2**53, 2**53 + 1, 2**63 - 1, 1e308)
CELLS = (1, 3, 7, 100, 2**20, 2**44)
ODD_PRECISIONS = (None, 0, -1, 5e-324, 1e300, inf, nan, "1")
TYPES = ("float", "int", "string", None)


def random_pattern(rng: Random) -> Pattern:
    levels = [rng.choice(LEVELS) for _ in range(rng.randrange(3))]
    return Pattern(("s", *levels), exact=rng.random() < 0.3)


def random_schema(rng: Random, names: tuple[str, ...] = NAMES) -> dict[str, Any] | None:
    """What a schema may declare, and now and then what it must not."""
    if rng.random() < 0.1:
        return None
    attributes: dict[str, Any] = {}
    for name in names:
        if rng.random() < 0.8:
            low, high = sorted(rng.sample(BOUNDS, 2)) if rng.random() < 0.9 else (3, 1)
            fits = rng.random() < 0.8
            precision = (high - low) / rng.choice(CELLS) if fits else rng.choice(ODD_PRECISIONS)
            attributes[name] = {"type": rng.choice(TYPES[:2]), "min": low, "max": high, "precision": precision}
        elif rng.random() < 0.5:
            attributes[name] = {"type": rng.choice(TYPES)}
    return {"attributes": attributes}


def check(anchor: Anchor, pattern: Pattern, condition: Tree | None, topic: str, row: Mapping[str, Value]) -> bool:
    """Whether the subscription is true of the event; fails if it is, and they would not meet."""
    wanted = pattern.matches(topic) and (condition is None or evaluate(condition, row) is True)
    met = anchor.covers(key_of("s", anchor.dimension, topic, row))
    asked = "" if condition is None else to_text(condition)
    assert met or not wanted, f"{pattern} where {asked} rests at {anchor}, and misses {topic} {row}"
    return wanted


def near_predicate(rng: Random) -> Tree:
    """A comparison of an attribute with a value: what the planner is about."""
    name, values = Attribute(rng.choice(NAMES[:3])), [Literal(random_value(rng)) for _ in range(rng.randint(1, 4))]
    bounds = [Literal(rng.choice(BOUNDS)) if rng.randrange(5) else values[0] for _ in range(2)]
    kind = rng.randrange(10)
    if kind < 3:
        return Compare(rng.choice(("<", "<=", ">", ">=")), name, bounds[0])
    if kind == 3:
        return Compare(rng.choice(("=", "<", "<=", ">", ">=", "<>")), bounds[0], name)
    if kind < 6:
        return Between(name, *sorted(bounds, key=lambda bound: (str(type(bound.value)), bound.value)))
    if kind == 6:
        return Compare(rng.choice(("=", "<>")), name, values[0])
    if kind < 9:
        return membership(name, values)
    return name


def near_tree(rng: Random, depth: int = 2) -> Tree:
    """A few of them with AND, OR and NOT."""
    kind = rng.randrange(10)
    if depth == 0 or kind < 4:
        return near_predicate(rng)
    if kind == 4:
        return Not(near_tree(rng, depth - 1))
    parts = [near_tree(rng, depth - 1) for _ in range(rng.randint(2, 3))]
    return conjunction(parts) if kind < 8 else disjunction(parts)


def literals(node: Any) -> list[Value]:
    """Every value that a condition mentions."""
    own = [node.value] if isinstance(node, Literal) else []
    return own + [value for child in children(node) for value in literals(child)]


def near_row(rng: Random, tree: Tree) -> dict[str, Value]:
    """A row of values that the condition mentions, and of their neighbours, as integers and as doubles."""
    row: dict[str, Value] = {}
    for name in NAMES[:3]:
        value = rng.choice([*literals(tree), True])
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            double = float(value)
            near = [value, value, double, nextafter(double, inf), nextafter(double, -inf), nan]
            near += [value + 1, value - 1, int(value)] if abs(value) < 2**60 else []
            value = rng.choice(near)
        row[name] = value
    return row


@given(RANDOMS, st.booleans())
@settings(max_examples=400, deadline=None)
def test_a_true_condition_is_met_at_its_anchor(rng: Random, single_key: bool) -> None:
    pattern, schema = random_pattern(rng), random_schema(rng)
    near = rng.random() < 0.8
    condition = near_tree(rng) if near else random_tree(rng) if rng.random() < 0.9 else None
    anchor = plan(pattern, condition, schema, single_key=single_key)
    assert not single_key or (len(anchor.segments) == 1 and anchor.segments[0].low == anchor.segments[0].high)
    for _ in range(16):
        row = random_row(rng) if condition is None or rng.random() < 0.2 else near_row(rng, condition)
        check(anchor, pattern, condition, rng.choice(TOPICS), row)


@given(RANDOMS)
@settings(max_examples=200, deadline=None)
def test_a_true_condition_is_on_as_many_lists_as_it_has_attributes(rng: Random) -> None:
    """The same for the counting placement: what is counted misses nothing."""
    pattern, schema, condition = Pattern(("s",)), random_schema(rng), near_tree(rng)
    constraints = constraints_of(pattern, condition, schema)
    scheme = counting_scheme("s", schema, rng.choice(list(Placement)))
    if not scheme.accepts(constraints):
        return
    entries = {*scheme.entries(constraints)}
    for _ in range(16):
        row = near_row(rng, condition)
        if evaluate(condition, row) is True:
            met = [entry for entry in scheme.questions(row) if entry in entries]
            assert len(met) == len(constraints), f"{to_text(condition)} misses {row}"


GRID = {"attributes": {"price": {"type": "float", "min": 0, "max": 16, "precision": 0.5}, "size": {"type": "int"}}}
RANGES = st.lists(st.tuples(st.integers(-2, 34), st.integers(0, 6)), min_size=1, max_size=20)


@given(RANGES, st.sampled_from(["", " AND size = 1"]))
def test_disjoint_ranges_are_counted_as_the_dumb_twin_counts_and_nothing_between_them(
    ranges: list[tuple[int, int]], more: str
) -> None:
    """Stretches on blocks of cells, as the Node keeps them, against an entry a value, as the paper has them."""
    either = " OR ".join(f"price BETWEEN {low / 2} AND {(low + length) / 2}" for low, length in ranges)
    condition = parse_condition(f"({either}){more}")
    counted = plan_counting(Pattern(("s",)), condition, GRID)
    if not isinstance(counted, Counted) or "price" not in [part.dimension.attribute for part in counted.parts]:
        return
    lists, identity = CountingLists(), SubscriptionId(1, 2, len(counted.parts))
    for part in counted.parts:
        for segment in part.segments:
            lists.add("s", part.dimension, segment.low, segment.high, identity)
    lists.validate()
    constraints = constraints_of(Pattern(("s",)), condition, GRID)
    scheme, twin = counting_scheme("s", GRID), CountingStore()
    for entry in scheme.entries(constraints):
        twin.store(entry, identity)
    few = len(next(part for part in counted.parts if part.dimension.is_arc).segments) < IN_KEYS_MAX
    for half in range(-4, 40):
        row: dict[str, Value] = {"price": half / 2, "size": 1}
        found = met(lists.at("s", part.dimension, key) for part in counted.parts for key in [row_key(part, row)])
        expected = met(twin.list_at(question) for question in scheme.questions(row))
        assert not few or found == expected, f"{either} at {half / 2}"
        assert found or not expected, "what is more than 16 ranges may be met too often, and never too seldom"
        assert found or evaluate(condition, row) is not True
    for part in counted.parts:
        for segment in part.segments:
            lists.remove("s", part.dimension, segment.low, segment.high, identity)
    assert len(lists) == 0


def row_key(part: CountedPart, row: dict[str, Value]) -> int:
    key = key_of("s", part.dimension, "s", row)
    assert key is not None
    return key


PRICES: tuple[Value, ...] = (None, -1, -0.0, 0, 1, 1.0, 1.25, 1.5, 2, 3.5, nan, "1", True, False)
SYMBOLS: tuple[Value, ...] = (None, "a", "b", 1, True)
WORLD = [{"price": price, "symbol": symbol} for price, symbol in product(PRICES, SYMBOLS)]
SMALL_BOUNDS = (-1, 0, 0.0, 1, 2, 3)
FACTS = (
    *("price < 1", "price <= 1", "price > 1.25", "price >= 2", "1.5 < price", "1 = price", "price = 1", "price = 1.0"),
    *("price <> 1", "price = '1'", "price = 0.0", "price = TRUE", "price = NULL", "price < NULL", "price <= TRUE"),
    *("price BETWEEN 0 AND 1", "price BETWEEN 2 AND 1", "price BETWEEN 1 AND symbol", "1 BETWEEN price AND 2"),
    *("price IN (0, 2)", "price IN (1, '1', TRUE)", "price IN (3.5, NULL)", "price", "price IS NULL", "price = price"),
    *("symbol = 'a'", "symbol IN ('a', 'b')", "symbol = 1", "symbol", "symbol LIKE 'a%'", "symbol = price"),
    *("TRUE", "FALSE", "NULL"),
)
DEEP = st.recursive(
    st.sampled_from(FACTS),
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("NOT ({})".format, inner),
    ),
    max_leaves=5,
)
SCHEMAS = st.builds(
    lambda low, width, precision: {
        "attributes": {"price": {"type": "float", "min": low, "max": low + width, "precision": precision}}
    },
    st.sampled_from(SMALL_BOUNDS),
    st.sampled_from([1, 2.5, 40]),
    st.sampled_from([0.1, 0.5, 1, 3]),
)


@cache
def keys_of_world(dimension: Dimension) -> list[int | None]:
    columns: dict[str, list[Value]] = {name: [row[name] for row in WORLD] for name in ("price", "symbol")}
    return RowKeys("s", dimension).of(["s/x"], len(WORLD), columns)


def check_world(condition: Tree, anchors: list[Anchor]) -> None:
    """The same for every row of the small world."""
    wanted = [evaluate(condition, row) is True for row in WORLD]
    for anchor in anchors:
        for row, key, true in zip(WORLD, keys_of_world(anchor.dimension), wanted, strict=True):
            assert not true or anchor.covers(key), f"{to_text(condition)} rests at {anchor}, and misses {row}"


def test_any_two_facts_together_are_met_in_every_row() -> None:
    schema = {"attributes": {"price": {"type": "float", "min": 0, "max": 10, "precision": 0.5}}}
    facts = [*FACTS, *(f"NOT ({fact})" for fact in FACTS)]
    trees = [parse_condition(fact) for fact in facts]
    for left, right in product(trees, trees[: len(FACTS)]):
        for condition in (conjunction([left, right]), disjunction([left, right])):
            check_world(condition, [plan(Pattern(("s",)), condition, one) for one in (None, schema)])


@given(st.one_of(DEEP, CONDITIONS), st.one_of(st.none(), SCHEMAS), st.booleans())
@settings(max_examples=400, deadline=None)
def test_in_a_small_world_every_row_is_met(text: str, schema: dict[str, Any] | None, single_key: bool) -> None:
    condition = parse_condition(text)
    check_world(condition, [plan(Pattern(("s",)), condition, schema, single_key=single_key)])


def test_the_rows_are_not_all_false_and_the_anchors_not_all_topics() -> None:
    """Otherwise the two above would show nothing."""
    rng, wanted = Random(4), {EQUAL: 0, RANGE: 0}
    for _ in range(800):
        pattern, condition = Pattern(("s",)), near_tree(rng)
        anchor = plan(pattern, condition, random_schema(rng))
        if anchor.dimension.kind in wanted:
            rows = [near_row(rng, condition) for _ in range(12)]
            wanted[anchor.dimension.kind] += sum(check(anchor, pattern, condition, "s", row) for row in rows)
    assert min(wanted.values()) > 50, wanted
