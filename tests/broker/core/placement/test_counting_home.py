"""Counted subscriptions at a broker: the items they are put away as, what comes of items that rest there, and which
candidates their home confirms: those whose topic and whole condition fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headgate.broker.core.config import NodeConfig
from headgate.broker.core.delivery import ClientSession, Subscription
from headgate.broker.core.keyspace import count_dimension
from headgate.broker.core.kv import Item
from headgate.broker.core.placement import Counted, SubscriptionId
from headgate.broker.core.placement.counting_home import COUNTED, Counting, read_counted
from headgate.broker.core.placement.counting_plan import plan_counting
from headgate.broker.core.placement.registry import items_of
from headgate.broker.core.safeguards import SAFEGUARDS, Safeguard
from headgate.matching import parse_condition, parse_pattern
from headgate.protocol.data import Batch
from headgate.protocol.errors import ProtocolViolation
from tests.support.builders import quote_batch

SCHEMA: dict[str, Any] = {
    "attributes": {"price": {"type": "float", "min": 0, "max": 20, "precision": 0.01}, "symbol": {"type": "string"}}
}
QUOTES = parse_pattern("quotes")
CONDITION = parse_condition("symbol IN ('OTE', 'IBM') AND price < 1")
COUNT = plan_counting(QUOTES, CONDITION, SCHEMA)
assert isinstance(COUNT, Counted)
CONFIG = NodeConfig("b1", 3)
ME, LIFE = CONFIG.identifier, CONFIG.incarnation


def test_an_item_for_each_stretch_says_which_list_and_how_many() -> None:
    assert isinstance(COUNT, Counted)
    subscription = Subscription(5, 1, ClientSession(b"c", "c", None, 0, 0), "quotes", QUOTES, "")
    items = items_of((COUNTED, ME, LIFE, 5), 2, COUNT.pieces(subscription, False, ""))
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
    home = Counting(CONFIG)
    item = Item((COUNTED, 9, 1, 5, 0), 40, 40, 1, ["quotes", ["count", "symbol"], 2])
    home.add(item)
    assert home.lists.at("quotes", count_dimension("symbol"), 40) == [SubscriptionId(9, 5, 2, 1)]
    home.remove(item)
    home.remove(item)
    assert not len(home.lists)


@pytest.mark.parametrize(("life", "number", "listed"), [(LIFE, 5, True), (LIFE, 6, False), (LIFE - 1, 5, False)])
def test_of_our_own_only_what_our_clients_still_ask_for(life: int, number: int, listed: bool) -> None:
    home = Counting(CONFIG)
    home.enter(5, 5, QUOTES, CONDITION)
    item = Item((COUNTED, ME, life, number, 0), 40, 40, 1, ["quotes", ["count", "symbol"], 1])
    home.add(item)
    assert len(home.lists) == listed
    home.remove(item)
    assert not len(home.lists)


def test_checks_are_kept_as_long_as_the_subscription_is() -> None:
    home = Counting(CONFIG)
    home.enter(5, 5, QUOTES, CONDITION)
    assert home.checks[5][0].pattern is QUOTES
    home.leave(5, 5)
    home.leave(5, 5)
    assert home.checks == {}


def test_a_candidate_is_checked_for_each_version_that_stands_under_its_number() -> None:
    home = Counting(CONFIG)
    for identity, condition in ((5, "n < 3"), (8, "n < 5"), (9, "n = 1")):
        home.enter(5, identity, QUOTES, parse_condition(condition))
    batch = quote_batch(bodies=["one", "four", "six"], n=[1, 4, 6])
    assert [home.true_of(batch, row, [5, 7]) for row in range(3)] == [(5, 8, 9, 7), (8, 7), (7,)]
    home.leave(5, 5)
    assert list(home.confirmed(batch, [([5], 3)])) == [((8, 9), 1), ((8,), 1), ((), 1)]
    home.leave(5, 8)
    home.leave(5, 9)
    assert home.checks == {}


WANTED = {
    1: ("quotes", "price > 8.301"),
    2: ("quotes", "price > 8.301 AND name LIKE 'a%'"),
    3: ("quotes/*/x", "price > 0"),
}


def home_of_three(config: NodeConfig = CONFIG) -> Counting:
    home = Counting(config)
    for number, (pattern, condition) in WANTED.items():
        home.enter(number, number, parse_pattern(pattern), parse_condition(condition))
    return home


def test_who_is_true_of_a_row() -> None:
    topics = ["quotes/a/x", "quotes/a/y", "quotes/b/x"]
    batch = quote_batch(topics, ["one", "two", "three"], price=[8.302, 8.3, None], name=["b", "ab", "ab"])
    assert [home_of_three().true_of(batch, row, (1, 2, 3)) for row in range(3)] == [(1, 3), (), ()]


def test_whoever_needs_no_check_stays() -> None:
    batch = quote_batch("quotes/a/y", ["one"], price=[1])
    assert home_of_three().true_of(batch, 0, (9, 1, 3)) == (9,)
    assert Counting(CONFIG).true_of(batch, 0, (9, 1)) == (9, 1)


def test_one_topic_for_all_rows_and_columns_that_were_not_sent() -> None:
    batch = quote_batch("quotes/a/x", ["one", "two"], [], price=[9, 8], name=["a", "a"])
    assert not batch.columns
    assert [home_of_three().true_of(batch, row, (1, 2, 3)) for row in range(2)] == [(1, 2, 3), (3,)]


def test_a_column_that_nobody_has_is_null() -> None:
    batch = quote_batch("quotes/a/x", ["one"], price=[9])
    assert home_of_three().true_of(batch, 0, (2,)) == ()


def test_records_that_cannot_be_read_are_refused() -> None:
    batch = quote_batch("quotes", ["one"], [], price=[9])
    broken = Batch(batch.topics, 1, b"\x01\0\0\0", b"\xc1", {}, complete=False)
    with pytest.raises(ProtocolViolation):
        home_of_three().true_of(broken, 0, (1,))


def test_runs_of_candidates_are_confirmed_row_by_row_and_what_was_matched_stays_a_run() -> None:
    batch = quote_batch("quotes/a/y", ["one", "two", "three", "four"], price=[9, 9, 9, 1])
    runs: list[tuple[list[int], int]] = [([8, 9], 2), ([1, 9], 2)]
    assert list(home_of_three().confirmed(batch, runs)) == [([8, 9], 2), ((1, 9), 1), ((9,), 1)]
    assert Counting(CONFIG).confirmed(batch, runs) is runs


def test_without_its_safeguard_a_candidate_is_taken_for_a_match() -> None:
    batch = quote_batch("quotes/a/y", ["one"], price=[1])
    home = home_of_three(replace(CONFIG, safeguards=SAFEGUARDS - {Safeguard.CANDIDATES_CHECKED}))
    assert home.true_of(batch, 0, (1, 2)) == (1, 2)
