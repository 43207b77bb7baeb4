"""log.mark: what was written is read, and anything else is no mark."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.broker.daemon.log.mark import Mark, MarkFile

MARK = Mark(b"HGID0123456789abcdef", 7, 1_700_000_000)


@pytest.fixture
def file(tmp_path: Path) -> MarkFile:
    return MarkFile(tmp_path / "log.mark")


def test_what_was_written_last_is_read(file: MarkFile) -> None:
    assert file.read() is None
    for commits in (7, 8):
        file.write(MARK._replace(commits=commits))
        assert MarkFile(file.path).read() == MARK._replace(commits=commits)
    file.synchronise()
    file.close()
    file.close()
    assert file.read() == MARK._replace(commits=8)


def test_a_file_that_was_longer_is_not_afterwards(file: MarkFile) -> None:
    file.path.write_bytes(b"x" * 1000)
    assert file.read() is None
    file.write(MARK)
    assert file.read() == MARK


def test_any_flipped_bit_and_any_missing_byte_is_noticed(file: MarkFile) -> None:
    file.write(MARK)
    whole = file.path.read_bytes()
    for place in range(8 * len(whole)):
        data = bytearray(whole)
        data[place // 8] ^= 1 << place % 8
        file.path.write_bytes(data)
        assert file.read() is None
    for length in range(len(whole)):
        file.path.write_bytes(whole[:length])
        assert file.read() is None


def test_a_sound_file_of_something_else_is_none(file: MarkFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.broker.daemon.log.mark._MAGIC", b"OTHER..\n")
    file.write(MARK)
    monkeypatch.undo()
    assert file.read() is None
