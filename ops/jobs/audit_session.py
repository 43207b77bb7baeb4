"""The Spark session of an audit: what must be set for `expr()` to mean what a condition means, and what must be there.

`caseSensitive`, because attribute names are; ANSI, UTC and no whole-stage code, because hundreds of conditions in one
projection exceed what Java allows a method. A session that somebody else made (spark-submit, a notebook) is given the
same settings while it runs; all of them may be changed at run time.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from headgate.protocol.errors import HeadgateError

from ..exits import UsageError
from .audit_limits import SHUFFLE_PARTITIONS

__all__ = ["kept_output", "missing_parts", "settle_session", "start_session"]

_MEANING: Final = {
    "spark.sql.caseSensitive": "true",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.codegen.wholeStage": "false",
}

_LOCAL: Final = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": str(SHUFFLE_PARTITIONS),
    "spark.log.level": "ERROR",
}


def missing_parts() -> str:
    """What to install before Spark can run here; empty when nothing is missing."""
    wanted = []
    if importlib.util.find_spec("pyspark") is None or importlib.util.find_spec("pyarrow") is None:
        wanted.append("PySpark: pip install 'headgate[spark]', or in this folder make setup")
    if not _java():
        wanted.append(
            "Java 17 or newer: on Debian and Ubuntu apt install openjdk-17-jre-headless, on macOS brew install "
            "openjdk@17; or set JAVA_HOME to one that is there"
        )
    return "; and ".join(wanted)


@contextmanager
def kept_output(shown: bool) -> Iterator[int | None]:
    """Where Java may write its warnings to, for `start_session`: a file that is shown when the block fails.

    None when they are shown anyway.
    """
    if shown:
        yield None
        return
    with tempfile.TemporaryFile() as kept:
        try:
            yield kept.fileno()
        except (HeadgateError, UsageError):  # they say what is wrong
            raise
        except Exception:
            kept.seek(0)
            sys.stderr.write(kept.read().decode(errors="replace"))
            raise


@contextmanager
def _standard_error(errors: int | None) -> Iterator[None]:
    """A process that is started in this block inherits `errors` as its standard error."""
    if errors is None:
        yield
        return
    ours = os.dup(2)
    os.dup2(errors, 2)
    try:
        yield
    finally:
        os.dup2(ours, 2)
        os.close(ours)


def start_session(name: str, master: str = "local[*]", errors: int | None = None) -> Any:
    """A session in local mode, which talks to loopback alone; or the one that is there already.

    Java is given `errors`, the descriptor of a file, as its standard error.
    """
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Workers are started by name, and must be this Python.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # else spark-submit started us, and has said where to run
        builder = builder.master(master)
        for setting, value in _LOCAL.items():
            builder = builder.config(setting, value)
    with _standard_error(errors):
        session = builder.getOrCreate()
    # Spark finds the source by itself only where its own interpreter finds it, which need not be ours.
    from pyspark_headgate import register

    register(session)
    return settle_session(session)


def settle_session(session: Any) -> Any:
    """The session with the settings that the meaning of a condition depends on."""
    for setting, value in _MEANING.items():
        session.conf.set(setting, value)
    return session


def _java() -> bool:
    home = os.environ.get("JAVA_HOME")
    if home and os.access(os.path.join(home, "bin", "java"), os.X_OK):
        return True
    return shutil.which("java") is not None
