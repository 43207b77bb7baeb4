"""Logs of one stream as DataFrames, with whatever a test plants in them. Times are seconds after a fixed moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from headgate.ops.jobs.audit_batch import Frames, Question, audit_stream
from headgate.ops.jobs.audit_history import Bounds
from headgate.ops.jobs.audit_report import Finding, Line, StreamReport
from headgate.ops.jobs.audit_verdict import Window

__all__ = ["HOME", "OTHER", "START", "Logs", "microseconds"]

START = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)
HOME = "00000000000000aa-1"
OTHER = "00000000000000bb-1"

EVENTS = (
    "topic string, timestamp timestamp, event_id string, "
    "attributes map<string, struct<l: bigint, d: double, s: string, b: boolean>>, value binary, content_type string"
)
DELIVERIES = "event_id string, subscription_id string, published_at timestamp, delivered_at timestamp, outcome int"
SUBSCRIPTIONS = (
    "partition int, offset long, subscription_id string, subscriber_id string, pattern string, exact boolean, "
    "filter string, action string, effective_at timestamp, reason string, timestamp timestamp"
)


def microseconds(seconds: float) -> int:
    """A moment as the logs count."""
    return round(START.timestamp() * 1e6) + round(seconds * 1e6)


def moment(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def typed(value: Any) -> tuple[Any, ...]:
    return tuple(value if type(value) is kind else None for kind in (int, float, str, bool))


@dataclass
class Logs:
    """What the brokers logged."""

    events: list[Any] = field(default_factory=list)
    deliveries: list[Any] = field(default_factory=list)
    acknowledgements: list[Any] = field(default_factory=list)
    subscriptions: list[Any] = field(default_factory=list)

    def event(
        self,
        number: int,
        at: float,
        topic: str = "quotes/NYSE/OTE",
        origin: str = OTHER,
        document: str = "",
        **attributes: Any,
    ) -> str:
        """An event was accepted; its document is XML, or JSON when it begins so."""
        name = f"{origin}.{number}"
        given = {key: typed(value) for key, value in attributes.items()}
        content_type = f"application/{'xml' if document[0] == '<' else 'json'}" if document else None
        self.events.append((topic, moment(at), name, given, document.encode(), content_type))
        return name

    def delivery(
        self,
        event: str,
        subscription: int,
        at: float,
        after: float = 0.002,
        outcome: int = 0,
        home: str = HOME,
        acked: bool = True,
    ) -> None:
        """An event of that time was sent, so long after, and acknowledged (or dropped: 1, or lost on the way: 2)."""
        line = (event, f"{home}-{subscription}", moment(at), moment(at + after))
        self.deliveries.append((*line, outcome))
        if acked and outcome == 0:
            self.acknowledgements.append((*line, 3))

    def subscribe(
        self, number: int, at: float, where: str = "", pattern: str = "quotes", exact: bool = False, home: str = HOME
    ) -> None:
        """A subscription came into force."""
        self._change(f"{home}-{number}", at, "subscribe", where, pattern, exact, "")

    def unsubscribe(self, number: int, at: float, reason: str = "", home: str = HOME) -> None:
        """It ended."""
        self._change(f"{home}-{number}", at, "unsubscribe", "", "quotes", False, reason)

    def gap(self, number: int, at: float, count: int, home: str = HOME) -> None:
        """It was told that so many are missing."""
        self._change(f"{home}-{number}", at, "gap", "", "", False, f"{count} lost: a broker is gone")

    def damaged(self, at: float, text: str = "positions 1 to 2 are damaged", home: str = HOME) -> None:
        """A broker found its log damaged when it started."""
        self._change(f"{home}-0", at, "damaged", "", "", False, text)

    def restarted(self, at: float, home: str = HOME) -> None:
        """A broker found that it had written lines in an earlier life."""
        self._change(f"{home}-0", at, "restarted", "", "", False, "")

    def _change(self, name: str, at: float, action: str, where: str, pattern: str, exact: bool, reason: str) -> None:
        place = len(self.subscriptions)
        self.subscriptions.append(
            (0, place, name, f"client of {name}", pattern, exact, where, action, moment(at), reason, moment(at))
        )

    def frames(self, spark: Any) -> Frames:
        """As the data source would give them."""
        return Frames(
            spark.createDataFrame(self.events, EVENTS),
            spark.createDataFrame(self.deliveries + self.acknowledgements, DELIVERIES),
            spark.createDataFrame(self.subscriptions, SUBSCRIPTIONS),
        )

    def audit(self, spark: Any, **details: Any) -> StreamReport:
        """The verdict on the ten minutes after the start."""
        window = Window(microseconds(0), microseconds(600))
        bounds = Bounds(2_000_000, 30_000_000, 12_000_000, 20_000_000, 40_000_000)
        return audit_stream(spark, self.frames(spark), Question("quotes", window, 1.0, bounds, **details))

    def line(self, spark: Any, **details: Any) -> tuple[Line, list[Finding]]:
        """The verdict where there is one subscription."""
        report = self.audit(spark, **details)
        (line,) = report.lines
        return line, report.findings
