"""What every test runs under: Hypothesis profiles, and an environment that the caller's shell does not colour."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import HealthCheck, settings

from tests.support.watched import watch

# A shared machine stalls now and then, which says nothing about the code: no per-example deadline.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# A red build must be red again when it is run again; fresh examples are for the desk.
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "default"))

# Spark's workers otherwise start whichever `python3` comes first on the path, and bind to the outside address.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
# All modules share the Java machine that the first one starts; a gigabyte is too little for the audit's plans.
os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--driver-memory 4g pyspark-shell")
# No machine of the tests, nor of the commands that they start, runs long enough for Java's second compiler to pay.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# A developer's own broker must not receive the tests' events.
os.environ.pop("HEADGATE_SERVER", None)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Coroutine tests fail for what their loop would only have logged."""
    watch(item)
