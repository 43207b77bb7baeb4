"""What an audit says: a line for each subscription, a sum for each stream, a table, one line of JSON, an exit code."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ..exits import DONE, REFUSED
from ..tables import print_table
from .audit_history import Disturbance, Wanted
from .audit_limits import TROUBLES_MAX, WORTH_A_GLANCE
from .audit_verdict import Window

__all__ = ["Finding", "Line", "Report", "StreamReport", "json_line", "line_of", "print_report"]

_COUNTS = ("expected", "delivered", "lost", "announced", "duplicate", "wrong", "boundary", "late")


@dataclass(slots=True)
class Line:
    """One subscription: how many events it was owed, and what came. Latencies are in seconds; None: nothing came.

    `expected` were owed for certain; `lost` of them did not come, and of these `announced` were told. `boundary` did
    not come either, but were published so near to a change, or to a broker's death, that none was owed for certain.
    """

    subscription: str
    subscriber: str = ""
    pattern: str = ""
    condition: str = ""
    expected: int = 0
    delivered: int = 0
    lost: int = 0
    announced: int = 0
    duplicate: int = 0
    wrong: int = 0
    boundary: int = 0
    late: int = 0
    p50_seconds: float | None = None
    p95_seconds: float | None = None
    p99_seconds: float | None = None
    max_seconds: float | None = None
    note: str = ""

    @property
    def clean(self) -> bool:
        """Everything owed came once, and nothing else."""
        return not (self.lost or self.duplicate or self.wrong)


@dataclass(slots=True)
class Finding:
    """One event that one subscription should have got, or should not."""

    subscription: str
    event: str
    kind: str
    detail: str
    time: int
    announced: bool


@dataclass(slots=True)
class StreamReport:
    """One stream in one window of time."""

    stream: str
    window: Window
    events: int = 0
    lines: list[Line] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    """Some of each kind; the Parquet files have all."""
    disturbances: list[Disturbance] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    """Subscriptions, or parts of logs, that could not be audited, each with the reason."""
    notes: list[str] = field(default_factory=list)
    evidence: dict[str, int] = field(default_factory=dict)
    """When each life of a broker was seen last, for the next window."""
    p50_seconds: float | None = None
    p95_seconds: float | None = None
    p99_seconds: float | None = None
    max_seconds: float | None = None

    def total(self, count: str) -> int:
        """The sum of a count over all subscriptions."""
        return sum(int(getattr(line, count)) for line in self.lines)

    @property
    def clean(self) -> bool:
        """Nothing lost, wrong or twice, and nothing that could not be audited."""
        return not self.troubles and all(line.clean for line in self.lines)


@dataclass(slots=True)
class Report:
    """All streams of one audit."""

    streams: list[StreamReport] = field(default_factory=list)
    seconds: float = 0.0

    def exit_code(self, accept_announced: bool = False) -> int:
        """0 when every subscriber got exactly what it asked for. Announced losses count, unless they are accepted."""
        for stream in self.streams:
            faults = stream.total("duplicate") + stream.total("wrong") + len(stream.troubles)
            faults += stream.total("lost") - (stream.total("announced") if accept_announced else 0)
            if faults:
                return REFUSED
        return DONE

    def as_json(self) -> dict[str, Any]:
        """For programs; the line of a subscription is left out where nothing was owed to it and nothing came."""
        streams = []
        for one in self.streams:
            lines = [asdict(line) for line in one.lines if line.expected or line.delivered or line.boundary]
            streams.append(
                {
                    "stream": one.stream,
                    "since": one.window.since / 1e6,
                    "until": one.window.until / 1e6,
                    "events": one.events,
                    "subscriptions": len(one.lines),
                    **{count: one.total(count) for count in _COUNTS},
                    **{name: getattr(one, name) for name in _LATENCIES},
                    "clean": one.clean,
                    "disturbances": [asdict(disturbance) for disturbance in one.disturbances],
                    "troubles": one.troubles[:TROUBLES_MAX],
                    "notes": one.notes,
                    "findings": [asdict(finding) for finding in one.findings],
                    "lines": lines,
                }
            )
        return {"audit": "headgate", "clean": all(one.clean for one in self.streams), "streams": streams}


_LATENCIES = ("p50_seconds", "p95_seconds", "p99_seconds", "max_seconds")


def line_of(one: Wanted, sums: Any = None) -> Line:
    """The line of a subscription from what Spark summed up; None when it has no pair at all."""
    line = Line(one.subscription, one.subscriber, str(one.pattern or ""), one.condition)
    if one.partial:
        line.note = "DELTA and XPATH: only wrong and repeated deliveries are checked"
    if sums is None:
        return line
    line.expected, line.delivered, line.lost = sums["expected"], sums["delivered"], sums["lost"]
    line.duplicate, line.wrong, line.late = sums["duplicate"], sums["wrong"], sums["late"]
    line.boundary = sums["boundary"]
    line.announced = sums["named"] + min(sums["in_gap"], _told_of(one, sums["in_gap"]))
    percentiles = [None if value is None else value / 1e6 for value in sums["percentiles"] or [None] * 3]
    line.p50_seconds, line.p95_seconds, line.p99_seconds = percentiles
    line.max_seconds = None if sums["latency_max"] is None else sums["latency_max"] / 1e6
    return line


def _told_of(one: Wanted, missing: int) -> int:
    """How many missing events the subscription's GAPs may account for: a GAP of unknown size for any number."""
    return missing if any(gap.count == 0 for gap in one.gaps) else sum(gap.count for gap in one.gaps)


