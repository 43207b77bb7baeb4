"""The feed: the same seed, the same quotes, in whatever portions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.ops.demo import QuoteFeed
from headgate.ops.demo.feed import EXCHANGES
from headgate.ops.demo.limits import SYMBOLS


def rows(feed: QuoteFeed, portions: list[int]) -> list[tuple[str, dict[str, object], bytes]]:
    found: list[tuple[str, dict[str, object], bytes]] = []
    for count in portions:
        quotes = feed.take(count)
        found += [(topic, dict(quotes.row(place)), quotes.bodies[place]) for place, topic in enumerate(quotes.topics)]
    return found


@given(st.integers(), st.lists(st.integers(0, 30), max_size=5))
def test_portions_do_not_matter(seed: int, portions: list[int]) -> None:
    assert rows(QuoteFeed(seed), portions) == rows(QuoteFeed(seed), [sum(portions)])


def test_another_seed_gives_other_quotes() -> None:
    assert rows(QuoteFeed(1), [10]) != rows(QuoteFeed(2), [10])


def test_what_a_quote_is() -> None:
    quotes = rows(QuoteFeed(7), [20_000])
    assert [attributes["number"] for _, attributes, _ in quotes] == list(range(20_000))
    assert {topic.split("/")[1] for topic, _, _ in quotes} == set(EXCHANGES)
    assert len({topic for topic, _, _ in quotes}) == SYMBOLS
    for topic, attributes, body in quotes:
        assert topic == f"quotes/{attributes['exchange']}/{attributes['symbol']}"
        assert body.decode().endswith(str(attributes["symbol"]))
        assert isinstance(attributes["price"], float) and attributes["price"] >= 1
    unknown = sum(attributes["volume"] is None for _, attributes, _ in quotes)
    halted = sum(attributes["halted"] is True for _, attributes, _ in quotes)
    assert 0 < unknown < 1000 > halted > 0
