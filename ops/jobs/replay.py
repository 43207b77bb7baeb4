"""The replay job: a window of a stream's log goes to another topic, to Parquet, or into a table, each event once.

    spark-submit ops/jobs/replay.py 'quotes/*/OTE' --where "price > 8.5" --from 2026-11-19T06:00 --to-stream again
    spark-submit ops/jobs/replay.py trades --to-parquet /lake/trades-2026-11-19
    spark-submit ops/jobs/replay.py trades --to-table lake.trades

**Once.** An event is its producer's name and number, or, where nobody numbered it, its id in the log. Two rows of logs
that agree in them are one event (its publisher had to send it to a second broker), and of those one is taken. Into a
stream the rows go with that identity as their event id, under a producer named after the job, so a job that is run
again, with another window or other partitions, adds what is missing and repeats nothing. Into a table they are merged
by it (Iceberg and Delta Lake can; a table that cannot is refused by Spark). A folder of Parquet is written whole or not
at all: one that exists is refused unless `--overwrite` says that it may be replaced.

Exit codes: 0 done; 1 something was refused; 2 usage; 3 no broker can be reached.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

if not __package__:  # started by its path, as spark-submit does, in the sources or where they are installed
    _above = Path(__file__).resolve().parent.parent.parent
    sys.path.insert(0, str(_above if (_above / "headgate").is_dir() else _above.parent))

from headgate.ops.exits import DONE, REFUSED, UNREACHABLE, USAGE, UsageError, exit_code
from headgate.ops.jobs.audit_session import missing_parts, start_session
from headgate.ops.jobs.publish import reason_of
from headgate.ops.server import add_server_arguments, until_answered
from headgate.protocol.errors import HeadgateError

__all__ = ["IDENTITY", "add_arguments", "main", "merge_statement", "run_replay", "window"]

IDENTITY = "coalesce(concat(producer_id, '#', sequence), event_id)"
"""The SQL expression that identifies an event that is in several logs."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the job."""
    parser.add_argument("pattern", metavar="PATTERN", help="a stream, or a pattern in it such as 'quotes/*/OTE'")
    parser.add_argument("--where", metavar="SQL", default="", help="only events that meet this condition")
    parser.add_argument("--from", dest="begin", metavar="TIME", help="from this time on, 2026-11-19T06:00Z")
    parser.add_argument("--until", metavar="TIME", help="up to, and without, this time (default: now)")
    parser.add_argument(
        "--attributes", metavar="DDL", default="typed", help="attributes as a struct, 'symbol STRING, price DOUBLE'"
    )
    parser.add_argument("--to-stream", metavar="NAME", help="into this stream; the rest of each topic stays")
    parser.add_argument("--to-topic", metavar="TOPIC", help="into this one topic")
    parser.add_argument("--to-parquet", metavar="PATH", help="into a folder of Parquet files")
    parser.add_argument("--to-table", metavar="TABLE", help="into a table that can merge")
    parser.add_argument("--overwrite", action="store_true", help="the folder of Parquet may be replaced")
    parser.add_argument("--producer-id", metavar="NAME", default="", help="of the copy (default: replay of PATTERN)")
    add_server_arguments(parser)


def window(session: Any, arguments: argparse.Namespace, servers: str) -> Any:
    """The events as a DataFrame with their `identity`, each once."""
    options = {
        "headgate.bootstrap.servers": servers,
        "topic": arguments.pattern,
        "filter": arguments.where,
        "attributesSchema": arguments.attributes,
        "startingTimestamp": arguments.begin or "",
        "endingTimestamp": arguments.until or "",
    }
    frame = session.read.format("headgate").options(**options).load()
    return frame.selectExpr("*", f"{IDENTITY} AS identity").dropDuplicates(["identity"])


def run_replay(arguments: argparse.Namespace, servers: str) -> int:
    """Replay as told; the exit code. Raises HeadgateError and UsageError."""
    targets = (arguments.to_stream, arguments.to_topic, arguments.to_parquet, arguments.to_table)
    if sum(map(bool, targets)) != 1:
        raise UsageError("say where to: --to-stream NAME, --to-topic TOPIC, --to-parquet PATH or --to-table TABLE")
    if arguments.overwrite and not arguments.to_parquet:
        raise UsageError("--overwrite is for --to-parquet: a stream and a table are added to")
    missing = missing_parts()
    if missing:
        print(f"replay: cannot run here. It needs {missing}.", file=sys.stderr)
        return REFUSED
    session = start_session("headgate-replay")
    session.conf.unset("spark.sql.codegen.wholeStage")  # off is for audits
    try:
        said = _write(session, window(session, arguments, servers), arguments, servers)
    except Exception as error:
        reason = reason_of(error)
        if reason is None:
            raise
        print(f"replay: {reason}", file=sys.stderr)
        return UNREACHABLE if "HEADGATE_CANNOT_CONNECT" in reason else REFUSED
    print(said)
    return DONE


def _write(session: Any, frame: Any, arguments: argparse.Namespace, servers: str) -> str:
    """Write the events to their target; returns what to print about it."""
    if arguments.to_parquet:
        mode = "overwrite" if arguments.overwrite else "errorifexists"
        frame.drop("identity").write.mode(mode).parquet(arguments.to_parquet)
        return f"{session.read.parquet(arguments.to_parquet).count():,} events are in {arguments.to_parquet}"
    if arguments.to_table:
        return _merge(session, frame, arguments.to_table)
    if arguments.to_stream:
        rest = "substr(topic, locate('/', topic))"
        name = _quoted(arguments.to_stream)
        frame = frame.selectExpr("*", f"{name} || if(locate('/', topic) > 0, {rest}, '') AS there").drop("topic")
    else:
        frame = frame.selectExpr("*", f"{_quoted(arguments.to_topic)} AS there").drop("topic")
    target = arguments.to_stream or arguments.to_topic
    options = {
        "headgate.bootstrap.servers": servers,
        "producerId": arguments.producer_id or f"replay of {arguments.pattern} to {target}",
        "eventIdColumn": "event_id",
    }
    events = frame.drop("event_id").withColumnsRenamed({"there": "topic", "identity": "event_id"})
    events.write.format("headgate").mode("append").options(**options).save()
    return f"the events are in {target}; what was there from an earlier run was left as it is"


def _merge(session: Any, frame: Any, table: str) -> str:
    """Add to a table what it does not have; a table that is not there is made."""
    if not session.catalog.tableExists(table):
        frame.writeTo(table).create()
        return f"{session.table(table).count():,} events are in the new table {table}"
    frame.createOrReplaceTempView("headgate_replay")
    before = session.table(table).count()
    session.sql(merge_statement(table))
    return f"{session.table(table).count() - before:,} events were added to {table}"


def merge_statement(table: str) -> str:
    """The SQL that adds the window's events by identity."""
    return (
        f"MERGE INTO {table} AS there USING headgate_replay AS new ON there.identity = new.identity "
        "WHEN NOT MATCHED THEN INSERT *"
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def main(argv: Sequence[str] | None = None) -> int:
    """For spark-submit: the exit code."""
    parser = argparse.ArgumentParser(prog="replay", description=(__doc__ or "").splitlines()[0])
    add_arguments(parser)
    arguments = parser.parse_args(argv)
    try:
        arguments.verb = "replay"
        return run_replay(arguments, until_answered(arguments))
    except (HeadgateError, UsageError) as error:
        print(f"replay: {error}", file=sys.stderr)
        return USAGE if isinstance(error, UsageError) else exit_code(error)


if __name__ == "__main__":
    sys.exit(main())
