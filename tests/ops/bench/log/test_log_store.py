"""The bench of the store: it counts what is on the disk, and says when the disk did not take it."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from headgate.broker.core.store import StoreFull
from headgate.broker.daemon.log import SqliteLogStore
from headgate.ops.bench.kit import MeasurementFailed
from headgate.ops.bench.log import store as log_store
from headgate.ops.bench.log.store import measure, percentile, synchronisation_seconds


def test_percentiles_are_of_the_values_in_order() -> None:
    values = [5.0, 1.0, 4.0, 2.0, 3.0]
    assert [percentile(values, share) for share in (0.0, 0.5, 0.99, 1.0)] == [1.0, 3.0, 5.0, 5.0]


def test_what_is_counted_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[int] = []
    closing = SqliteLogStore.close

    def close(store: SqliteLogStore) -> None:
        ends.extend(log.next for log in store._logs.values())
        closing(store)

    monkeypatch.setattr(SqliteLogStore, "close", close)
    rates = measure(tmp_path, events_per_row=10, in_flight=4, seconds=0.05)
    assert (rates.events_per_row, rates.in_flight) == (10, 4)
    assert rates.events == 10 * rates.rows and rates.megabytes == pytest.approx(rates.events * 100 / 1e6)
    assert 0 < rates.p50_seconds <= rates.p99_seconds
    assert len(ends) == 1 and ends[0] % 10 == 0 and ends[0] >= 40
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_is_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(store: SqliteLogStore, entries: object) -> None:
        raise StoreFull("no room")

    monkeypatch.setattr(SqliteLogStore, "append", refuse)
    with pytest.raises(MeasurementFailed, match="no room"):
        measure(tmp_path, 1, 1, 0.05)


def test_a_run_prints_every_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    log_store.add_arguments(parser)
    assert len(synchronisation_seconds(tmp_path, 3)) == 3
    words = ["--seconds", "0.01", "--directory", str(tmp_path)]
    assert log_store.run(parser.parse_args(words, argparse.Namespace(synchronisations=3))) == 0
    printed = capsys.readouterr().out
    assert "one synchronisation of a bare file" in printed and "4,096" in printed
