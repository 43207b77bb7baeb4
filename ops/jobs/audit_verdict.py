"""The verdict: from the events, the deliveries and the history of subscriptions to what is missing, twice or wrong.

Three steps, each a DataFrame:

1. *Matches.* Each condition is an expression over the split attributes, each pattern a regular expression, and XPATH is
   asked of `twigs`, the array of what the document has (`audit_documents`); an event gets the array of those that hold.
   Subscriptions with the same pattern and condition share one entry (`wishes`), and conditions stand in arrays of 200:
   measured at 14 million evaluations a second on two cores.
2. *Pairs.* Matches meet the spans of their subscriptions, deliveries are added, and all is grouped by (event,
   subscription): a union and one shuffle instead of an outer join.
3. *Judgement.* Each pair is delivered, lost, near a change, wrong; deliveries beyond the first are duplicates. What a
   durable subscription is owed and has not acknowledged is *waiting*; what was flagged as redelivered is no duplicate.

A broker does not evaluate XPATH: it may deliver an event whose document lacks the twig, as long as all else holds, for
the subscriber's library to leave out. Such a pair matches as well, of which nothing is owed (`is_left_out`).

The window is one of event times: a delivery carries the time of its event (`published_at`), so both sides are cut alike
and nothing at the edge is torn apart. Times are microseconds throughout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any, Final

from headgate.matching.language import SPARK_TYPES, spark_columns
from headgate.matching.tree import attributes
from headgate.protocol.data import LEVEL_COLUMNS
from headgate.protocol.structure import is_filter_name

from .audit_history import Disturbance, Span, Wanted
from .audit_limits import CHUNK_CONDITIONS, PERCENTILE_ACCURACY
from .audit_text import condition_text, pattern_expression

__all__ = ["Window", "findings_of", "judged_pairs", "split_events", "sums_of"]

SENT: Final = 0
DROPPED: Final = 1
LOST_ON_THE_WAY: Final = 2
ACKNOWLEDGED: Final = 3
SENT_AGAIN: Final = 4
"""Outcomes of a delivery, as the log has them. One that was sent has another row for what became of it."""

_OUTCOMES: Final = {
    "sent": SENT,
    "dropped": DROPPED,
    "lost_on_the_way": LOST_ON_THE_WAY,
    "acknowledged": ACKNOWLEDGED,
    "again": SENT_AGAIN,
}

_PERCENTILES: Final = (0.5, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Window:
    """Events accepted from `since` on and before `until`, in microseconds."""

    since: int
    until: int


def split_events(events: Any, wanted: Sequence[Wanted], window: Window) -> Any:
    """The events of the window: `event_id`, `topic`, `time`, `twigs` if there is such a column, and four columns for
    each attribute that is asked about.

    `events` has `attributes` as a map of name to a struct of `l`, `d`, `s`, `b`: the value in the field of its type.
    """

    trees = [one.tree for all_of_one in wanted for one in all_of_one.versions() if one.tree is not None]
    names = sorted({name for tree in trees for name in attributes(tree) if not is_filter_name(name)})
    columns = [
        _value_of(name, suffix).alias(column)
        for name in names
        for suffix, column in zip(SPARK_TYPES, spark_columns(name), strict=True)
    ]
    chosen = events.where(_inside("time", window))
    twigs = ["twigs"] if "twigs" in events.columns else []
    return chosen.select("event_id", "topic", "time", *twigs, *columns)


def _value_of(name: str, suffix: str) -> Any:
    """An attribute of an event in its field of one type; or a level of its topic, which is a text, as rights ask it."""
    from pyspark.sql import functions as sql

    if not name.startswith(LEVEL_COLUMNS):
        return sql.col("attributes").getItem(name).getField(suffix)
    if suffix != "s":
        return sql.lit(None).cast(SPARK_TYPES[suffix])
    return sql.get(sql.split(sql.col("topic"), "/"), int(name.removeprefix(LEVEL_COLUMNS)))


def judged_pairs(
    spark: Any,
    events: Any,
    deliveries: Any,
    wanted: Sequence[Wanted],
    window: Window,
    disturbances: Sequence[Disturbance],
) -> Any:
    """A row for each (event, subscription) that belong together or met, with what came of it.

    `events` is what `split_events` made; `deliveries` has `event_id`, `subscription_id`, `published_at`,
    `delivered_at` and `outcome`. A subscription is its place in `wanted` (`number`); deliveries to others are left out.
    """
    from pyspark.sql import functions as sql

    matched = _matches(spark, events, wanted)
    met = _deliveries(spark, deliveries, wanted, window)
    pairs = (
        matched.unionByName(met)
        .groupBy("event_id", "number")
        .agg(
            sql.max("matched").alias("matched"),
            sql.max("exact").alias("exact"),
            sql.max("owed").alias("owed"),
            sql.max("near").alias("near"),
            sql.max("blind").alias("blind"),
            sql.max("lasting").alias("lasting"),
            sql.max("time").alias("time"),
            sql.min("delivered_at").alias("delivered_at"),
            *(sql.sum(name).alias(name) for name in _OUTCOMES),
        )
    )
    received = sql.greatest(sql.col("sent") - sql.col("lost_on_the_way"), sql.least("again", sql.lit(1)), sql.lit(0))
    pairs = pairs.withColumn("received", received).withColumn("disturbed", _disturbed(disturbances))
    pairs = pairs.withColumn("is_left_out", sql.col("matched") & ~sql.col("exact") & (received > 0)).drop("exact")
    return _classified(_with_gaps(spark, pairs, wanted))


def sums_of(pairs: Any, late_microseconds: int) -> list[Any]:
    """For each subscription (`number`) that has a pair, its counts and its latency in microseconds."""
    from pyspark.sql import functions as sql

    arrived = sql.col("received") > 0
    latency = sql.when(
        arrived & ~sql.col("lasting"), sql.greatest(sql.col("delivered_at") - sql.col("time"), sql.lit(0))
    )
    percentiles = sql.array(*[sql.lit(share) for share in _PERCENTILES])
    return list(
        pairs.groupBy("number")
        .agg(
            sql.count_if(sql.col("owed") & (arrived | sql.col("kind").isin("lost", "waiting"))).alias("expected"),
            sql.count_if(sql.col("kind") == "waiting").alias("waiting"),
            sql.count_if(arrived & ~sql.col("is_left_out")).alias("delivered"),
            sql.count_if("is_left_out").alias("left_out"),
            sql.count_if(sql.col("kind") == "lost").alias("lost"),
            sql.count_if((sql.col("kind") == "lost") & sql.col("named")).alias("named"),
            sql.count_if((sql.col("kind") == "lost") & sql.col("in_gap") & ~sql.col("named")).alias("in_gap"),
            sql.sum(sql.greatest(sql.col("received") - 1, sql.lit(0))).alias("duplicate"),
            sql.count_if(sql.col("kind") == "wrong").alias("wrong"),
            sql.count_if(sql.col("unacked")).alias("unacked"),
            sql.count_if(sql.col("unsettled")).alias("unsettled"),
            sql.count_if(sql.col("kind") == "boundary").alias("boundary"),
            sql.count_if(latency > late_microseconds).alias("late"),
            sql.percentile_approx(latency, percentiles, PERCENTILE_ACCURACY).alias("percentiles"),
            sql.max(latency).alias("latency_max"),
        )
        .collect()
    )


def findings_of(pairs: Any, events: Any) -> Any:
    """The pairs that need looking into: `number`, `event_id`, `kind`, `detail`, `time`, `delivered_at`, `announced`."""
    from pyspark.sql import functions as sql

    found = pairs.where(sql.col("kind").isin("lost", "wrong") | sql.col("unacked") | (sql.col("received") > 1))
    # What is wrong is rare; whether its event exists at all is asked for these alone.
    ids = sql.broadcast(found.where("kind = 'wrong'").select("event_id").distinct())
    known = events.select("event_id").join(ids, "event_id").distinct().withColumn("known", sql.lit(True))
    detail = (
        sql.when(sql.col("kind") == "lost", sql.when(sql.col("named"), "announced").otherwise("never sent"))
        .when(sql.col("kind") == "wrong", sql.when(sql.col("known"), "not asked for").otherwise("no such event"))
        .when(sql.col("received") == 1, "sent")
        .otherwise(sql.concat("received", sql.lit(" times")))
    )
    kind = (
        sql.when(sql.col("kind") != "ok", sql.col("kind"))
        .when(sql.col("received") > 1, "duplicate")
        .otherwise("unacknowledged")
    )
    return found.join(known, "event_id", "left").select(
        "number",
        "event_id",
        kind.alias("kind"),
        detail.alias("detail"),
        "time",
        "delivered_at",
        (sql.col("named") | sql.col("in_gap")).alias("announced"),
    )


def _inside(column: str, window: Window) -> Any:
    from pyspark.sql import functions as sql

    return (sql.col(column) >= window.since) & (sql.col(column) < window.until)


def _matches(spark: Any, events: Any, wanted: Sequence[Wanted]) -> Any:
    """The pairs that a subscription's pattern and condition make, while it was in force."""
    from pyspark.sql import functions as sql

    wishes: dict[tuple[Any, str, bool], int] = {}
    expressions = []
    rows = []
    versions = [(number, one) for number, all_of_one in enumerate(wanted) for one in all_of_one.versions()]
    for number, one in versions:
        if one.pattern is None:
            continue
        for exact in (True, False) if one.twigs else (True,):
            key = (one.pattern, one.condition, exact)
            if key not in wishes:
                wishes[key] = len(wishes)
                expressions.append(sql.when(_holds(one, exact), sql.lit(wishes[key])))
            facts = (wishes[key], number, exact, one.lasting, one.blind_until)
            rows += [(*facts, *_edges(span, is_owed=exact and not one.partial)) for span in one.spans]
    arrays = [
        sql.array_compact(sql.array(*expressions[start : start + CHUNK_CONDITIONS]))
        for start in range(0, len(expressions), CHUNK_CONDITIONS)
    ]
    held = sql.concat(*arrays) if arrays else sql.array().cast("array<int>")
    spans = spark.createDataFrame(
        rows,
        "wish int, number int, exact boolean, lasting boolean, blind_until long, possible_from long, near_from long, "
        "sure_from long, sure_to long, near_to long, possible_to long",
    )
    return (
        # In a projection of its own it is compiled; within explode() it would be interpreted, five times slower.
        events.select("event_id", "time", held.alias("held"))
        .select("event_id", "time", sql.explode("held").alias("wish"))
        .join(sql.broadcast(spans), "wish")
        .where("time BETWEEN possible_from AND possible_to")
        .select(
            "event_id",
            "number",
            sql.lit(True).alias("matched"),
            "exact",
            sql.expr("time BETWEEN sure_from AND sure_to").alias("owed"),
            sql.expr("time BETWEEN near_from AND near_to").alias("near"),
            sql.expr("time <= blind_until").alias("blind"),
            "lasting",
            "time",
            sql.lit(None).cast("long").alias("delivered_at"),
            *(sql.lit(0).cast("long").alias(name) for name in _OUTCOMES),
        )
    )


