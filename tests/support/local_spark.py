"""One Spark session in local mode for a test module; skips where Java or PySpark is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from headgate.ops.jobs import missing_parts, start_session

__all__ = ["local_spark"]


@contextmanager
def local_spark(master: str = "local[2]") -> Iterator[Any]:
    """The session; it ends with the block."""
    missing = missing_parts()
    if missing:
        pytest.skip(f"needs {missing}")
    session = start_session("headgate-tests", master)
    try:
        yield session
    finally:
        session.stop()
