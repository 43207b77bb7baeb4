"""A range of a log comes whole and cut to its ends, and what retention took away is told."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow")

from headgate.protocol.data import LogName  # noqa: E402
from headgate.protocol.spark.errors import DataLoss  # noqa: E402
from headgate.protocol.spark.options import ReadOptions, read_options  # noqa: E402
from headgate.protocol.spark.reading import Decoder, fetch  # noqa: E402
from headgate.protocol.spark.reading.positions import LogRange  # noqa: E402
from tests.support.fake_logs import FakeLogs  # noqa: E402

SCHEMA = pa.schema({"offset": pa.int64()})


def options(**more: str) -> ReadOptions:
    return read_options({"headgate.bootstrap.servers": "one:7400", "topic": "q"} | more)


def fetched(logs: FakeLogs, name: LogName, start: int, end: int, chosen: ReadOptions | None = None) -> list[int]:
    batches = fetch(logs, LogRange(name, 0, start, end), chosen or options(), Decoder("events", SCHEMA, 3))
    return [row["offset"] for batch in batches for row in batch.to_pylist()]


def filled(*counts: int) -> tuple[FakeLogs, LogName]:
    logs = FakeLogs()
    for count in counts:
        name = logs.append("ann", 7, count)
    return logs, name


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.data())
def test_a_range_comes_whole_and_once(counts: list[int], data: Any) -> None:
    logs, name = filled(*counts)
    start = data.draw(st.integers(0, sum(counts)))
    end = data.draw(st.integers(start, sum(counts)))
    assert fetched(logs, name, start, end) == list(range(start, end))


def test_pattern_and_condition_go_to_the_broker() -> None:
    logs, name = filled(5)
    fetched(logs, name, 1, 4, options(topic="q/a", filter="n > 2"))
    assert logs.reads == [("ann@7", 1, 3, "q/a", "n > 2")]


def test_positions_that_are_gone_are_told_or_left_out() -> None:
    logs, name = filled(4, 4, 4)
    logs.trim(name, 6)
    with pytest.raises(DataLoss, match="2 to 5"):
        fetched(logs, name, 2, 10)
    lenient = options(failOnDataLoss="false")
    assert fetched(logs, name, 2, 10, lenient) == [6, 7, 8, 9]
    logs.trim(name, 12)
    assert fetched(logs, name, 2, 10, lenient) == []


def test_a_log_that_ends_early_is_a_loss_too() -> None:
    logs, name = filled(4)
    with pytest.raises(DataLoss, match="4 to 8"):
        fetched(logs, name, 0, 9)
    assert fetched(logs, name, 0, 9, options(failOnDataLoss="false")) == [0, 1, 2, 3]
