"""`headgate bench spark_read`: rows of one broker's log into a DataFrame, beside writing them and beside Parquet.

The rows of `spark_publish` are written once (that is the rate of writing, the last of two rounds) and read back in the
shapes that people ask for: everything, typed attributes, two attributes, a count. Every read ends in a sink that takes
all columns and keeps none, so that nothing but reading is measured; so does the same frame from Parquet.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rich.table import Table

from headgate.ops.jobs import missing_parts, start_session

from ..kit import MeasurementFailed
from ..limits import SPARK_READ_WRITE_RATIO_MAX
from ..wire import console
from .publish import STREAM, Rate, served_stream, timed, write_rows

__all__ = ["READS", "add_arguments", "measure", "run", "verdict"]

_ATTRIBUTES = "id BIGINT, symbol STRING, exchange STRING, side STRING, price DOUBLE, volume BIGINT, at TIMESTAMP"

READS: dict[str, tuple[dict[str, str], str]] = {
    "all columns, attributes as texts": ({}, ""),
    "all columns, attributes typed": ({"attributesSchema": _ATTRIBUTES}, ""),
    "attributes and value": (
        {"attributesSchema": _ATTRIBUTES},
        "attributes STRUCT<id: BIGINT, symbol: STRING, exchange: STRING, side: STRING, price: DOUBLE, volume: BIGINT, "
        "at: TIMESTAMP>, value BINARY",
    ),
    "two attributes": ({}, "attributes STRUCT<symbol: STRING, price: DOUBLE>"),
    "a count": ({}, "offset BIGINT"),
}
"""What is read -> the options, and the schema that is asked for; empty: the source's own."""

JUDGED = "attributes and value"
"""What is compared with writing: the columns that were written, no more and no less."""


def measure(session: Any, folder: Path, rows: int, rounds: int) -> dict[str, Rate]:
    """Writing, each way of reading, and Parquet: the median of so many rounds. Raises MeasurementFailed."""
    frame = session.read.parquet(str(folder))
    with served_stream() as server:
        options = {"headgate.bootstrap.servers": f"127.0.0.1:{server.port}", "topic": STREAM}

        def publish() -> None:
            frame.write.format("headgate").mode("append").options(**options | {"topic": f"{STREAM}/all"}).save()

        publish()
        measured = {"writing": timed(server, rows, publish)}
        ends = session.read.format("headgate").options(**options).schema("partition INT, offset BIGINT").load()
        if ends.count() != 2 * rows:
            raise MeasurementFailed("headgate", f"{ends.count()} of {2 * rows} rows are in the log")
        readings: dict[str, Callable[[], Any]] = {"parquet": lambda: session.read.parquet(str(folder))}
        for name, (more, schema) in READS.items():
            readings[name] = _reading(session, options | more, schema, rows)
        for name, load in readings.items():
            _read(load)
            found = sorted((timed(server, rows, partial(_read, load)) for _ in range(rounds)), key=_seconds)
            measured[name] = found[len(found) // 2]
    return measured


def _reading(session: Any, options: dict[str, str], schema: str, rows: int) -> Callable[[], Any]:
    """A frame of the second time that the rows were written; made anew each time, as a query would."""

    def load() -> Any:
        reader = session.read.format("headgate").options(**options)
        starting = {"startingOffsets": _second_half(session, options, rows)}
        return (reader.schema(schema) if schema else reader).options(**starting).load()

    return load


def _second_half(session: Any, options: dict[str, str], rows: int) -> str:
    from headgate.protocol.blocking import connect_blocking

    with connect_blocking(options["headgate.bootstrap.servers"]) as client:
        (log,) = client.logs(STREAM)
    return f'{{"{log.partition}": {rows}}}'


def _read(load: Callable[[], Any]) -> None:
    load().write.format("noop").mode("overwrite").save()


def _seconds(rate: Rate) -> float:
    return rate.seconds


def verdict(measured: dict[str, Rate], ratio_max: float = SPARK_READ_WRITE_RATIO_MAX) -> tuple[bool, str]:
    """Whether what is promised was kept, and the sentence that says so."""
    ratio = measured[JUDGED].seconds / measured["writing"].seconds
    kept = ratio <= ratio_max
    text = f"reading {JUDGED} takes {ratio:.2f} of the time of writing; promised are {ratio_max}"
    return kept, f"{'the promise was kept' if kept else 'the promise was BROKEN'}: {text}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `headgate bench spark_read`."""
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows (default 1,000,000)")
    parser.add_argument("--rounds", type=int, default=3, help="how often they are read (default 3; the median counts)")
    parser.set_defaults(ratio_max=SPARK_READ_WRITE_RATIO_MAX)


def run(arguments: argparse.Namespace) -> int:
    """Measure and print; 0 when the promise was kept."""
    missing = missing_parts()
    if missing:
        print(f"this needs {missing}", file=sys.stderr)
        return 1
    session = start_session("headgate-bench", "local[2]")
    session.conf.unset("spark.sql.codegen.wholeStage")  # off is for audits
    folder = Path(tempfile.mkdtemp(prefix="headgate-bench-"))
    try:
        write_rows(folder, arguments.rows)
        measured = measure(session, folder, arguments.rows, arguments.rounds)
    except MeasurementFailed as failure:
        print(f"failed: {failure}", file=sys.stderr)
        return 1
    finally:
        session.stop()
        shutil.rmtree(folder)
    _print(measured)
    kept, text = verdict(measured, arguments.ratio_max)
    print(text)
    return 0 if kept else 1


def _print(measured: dict[str, Rate]) -> None:
    table = Table(title="rows of a log as a DataFrame, local[2], the broker on the same cores", title_justify="left")
    for name in ("", "rows", "seconds", "rows a second", "of writing", "of Parquet"):
        table.add_column(name, justify="right" if name else "left")
    writing, parquet = measured["writing"].seconds, measured["parquet"].seconds
    for name, rate in measured.items():
        shares = (f"{rate.seconds / writing:.2f}", f"{rate.seconds / parquet:.1f}")
        table.add_row(name, f"{rate.rows:,}", f"{rate.seconds:.2f}", f"{rate.rows_per_second:,.0f}", *shares)
    console().print(table)
