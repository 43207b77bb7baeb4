"""Counted subscriptions at a broker: the items they are put away as, and what comes of items that rest there."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.broker.core.keyspace import count_dimension
from headgate.broker.core.kv import Item
from headgate.broker.core.placement import Counted, SubscriptionId
from headgate.broker.core.placement.counting_home import COUNTED, CountingHome, counted_items, read_counted
from headgate.broker.core.placement.counting_plan import plan_counting
from headgate.matching import parse_condition, parse_pattern
from headgate.protocol.errors import ProtocolViolation

SCHEMA: dict[str, Any] = {
    "attributes": {"price": {"type": "float", "min": 0, "max": 20, "precision": 0.01}, "symbol": {"type": "string"}}
}
QUOTES = parse_pattern("quotes")
CONDITION = parse_condition("symbol IN ('OTE', 'IBM') AND price < 1")
COUNT = plan_counting(QUOTES, CONDITION, SCHEMA)
assert isinstance(COUNT, Counted)
ME, LIFE = 7, 3


def test_an_item_for_each_stretch_says_which_list_and_how_many() -> None:
    assert isinstance(COUNT, Counted)
    items = counted_items(COUNT, ME, LIFE, 5, 2)
    assert [item.name for item in items] == [(COUNTED, ME, LIFE, 5, place) for place in range(3)]
    assert {item.version for item in items} == {2}
    assert [(item.low, item.high) for item in items] == [(one.low, one.high) for one in COUNT.segments]
    read = [read_counted(item) for item in items]
    assert [dimension.attribute for _, dimension, _ in read] == ["symbol", "symbol", "price"]
    assert {(stream, identity) for stream, _, identity in read} == {("quotes", SubscriptionId(ME, 5, 2, LIFE))}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ((COUNTED, "x", 1, 5, 0), ["quotes", ["count", "symbol"], 1]),
        ((COUNTED, ME, 1, 5, 0), ["quotes", ["count", "symbol"], 0]),
        ((COUNTED, ME, 1, 5, 0), ["quotes", ["count", "symbol"], "1"]),
        ((COUNTED, ME, 1, 5, 0), [5, ["count", "symbol"], 1]),
        ((COUNTED, ME, 1, 5, 0), ["quotes", ["count"], 1]),
        ((COUNTED, ME, 1, 5, 0), ["quotes"]),
        ((COUNTED, ME, 1, 5), ["quotes", ["count", "symbol"], 1]),
        ((COUNTED, ME, 1, 5, 0), None),
    ],
)
def test_what_is_no_such_item_is_said_to_be_none(name: Any, value: Any) -> None:
    with pytest.raises((TypeError, ValueError, ProtocolViolation)):
        read_counted(Item(name, 5, 5, 1, value))


def test_what_rests_here_is_on_lists_until_it_is_taken_away() -> None:
    home = CountingHome(ME, LIFE)
    item = Item((COUNTED, 9, 1, 5, 0), 40, 40, 1, ["quotes", ["count", "symbol"], 2])
    home.add(item)
    assert home.lists.at("quotes", count_dimension("symbol"), 40) == [SubscriptionId(9, 5, 2, 1)]
    home.remove(item)
    home.remove(item)
    assert not len(home.lists)


@pytest.mark.parametrize(("life", "number", "listed"), [(LIFE, 5, True), (LIFE, 6, False), (LIFE - 1, 5, False)])
def test_of_our_own_only_what_our_clients_still_ask_for(life: int, number: int, listed: bool) -> None:
    home = CountingHome(ME, LIFE)
    home.enter(5, QUOTES, CONDITION)
    item = Item((COUNTED, ME, life, number, 0), 40, 40, 1, ["quotes", ["count", "symbol"], 1])
    home.add(item)
    assert len(home.lists) == listed
    home.remove(item)
    assert not len(home.lists)


def test_checks_are_kept_as_long_as_the_subscription_is() -> None:
    home = CountingHome(ME, LIFE)
    home.enter(5, QUOTES, CONDITION)
    assert home.checks[5].pattern is QUOTES
    home.leave(5)
    home.leave(5)
    assert home.checks == {}
