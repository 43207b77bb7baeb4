"""The report of an audit: a line for each subscription, a sum for each stream, a table, JSON, an exit code."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from ..exits import DONE, REFUSED
from ..tables import print_table
from .audit_history import Disturbance, Wanted
from .audit_limits import TROUBLES_MAX, WORTH_A_GLANCE
from .audit_verdict import Window

__all__ = ["Accepted", "Finding", "Line", "Report", "StreamReport", "json_line", "line_of", "print_report"]

_COUNTS = ("expected", "delivered", "lost", "announced", "unacked", "duplicate", "wrong", "boundary", "late")


@dataclass(slots=True)
class Line:
    """One subscription: how many events it was owed, and what came. Latencies are in seconds; None: nothing came.

    A durable one is owed events until it has acknowledged them: those that it has not are `waiting`, unless its
    coordinator has fewer, of which the difference is `lost`.

    `expected` were owed for certain; `lost` of them did not come, and of these `announced` were told. `unacked` were
    sent, and their client never said that it took them. `boundary` did not come either, and `unsettled` were not
    acknowledged, but so near to a change or to a broker's death that this says nothing. `left_out` were sent to a
    subscription with XPATH whose document lacks the twig: brokers compare filters, and the subscriber's library shows
    none of these.
    """

    subscription: str
    subscriber: str = ""
    pattern: str = ""
    condition: str = ""
    expected: int = 0
    delivered: int = 0
    lost: int = 0
    announced: int = 0
    unacked: int = 0
    duplicate: int = 0
    wrong: int = 0
    boundary: int = 0
    unsettled: int = 0
    waiting: int = 0
    left_out: int = 0
    late: int = 0
    p50_seconds: float | None = None
    p95_seconds: float | None = None
    p99_seconds: float | None = None
    max_seconds: float | None = None
    note: str = ""

    @property
    def clean(self) -> bool:
        """Everything owed came once and was acknowledged, and nothing else came."""
        return not (self.lost or self.unacked or self.duplicate or self.wrong)


@dataclass(frozen=True, slots=True)
class Accepted:
    """Findings that do not fail an audit: announced losses, and deliveries without acknowledgement."""

    announced: bool = False
    unacknowledged: bool = False


_NOTHING: Final = Accepted()


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
    """Some findings of each kind; the Parquet files have all."""
    disturbances: list[Disturbance] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    """Subscriptions, or parts of logs, that could not be audited, each with the reason."""
    notes: list[str] = field(default_factory=list)
    unjudged: list[str] = field(default_factory=list)
    """Parts of logs that are missing, so that what they held cannot be judged."""
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
        """Nothing lost, wrong, twice or unacknowledged, and nothing that could not be audited."""
        return not self.troubles and all(line.clean for line in self.lines)


@dataclass(slots=True)
class Report:
    """All streams of one audit."""

    streams: list[StreamReport] = field(default_factory=list)
    seconds: float = 0.0

    def total(self, count: str) -> int:
        """The sum of a count over all streams."""
        return sum(stream.total(count) for stream in self.streams)

    def exit_code(self, accepted: Accepted = _NOTHING) -> int:
        """0 when every subscriber got exactly what it asked for, but for what is accepted."""
        faults = self.total("duplicate") + self.total("wrong") + sum(len(stream.troubles) for stream in self.streams)
        faults += self.total("lost") - (self.total("announced") if accepted.announced else 0)
        faults += 0 if accepted.unacknowledged else self.total("unacked")
        return REFUSED if faults else DONE

    def verdict(self, accepted: Accepted = _NOTHING) -> str:
        """The result in a sentence, which agrees with the exit code."""
        failed = self.exit_code(accepted) != DONE
        words = [f"{self.total(kind):,} {kind}" for kind in ("lost", "duplicate", "wrong") if self.total(kind)]
        words += [f"{self.total('announced'):,} of the lost were announced"] if self.total("announced") else []
        words += [f"{self.total('unacked'):,} sent and never acknowledged"] if self.total("unacked") else []
        troubles = sum(len(stream.troubles) for stream in self.streams)
        words += [f"{troubles:,} that could not be audited"] if troubles else []
        unjudged = [part for stream in self.streams for part in stream.unjudged]
        if near := self.total("boundary") + self.total("unsettled"):
            unjudged.append(f"{near:,} deliveries near the change of a subscription or the end of a broker")
        if failed:
            text = "NOT EXACT: " + ", ".join(words)
        elif words:
            text = "exact but for what was accepted: " + ", ".join(words)
        else:
            text = "every subscriber got exactly what it asked for: nothing lost, nothing wrong, nothing twice"
        if waiting := self.total("waiting"):
            text += f"; {waiting:,} wait for durable subscriptions"
        if left_out := self.total("left_out"):
            text += (
                f"; {left_out:,} more were sent whose documents XPATH does not match, which subscribers are not shown"
            )
        if not unjudged:
            return text
        return f"{text if failed else 'of what could be judged, ' + text}; not judged: {'; '.join(unjudged)}"

    def as_json(self) -> dict[str, Any]:
        """The report as JSON; the line of a subscription is left out where nothing was owed to it and nothing came."""
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
                    **{count: one.total(count) for count in (*_COUNTS, "unsettled", "waiting", "left_out")},
                    **{name: getattr(one, name) for name in _LATENCIES},
                    "clean": one.clean,
                    "disturbances": [asdict(disturbance) for disturbance in one.disturbances],
                    "troubles": one.troubles[:TROUBLES_MAX],
                    "notes": one.notes,
                    "unjudged": one.unjudged,
                    "findings": [asdict(finding) for finding in one.findings],
                    "lines": lines,
                }
            )
        return {"audit": "headgate", "clean": all(one.clean for one in self.streams), "streams": streams}


_LATENCIES = ("p50_seconds", "p95_seconds", "p99_seconds", "max_seconds")


def line_of(one: Wanted, sums: Any = None, held: int | None = None, disturbed: bool = False) -> Line:
    """The line of a subscription from what Spark summed up; None when it has no pair at all.

    `held`: how many events its coordinator has that are not acknowledged; None: it is not a durable one, or nobody was
    asked. `disturbed`: a broker died, so lines of the audit may be missing.
    """
    line = Line(one.subscription, one.subscriber, str(one.pattern or ""), one.condition)
    if one.partial:
        line.note = "DELTA: only wrong and repeated deliveries are checked"
    if sums is None:
        return line
    line.expected, line.delivered, line.lost = sums["expected"], sums["delivered"], sums["lost"]
    line.duplicate, line.wrong, line.late = sums["duplicate"], sums["wrong"], sums["late"]
    line.boundary, line.unacked, line.unsettled = sums["boundary"], sums["unacked"], sums["unsettled"]
    line.waiting, line.left_out = sums["waiting"], sums["left_out"]
    if held is not None and line.waiting > held:
        missing, line.waiting = line.waiting - held, held
        if disturbed:
            line.boundary += missing
        else:
            line.lost += missing
            line.announced = min(missing, _told_of(one, missing))
    line.announced += sums["named"] + min(sums["in_gap"], _told_of(one, sums["in_gap"]))
    percentiles = [None if value is None else value / 1e6 for value in sums["percentiles"] or [None] * 3]
    line.p50_seconds, line.p95_seconds, line.p99_seconds = percentiles
    line.max_seconds = None if sums["latency_max"] is None else sums["latency_max"] / 1e6
    return line


def _told_of(one: Wanted, missing: int) -> int:
    """How many missing events the subscription's GAPs may account for: a GAP of unknown size for any number."""
    return missing if any(gap.count == 0 for gap in one.gaps) else sum(gap.count for gap in one.gaps)


def print_report(report: Report, every_line: bool = False, accepted: Accepted = _NOTHING) -> None:
    """The tables for people: all streams, then of each stream what needs looking at."""
    _print_streams(report.streams)
    for stream in report.streams:
        _print_lines(stream, every_line)
        for finding in stream.findings:
            told = ", announced" if finding.announced and finding.detail != "announced" else ""
            print(f"  {finding.kind}: event {finding.event} for {finding.subscription} ({finding.detail}{told})")
        for one in stream.disturbances:
            seconds = (one.until - one.since) / 1e6
            print(f"  broker {one.origin} ended: what was missing within {seconds:.0f} s around it is not judged")
        for trouble in stream.troubles[:TROUBLES_MAX]:
            print(f"  cannot be audited: {trouble}")
        for note in stream.notes:
            print(f"  note: {note}")
    print(report.verdict(accepted))


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


def json_line(report: Report, accepted: Accepted = _NOTHING) -> str:
    """The report as one line of JSON."""
    said = {"verdict": report.verdict(accepted), "exit_code": report.exit_code(accepted)}
    return json.dumps({**report.as_json(), **said}, separators=(",", ":"))
