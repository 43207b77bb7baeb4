"""An anchor in words: the dimension, the keys, the owners and the sentence that says why."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.broker.core.clients.explain import explain_resting
from headgate.broker.core.keyspace import equality_key
from headgate.broker.core.placement import Counted, plan
from headgate.broker.core.placement.counting_plan import plan_counted, plan_counting
from headgate.broker.core.placement.placement import Wish
from headgate.matching import parse_condition, parse_pattern

SCHEMA = {"attributes": {"price": {"type": "float", "min": 0, "max": 20, "precision": 0.01}}}


def explained(pattern: str, condition: str = "", *, single_key: bool = False) -> dict[str, Any]:
    tree = parse_condition(condition) if condition else None
    anchor = plan(parse_pattern(pattern), tree, SCHEMA, single_key=single_key)
    return explain_resting(anchor, lambda key: f"broker-{key >> 62}")


@pytest.mark.parametrize(
    ("pattern", "condition", "sentence"),
    [
        (
            "quotes/NYSE",
            "",
            "it has no condition, so it rests where the topics at and below quotes/NYSE meet",
        ),
        (
            "quotes",
            "symbol = 'IBM'",
            "it asks symbol = 'IBM', so it rests where quotes.symbol = 'IBM' meets",
        ),
        ("quotes", "NOT active", "it asks active = FALSE, so it rests where quotes.active = FALSE meets"),
        ("quotes", "x = 8.5", "it asks x = 8.5, so it rests where quotes.x = 8.5 meets"),
        (
            "quotes",
            "symbol IN ('O''Neil', 'IBM')",
            "it asks symbol IN ('O''Neil', 'IBM'), so it rests where each of these values of quotes.symbol meets",
        ),
        (
            "quotes",
            "price BETWEEN 8.30 AND 8.70",
            "it asks price from 8.3 to 8.7, so it rests along that part of the arc of quotes.price: 2.05% of the ring",
        ),
        (
            "quotes",
            "price < 1 OR price > 19 OR price = 5 AND symbol > 'a'",
            "it asks price up to 1 or price about 5 or price from 19 up, so it rests along that part of the arc of "
            "quotes.price: 10.14% of the ring",
        ),
        (
            "quotes",
            "symbol = NULL",
            "its condition can never be true, so it rests where the topics at and below quotes meet",
        ),
    ],
)
def test_the_sentence(pattern: str, condition: str, sentence: str) -> None:
    assert explained(pattern, condition)["because"] == sentence


def test_order_is_a_reason() -> None:
    assert "in order" in explained("quotes", "price < 1", single_key=True)["because"]


def test_keys_are_hex_and_owners_are_named_once() -> None:
    key = equality_key("quotes", "symbol", "IBM")
    assert key is not None
    found = explained("quotes", "symbol = 'IBM'")
    assert found["keys"] == [f"{key:016x}"]
    assert found["owners"] == [f"broker-{key >> 62}"]
    assert (found["shelf"], found["shelf_in_words"]) == ("equal", "values of symbol")


def test_an_arc_has_two_ends() -> None:
    found = explained("quotes", "price BETWEEN 1 AND 9")
    ((low, high),) = [text.split("..") for text in found["keys"]]
    assert found["owners"] == list(dict.fromkeys(f"broker-{int(end, 16) >> 62}" for end in (low, high)))
    assert found["shelf_in_words"] == "ranges of price, 0 to 20 by 0.01"


DECLARED = {"attributes": SCHEMA["attributes"] | {"symbol": {"type": "string"}, "live": {"type": "bool"}}}


@pytest.mark.parametrize(
    ("condition", "lists"),
    [
        ("symbol = 'OTE'", "quotes.symbol = 'OTE'; an event that meets it on this list is"),
        (
            "symbol IN ('OTE', 'IBM') AND price BETWEEN 8.30 AND 8.70 AND live",
            "quotes.symbol IN ('OTE', 'IBM') and quotes.price from 8.3 to 8.7 and quotes.live = TRUE; an event that "
            "meets it on 3 of these lists is",
        ),
        ("price IN (1, 2)", "quotes.price about 1 or quotes.price about 2; an event that meets it on this list is"),
    ],
)
def test_the_sentence_of_a_counted_one(condition: str, lists: str) -> None:
    counted = plan_counting(parse_pattern("quotes"), parse_condition(condition), DECLARED)
    assert isinstance(counted, Counted)
    found = explain_resting(counted, lambda key: f"broker-{key >> 62}")
    assert found["because"] == (
        f"the placement of quotes is counting, so it is on the lists of {lists} brought to its home, which looks at "
        "the topic and all of the condition"
    )
    assert found["shelf"] == "count" and len(found["keys"]) == len(counted.segments)
    assert found["shelf_in_words"] == ", ".join(str(dimension) for dimension in counted.dimensions)


def test_why_it_is_anchored_where_others_are_counted() -> None:
    resting = plan_counted(Wish(parse_pattern("quotes"), None, None, [], False))
    because = explain_resting(resting, lambda key: "b")["because"]
    assert because.endswith("; the placement of quotes is counting, which it cannot be: it has no condition")
