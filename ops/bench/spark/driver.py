"""A Spark driver that is told what to publish: one line of JSON for each job, one of JSON in answer.

It is a process of its own, so that `campaign.py` can kill it. Jobs run on two executors that are processes too
(`local-cluster`), which can be killed as well.

    {"do": "save", "rows": 20000, "partitions": 4, "dying": 9000, "options": {...}}    {"answer": "ok"}
    {"do": "count", "options": {...}}                                                  {"answer": [20000, 20000]}
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

from ..kit import SOURCES

__all__ = ["DIED", "TASK_ATTEMPTS", "answer_of", "dying", "main"]

DIED = "died on purpose"

TASK_ATTEMPTS = 3
_MASTER = "local-cluster[2,4,900]"


def dying(rows: int) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """For mapInArrow: every attempt of a task dies after so many rows, if its partition has them."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        passed = 0
        for batch in batches:
            yield batch
            passed += batch.num_rows
            if passed >= rows:
                raise RuntimeError(DIED)

    return run


def answer_of(error: Exception) -> str:
    """The code of a failed job's error, or its class and text."""
    code = re.search(r"\[HEADGATE_([A-Z_]+)\]", str(error))
    if code is not None:
        return code[1]
    return DIED if DIED in str(error) else f"{type(error).__name__}: {str(error)[:300]}"


def _session(folder: str) -> Any:
    from pyspark.sql import SparkSession

    from pyspark_headgate import register

    os.environ.update(SPARK_LOCAL_IP="127.0.0.1", SPARK_WORKER_DIR=f"{folder}/work", PYSPARK_PYTHON=sys.executable)
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.executor.memory": "700m",
        "spark.executorEnv.PYTHONPATH": str(SOURCES),
        "spark.task.maxFailures": str(TASK_ATTEMPTS),
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",  # a task that dies has handed some on
    }
    builder = SparkSession.builder.appName("headgate-campaign").master(_MASTER)
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")  # tasks and executors die here on purpose
    register(session)
    return session


def _save(session: Any, order: dict[str, Any]) -> str:
    frame = session.range(0, order["rows"], 1, order["partitions"]).selectExpr("id AS n", "repeat('x', 80) AS padding")
    if order.get("dying"):
        frame = frame.mapInArrow(dying(order["dying"]), frame.schema)
    try:
        frame.write.format("headgate").mode("append").options(**order["options"]).save()
    except Exception as error:
        return answer_of(error)
    return "ok"


def _count(session: Any, order: dict[str, Any]) -> list[int]:
    """Events in the log, different values of n among them, and the largest."""
    frame = session.read.format("headgate").options(**order["options"], attributesSchema="n BIGINT").load()
    columns = ("count(*) AS events", "count(DISTINCT attributes.n) AS numbers", "max(attributes.n) AS largest")
    found = frame.selectExpr(*columns).first()
    return [found.events, found.numbers, found.largest]


def main(words: list[str]) -> int:
    """`python -m headgate.ops.bench.spark.driver FOLDER`: until its standard input ends."""
    session = _session(words[0])
    print(json.dumps({"answer": "here"}), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        answer = _save(session, order) if order["do"] == "save" else _count(session, order)
        print(json.dumps({"answer": answer}), flush=True)
    session.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
