"""Spark's own evaluator agrees with ours, three-valued, on random conditions and rows (the audit rests on it).

Nobody here wrote Spark; that is what makes it worth asking.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from headgate.matching.language import SPARK_TYPES, parse_condition, spark_columns, to_spark, to_text
from headgate.matching.limits import CANONICAL_BYTES_MAX
from headgate.matching.meaning import evaluate
from headgate.matching.tree import Tree
from headgate.matching.values import Value
from tests.matching.samples import NAMES, random_row, random_tree

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

CONDITIONS = 800
ROWS = 120
CONDITIONS_PER_SELECT = 100

HAND_WRITTEN = (
    "`a` = 9007199254740993 AND `a` <> 9007199254740992.0",
    "`a` + 1 > 0 OR `a` - 1 < 0",
    "`a` * 9223372036854775807 <> 0",
    "-`a` = -9223372036854775808",
    "0 * (`a` * 9223372036854775807) = 0 OR 1 + (`a` + 9223372036854775807) > 0",
    "-1 + (9223372036854775807 + `a`) > 0",
    "(`b` - `b`) * (`a` * `b` * 9223372036854775807) = 0 OR -(-`a`) + (-1 - `a`) = -1",
    "`a` / 0 = 1 OR `a` % 0 = 1 OR 1 = 1",
    "-7 % 3 = -1 AND 7 % -3 = 1 AND -7.5 % 2 = -1.5",
    "1 / 2 = 0.5",
    "2000000000 + 2000000000 = 4000000000",
    "`a` IN (1, 2.5, 'x', TRUE, NULL)",
    "`a` NOT IN ('a', 'It''s', 'a\\b')",
    "`a` IN (0, 1, -1, 9007199254740993, 9223372036854775807, -9223372036854775808)",
    "`a` NOT IN (0, 2, 9007199254740992)",
    "`a` IN (0.0, 1.5, -0.0, 9007199254740992.0, 1e300)",
    "`a` NOT IN (-0.0, 2.5)",
    "`a` + `b` IN (0, 1, 2, 3) OR `a` * 1.0 NOT IN (1.0, 0.0)",
    "NOT (`a` IN ('', 'a') OR `b` IN (1, 2)) OR `a` IN (TRUE, FALSE)",
    f"`a` IN ({', '.join(map(str, range(-5, 1000)))}) AND `b` NOT IN ({', '.join(repr(n / 2) for n in range(500))})",
    f"`a` IN ({', '.join(repr(chr(97 + n % 26) * (n // 26)) for n in range(400))})",
    "`a` LIKE 'a\\\\b' OR `a` LIKE '%\n%' OR `a` LIKE '\\\\'",
    "`a` LIKE '_' AND NOT `a` LIKE '%!%%' ESCAPE '!'",
    "`a` < `b` OR `a` = `b` OR `a` > `b`",
    "(`a` + `b`) * 2 - `a` / `b` >= `a` % `b`",
    "NOT (`a` OR `b`)",
    "`a` IS NULL OR `a` + `b` IS NOT NULL",
    "'' = `a` OR 'a' < `a`",
    "TRUE > FALSE AND `a` >= FALSE",
)


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    if shutil.which("java") is None:
        pytest.skip("java is not installed")
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        sql.SparkSession.builder.master("local[2]")
        .appName("headgate-agreement")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.caseSensitive", "true")
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def split_row(row: dict[str, Value]) -> list[Value]:
    """The row over split columns: each value in the column of its type, the other three NULL."""
    suffixes = {int: "l", float: "d", str: "s", bool: "b"}
    return [
        row.get(name) if suffixes.get(type(row.get(name))) == suffix else None
        for name in NAMES
        for suffix in SPARK_TYPES
    ]


def ask_spark(spark: Any, conditions: list[Tree], rows: list[dict[str, Value]]) -> list[list[bool | None]]:
    """For each row, Spark's verdict of each condition."""
    from pyspark.sql import functions, types

    spark_types = {
        "BIGINT": types.LongType(),
        "DOUBLE": types.DoubleType(),
        "STRING": types.StringType(),
        "BOOLEAN": types.BooleanType(),
    }
    fields = [types.StructField("row", types.IntegerType())]
    for name in NAMES:
        fields += [types.StructField(column, spark_types[kind]) for column, kind in spark_columns(name).items()]
    data = [(number, *split_row(row)) for number, row in enumerate(rows)]
    frame = spark.createDataFrame(data, types.StructType(fields)).cache()
    verdicts: list[list[bool | None]] = [[] for _ in rows]
    for start in range(0, len(conditions), CONDITIONS_PER_SELECT):
        chunk = conditions[start : start + CONDITIONS_PER_SELECT]
        answers = functions.array(*[functions.expr("(" + to_spark(condition) + "\n)") for condition in chunk])
        for answer in frame.select("row", answers.alias("verdicts")).collect():
            verdicts[answer["row"]] += answer["verdicts"]
    return verdicts


def check_agreement(spark: Any, conditions: list[Tree], rows: list[dict[str, Value]]) -> None:
    verdicts = ask_spark(spark, conditions, rows)
    differences = [
        f"{to_text(condition)} on {row}: ours {evaluate(condition, row)}, Spark's {verdict}"
        for row, answers in zip(rows, verdicts, strict=True)
        for condition, verdict in zip(conditions, answers, strict=True)
        if evaluate(condition, row) is not verdict
    ]
    assert not differences, f"{len(differences)} differences, first: " + "\n".join(differences[:5])


def test_spark_agrees_on_random_conditions_and_rows(spark: Any) -> None:
    rng = Random(20_240_601)
    conditions = [random_tree(rng) for _ in range(CONDITIONS)]
    rows = [random_row(rng) for _ in range(ROWS)]
    assert CONDITIONS * ROWS >= 50_000
    verdicts = [evaluate(condition, row) for condition in conditions for row in rows]
    assert min(verdicts.count(True), verdicts.count(False), verdicts.count(None)) > len(verdicts) // 20
    check_agreement(spark, conditions, rows)


def test_spark_agrees_on_the_hand_written_corners(spark: Any) -> None:
    rng = Random(7)
    conditions = [parse_condition(text) for text in HAND_WRITTEN]
    check_agreement(spark, conditions, [random_row(rng) for _ in range(400)])


def test_spark_agrees_after_a_condition_went_through_its_canonical_text(spark: Any) -> None:
    rng = Random(8)
    trees = [random_tree(rng) for _ in range(100)]
    again = [parse_condition(to_text(tree), CANONICAL_BYTES_MAX) for tree in trees]
    assert again == trees
    check_agreement(spark, again, [random_row(rng) for _ in range(20)])


def test_spark_reads_comments_where_we_do(spark: Any) -> None:
    texts = ["a > 1 -- x", "a > 1--x", "a > 1 - -2", "a -- '\r\n > 1", "a -- on \\\n and on\n > 1", "a > 1 ---1"]
    rows = [{"a": number} for number in range(5)]
    from pyspark.sql import functions

    frame = spark.createDataFrame([(row["a"],) for row in rows], "a BIGINT")
    answers = frame.select(functions.array(*[functions.expr(text) for text in texts]).alias("all")).collect()
    ours = [[evaluate(parse_condition(text), row) for text in texts] for row in rows]
    assert [answer["all"] for answer in answers] == ours
