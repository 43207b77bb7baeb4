"""The audit: recomputes from the brokers' logs what should have been delivered, and compares with what was.

    headgate audit --stream quotes                                     in local mode
    spark-submit ops/jobs/audit.py --stream quotes --server b1:7400    wherever Spark is told to run

Each condition is evaluated by Spark's own SQL, each pattern by its regular expressions: nothing is shared with the
brokers' index but the parser of conditions, which is what keeps a log from making Spark run something else.

Only a *closed window* is judged: events accepted before the audit began and after `--since`, once their deliveries had
`--settle` seconds to get into the log. The rooms, in order: `audit_source` (the logs), `audit_history` (who was owed
what, when), `audit_text` (conditions and patterns as Spark reads them), `audit_verdict` (the DataFrames), `audit_batch`
(one window), `audit_report` (what is said), `audit_windows` (window after window, continuously).

Exit codes: 0 every subscriber got exactly what it asked for, as far as that could be judged; 1 something was lost,
wrong, delivered twice or never acknowledged, or could not be audited; 2 usage, and where there is nothing to judge;
3 no broker can be reached.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

if not __package__:  # started by its path, as spark-submit does, in the sources or where they are installed
    _above = Path(__file__).resolve().parent.parent.parent
    sys.path.insert(0, str(_above if (_above / "headgate").is_dir() else _above.parent))

from headgate.ops.exits import REFUSED, USAGE, UsageError, exit_code
from headgate.ops.jobs.audit_batch import Question, audit_stream
from headgate.ops.jobs.audit_history import Bounds
from headgate.ops.jobs.audit_limits import (
    BOUNDARY_SECONDS,
    LATE_SECONDS,
    LOGGED_SECONDS,
    ROUND_SECONDS,
    SETTLE_SECONDS,
    WINDOW_SECONDS,
)
from headgate.ops.jobs.audit_report import Accepted, Report, StreamReport, json_line, print_report
from headgate.ops.jobs.audit_session import kept_output, missing_parts, start_session
from headgate.ops.jobs.audit_source import LogSource, Survey
from headgate.ops.jobs.audit_verdict import Window
from headgate.ops.jobs.audit_windows import audit_windows
from headgate.protocol.blocking import connect_blocking
from headgate.protocol.errors import HeadgateError
from headgate.protocol.limits import RETRY_SECONDS_ENDING
from headgate.protocol.spark.options import Access

__all__ = ["add_arguments", "audit_cluster", "main", "moment_of", "run_audit"]

Found = TypeVar("Found")

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of an audit, but for the server's address."""
    parser.add_argument(
        "--stream", action="append", metavar="S", help="audit this stream (again for more; default: all audited ones)"
    )
    parser.add_argument("--since", metavar="T", help="events from then on: 2026-05-01T12:00Z, 1777636800, or 15m (ago)")
    parser.add_argument("--json", action="store_true", help="one line of JSON for each verdict")
    parser.add_argument("--parquet", type=Path, metavar="DIR", help="write every line and every finding there")
    parser.add_argument(
        "--late", type=float, default=LATE_SECONDS, metavar="S", help="a later delivery counts as late (%(default)g s)"
    )
    parser.add_argument(
        "--settle",
        type=float,
        default=SETTLE_SECONDS,
        metavar="S",
        help="how long a delivery may take to get into the log before it counts as lost (%(default)g s)",
    )
    parser.add_argument(
        "--boundary",
        type=float,
        default=BOUNDARY_SECONDS,
        metavar="S",
        help="so near to a change of a subscription an event may be delivered or not (%(default)g s)",
    )
    parser.add_argument(
        "--accept-announced", action="store_true", help="losses that were announced to their subscribers do not fail"
    )
    parser.add_argument(
        "--accept-unacknowledged",
        action="store_true",
        help="what was sent and never acknowledged by its subscriber does not fail",
    )
    parser.add_argument("--all", action="store_true", help="show every subscription")
    parser.add_argument("--verbose", action="store_true", help="show what Java and Spark write as well")
    parser.add_argument("--continuous", action="store_true", help="go on: a verdict for each window, until stopped")
    parser.add_argument(
        "--work", type=Path, metavar="DIR", help="continuous: copies, checkpoints and verdicts (./headgate-audit)"
    )
    parser.add_argument(
        "--window", type=float, default=WINDOW_SECONDS, metavar="S", help="continuous: its length (%(default)g s)"
    )
    parser.add_argument(
        "--every",
        type=float,
        default=ROUND_SECONDS,
        metavar="S",
        help="continuous: seconds between rounds; 0: one round",
    )


