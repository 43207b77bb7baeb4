"""Records survive, whole or as they were; a file that is damaged is told of, never taken for empty."""

from __future__ import annotations

import json
import os
from errno import EACCES, ENOSPC
from pathlib import Path
from typing import Any

import pytest

from headgate.broker.daemon.limits import DEFAULT_LIMITS, DaemonLimits
from headgate.broker.daemon.records import Records, RecordsError, make_directory


def damaged(directory: Path, content: bytes, limits: DaemonLimits = DEFAULT_LIMITS) -> str:
    (directory / "records.json").write_bytes(content)
    with pytest.raises(RecordsError) as caught:
        Records(directory, limits).next_life(1)
    return str(caught.value)


def test_what_was_put_is_there_in_the_next_life(tmp_path: Path) -> None:
    first = Records(tmp_path / "a" / "b")
    first.put("schema/quotes", {"attributes": {"price": {"type": "float", "min": 0}}})
    first.put("schema/gone", {})
    first.put("schema/gone", None)
    first.put("schema/never", None)
    assert Records(tmp_path / "a" / "b").values == first.values
    assert list(first.values) == ["schema/quotes"]


def test_lives_are_counted_from_the_first(tmp_path: Path) -> None:
    assert [Records(tmp_path).next_life(first) for first in (7, 100, 1)] == [7, 100, 101]


@pytest.mark.parametrize("content", [b"", b"{", b'{"a": 1} x', b"\xff\xfe", b"[" * 100_000], ids=range(5))
def test_a_damaged_file_is_told_of(tmp_path: Path, content: bytes) -> None:
    text = damaged(tmp_path, content)
    assert "records.json is damaged (" in text
    assert "restore it" in text


def test_a_file_of_something_else_is_told_of(tmp_path: Path) -> None:
    assert "does not hold records" in damaged(tmp_path, b"[1, 2]")


@pytest.mark.parametrize("lives", ['"7"', "-1", "1.5", "true", "null"])
def test_a_life_that_cannot_be_counted_on_stops_the_start(tmp_path: Path, lives: str) -> None:
    assert "not a number of lives" in damaged(tmp_path, f'{{"incarnation": {lives}}}'.encode())


def test_a_file_over_the_bound_is_not_read(tmp_path: Path) -> None:
    assert "is over 10 bytes" in damaged(tmp_path, b'{"incarnation": 1}', DaemonLimits(records_bytes=10))


def test_a_directory_that_is_a_file_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    with pytest.raises(RecordsError, match=r"cannot use the data directory .*data: this is a file; give a directory"):
        Records(tmp_path / "data")
    with pytest.raises(RecordsError, match="a part of its path is a file"):
        Records(tmp_path / "data" / "below")


def test_a_directory_that_cannot_be_made_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(EACCES, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(RecordsError, match=r"Permission denied; give a writable one with --data"):
        make_directory(tmp_path / "data")


def test_records_that_are_a_directory_are_told_of(tmp_path: Path) -> None:
    (tmp_path / "records.json").mkdir()
    with pytest.raises(RecordsError, match=r"cannot read .*records\.json: Is a directory; repair it"):
        Records(tmp_path)


def test_what_cannot_be_written_is_told_of_and_the_old_file_stays(tmp_path: Path) -> None:
    records = Records(tmp_path)
    records.put("a", 1)
    (tmp_path / "records.new").mkdir()
    with pytest.raises(RecordsError, match=r"cannot write .*records\.json: Is a directory"):
        records.put("b", 2)
    assert Records(tmp_path).values == {"a": 1}
    (tmp_path / "records.new").rmdir()
    records.put("c", 3)
    assert Records(tmp_path).values == {"a": 1, "b": 2, "c": 3}


def test_a_value_that_is_no_json_is_refused_and_spoils_nothing(tmp_path: Path) -> None:
    records = Records(tmp_path)
    with pytest.raises(RecordsError, match="record 'a' is no JSON"):
        records.put("a", b"bytes")
    records.put("b", 2)
    assert Records(tmp_path).values == {"b": 2}


def test_the_file_is_replaced_whole_and_synced_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = Records(tmp_path)
    records.put("a", 1)
    synced: list[Any] = []

    def fsync(descriptor: int) -> None:
        synced.append(json.loads((tmp_path / "records.json").read_text()))

    monkeypatch.setattr(os, "fsync", fsync)
    records.put("a", 2)
    assert synced == [{"a": 1}, {"a": 2}], "the new content is synced under another name, then its name is"
    assert [path.name for path in tmp_path.iterdir()] == ["records.json"]


def test_what_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    records = Records(tmp_path, DaemonLimits(records_bytes=100))
    records.put("schema/a", "x")
    with pytest.raises(RecordsError, match="over 100 bytes: remove"):
        records.put("schema/b", "x" * 100)
    records.put("schema/c", "y")
    assert Records(tmp_path).values == {"schema/a": "x", "schema/c": "y"}


def full_disk(monkeypatch: pytest.MonkeyPatch, records: Records, left: int) -> None:
    """Only so many more attempts to write find room."""
    write = records._write
    attempts = iter(range(99))

    def refuse(text: str) -> None:
        if next(attempts) >= left:
            raise OSError(ENOSPC, "No space left on device")
        write(text)

    monkeypatch.setattr(records, "_write", refuse)


def test_on_a_full_disk_the_reserve_is_given_up_for_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records, there = Records(tmp_path), []
    records.reserve.make()
    write, attempts = records._write, iter(range(99))

    def tell(text: str) -> None:
        there.append((tmp_path / "reserve").exists())
        if next(attempts) == 0:
            raise OSError(ENOSPC, "No space left on device")
        write(text)

    monkeypatch.setattr(records, "_write", tell)
    records.put("a", 1)
    assert there == [True, False] and (tmp_path / "reserve").exists()
    assert records.obstacle == "" and Records(tmp_path).values == {"a": 1}


def test_what_found_no_room_is_written_when_there_is_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = Records(tmp_path)
    with monkeypatch.context() as full:
        full_disk(full, records, left=0)
        with pytest.raises(RecordsError, match=r"No space left on device; make room"):
            records.put("a", 1)
        records.catch_up()
        assert "No space left" in records.obstacle
    records.catch_up()
    assert records.obstacle == "" and Records(tmp_path).values == {"a": 1}


def test_a_reserve_that_is_not_whole_is_an_obstacle(tmp_path: Path) -> None:
    records = Records(tmp_path)
    records.reserve.whole = False
    assert "no room for" in records.obstacle and "make room" in records.obstacle
    records.catch_up()
    assert records.obstacle == ""


def test_half_a_file_does_not_stay_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> None:
        raise OSError(ENOSPC, "No space left on device")

    records = Records(tmp_path)
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(RecordsError):
        records.put("a", 1)
    assert not (tmp_path / "records.new").exists()
