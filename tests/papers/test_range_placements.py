"""RANGE beside our own placement: its example by the planner, and both placements on the same random workloads."""

from __future__ import annotations

from math import log2
from typing import Any

import pytest

from headgate.broker.core.config import NodeConfig
from headgate.broker.core.delivery import ClientSession, Subscription
from headgate.broker.core.keyspace import Dimension, key_of, successor
from headgate.broker.core.placement import Anchor, Counted, SubscriptionId, plan
from headgate.broker.core.placement import met as counted_met
from headgate.broker.core.placement.counting_home import COUNTED, Counting
from headgate.broker.core.placement.counting_plan import plan_counting
from headgate.broker.core.placement.registry import items_of
from headgate.matching import Tree, Value, evaluate, parse_condition, parse_pattern
from headgate.ops.bench.papers.models import constraints_of, counting_scheme, spread_segment
from headgate.ops.bench.papers.placements import PLACEMENT_SIZES, WORKLOADS, compare
from headgate.ops.bench.papers.routing import range_cost
from tests.support.rings import ideal_ring, random_members

FIGURE_1 = {"type": "float", "min": 0.0, "max": 20.0, "precision": 0.01}
SCHEMA = {"attributes": {"Price": FIGURE_1, "High": FIGURE_1, "Low": FIGURE_1}}
EVENT_1: dict[str, Value] = {"Exchange": "NYSE", "Symbol": "OTE", "Price": 8.40, "High": 8.80, "Low": 8.22}

QUOTES = parse_pattern("quotes")
SUBSCRIPTION_1 = parse_condition("Exchange = 'NYSE' AND Symbol = 'OTE' AND Price < 8.70 AND Price > 8.30")
SUBSCRIPTION_2 = parse_condition("Symbol = 'OTE' AND Price = 8.20 AND Low < 8.05")
PRICE_ONLY = parse_condition("Price < 8.70 AND Price > 8.30")


def met(anchor: Anchor) -> bool:
    return anchor.covers(key_of("quotes", anchor.dimension, "quotes/NYSE/OTE", EVENT_1))


def test_figures_1_and_2_by_anchors() -> None:
    """Event 1 meets both where NYSE and OTE are; there the whole condition decides, and only subscription 1 is true."""
    one, two = (plan(QUOTES, condition, SCHEMA) for condition in (SUBSCRIPTION_1, SUBSCRIPTION_2))
    assert (one.dimension.attribute, two.dimension.attribute) == ("Exchange", "Symbol")
    assert met(one)
    assert met(two)
    assert evaluate(SUBSCRIPTION_1, EVENT_1) is True
    assert evaluate(SUBSCRIPTION_2, EVENT_1) is False


def test_figure_2_as_conditions_is_counted_as_the_paper_counts() -> None:
    scheme = counting_scheme("quotes", SCHEMA)
    questions = scheme.questions(EVENT_1)
    for condition, lists, attributes in ((SUBSCRIPTION_1, 3, 3), (SUBSCRIPTION_2, 1, 3)):
        constraints = constraints_of(QUOTES, condition, SCHEMA)
        entries = scheme.entries(constraints)
        assert len(constraints) == attributes  # c3
        assert sum(question in entries for question in questions) == lists


def test_figures_1_2_and_5_by_the_lists_of_a_broker() -> None:
    """What the Node does for `placement = "counting"`, with one broker for all keys."""
    text = {"type": "string"}
    schema = {"attributes": {**SCHEMA["attributes"], "Exchange": text, "Symbol": text}, "placement": "counting"}
    config = NodeConfig("b1", 1)
    home = Counting(config)
    for number, condition in enumerate((SUBSCRIPTION_1, SUBSCRIPTION_2), 1):
        counted = plan_counting(QUOTES, condition, schema)
        assert isinstance(counted, Counted) and len(counted.parts) == 3
        home.enter(number, number, QUOTES, condition)
        subscription = Subscription(number, number, ClientSession(b"c", "c", None, 0, 0), "quotes", QUOTES, "")
        for item in items_of((COUNTED, config.identifier, 1, number), 1, counted.pieces(subscription, False, "")):
            home.add(item)
    dimensions = {
        dimension for condition in (SUBSCRIPTION_1, SUBSCRIPTION_2) for dimension in dimensions_of(condition, schema)
    }
    lists = {}
    for dimension in dimensions:
        key = key_of("quotes", dimension, "quotes", EVENT_1)
        assert key is not None
        lists[dimension.attribute] = home.lists.at("quotes", dimension, key)
    one, two = (SubscriptionId(config.identifier, number, 3, 1) for number in (1, 2))
    assert lists["Exchange"] == lists["Price"] == [one] and lists["Symbol"] == [one, two]
    assert lists["Low"] == [], "8.22 is not below 8.05; the paper's example counts it, and comes to the same"
    assert counted_met(lists.values()) == [one]


