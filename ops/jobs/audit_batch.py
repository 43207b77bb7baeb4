"""Audit of one stream in one closed window: from the frames of three logs to a report.

The frames have the columns of the data source (`protocol/spark/schemas.py`), wherever they come from: read from the
brokers, or from the copies that a continuous audit keeps. What they hold is read once and kept for the time of the
verdict, since several passes need it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .audit_documents import with_twigs
from .audit_history import Bounds, Change, History, Wanted, read_history, twigs_of
from .audit_limits import EXAMPLES_MAX, LATE_SECONDS, PERCENTILE_ACCURACY
from .audit_report import Finding, StreamReport, line_of
from .audit_verdict import Window, findings_of, judged_pairs, split_events, sums_of

__all__ = ["Frames", "Question", "audit_stream", "changes_of"]

_UNKNOWN = "delivered to, but the log knows no subscription of that name"


@dataclass(frozen=True, slots=True)
class Frames:
    """The logs of one stream as DataFrames, as the data source gives them."""

    events: Any
    deliveries: Any
    subscriptions: Any


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be audited, and how strictly."""

    stream: str
    window: Window
    late_seconds: float = LATE_SECONDS
    bounds: Bounds = field(default_factory=Bounds)
    gone: Collection[str] = ()
    """Brokers that cannot be reached, by the beginning of their origins."""
    evidence: Mapping[str, int] = field(default_factory=dict)
    """Origin -> when it was last seen before this window."""
    parquet: Path | None = None
    held: Mapping[str, int] | None = None
    """Name of a durable subscription -> events that its coordinator had and that were not acknowledged, when the window
    was over; None when nobody was asked."""


def audit_stream(spark: Any, frames: Frames, question: Question) -> StreamReport:
    """The verdict on one stream."""
    changes = changes_of(frames.subscriptions)
    events, deliveries = _narrowed(frames, question.window, twigs_of(changes))
    try:
        return _audit(spark, events, deliveries, changes, question)
    finally:
        events.unpersist()
        deliveries.unpersist()


def changes_of(subscriptions: Any) -> list[Change]:
    """The rows of the log of subscriptions, in their order."""
    from pyspark.sql import functions as sql

    rows = subscriptions.select(
        "subscription_id",
        "action",
        sql.unix_micros("effective_at").alias("at"),
        *(sql.coalesce(name, sql.lit("")).alias(name) for name in ("subscriber_id", "pattern", "filter", "reason")),
        sql.coalesce("exact", sql.lit(False)).alias("exact"),
        "partition",
        "offset",
    ).collect()
    rows.sort(key=lambda row: (row["partition"], row["offset"]))
    return [
        Change(
            row["subscription_id"],
            row["action"],
            row["at"],
            row["subscriber_id"],
            row["pattern"],
            row["exact"],
            row["filter"],
            row["reason"],
        )
        for row in rows
    ]


def _narrowed(frames: Frames, window: Window, twigs: Collection[str]) -> tuple[Any, Any]:
    """Events and deliveries of the window, in the columns that the verdict needs, kept."""
    from pyspark.sql import functions as sql

    documents = ("value", "content_type") if twigs else ()
    events = frames.events.select(
        "event_id", "topic", sql.unix_micros("timestamp").alias("time"), "attributes", *documents
    ).where(f"time >= {window.since} AND time < {window.until}")
    if twigs:
        events = with_twigs(events, twigs)
    deliveries = frames.deliveries.select(
        "event_id",
        "subscription_id",
        sql.unix_micros("published_at").alias("published_at"),
        sql.unix_micros("delivered_at").alias("delivered_at"),
        "outcome",
    ).where(f"published_at >= {window.since} AND published_at < {window.until}")
    return events.persist(), deliveries.persist()


def _audit(spark: Any, events: Any, deliveries: Any, changes: Sequence[Change], question: Question) -> StreamReport:
    evidence = _evidence(events, deliveries, question)
    history = _history(deliveries, changes, evidence, question)
    window = question.window
    split = split_events(events, history.wanted, window).persist()
    pairs = judged_pairs(spark, split, deliveries, history.wanted, window, history.disturbances).persist()
    try:
        sums = {row["number"]: row for row in sums_of(pairs, int(question.late_seconds * 1e6))}
        disturbed = any(_meets(one.since, one.until, window) for one in history.disturbances) or bool(history.damage)
        # A home of durable subscriptions alone is in no line of theirs: that it died is known from its next life.
        disturbed = disturbed or bool(question.gone) or any(at >= window.since for at in history.restarts)
        lines = [
            line_of(one, sums.get(number), _held_of(one, question), disturbed)
            for number, one in enumerate(history.wanted)
        ]
        findings = _named(spark, findings_of(pairs, split), history.wanted)
        report = StreamReport(question.stream, window, split.count(), lines)
        report.findings = _examples(findings)
        report.disturbances = [one for one in history.disturbances if _meets(one.since, one.until, window)]
        report.troubles = [f"{one.subscription}: {one.trouble}" for one in history.wanted if one.trouble]
        report.unjudged = [text for until, text in history.damage if until >= window.since]
        report.evidence = evidence
        _latencies(report, pairs)
        if question.parquet is not None:
            _write(spark, report, findings, question.parquet)
        return report
    finally:
        pairs.unpersist()
        split.unpersist()


