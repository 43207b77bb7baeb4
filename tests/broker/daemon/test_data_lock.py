"""The data directory belongs to one broker at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.broker.daemon.data_lock import DataLock
from headgate.broker.daemon.records import RecordsError


def test_a_directory_is_had_once_and_given_back(tmp_path: Path) -> None:
    lock = DataLock(tmp_path / "data")
    with pytest.raises(RecordsError, match=r"another broker uses .* --data"):
        DataLock(tmp_path / "data")
    lock.release()
    DataLock(tmp_path / "data").release()


def test_a_directory_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordsError, match="cannot use the data directory"):
        DataLock(tmp_path / "file" / "data")
    with pytest.raises(RecordsError, match="this is a file; give a directory with --data"):
        DataLock(tmp_path / "file")
    (tmp_path / "data" / "lock").mkdir(parents=True)
    with pytest.raises(RecordsError, match=r"its file lock cannot be opened \(Is a directory\)"):
        DataLock(tmp_path / "data")