def _edges(span: Span, *, is_owed: bool) -> tuple[int, ...]:
    """The span's rings; of what is not owed nothing is missed."""
    if not is_owed:
        return (
            span.possible_from,
            span.possible_to,
            span.possible_to,
            span.possible_from,
            span.possible_from,
            span.possible_to,
        )
    return astuple(span)


def _holds(one: Wanted, exact: bool) -> Any:
    """Pattern and condition as a column; unless `exact`, all but a twig. The plain prefix is cheap and comes first."""
    from pyspark.sql import functions as sql

    assert one.pattern is not None, "asked of those that have one"
    topic = sql.col("topic")
    holds = topic.startswith(one.pattern.literal_prefix) & topic.rlike(pattern_expression(one.pattern))
    if one.tree is not None:
        holds = holds & sql.expr(condition_text(one.tree))
    if one.twigs:
        has_all = sql.array_size(sql.array_intersect("twigs", sql.array(*map(sql.lit, one.twigs)))) == len(
            set(one.twigs)
        )
        holds = holds & (has_all if exact else ~has_all)
    return holds


def _deliveries(spark: Any, deliveries: Any, wanted: Sequence[Wanted], window: Window) -> Any:
    """The deliveries of the window's events to these subscriptions, in the columns of the matches."""
    from pyspark.sql import functions as sql

    numbers = spark.createDataFrame(
        [
            (one.subscription, number, one.lasting, one.blind_until, one.answers_until)
            for number, one in enumerate(wanted)
        ],
        "subscription_id string, number int, lasting boolean, blind_until long, answers_until long",
    )
    outcome = sql.col("outcome")
    return (
        deliveries.where(_inside("published_at", window))
        .join(sql.broadcast(numbers), "subscription_id")
        .select(
            "event_id",
            "number",
            sql.lit(False).alias("matched"),
            sql.lit(False).alias("exact"),
            sql.lit(False).alias("owed"),
            sql.lit(False).alias("near"),
            sql.expr("published_at <= blind_until OR published_at > answers_until").alias("blind"),
            "lasting",
            sql.col("published_at").alias("time"),
            sql.when(outcome.isin(SENT, SENT_AGAIN), sql.col("delivered_at")).alias("delivered_at"),
            *((outcome == number).cast("long").alias(name) for name, number in _OUTCOMES.items()),
        )
    )