def run_audit(arguments: argparse.Namespace, servers: str, master: str = "local[*]") -> int:
    """Audit as told, and print; the exit code. Raises HeadgateError and UsageError."""
    missing = missing_parts()
    if missing:
        print(f"headgate audit: cannot run here. It needs {missing}.", file=sys.stderr)
        return REFUSED
    since = moment_of(arguments.since, time.time()) if arguments.since else 0
    for name in ("late", "settle", "boundary", "every"):
        if not getattr(arguments, name) >= 0:
            raise UsageError(f"--{name} is 0 or more seconds")
    if not arguments.window > 0:
        raise UsageError("--window is more than 0 seconds")
    # Before Java starts: nobody there is soon said.
    with connect_blocking(
        servers, name="headgate audit", retry_seconds=RETRY_SECONDS_ENDING, **asdict(Access.of_environment())
    ) as client:
        source = LogSource(servers, client)
        surveys = surveys_of(source, arguments.stream, 0 if arguments.continuous else since)
        with kept_output(arguments.verbose) as errors:
            spark = start_session("headgate-audit", master, errors)
            source.attach(spark)
            if arguments.continuous:
                return audit_windows(spark, source, arguments, since)
            report = audit_cluster(spark, source, surveys, arguments, since)
    accepted = Accepted(arguments.accept_announced, arguments.accept_unacknowledged)
    if arguments.json:
        print(json_line(report, accepted))
    else:
        print_report(report, arguments.all, accepted)
    return report.exit_code(accepted)


def surveys_of(source: LogSource, streams: Sequence[str] | None, since: int) -> dict[str, Survey]:
    """What there is of each stream with events since then. Raises UsageError when that is nothing."""
    for stream in streams or ():
        source.check(stream)
    chosen = list(dict.fromkeys(streams or source.streams()))
    if not chosen:
        raise UsageError("no stream is audited: headgate schema put STREAM with audit = true")
    surveys = {stream: source.survey(stream) for stream in chosen}
    return _with_something(surveys, {stream: survey.newest >= max(since, 1) for stream, survey in surveys.items()})


def _with_something(found: dict[str, Found], something: dict[str, bool]) -> dict[str, Found]:
    """The streams that can be judged; prints which are left out."""
    empty = [stream for stream in found if not something[stream]]
    text = f"nothing was published to {', '.join(empty)} in this window, so nothing can be said of it"
    if len(empty) == len(found):
        raise UsageError(text)
    if empty:
        print(f"headgate audit: {text}", file=sys.stderr)
    return {stream: one for stream, one in found.items() if something[stream]}


def audit_cluster(
    spark: Any, source: LogSource, surveys: dict[str, Survey], arguments: argparse.Namespace, since: int
) -> Report:
    """One closed window up to now, of each stream. Raises UsageError when nothing is in any of them."""
    began = time.monotonic()
    until = int(time.time() * 1e6)
    newest = max((survey.newest for survey in surveys.values()), default=0)
    _wait_until(min(newest, until) / 1e6 + arguments.settle)
    held = source.held()
    if held:  # what they have acknowledged by now is in the logs a moment later
        _wait_until(time.time() + LOGGED_SECONDS)
    reports: dict[str, StreamReport] = {}
    for stream, survey in surveys.items():
        question = Question(
            stream,
            Window(max(since, survey.since), until),
            arguments.late,
            Bounds(boundary=int(arguments.boundary * 1e6)),
            survey.gone,
            parquet=arguments.parquet,
            held=held,
        )
        found = audit_stream(spark, source.frames(stream, question.window.since), question)
        found.notes += survey.notes
        reports[stream] = found
    there = {stream: bool(one.events or one.total("delivered") or one.troubles) for stream, one in reports.items()}
    return Report(list(_with_something(reports, there).values()), time.monotonic() - began)


def moment_of(text: str, now: float) -> int:
    """A time in microseconds: ISO 8601 (UTC when it names no zone), seconds since 1970, or so long ago. UsageError."""
    try:
        if text and text[-1] in _UNITS:
            return int((now - float(text[:-1]) * _UNITS[text[-1]]) * 1e6)
        if text.replace(".", "", 1).isdecimal():
            return int(float(text) * 1e6)
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(
            f"--since {text}: write 2026-05-01T12:00Z, seconds since 1970, or 15m for minutes ago"
        ) from error
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1e6)


def _wait_until(moment: float) -> None:
    """The deliveries of the newest events may still be on their way into the log."""
    seconds = moment - time.time()
    if seconds > 0:
        print(f"headgate audit: waiting {seconds:.0f} s for the newest deliveries to be logged", file=sys.stderr)
        time.sleep(seconds)


def main(argv: Sequence[str] | None = None) -> int:
    """For spark-submit: the exit code."""
    parser = argparse.ArgumentParser(prog="audit.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--server", default="127.0.0.1:7400", metavar="H:P[,H:P...]", help="brokers (%(default)s)")
    add_arguments(parser)
    arguments = parser.parse_args(argv)
    try:
        return run_audit(arguments, arguments.server)
    except (HeadgateError, UsageError) as error:
        print(f"audit.py: {error}", file=sys.stderr)
        return USAGE if isinstance(error, UsageError) else exit_code(error)


if __name__ == "__main__":
    sys.exit(main())
