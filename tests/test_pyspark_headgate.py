"""The front door of Spark: found by its name, light to import, and each knock reaches the right room."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

datasource = pytest.importorskip("pyspark.sql.datasource")
pytest.importorskip("pyarrow")
types = pytest.importorskip("pyspark.sql.types")

import pyspark_headgate  # noqa: E402
from headgate.protocol.spark.errors import UnknownOption  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
GIVEN = {"headgate.bootstrap.servers": "one:7400", "topic": "q"}
NUMBERS = types.StructType([types.StructField("offset", types.LongType())])


def source(**more: str) -> Any:
    return pyspark_headgate.DefaultSource(GIVEN | more)


def test_spark_registers_it_under_its_name() -> None:
    assert issubclass(pyspark_headgate.DefaultSource, datasource.DataSource)
    assert pyspark_headgate.DefaultSource.name() == "headgate"
    assert pyspark_headgate.__name__.startswith("pyspark_")


def test_the_import_needs_nothing_but_spark() -> None:
    """A module of that kind that fails to import would take every other source with it."""
    script = (
        "import sys; sys.modules['msgpack'] = sys.modules['pyarrow'] = None\n"
        "import pyspark_headgate\n"
        "print(sorted(name for name in sys.modules if name.split('.')[0] in ('headgate', 'asyncio')))"
    )
    found = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert "headgate" not in found.stdout


def test_every_knock_reaches_its_room() -> None:
    assert source().schema().startswith("topic STRING")
    assert type(source().reader(NUMBERS)).__name__ == "BatchReader"
    assert type(source().streamReader(NUMBERS)).__name__ == "StreamReader"
    assert type(source().writer(NUMBERS, False)).__name__ == "BatchWriter"
    assert type(source().streamWriter(NUMBERS, False)).__name__ == "StreamWriter"


def test_an_option_that_nobody_knows() -> None:
    with pytest.raises(UnknownOption, match="startingOffsets"):
        source(startingOfset="earliest").schema()


def test_registering_shows_workers_the_modules_behind_what_others_want() -> None:
    class Spark:
        def __init__(self, **environment: str) -> None:
            self.environment = environment
            self.known: list[Any] = []

        @property
        def sparkContext(self) -> Spark:
            return self

        dataSource = sparkContext

        def register(self, source: Any) -> None:
            self.known.append(source)

    import pyspark_headgate

    root = str(Path(pyspark_headgate.__file__).parent)
    for given, wanted in ({"PYTHONPATH": "there"}, f"there:{root}"), ({}, root):
        spark = Spark(**given)
        pyspark_headgate.register(spark)
        pyspark_headgate.register(spark)
        assert spark.environment["PYTHONPATH"] == wanted
        assert spark.known == [pyspark_headgate.DefaultSource] * 2
