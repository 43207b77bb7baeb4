"""A folder that was put back from a backup is told from the one that was there, and its log goes on in a new epoch."""

from __future__ import annotations

import ctypes
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest

from headgate.broker.daemon import copied_folder
from headgate.broker.daemon.copied_folder import begin_epoch, birth_of, least_epoch, note_births
from headgate.broker.daemon.records import Records, RecordsError


class Folder:
    """A data folder on a file system that remembers when it made a file."""

    def __init__(self, directory: Path, **births: str) -> None:
        self.births = {"lock": "1.0", "log.db": "", **births}
        self._directory = directory

    def start(self, now: int = 100) -> tuple[int, list[str]]:
        records = Records(self._directory)
        told = least_epoch(records, self._directory, now)
        note_births(records, self._directory)
        return told


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    folder = Folder(tmp_path)
    monkeypatch.setattr(copied_folder, "birth_of", lambda path: folder.births[path.name])
    return folder


def test_the_same_folder_is_the_same_also_when_its_log_is_new(folder: Folder) -> None:
    for log in ("", "2.5", "2.5"):
        folder.births["log.db"] = log
        assert folder.start() == (0, [])


@pytest.mark.parametrize("copied", [["lock"], ["log.db"], ["lock", "log.db"]])
def test_a_copy_begins_an_epoch_that_stays(folder: Folder, copied: list[str]) -> None:
    folder.births["log.db"] = "2.5"
    folder.start()
    folder.births |= dict.fromkeys(copied, "9.0")
    assert folder.start(now=200) == (200, copied)
    assert folder.start(now=300) == (200, []), "it goes on"
    folder.births |= dict.fromkeys(copied, "10.0")
    assert folder.start(now=150) == (201, copied), "a clock that was set back gives no epoch twice"


def test_a_clock_that_is_behind_does_not_keep_a_copy_in_its_epoch(folder: Folder, tmp_path: Path) -> None:
    folder.start()
    folder.births["lock"] = "9.0"
    least, _ = folder.start(now=200)
    assert begin_epoch(Records(tmp_path), least, last=500) == 501
    assert folder.start(now=200) == (501, []), "it is written down"
    assert begin_epoch(Records(tmp_path), 501, last=500) == 501
    assert folder.start() == (501, [])


def test_where_births_are_not_known_nothing_is_said(folder: Folder) -> None:
    folder.births["lock"] = ""
    assert folder.start() == (0, [])
    folder.births["lock"] = "1.0"
    assert folder.start() == (0, []), "known from now on"
    folder.births["lock"] = ""
    assert folder.start() == (0, [])


def test_a_log_that_is_gone_is_no_copy(folder: Folder) -> None:
    folder.births["log.db"] = "2.5"
    folder.start()
    folder.births["log.db"] = ""
    assert folder.start() == (0, []), "the store has its own word for that"


def test_a_start_that_fails_notices_again(folder: Folder, tmp_path: Path) -> None:
    folder.start()
    folder.births["lock"] = "9.0"
    for now in (200, 300):
        assert least_epoch(Records(tmp_path), tmp_path, now) == (now, ["lock"])
    assert folder.start(now=400) == (400, ["lock"])


@pytest.mark.parametrize(("key", "value"), [("births", [1]), ("log_epoch", "7"), ("log_epoch", -1)])
def test_records_that_make_no_sense_stop_the_start(folder: Folder, tmp_path: Path, key: str, value: Any) -> None:
    Records(tmp_path).put(key, value)
    with pytest.raises(RecordsError, match="restore the file"):
        folder.start()


def test_a_real_copy_has_a_birth_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("")
    born = birth_of(tmp_path / "lock")
    if not born:
        pytest.skip("this file system does not say when it made a file")
    (tmp_path / "lock").touch()
    (tmp_path / "lock").chmod(0o600)
    assert birth_of(tmp_path / "lock") == born
    (tmp_path / "lock").rename(tmp_path / "moved")
    assert birth_of(tmp_path / "moved") == born
    while (copied := birth_of(Path(shutil.copy2(tmp_path / "moved", tmp_path / "copy")))) == born:
        (tmp_path / "copy").unlink()  # within the same tick of the system's clock
    assert copied > born


def test_a_file_that_is_not_there_has_none(tmp_path: Path) -> None:
    assert birth_of(tmp_path / "none") == ""


class Library:
    """A C library whose statx answers so."""

    def __init__(self, status: int, known: int) -> None:
        self._answer = status, known

    def statx(self, directory: int, path: bytes, flags: int, wanted: int, found: Any) -> int:
        status, known = self._answer
        answer = struct.pack("=I76xqI", known, 5, 7)
        ctypes.memmove(found, answer, len(answer))
        return status


@pytest.mark.parametrize(
    ("library", "birth"),
    [(Library(0, 0xFFF), "5.000000007"), (Library(0, 0x7FF), ""), (Library(-1, 0xFFF), ""), (object(), "")],
)
def test_what_the_system_does_not_know_is_not_made_up(tmp_path: Path, library: object, birth: str) -> None:
    if hasattr(tmp_path.stat(), "st_birthtime"):
        pytest.skip("this system says it by itself")
    assert birth_of(tmp_path, library) == birth
