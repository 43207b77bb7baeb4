"""Files of roles: what they may say, and what is refused with the place where it stands."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from headgate.broker.core.rights import Member, Policy, RightsError, read_roles
from headgate.matching import parse_pattern
from headgate.protocol.errors import Refused
from tests.support.builders import quote_batch

PRINTED = """
[roles.trader]
publish   = [{ pattern = "orders" }]
subscribe = [{ pattern = "quotes", where = "desk = 'FX' AND price < 1000" }, { pattern = "orders" }]
durable   = ["trader-*"]

[roles.trader.deny]
durable = ["trader-secret*"]
publish = [{ pattern = "orders", where = "size > 10" }]

[roles.operator]
admin = true
audit = true
"""


def test_what_the_manual_prints_is_read() -> None:
    roles = read_roles(tomllib.loads(PRINTED))
    policy = Policy({"ann": Member(("trader", "gone")), "op": Member(("operator",))}, roles)
    ann, op = policy.rights_of("ann"), policy.rights_of("op")
    assert ann is not None and op is not None and policy.rights_of("eve") is None
    assert (ann.admin, ann.audit, op.admin, op.audit) == (False, False, True, True)
    narrowed = ann.narrow(parse_pattern("quotes"), None)
    assert (str(narrowed.pattern), narrowed.text) == ("quotes", "`desk` = 'FX' AND `price` < 1000")
    assert ann.narrow(parse_pattern("orders/eu"), None).condition is None
    for pattern in ("secrets", "quote"):
        with pytest.raises(Refused, match="do not let you read"):
            ann.narrow(parse_pattern(pattern), None)
    ann.check_durable("trader-1")
    for name in ("trader", "xtrader-1", "trader-secret-1", "other"):
        with pytest.raises(Refused, match="durable"):
            ann.check_durable(name)
    assert policy.conditional == {"quotes"}


def test_each_event_is_published_by_right_or_refused() -> None:
    ann = Policy({"ann": Member(("trader",))}, read_roles(tomllib.loads(PRINTED))).rights_of("ann")
    assert ann is not None
    topics = ["orders", "orders/a", "quotes", "orders", "orders"]
    batch = quote_batch(topics, [*"abcde"], size=[1, 11, 1, None, 10])
    assert ann.unpublishable(batch) == [1, 2, 3], "a denial that is unknown counts"
    lying = quote_batch(["orders", "orders"], [*"ab"], size=[11, 12])
    lying.columns["size"] = quote_batch(["orders", "orders"], [*"ab"], size=[1, 1]).columns["size"]
    assert ann.unpublishable(lying) == [0, 1], "columns are the publisher's word"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"rules": {}}, "tables"),
        ({"roles": []}, "tables"),
        ({"roles": {"a": []}}, r"write \[roles.a\]"),
        ({"roles": {"a": {"subscribed": []}}}, "no 'subscribed'"),
        ({"roles": {"a": {"deny": {"admin": True}}}}, "no 'admin'"),
        ({"roles": {"a": {"deny": []}}}, "deny is a table"),
        ({"roles": {"a": {"admin": "yes"}}}, "true or false"),
        ({"roles": {"a": {"connections": -1}}}, "whole number"),
        ({"roles": {"a": {"condition_terms": "2"}}}, "condition_terms is a whole number"),
        ({"roles": {"a": {"events_per_second": 0.5}}}, "events_per_second is a whole number"),
        ({"roles": {"a": {"bytes_per_second": "1 MB"}}}, "bytes_per_second is a whole number"),
        ({"roles": {"a": {"durable": "trader"}}}, "list of names"),
        ({"roles": {"a": {"publish": "quotes"}}}, "is a list"),
        ({"roles": {"a": {"publish": ["quotes"]}}}, "pattern"),
        ({"roles": {"a": {"publish": [{"pattern": "quotes", "were": ""}]}}}, "no 'were'"),
        ({"roles": {"a": {"publish": [{"where": "a = 1"}]}}}, "are texts"),
        ({"roles": {"a": {"subscribe": [{"pattern": "quotes", "where": "price >"}]}}}, "ends too early"),
        ({"roles": {"a": {"subscribe": [{"pattern": "*/x"}]}}}, "first level"),
        ({"roles": {"a": {"subscribe": [{"pattern": "q", "where": "XPATH '/a'"}]}}}, "without DELTA and XPATH"),
        ({"roles": {"a": {"subscribe": [{"pattern": "q", "where": "DELTA(a) > 1"}]}}}, "without DELTA and XPATH"),
        ({"roles": {"a": {"subscribe": [{"pattern": "q"}] * 257}}}, "more than 256"),
    ],
)
def test_nonsense_is_refused_with_its_place(said: Any, words: str) -> None:
    with pytest.raises(RightsError, match=words):
        read_roles(said)
