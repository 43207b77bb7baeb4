"""Property: what a Node delivers is what brute force over every subscription and every event says, in that order."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.matching import evaluate, parse_condition, parse_pattern
from headgate.protocol.messages import Unsubscribe
from tests.support.builders import deliveries_of, make_publish, make_subscribe, quote_batch
from tests.support.node_world import NodeWorld

PATTERNS = st.sampled_from(["quotes", "quotes/a", "quotes/*", "quotes/*/x", "quotes/a/x", "quotes/b/*"])
TOPICS = st.sampled_from(["quotes", "quotes/a", "quotes/b", "quotes/a/x", "quotes/b/x", "quotes/b/y"])
CONDITIONS = st.sampled_from(
    [
        *("", "price > 1", "price BETWEEN 0 AND 2", "symbol = 'OTE'", "symbol IN ('OTE', 'IBM')", "price IS NULL"),
        *("NOT price > 1", "symbol = 'OTE' AND price >= 1", "symbol LIKE 'O%' OR price < 0", "live", "price = 1"),
    ]
)
VALUES = st.sampled_from([None, 0, 1, 1.0, 2.5, -1, True, "OTE", "1"])
SYMBOLS = st.sampled_from([None, "OTE", "IBM", "", 5])
SUBSCRIPTIONS = st.lists(st.tuples(st.integers(0, 2), PATTERNS, st.booleans(), CONDITIONS), max_size=10)
ROWS = st.lists(st.tuples(TOPICS, VALUES, SYMBOLS, st.sampled_from([None, True, False])), min_size=1, max_size=6)
SENT = st.sampled_from([None, [], ["price"], ["symbol", "live"]])
STEPS = st.lists(st.one_of(ROWS, st.integers(0, 9)), min_size=1, max_size=6)


@given(SUBSCRIPTIONS, STEPS, SENT, st.booleans())
@settings(max_examples=150)
def test_deliveries_are_those_of_brute_force(
    subscriptions: list[tuple[int, str, bool, str]], steps: list[Any], sent: list[str] | None, spread: bool
) -> None:
    world = NodeWorld()
    links = [world.connect() for _ in range(3)]
    publisher, sequence = world.connect(), 0
    live: dict[int, tuple[int, str, bool, str]] = {}
    for number, subscription in enumerate(subscriptions, 1):
        link, pattern, exact, condition = subscription
        world.say(links[link], make_subscribe(number, pattern, condition, exact=exact))
        live[number] = subscription
    for step in steps:
        if isinstance(step, int):
            if step in live:
                world.say(links[live.pop(step)[0]], Unsubscribe(1, step))
            continue
        sequence += 1
        rows = step if spread else [(step[0][0], *row[1:]) for row in step]
        batch = quote_batch(
            [row[0] for row in rows],
            [str(place) for place in range(len(rows))],
            sent,
            price=[row[1] for row in rows],
            symbol=[row[2] for row in rows],
            live=[row[3] for row in rows],
        )
        world.say(publisher, make_publish(sequence, batch))
        for place, link in enumerate(links):
            got = deliveries_of(world.take(link))
            assert [body for _, body in got] == sorted((body for _, body in got), key=int)
            assert sorted(got) == sorted(_expected(live, rows, place))


def _expected(live: dict[int, tuple[int, str, bool, str]], rows: list[Any], link: int) -> list[tuple[int, str]]:
    found = []
    for number, (owner, pattern, exact, condition) in live.items():
        for place, (topic, price, symbol, is_live) in enumerate(rows):
            if owner == link and parse_pattern(pattern, exact=exact).matches(topic):
                attributes = {"price": price, "symbol": symbol, "live": is_live}
                if not condition or evaluate(parse_condition(condition), attributes) is True:
                    found.append((number, str(place)))
    return found
