"""The publish job: rows of Parquet, CSV or JSON files become events in the log of a stream.

    python -m headgate.ops.jobs.publish quotes.parquet --topic quotes/all                     in local mode
    spark-submit ops/jobs/publish.py s3a://lake/quotes --server b1:7400 \\
        --topic-expr "concat('quotes/', exchange, '/', symbol)" --attr "price=CAST(price AS DOUBLE)"

Every column is an attribute unless `--attr` names those that are; `--body` is an expression of text or bytes. A retried
task publishes nothing twice. A job that failed goes on where it stopped when it is started again with the same
`--producer-id` and the same files; with `--id`, a unique expression, also when the files were split in another way.

The rooms: `publish_rows` (files to columns), `publish_pace` (the rate limit), `publish_progress` (what is said on the
way). Exit codes: 0 all rows are in the log; 1 something was refused; 2 usage; 3 no broker can be reached.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

if not __package__:  # started by its path, as spark-submit does, in the sources or where they are installed
    _above = Path(__file__).resolve().parent.parent.parent
    sys.path.insert(0, str(_above if (_above / "headgate").is_dir() else _above.parent))

from headgate.ops.exits import DONE, REFUSED, UNREACHABLE, USAGE, UsageError, exit_code
from headgate.ops.jobs.audit_session import missing_parts, start_session
from headgate.ops.jobs.publish_pace import paced
from headgate.ops.jobs.publish_progress import Progress
from headgate.ops.jobs.publish_rows import Columns, mapped, read_files
from headgate.ops.server import add_server_arguments, hand_down, until_answered
from headgate.protocol.blocking import connect_blocking
from headgate.protocol.errors import HeadgateError
from headgate.protocol.limits import RETRY_SECONDS_ENDING
from headgate.protocol.spark.options import Access
from headgate.protocol.spark.writing import job_name

__all__ = ["add_arguments", "main", "mapping_of", "options_of", "reason_of", "run_publish", "write_frame"]

_HEADER = re.compile(r"CSV header does not conform to the schema[^\t]*?CSV file: \S+")
_CLASS = re.compile(r"\[[A-Z][A-Z_]{3,}(\.[A-Z_]+)*\] [^\n]*")
_REASON = re.compile(r"\[HEADGATE_[A-Z_]+\][^\n]*")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the job."""
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files or folders, as Spark reads them")
    parser.add_argument("--format", choices=("parquet", "csv", "json"), help="default: by the ending of the first path")
    parser.add_argument(
        "--schema", metavar="DDL", help="columns of CSV or JSON, 'symbol STRING, price DOUBLE'; else found"
    )
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="for Spark's reader of these files (again for more): multiLine=true, sep=;, header=false",
    )
    parser.add_argument("--topic", metavar="TOPIC", help="the topic of every row")
    parser.add_argument(
        "--topic-expr", metavar="SQL", help="or an expression for it, such as \"concat('quotes/', symbol)\""
    )
    parser.add_argument(
        "--attr",
        action="append",
        default=[],
        metavar="NAME=SQL",
        help="an attribute (again for more; default: every column)",
    )
    parser.add_argument("--where", metavar="SQL", help="only rows for which this is true")
    parser.add_argument(
        "--body", metavar="SQL", help="the body, text or bytes (default: column value, if there is one)"
    )
    parser.add_argument("--id", metavar="SQL", help="an id that is unique in the job: a rerun never repeats it")
    parser.add_argument("--producer-id", default="", metavar="NAME", help="the job's name, to go on after a failure")
    parser.add_argument(
        "--partitions", type=int, metavar="N", help="tasks that publish (default: as Spark splits the files)"
    )
    parser.add_argument("--rate", type=float, metavar="N", help="at most so many events a second, all tasks together")
    parser.add_argument("--quiet", action="store_true", help="no progress on stderr")
    add_server_arguments(parser)


