"""`spark-submit`: a cluster that has never heard of this source writes and reads with it; our jobs run by path."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import msgpack
import pytest

from tests.support.served_broker import served_broker
from tests.support.spark_standalone import standalone_cluster
from tests.system.processes import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROGRAM = """
import sys
from pyspark.sql import SparkSession
import pyspark_headgate

spark = SparkSession.builder.getOrCreate()
pyspark_headgate.register(spark)
options = {"headgate.bootstrap.servers": sys.argv[1], "topic": "quotes"}
spark.range(0, 5000, 1, 2).write.format("headgate").mode("append").options(**options).save()
read = spark.read.format("headgate").options(**options, attributesSchema="id BIGINT").load()
print("found", read.selectExpr("count(DISTINCT attributes.id) AS n").first().n)
stream = spark.readStream.format("headgate").options(**options, startingOffsets="earliest").load()
query = stream.writeStream.format("memory").queryName("seen").trigger(availableNow=True)
query.option("checkpointLocation", sys.argv[2]).start().awaitTermination()
print("streamed", spark.table("seen").count())
"""
NEEDED = ("pyspark", "py4j", "pyarrow", "numpy", "pandas", "dateutil", "pytz", "tzdata")
"""What Spark's Python needs by itself: a cluster has these, and not msgpack."""
LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.ui.enabled": "false"}


def bare_environment(folder: Path) -> tuple[Path, dict[str, str]]:
    """A Python with Spark, and nothing of ours nor msgpack; and an environment in which it is used."""
    done = subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=False)
    assert done.returncode == 0
    (site,) = folder.glob("lib/python*/site-packages")
    for place in map(Path, sys.path):
        for name in NEEDED:
            for found in (*place.glob(name), *place.glob(f"{name}.libs"), *place.glob("six.py")):
                if not (site / found.name).exists():
                    (site / found.name).symlink_to(found)
    unwanted = ("PYTHONPATH", "PYSPARK_", "VIRTUAL_ENV", "HEADGATE_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    python = folder / "bin" / "python"
    return site, clean | {"PYSPARK_PYTHON": str(python), "SPARK_LOCAL_IP": "127.0.0.1"}


def submit(site: Path, environment: dict[str, str], folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    settings = [word for name, value in LOOPBACK.items() for word in ("--conf", f"{name}={value}")]
    command = [str(site / "pyspark" / "bin" / "spark-submit"), *settings, *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=240, env=environment, cwd=folder, check=False
    )


def test_py_files_and_register(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    archive = tmp_path / "headgate.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for path in [ROOT / "pyspark_headgate.py", ROOT / "headgate" / "__init__.py"]:
            packed.write(path, path.relative_to(ROOT))
        for path in sorted((ROOT / "protocol").rglob("*.py")):
            packed.write(path, "headgate" / path.relative_to(ROOT))
        for path in sorted(Path(msgpack.__file__).parent.glob("*.py")):  # which does without its compiled part
            packed.write(path, f"msgpack/{path.name}")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    site, environment = bare_environment(tmp_path / "venv")
    with served_broker(tmp_path) as broker, standalone_cluster(tmp_path, python_path="") as master:
        broker.store("quotes")
        words = ("--master", master, "--executor-memory", "500m", "--py-files", archive, program, broker.address)
        done = submit(site, environment, tmp_path, *words, tmp_path / "checkpoint")
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == ["found 5000", "streamed 5000"]


def test_a_job_by_its_path_from_another_folder(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    (tmp_path / "quotes.json").write_text('{"price": 1}\n{"price": 2}\n')
    site, environment = bare_environment(tmp_path / "venv")
    (site / "msgpack").symlink_to(Path(msgpack.__file__).parent)
    with served_broker(tmp_path) as broker:
        broker.store("quotes")
        words = (ROOT / "ops/jobs/publish.py", "quotes.json", "--topic", "quotes/all", "--server", broker.address)
        done = submit(site, environment, tmp_path, "--master", "local[1]", *words)
        assert done.returncode == 0, done.stderr[-3000:]
        assert broker.events("quotes") == 2
