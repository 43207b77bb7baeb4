"""A standalone Spark cluster on this machine: a master and two workers that have different host names.

Two names, because Spark never runs a speculative copy of a task on the host where the first one runs.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.served_broker import free_address
from tests.system.processes import ROOT, wait_until

__all__ = ["HOSTS", "standalone_cluster"]

HOSTS = ("127.0.0.1", "localhost")


@contextmanager
def standalone_cluster(folder: Path, *, python_path: str = str(ROOT)) -> Iterator[str]:
    """The address of its master, `spark://...`. Executors find modules in `python_path`."""
    import pyspark

    home = Path(pyspark.__file__).parent
    port = free_address().rpartition(":")[2]
    master = f"spark://127.0.0.1:{port}"
    clean = os.environ | {"SPARK_HOME": str(home), "PYTHONPATH": python_path, "SPARK_LOCAL_IP": "127.0.0.1"}
    clean["SPARK_WORKER_DIR"] = str(folder / "work")

    def command(name: str, *words: str) -> list[str]:
        return [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", "--webui-port", "0", *words]

    with ExitStack() as stack:
        log = folder / "master.log"
        stack.enter_context(_process(command("master.Master", "--host", "127.0.0.1", "--port", port), log, clean))
        for host in HOSTS:
            words = ("--host", host, "--cores", "1", "--memory", "700m", master)
            stack.enter_context(_process(command("worker.Worker", *words), folder / f"{host}.log", clean))
        wait_until(lambda: log.read_text().count("Registering worker") == len(HOSTS), 60)
        yield master


@contextmanager
def _process(command: list[str], log: Path, environment: dict[str, str]) -> Iterator[None]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        finally:
            process.kill()
            process.wait()
