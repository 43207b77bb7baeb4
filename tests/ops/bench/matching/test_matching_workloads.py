"""ops/bench/matching/workloads.py: the workloads are what their names say, and the same for the same seed."""

from __future__ import annotations

from random import Random

import pytest

from headgate.matching import Index, to_text
from headgate.ops.bench.matching.workloads import (
    PADRES_MIX,
    Quote,
    batches_of,
    mixed,
    padres,
    quote_batch,
    quotes,
    selective,
    topic_patterns,
    topics,
)

QUOTES = [Quote(f"S{number}", number + 1.5, float(number), number * 1000) for number in range(30)]


@pytest.mark.parametrize("count", [1_000, 5_000])
def test_about_ten_subscriptions_match_an_event_however_many_there_are(count: int) -> None:
    rng = Random(1)
    index = Index()
    for number, (pattern, tree) in enumerate(selective(count, 20, 10, rng)):
        index.add(number, pattern, tree)
    (batch,) = batches_of(200, 200, 20, rng)
    assert 7 < sum(len(ids) * len(rows) for ids, rows in index.match(("q",), 200, batch)) / 200 < 13


def test_the_same_seed_draws_the_same() -> None:
    assert mixed(30, Random(3)) == mixed(30, Random(3)) != mixed(30, Random(4))
    assert batches_of(20, 10, 5, Random(3)) == batches_of(20, 10, 5, Random(3))


def test_the_mixed_conditions_are_of_all_kinds_and_some_match() -> None:
    wanted = mixed(2_000, Random(1))
    text = " ".join(to_text(tree) for _, tree in wanted if tree is not None)
    for word in ("BETWEEN", " IN ", "LIKE", " OR ", "IS NULL", "NOT ", "%"):
        assert word in text
    index = Index()
    for number, (pattern, tree) in enumerate(wanted):
        index.add(number, pattern, tree)
    (batch,) = batches_of(100, 100, 200, Random(2), price=1000.0)
    assert index.match(("q",), 100, batch)


def test_padres_subscriptions_keep_the_mix_of_its_generator() -> None:
    assert sum(share for share, _ in PADRES_MIX) == 100
    texts = [to_text(tree) for _, tree in padres(5_000, QUOTES, Random(1)) if tree is not None]
    assert all("`class` = 'STOCK'" in text for text in texts)
    shares = {name: sum(f"`{name}`" in text for text in texts) / 50 for name in ("symbol", "high", "low", "volume")}
    assert shares == pytest.approx({"symbol": 79, "high": 10, "low": 10, "volume": 40}, abs=3)


def test_quotes_are_there_with_and_without_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADGATE_DATA", "nowhere")
    drawn, real = quotes(Random(1), 50)
    assert not real and len(drawn) == 50
    assert list(quote_batch(drawn)) == ["class", "symbol", "high", "low", "volume"]
    monkeypatch.delenv("HEADGATE_DATA")
    found, real = quotes(Random(1), 100)
    assert len(found) == 100 and (not real or all(quote.low <= quote.high for quote in found))


def test_topics_are_those_of_the_papers_experiment() -> None:
    patterns = topic_patterns(300, Random(1))
    assert len(set(patterns)) == 300
    assert all(len(p.levels) == 7 and p.levels.count("*") == 1 and p.levels[0] != "*" for p in patterns)
    asked = topics(100, patterns, Random(2))
    assert sum(any(pattern.matches(topic) for pattern in patterns) for topic in asked) >= 50
