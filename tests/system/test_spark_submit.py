"""`spark-submit --py-files`: a cluster that has never heard of this source writes and reads with it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.served_broker import served_broker
from tests.support.spark_standalone import standalone_cluster
from tests.system.processes import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROGRAM = """
import sys
from pyspark.sql import SparkSession
from pyspark_headgate import DefaultSource

spark = SparkSession.builder.getOrCreate()
spark.dataSource.register(DefaultSource)
options = {"headgate.bootstrap.servers": sys.argv[1], "topic": "quotes"}
spark.range(0, 5000, 1, 2).write.format("headgate").mode("append").options(**options).save()
read = spark.read.format("headgate").options(**options, attributesSchema="id BIGINT").load()
print("found", read.selectExpr("count(DISTINCT attributes.id) AS n").first().n)
"""


def test_py_files_and_register(tmp_path: Path) -> None:
    pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed")
    archive = tmp_path / "headgate.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for path in [ROOT / "pyspark_headgate.py", ROOT / "headgate" / "__init__.py"]:
            packed.write(path, path.relative_to(ROOT))
        for path in sorted((ROOT / "protocol").rglob("*.py")):
            packed.write(path, "headgate" / path.relative_to(ROOT))
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    clean |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    settings = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.ui.enabled": "false"}
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    with served_broker(tmp_path) as broker, standalone_cluster(tmp_path, python_path="") as master:
        broker.store("quotes")
        command = [submit, "--master", master, "--executor-memory", "500m", *words, "--py-files", str(archive)]
        done = subprocess.run(
            [*command, str(program), broker.address],
            capture_output=True,
            text=True,
            timeout=240,
            env=clean,
            cwd=tmp_path,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "found 5000" in done.stdout
