"""Spark's pairs are those that our plain meaning makes, on random conditions, patterns and spans: the dumb twin."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from headgate.matching import evaluate, parse_pattern, to_text
from headgate.matching.values import Value
from headgate.ops.jobs.audit_history import Disturbance, Gap, Span, Wanted
from headgate.ops.jobs.audit_limits import CHUNK_CONDITIONS
from headgate.ops.jobs.audit_verdict import Window, findings_of, judged_pairs, split_events, sums_of
from tests.matching.samples import random_row, random_tree
from tests.ops.jobs.planted import typed
from tests.support.local_spark import local_spark

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

WINDOW = Window(0, 1_000)
EVENTS = (
    "event_id string, topic string, time long, attributes map<string, struct<l:bigint,d:double,s:string,b:boolean>>"
)
DELIVERIES = "event_id string, subscription_id string, published_at long, delivered_at long, outcome int"
PATTERNS = ("quotes", "quotes/*/OTE", "quotes/NYSE", "quotes/NYSE/OTE", "quotes/*/*/x")
TOPICS = ("quotes", "quotes/NYSE", "quotes/NYSE/OTE", "quotes/LSE/OTE/x", "quotes/LSE/IBM", "quotesX")


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with local_spark() as session:
        yield session


def random_wishes(random: Random, count: int) -> list[Wanted]:
    """With everything from never to always in force; some share pattern and condition."""
    wanted = []
    for number in range(count):
        tree = random_tree(random) if random.random() < 0.9 else None
        pattern = parse_pattern(random.choice(PATTERNS), random.random() < 0.3)
        since, until = sorted(random.sample(range(-200, 1_200), 2))
        span = Span(since, since + 20, since + 50, max(since + 50, until - 50), until - 20, until)
        spans = [span] if random.random() < 0.9 else []
        one = Wanted(f"s-{number}", "", pattern, "" if tree is None else to_text(tree), tree, spans)
        if wanted and random.random() < 0.2:
            one.pattern, one.condition, one.tree = wanted[-1].pattern, wanted[-1].condition, wanted[-1].tree
        wanted.append(one)
    return wanted


def expected(wanted: list[Wanted], events: list[tuple[str, str, int, dict[str, Value]]]) -> set[tuple[str, int, bool]]:
    """(event, subscription, certainly owed), by asking everybody about everything."""
    found = set()
    for number, one in enumerate(wanted):
        for name, topic, time, row in events:
            if one.pattern is None or not one.pattern.matches(topic) or not WINDOW.since <= time < WINDOW.until:
                continue
            if one.tree is not None and evaluate(one.tree, row) is not True:
                continue
            spans = [span for span in one.spans if span.possible_from <= time <= span.possible_to]
            if spans:
                found.add((name, number, any(span.sure_from <= time <= span.sure_to for span in spans)))
    return found


def pairs_of(spark: Any, wanted: list[Wanted], events: Any, deliveries: list[Any], *others: Disturbance) -> Any:
    frame = spark.createDataFrame(
        [(name, topic, time, {key: typed(value) for key, value in row.items()}) for name, topic, time, row in events],
        EVENTS,
    )
    split = split_events(frame, wanted, WINDOW)
    delivered = spark.createDataFrame(deliveries, DELIVERIES)
    return judged_pairs(spark, split, delivered, wanted, WINDOW, others), split


@pytest.mark.parametrize("seed", [1, 2])
def test_the_pairs_are_those_of_the_plain_meaning(spark: Any, seed: int) -> None:
    random = Random(seed)
    wanted = random_wishes(random, CHUNK_CONDITIONS + 60)
    events = [
        (f"o.{number}", random.choice(TOPICS), random.randrange(-100, 1_100), random_row(random))
        for number in range(80)
    ]
    pairs, _ = pairs_of(spark, wanted, events, [])
    found = {(row["event_id"], row["number"], row["owed"]) for row in pairs.collect()}
    twin = expected(wanted, events)
    assert len(twin) > 200 and 0 < sum(owed for _, _, owed in twin) < len(twin)
    assert found == twin


ALWAYS = Span(-5_000, -2_000, -1_000, 5_000, 5_500, 6_000)


def everything(gaps: list[Gap] | None = None) -> Wanted:
    return Wanted("s-1", "", parse_pattern("quotes"), "", None, [ALWAYS], gaps or [])


def kinds(spark: Any, deliveries: list[Any], *others: Disturbance, gaps: list[Gap] | None = None) -> dict[str, str]:
    """What became of three events at 100, 200 and 300."""
    events = [(f"o.{number}", "quotes", 100 * number, {}) for number in (1, 2, 3)]
    pairs, _ = pairs_of(spark, [everything(gaps)], events, deliveries, *others)
    words = {}
    for row in pairs.collect():
        marks = "".join([" named" if row["named"] else "", " told" if row["in_gap"] else ""])
        words[row["event_id"]] = f"{row['kind']} {row['received']}{marks}"
    return words


def sent(number: int, outcome: int = 0, subscription: str = "s-1") -> tuple[str, str, int, int, int]:
    return f"o.{number}", subscription, 100 * number, 100 * number + 7, outcome


def test_each_kind_of_pair(spark: Any) -> None:
    assert kinds(spark, [sent(1), sent(1), sent(2, 1), sent(9)]) == {
        "o.1": "ok 2",
        "o.2": "lost 0 named",
        "o.3": "lost 0",
        "o.9": "wrong 1",
    }


def test_what_was_announced_by_name_is_lost_even_where_a_broker_died(spark: Any) -> None:
    death = Disturbance("o", 150, 350)
    assert kinds(spark, [sent(1), sent(2, 1)], death) == {"o.1": "ok 1", "o.2": "lost 0 named", "o.3": "boundary 0"}


def test_a_gap_marks_what_is_missing_of_its_time(spark: Any) -> None:
    told = kinds(spark, [sent(1)], gaps=[Gap(150, 250, 1)])
    assert told == {"o.1": "ok 1", "o.2": "lost 0 told", "o.3": "lost 0"}


def test_deliveries_to_others_are_left_out(spark: Any) -> None:
    assert kinds(spark, [sent(1), sent(2), sent(3), sent(1, subscription="s-99")]) == dict.fromkeys(
        ("o.1", "o.2", "o.3"), "ok 1"
    )


def test_sums_and_findings(spark: Any) -> None:
    events = [(f"o.{number}", "quotes", 100 * number, {}) for number in range(1, 5)]
    pairs, split = pairs_of(
        spark, [everything()], events, [sent(1), sent(1), sent(1, 3), sent(2), sent(3, 1), sent(8), sent(8, 3)]
    )
    (sums,) = sums_of(pairs, 6)
    assert (sums["expected"], sums["delivered"], sums["lost"], sums["named"]) == (4, 3, 2, 1)
    assert (sums["unacked"], sums["unsettled"]) == (1, 0)
    assert (sums["duplicate"], sums["wrong"], sums["boundary"], sums["late"]) == (1, 1, 0, 3)
    assert (list(sums["percentiles"]), sums["latency_max"]) == ([7, 7, 7], 7)
    found = {(row["event_id"], row["kind"], row["detail"]) for row in findings_of(pairs, split).collect()}
    assert found == {
        ("o.1", "duplicate", "2 times"),
        ("o.2", "unacknowledged", "sent"),
        ("o.3", "lost", "announced"),
        ("o.4", "lost", "never sent"),
        ("o.8", "wrong", "no such event"),
    }