def dimensions_of(condition: Tree, schema: dict[str, Any]) -> tuple[Dimension, ...]:
    counted = plan_counting(QUOTES, condition, schema)
    assert isinstance(counted, Counted)
    return counted.dimensions


def test_3_1_1_the_39_values_are_one_arc_and_41_cells() -> None:
    """The paper's 39 multiples, and the cells of both open ends, where 8.302 and 8.698 are."""
    anchor = plan(QUOTES, PRICE_ONLY, SCHEMA)
    (segment,) = anchor.segments
    assert anchor.about == (830, 870)
    assert met(anchor)
    domain = anchor.dimension.domain("quotes")
    within = [cell for cell in range(domain.cells) if segment.covers(domain.key_of_cell(cell))]
    assert within == list(range(830, 871))
    span = constraints_of(QUOTES, PRICE_ONLY, SCHEMA)["Price"]
    assert len(counting_scheme("quotes", SCHEMA).entries({"Price": span})) == 41


@pytest.mark.parametrize("count", [8, 100])
def test_4_1_a_range_is_stored_once_a_broker_on_the_arc(count: int) -> None:
    members = random_members(count, seed=8)
    anchor = plan(QUOTES, PRICE_ONLY, SCHEMA)
    (segment,) = anchor.segments
    domain = anchor.dimension.domain("quotes")
    spread = spread_segment(ideal_ring(members), members[0], segment)
    assert {successor(members, domain.key_of_cell(cell)) for cell in range(830, 871)} <= set(spread.times)
    assert set(spread.times.values()) == {1}
    assert len(spread.times) <= 0.0205 * count + 4


@pytest.mark.parametrize("count", [10, 60])
def test_both_placements_deliver_the_same(count: int) -> None:
    """`compare` asserts it, workload by workload; what they cost is the paper's point, and ours."""
    sums = compare(count, 2, seed=11)
    ours, hashed, ordered = (sums[name] for name in ("anchored", "counting hashed", "counting ordered"))
    assert sum(map(len, ours.delivered)) > 0
    assert ours.subscribing < ordered.subscribing < hashed.subscribing
    assert ours.meeting < ordered.meeting  # no lists come back


@pytest.mark.slow
@pytest.mark.parametrize("count", PLACEMENT_SIZES)
def test_both_placements_deliver_the_same_on_twenty_workloads(count: int) -> None:
    sums = compare(count, WORKLOADS, seed=4)
    ours, ordered = sums["anchored"], sums["counting ordered"]
    assert ours.subscribing < ordered.subscribing / 1.5
    assert ours.meeting + ours.delivering < ordered.meeting + ordered.delivering


@pytest.mark.parametrize(("count", "values"), [(64, 39), (256, 39), (256, 200)])
def test_3_3_and_4_1_storing_a_range_of_r_values(count: int, values: int) -> None:
    """r * half log N by hashing, half log N + r in order, the last hop of each message on top (Figures 6 and 7).

    Where brokers are fewer than values, those of one broker ride on one message, so that `+ r` is brokers on the arc.
    """
    cost, way = range_cost(count, values, seed=4), log2(count) / 2
    assert values * way < cost.hashed < values * (way + 1)
    assert way + cost.brokers - 1 - 0.5 < cost.walked < way + cost.brokers + 0.5 < way + values
    assert cost.segment < 1.1 * cost.walked  # ours: hardly more messages, and far fewer one after the other
    assert cost.depth < way + 3
