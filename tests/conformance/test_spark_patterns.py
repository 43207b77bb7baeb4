"""A pattern as a regular expression is found by Java in exactly the topics that the pattern matches (the audit)."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from headgate.matching.topics import Pattern
from headgate.ops.jobs.audit_text import pattern_expression
from tests.support.local_spark import local_spark

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

# What regular expressions, SQL and Java take for something else, and what Unicode has to offer.
LEVELS = (
    *("a", "ab", "A", "a.b", ".", ".*", "[^x]*", "(", ")", "\\", "\\E", "\\Q", "$", "^", "|", "?", "+", "{2}", "a b"),
    *(" ", "-", "#", "&&", "~", "%", "_", "'", '"', "`", "größe", "é", "e\u0301", "\u2028", "\x85", "😀", "😀😀", "ﬁ"),
)


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with local_spark() as session:
        yield session


def test_java_agrees_with_the_plain_meaning(spark: Any) -> None:
    from pyspark.sql import functions as sql

    random = Random(5)
    draw = lambda low: [random.choice(LEVELS) for _ in range(random.randint(low, 4))]  # noqa: E731  # used twice
    topics = sorted({"/".join(draw(1)) for _ in range(600)})
    patterns = [Pattern((level,), exact) for level in LEVELS for exact in (False, True)]
    for _ in range(300):
        levels = random.choice(topics).split("/") if random.random() < 0.8 else draw(1)
        cut = levels[: random.randint(1, len(levels))]
        starred = [cut[0], *("*" if random.random() < 0.4 else level for level in cut[1:])]
        patterns.append(Pattern(tuple(starred), random.random() < 0.4))
    frame = spark.createDataFrame([(topic,) for topic in topics], "topic string")
    verdicts = sql.array(*[sql.col("topic").rlike(pattern_expression(pattern)) for pattern in patterns])
    found = {row["topic"]: row["verdicts"] for row in frame.select("topic", verdicts.alias("verdicts")).collect()}
    differences = [
        (str(pattern), pattern.exact, topic, found[topic][place])
        for topic in topics
        for place, pattern in enumerate(patterns)
        if found[topic][place] is not pattern.matches(topic)
    ]
    assert not differences, f"{len(differences)} differences, first: {differences[:5]}"
    assert sum(map(sum, found.values())) > 1_000, "patterns that match nothing prove little"