def _disturbed(disturbances: Sequence[Disturbance]) -> Any:
    from pyspark.sql import functions as sql

    disturbed = sql.lit(False)
    for one in disturbances:
        disturbed = disturbed | sql.col("time").between(one.since, one.until)
    return disturbed


def _with_gaps(spark: Any, pairs: Any, wanted: Sequence[Wanted]) -> Any:
    """`in_gap`: its subscriber was told that something of that time is missing."""
    from pyspark.sql import functions as sql

    rows = [(number, [(gap.since, gap.until) for gap in one.gaps]) for number, one in enumerate(wanted) if one.gaps]
    if not rows:
        return pairs.withColumn("in_gap", sql.lit(False))
    gaps = spark.createDataFrame(rows, "number int, gaps array<struct<since: long, until: long>>")
    told = sql.exists("gaps", lambda gap: sql.col("time").between(gap["since"], gap["until"]))
    return (
        pairs.join(sql.broadcast(gaps), "number", "left")
        .withColumn("in_gap", sql.coalesce(told, sql.lit(False)))
        .drop("gaps")
    )


def _classified(pairs: Any) -> Any:
    """`kind` of each pair: ok, lost, boundary (missing, perhaps rightly so), wrong. `named`: announced by its id.

    What was sent once and has no acknowledgement is `unacked`, or `unsettled` where that would not be in the log.
    """
    from pyspark.sql import functions as sql

    named = (sql.col("dropped") > 0) | (sql.col("lost_on_the_way") > 0)
    arrived = sql.col("received") > 0
    lasting, is_acked = sql.col("lasting"), sql.col("acknowledged") > 0
    kind = (
        sql.when(~sql.col("matched") & arrived, "wrong")
        .when(lasting & sql.col("owed") & ~is_acked, "waiting")
        .when(lasting, "ok")
        .when(~sql.col("matched") | arrived, "ok")
        .when(sql.col("owed") & (~(sql.col("disturbed") | sql.col("blind")) | named), "lost")
        .when(sql.col("owed") | sql.col("near"), "boundary")
        .otherwise("ok")  # nobody misses it
    )
    silent = arrived & ~is_acked & ~lasting
    return (
        pairs.withColumn("named", named)
        .withColumn("kind", kind)
        .withColumn("unacked", silent & ~sql.col("blind"))
        .withColumn("unsettled", silent & sql.col("blind"))
    )