def mapping_of(arguments: argparse.Namespace) -> Columns:
    """How columns become parts of events. Raises UsageError."""
    if bool(arguments.topic) == bool(arguments.topic_expr):
        raise UsageError("say --topic TOPIC, the same for every row, or --topic-expr SQL, and not both")
    if arguments.rate is not None and not arguments.rate > 0:
        raise UsageError("--rate is more than 0 events a second")
    if arguments.partitions is not None and arguments.partitions < 1:
        raise UsageError("--partitions is 1 or more")
    attributes = []
    for text in arguments.attr:
        name, equals, expression = text.partition("=")
        if not equals or not name.strip() or not expression.strip():
            raise UsageError(f'--attr {text}: write NAME=SQL, such as "price=CAST(price AS DOUBLE)"')
        attributes.append((name.strip(), expression.strip()))
    return Columns(
        arguments.topic_expr or "", tuple(attributes), arguments.body or "", arguments.id or "", arguments.where or ""
    )


def options_of(arguments: argparse.Namespace) -> dict[str, str]:
    """The options for Spark's reader. Raises UsageError."""
    options = {}
    for text in arguments.option:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--option {text}: write KEY=VALUE, such as multiLine=true")
        options[name.strip()] = value
    return options


def run_publish(arguments: argparse.Namespace, servers: str) -> int:
    """Publish as told; the exit code. Raises HeadgateError and UsageError."""
    mapping, options = mapping_of(arguments), options_of(arguments)
    missing = missing_parts()
    if missing:
        print(f"publish: cannot run here. It needs {missing}.", file=sys.stderr)
        return REFUSED
    # before Java starts, so that a missing broker is told soon
    with connect_blocking(
        servers, name="headgate publish", retry_seconds=RETRY_SECONDS_ENDING, **asdict(Access.of_environment())
    ) as client:
        session = start_session("headgate-publish")
        session.conf.unset("spark.sql.codegen.wholeStage")  # off is for audits
        try:
            files = read_files(session, arguments.paths, arguments.format, arguments.schema, options)
            frame = mapped(files, mapping)
            if arguments.partitions:
                frame = frame.repartition(arguments.partitions)
            if arguments.rate:
                frame = paced(frame, arguments.rate)
            job = job_name(arguments.topic or "", arguments.producer_id) if arguments.producer_id else ""
            with Progress(session, client, job, quiet=arguments.quiet) as progress:
                write_frame(frame, servers, arguments)
        except UsageError:
            raise
        except Exception as error:
            reason = reason_of(error)
            if reason is None:
                raise
            print(f"publish: {reason}", file=sys.stderr)
            return UNREACHABLE if "HEADGATE_CANNOT_CONNECT" in reason else REFUSED
    print(progress.summary())
    return DONE


def write_frame(frame: Any, servers: str, arguments: argparse.Namespace) -> None:
    """Write the rows with the data source."""
    options = {"headgate.bootstrap.servers": servers, "producerId": arguments.producer_id}
    if arguments.topic:
        options["topic"] = arguments.topic
    if arguments.id:
        options["eventIdColumn"] = "event_id"
    frame.write.format("headgate").mode("append").options(**options).save()


def reason_of(error: Exception) -> str | None:
    """What went wrong in a line, out of Spark's many; None when it is nothing that is known here."""
    found = _REASON.search(str(error))
    if found:
        return found[0]
    found = _HEADER.search(str(error))
    if found:
        return f"{' '.join(found[0].split())}: say --option header=false for files without names in their first line"
    # Spark's own complaints about files, columns and expressions begin with a class of errors.
    found = _CLASS.search(str(error))
    return found[0] if found else None


def main(argv: Sequence[str] | None = None) -> int:
    """For spark-submit: the exit code."""
    parser = argparse.ArgumentParser(prog="publish", description=(__doc__ or "").splitlines()[0])
    add_arguments(parser)
    arguments = parser.parse_args(argv)
    arguments.verb = "publish"
    try:
        hand_down(arguments)
        return run_publish(arguments, until_answered(arguments))
    except (HeadgateError, UsageError) as error:
        print(f"publish: {error}", file=sys.stderr)
        return USAGE if isinstance(error, UsageError) else exit_code(error)


if __name__ == "__main__":
    sys.exit(main())
