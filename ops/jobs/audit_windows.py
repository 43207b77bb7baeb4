"""The continuous audit: the logs are copied as they grow, and each window of time gets its verdict once it is closed.

    WORK/
        checkpoints/STREAM/KIND                       how far the copies are; Spark's own
        copies/STREAM/KIND/batch=N/window=W/*.parquet   rows by the window of their event's time
        verdicts/STREAM/W.json                        the verdict on a window; one that is there is never made again

A round is three finite streaming queries (Trigger.AvailableNow) for each stream, and then a batch audit for each window
that is over, so there is no state between rounds but these folders: kill it whenever you like. A batch that Spark runs
again overwrites its own folder, so a copy never has a row twice. Window W is `[W, W + 1)` lengths after 1970. It is
over when `--settle` seconds have passed after it and a round began later than that; then its copies are removed. What
comes for a window after its verdict is trouble, and said. The log of subscriptions is kept whole: what was wanted
yesterday is owed today; and so is what was last seen of each life of a broker (`evidence.json`).
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..exits import DONE
from .audit_batch import Frames, Question, audit_stream
from .audit_history import Bounds
from .audit_report import Accepted, Report, StreamReport, json_line, print_report
from .audit_source import LogSource
from .audit_verdict import Window

__all__ = ["Windows", "audit_windows"]

WORK_DEFAULT: Final = Path("headgate-audit")

_TIMES: Final = {"events": "timestamp", "deliveries": "published_at", "subscriptions": "timestamp"}
"""Kind of log -> which of its times decides about the window."""

_REMOVED: Final = ("events", "deliveries")
"""Copies that nobody needs after the verdict."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The options of a continuous audit, the same in every round."""

    work: Path
    window_seconds: float
    settle_seconds: float
    late_seconds: float
    bounds: Bounds
    parquet: Path | None
    since: int


def audit_windows(spark: Any, source: LogSource, arguments: argparse.Namespace, since: int) -> int:
    """Rounds until SIGTERM or Ctrl-C (or one, when `--every` is 0); 1 when any verdict was not clean."""
    plan = Plan(
        arguments.work or WORK_DEFAULT,
        arguments.window,
        arguments.settle,
        arguments.late,
        Bounds(boundary=int(arguments.boundary * 1e6)),
        arguments.parquet,
        since,
    )
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *details: stop.set())
    code = DONE
    accepted = Accepted(arguments.accept_announced, arguments.accept_unacknowledged)
    while True:
        began = time.time()
        for stream in arguments.stream or source.streams():
            for report in Windows(spark, source, stream, plan).round(began):
                one = Report([report])
                print(json_line(one, accepted), flush=True) if arguments.json else print_report(
                    one, arguments.all, accepted
                )
                code = max(code, one.exit_code(accepted))
        if not arguments.every or stop.wait(max(0.0, began + arguments.every - time.time())):
            return code


class Windows:
    """The windows of one stream."""

    def __init__(self, spark: Any, source: LogSource, stream: str, plan: Plan) -> None:
        self._spark = spark
        self._source = source
        self._stream = stream
        self._plan = plan
        self._length = int(plan.window_seconds * 1e6)
        self._copies = plan.work / "copies" / stream
        self._verdicts = plan.work / "verdicts" / stream

    def round(self, began: float) -> Iterator[StreamReport]:
        """Copy what came since, and judge what is over by `began`."""
        self._copy()
        survey = self._source.survey(self._stream)
        closed = int((began - self._plan.settle_seconds) * 1e6) // self._length
        for number in self._copied_windows():
            if number >= closed:
                return
            folders = self._folders(number)
            if (number + 1) * self._length > self._plan.since:
                if not self._verdict(number).exists():
                    yield self._judge(number, survey.gone, folders)
                elif not folders <= self._judged(number):  # else the process was killed before it removed them
                    yield self._too_late(number)
            for folder in folders:
                shutil.rmtree(self._copies / folder)

    def _copied_windows(self) -> list[int]:
        """Windows of which there are copies, the oldest first."""
        return sorted({int(folder.rpartition("=")[2]) for folder in self._folders("*")})

    def _folders(self, number: int | str) -> set[str]:
        """The copies of a window that are deleted after its verdict."""
        found = [folder for kind in _REMOVED for folder in (self._copies / kind).glob(f"batch=*/window={number}")]
        return {str(folder.relative_to(self._copies)) for folder in found}

    def _judged(self, number: int) -> set[str]:
        """The copies that a verdict is made of."""
        return set(json.loads(self._verdict(number).read_text(encoding="utf-8"))["copies"])

    def _verdict(self, number: int) -> Path:
        return self._verdicts / f"{number}.json"

    def _window(self, number: int) -> Window:
        return Window(max(number * self._length, self._plan.since), (number + 1) * self._length)

    def _too_late(self, number: int) -> StreamReport:
        report = StreamReport(self._stream, self._window(number))
        report.troubles = [f"window {number} was judged, and then more of it came: raise --settle"]
        return report

    def _judge(self, number: int, gone: tuple[str, ...], folders: set[str]) -> StreamReport:
        plan, evidence = self._plan, self._verdicts / "evidence.json"
        seen = json.loads(evidence.read_text(encoding="utf-8")) if evidence.exists() else {}
        window = self._window(number)
        question = Question(self._stream, window, plan.late_seconds, plan.bounds, gone, seen, plan.parquet)
        report = audit_stream(self._spark, self._frames(number), question)
        self._verdicts.mkdir(parents=True, exist_ok=True)
        _write(evidence, json.dumps(report.evidence))
        _write(self._verdict(number), json.dumps({**Report([report]).as_json(), "copies": sorted(folders)}))
        return report

    def _frames(self, number: int) -> Frames:
        return Frames(
            self._copied("events", f"batch=*/window={number}"),
            self._copied("deliveries", f"batch=*/window={number}"),
            self._copied("subscriptions", "batch=*/window=*"),
        )

    def _copied(self, kind: str, pattern: str) -> Any:
        """The copies of a kind of log; empty where there are none, which is not the same as a folder without files."""
        schema = self._schema(kind)
        folders = sorted(str(folder) for folder in (self._copies / kind).glob(pattern))
        return self._spark.read.schema(schema).parquet(*folders) if folders else self._spark.createDataFrame([], schema)

    def _schema(self, kind: str) -> Any:
        return self._source.read(kind, self._stream, **_options_of(kind)).schema

    def _copy(self) -> None:
        """Three finite queries, one for each log."""
        for kind, column in _TIMES.items():
            frame = self._source.read_stream(kind, self._stream, **_options_of(kind))
            query = (
                frame.writeStream.foreachBatch(_writer(self._copies / kind, column, self._length))
                .option("checkpointLocation", str(self._plan.work / "checkpoints" / self._stream / kind))
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()


def _write(file: Path, text: str) -> None:
    """Write the file as a whole or not at all, whenever the process is killed."""
    unfinished = file.with_suffix(".part")
    unfinished.write_text(text + "\n", encoding="utf-8")
    unfinished.replace(file)


def _options_of(kind: str) -> dict[str, str]:
    return {"attributesSchema": "typed"} if kind == "events" else {}


def _writer(folder: Path, column: str, length: int) -> Callable[[Any, int], None]:
    def write(frame: Any, number: int) -> None:
        from pyspark.sql import functions as sql

        rows = frame.withColumn("window", sql.expr(f"unix_micros({column}) DIV {length}"))
        rows.write.mode("overwrite").partitionBy("window").parquet(str(folder / f"batch={number}"))

    return write