def print_report(report: Report, every_line: bool = False) -> None:
    """The tables for people: all streams, then of each stream what needs looking at."""
    _print_streams(report.streams)
    for stream in report.streams:
        _print_lines(stream, every_line)
        for finding in stream.findings:
            told = ", announced" if finding.announced and finding.detail != "announced" else ""
            print(f"  {finding.kind}: event {finding.event} for {finding.subscription} ({finding.detail}{told})")
        for one in stream.disturbances:
            seconds = (one.until - one.since) / 1e6
            print(f"  broker {one.origin} ended: what was missing within {seconds:.0f} s around it counts as boundary")
        for trouble in stream.troubles[:TROUBLES_MAX]:
            print(f"  cannot be audited: {trouble}")
        for note in stream.notes:
            print(f"  note: {note}")
    print(_verdict(report))


def _verdict(report: Report) -> str:
    faults = {kind: sum(stream.total(kind) for stream in report.streams) for kind in ("lost", "duplicate", "wrong")}
    announced = sum(stream.total("announced") for stream in report.streams)
    if not any(faults.values()) and not any(stream.troubles for stream in report.streams):
        return "every subscriber got exactly what it asked for: nothing lost, nothing wrong, nothing twice"
    words = [f"{count:,} {kind}" for kind, count in faults.items() if count]
    words += [f"{announced:,} of the lost were announced"] if announced else []
    troubles = sum(len(stream.troubles) for stream in report.streams)
    words += [f"{troubles:,} that could not be audited"] if troubles else []
    return "NOT EXACT: " + ", ".join(words)


def _print_streams(streams: Sequence[StreamReport]) -> None:
    rows = [
        (
            one.stream,
            one.events,
            len(one.lines),
            *(one.total(count) for count in _COUNTS),
            *(_milliseconds(getattr(one, name)) for name in _LATENCIES),
        )
        for one in streams
    ]
    print_table(["stream", "events", "subscriptions", *_COUNTS, "p50", "p95", "p99", "max"], rows)


def _print_lines(stream: StreamReport, every_line: bool) -> None:
    """A stream's subscriptions: those with a fault first, and of the others a few."""
    lines = sorted(_busy(stream.lines), key=lambda line: (line.clean, -line.expected, line.subscription))
    shown = [line for place, line in enumerate(lines) if every_line or not line.clean or place < WORTH_A_GLANCE]
    rows = [
        (
            line.subscriber or line.subscription,
            f"{line.pattern} WHERE {line.condition}" if line.condition else line.pattern,
            *(getattr(line, count) for count in _COUNTS),
            *(_milliseconds(getattr(line, name)) for name in _LATENCIES),
        )
        for line in shown
    ]
    print_table(["subscriber", "wanted", *_COUNTS, "p50", "p95", "p99", "max"], rows)
    if len(shown) < len(lines):
        print(f"  and {len(lines) - len(shown):,} more subscriptions of {stream.stream}, all exact (--all shows them)")


def _busy(lines: Iterable[Line]) -> list[Line]:
    return [line for line in lines if line.expected or line.delivered or line.boundary]


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:.1f} ms"


def json_line(report: Report) -> str:
    """One line."""
    return json.dumps(report.as_json(), separators=(",", ":"))
