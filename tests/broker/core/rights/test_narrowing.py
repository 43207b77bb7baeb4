"""Property: what a narrowed pattern and condition let through is what was asked for and is allowed."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.broker.core.rights import Grant, Member, Policy, Role
from headgate.matching import Tree, evaluate, parse_condition, parse_pattern
from headgate.protocol.data import decode_record
from headgate.protocol.errors import ErrorCode, Refused
from tests.support.builders import quote_batch

PATTERNS = st.tuples(
    st.sampled_from(["q", "q/a", "q/*", "q/*/x", "q/a/x", "q/b/*", "q/a/*/*", "r", "r/a"]), st.booleans()
)
TOPICS = st.sampled_from(["q", "q/a", "q/b", "q/a/x", "q/b/x", "q/b/y", "q/a/x/z", "r", "r/a", "r/a/b"])
CONDITIONS = st.sampled_from(
    ["", "p > 1", "s = 'O'", "p > 1 OR s = 'O'", "NOT p > 1", "p IS NULL", "l", "`#level/1` = 'a'"]
)
GRANTS = st.lists(st.tuples(PATTERNS, CONDITIONS), max_size=4)
VALUES = st.sampled_from([None, 0, 1, 2.5, "1", True])


def tree(text: str) -> Tree | None:
    return parse_condition(text) if text else None


def grants(rows: Any) -> tuple[Grant, ...]:
    return tuple(Grant(parse_pattern(text, exact=exact), tree(where)) for (text, exact), where in rows)


def is_at(grant: Grant, topic: str, values: dict[str, Any]) -> bool | None:
    if not grant.pattern.matches(topic):
        return False
    return True if grant.where is None else evaluate(grant.where, values)  # type: ignore[return-value]  # a condition


@given(GRANTS, GRANTS, PATTERNS, CONDITIONS, TOPICS, VALUES, st.sampled_from([None, "O", "X"]), VALUES)
@settings(max_examples=600)
def test_narrowed_is_asked_and_allowed(
    allowing: Any, denying: Any, asked: Any, condition: str, topic: str, price: Any, symbol: Any, live: Any
) -> None:
    levels = dict(enumerate(topic.split("/")))
    values = {"p": price, "s": symbol, "l": live} | {f"#level/{place}": levels.get(place) for place in range(6)}
    allow, deny = grants(allowing), grants(denying)
    wish = Grant(parse_pattern(asked[0], exact=asked[1]), tree(condition))
    may = any(is_at(one, topic, values) is True for one in allow) and all(
        is_at(one, topic, values) is False for one in deny
    )
    rights = Policy({"a": Member(("r",))}, {"r": Role("r", subscribe=allow, no_subscribe=deny)}).rights_of("a")
    assert rights is not None
    try:
        narrowed = rights.narrow(wish.pattern, wish.where)
        got = is_at(Grant(narrowed.pattern, narrowed.condition), topic, values) is True
        assert narrowed.text == "" or parse_condition(narrowed.text) == narrowed.condition
    except Refused as refused:
        assert refused.code == ErrorCode.FORBIDDEN
        got = False
    assert got == (may and is_at(wish, topic, values) is True)
    batch = quote_batch([topic], ["x"], p=[price], s=[symbol], l=[live])
    assert decode_record(batch.records)[0]
    assert rights.unreadable(batch) == ([] if may else [0])