def _held_of(one: Wanted, question: Question) -> int | None:
    return question.held.get(one.subscriber) if one.lasting and question.held is not None else None


def _evidence(events: Any, deliveries: Any, question: Question) -> dict[str, int]:
    """When each life of a broker was seen last: in the window, or before."""
    from pyspark.sql import functions as sql

    home = sql.regexp_replace("subscription_id", "-[^-]*$", "").alias("origin")
    origin = sql.substring_index("event_id", ".", 1).alias("origin")
    seen = dict(question.evidence)
    for frame, name, time in ((deliveries, home, "delivered_at"), (events, origin, "time")):
        for row in frame.groupBy(name).agg(sql.max(time).alias("last")).collect():
            seen[row["origin"]] = max(row["last"], seen.get(row["origin"], row["last"]))
    return seen


def _history(deliveries: Any, changes: Sequence[Change], evidence: Mapping[str, int], question: Question) -> History:
    """The history of subscriptions that were owed something in the window, or to which something was delivered."""
    history = read_history(changes, evidence, question.bounds, question.gone)
    reached = {row[0] for row in deliveries.select("subscription_id").distinct().collect()}
    known = {one.subscription for one in history.wanted}
    window = question.window
    history.wanted = [
        one
        for one in history.wanted
        if one.subscription in reached
        or any(_meets(span.possible_from, span.possible_to, window) for span in one.spans)
    ]
    history.wanted += [Wanted(name, trouble=_UNKNOWN) for name in sorted(reached - known)]
    return history


def _meets(since: int, until: int, window: Window) -> bool:
    return since < window.until and until >= window.since


def _named(spark: Any, findings: Any, wanted: Sequence[Wanted]) -> Any:
    """The findings with the names of their subscriptions."""
    from pyspark.sql import functions as sql

    numbers = spark.createDataFrame(
        [(number, one.subscription) for number, one in enumerate(wanted)], "number int, subscription_id string"
    )
    return findings.join(sql.broadcast(numbers), "number").drop("number")


def _examples(findings: Any) -> list[Finding]:
    """Some findings of each kind, the oldest first."""
    from pyspark.sql import functions as sql
    from pyspark.sql.window import Window as Partition

    order = Partition.partitionBy("kind").orderBy("time", "event_id", "subscription_id")
    rows = findings.withColumn("place", sql.row_number().over(order)).where(f"place <= {EXAMPLES_MAX}").collect()
    return [
        Finding(row["subscription_id"], row["event_id"], row["kind"], row["detail"], row["time"], row["announced"])
        for row in sorted(rows, key=lambda row: (row["kind"], row["place"]))
    ]


def _latencies(report: StreamReport, pairs: Any) -> None:
    """Compute percentiles of the latency over all deliveries of the stream."""
    from pyspark.sql import functions as sql

    latency = sql.greatest(sql.col("delivered_at") - sql.col("time"), sql.lit(0))
    shares = sql.array(sql.lit(0.5), sql.lit(0.95), sql.lit(0.99))
    (row,) = (
        pairs.where("received > 0 AND NOT lasting")
        .agg(sql.percentile_approx(latency, shares, PERCENTILE_ACCURACY).alias("shares"), sql.max(latency).alias("max"))
        .collect()
    )
    if row["max"] is not None:
        report.p50_seconds, report.p95_seconds, report.p99_seconds = (share / 1e6 for share in row["shares"])
        report.max_seconds = row["max"] / 1e6


_LINE_SCHEMA = (
    "subscription_id string, subscriber_id string, pattern string, filter string, expected long, delivered long, "
    "lost long, announced long, unacked long, duplicate long, wrong long, boundary long, unsettled long, waiting long, "
    "left_out long, late long, p50_seconds double, p95_seconds double, p99_seconds double, max_seconds double, "
    "note string"
)


def _write(spark: Any, report: StreamReport, findings: Any, folder: Path) -> None:
    """Two tables, `subscriptions` and `findings`, by stream and window; the same window again replaces its own."""
    from dataclasses import astuple

    place = f"stream={report.stream}/since={report.window.since}"
    rows = [astuple(line) for line in report.lines]
    lines = spark.createDataFrame(rows, _LINE_SCHEMA).coalesce(1)
    lines.write.mode("overwrite").parquet(str(folder / "subscriptions" / place))
    findings.coalesce(1).write.mode("overwrite").parquet(str(folder / "findings" / place))
