"""Disk room: the reserve is there when it is needed, as large as the disk allows, and the margin fits the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.broker.daemon import disk_room as module
from headgate.broker.daemon.disk_room import DiskSpace, Reserve, disk_space
from headgate.broker.daemon.limits import DISK_MARGIN_BYTES, RESERVE_BYTES


def made(folder: Path, total: int = 2**40) -> Reserve:
    reserve = Reserve(folder, folder / "records.json", lambda _: DiskSpace(total, total))
    reserve.make()
    return reserve


def held(folder: Path) -> int:
    return (folder / "reserve").stat().st_blocks * 512 if (folder / "reserve").exists() else 0


def test_it_takes_its_place_on_the_disk_and_that_of_the_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "records.json").write_bytes(bytes(100_000))
    reserve = made(tmp_path)
    assert reserve.whole and held(tmp_path) >= RESERVE_BYTES + 100_000


def test_it_is_gone_while_somebody_writes_and_back_behind_that(tmp_path: Path) -> None:
    reserve = made(tmp_path)
    with pytest.raises(ValueError, match="ours"), reserve.given_up():
        assert held(tmp_path) == 0
        raise ValueError("ours")
    assert reserve.whole and held(tmp_path) >= RESERVE_BYTES


def test_on_a_full_disk_it_is_as_large_as_it_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allocate, room = module._allocate, 300_000
    monkeypatch.setattr(module, "_allocate", lambda file, size: size <= room and allocate(file, size))
    reserve = made(tmp_path)
    assert not reserve.whole and 100_000 < held(tmp_path) <= room
    monkeypatch.setattr(module, "_allocate", allocate)
    reserve.make()
    assert reserve.whole and held(tmp_path) >= RESERVE_BYTES


def test_of_a_small_disk_it_takes_a_small_part(tmp_path: Path) -> None:
    assert made(tmp_path, total=2**20).whole and held(tmp_path) == 2**16
    assert DiskSpace(2**20, 0).margin == 2**17 and DiskSpace(2**40, 0).margin == DISK_MARGIN_BYTES


def test_where_the_system_says_nothing_there_is_none(tmp_path: Path) -> None:
    assert disk_space(tmp_path / "missing") is None
    reserve = Reserve(tmp_path / "missing", tmp_path / "x")
    reserve.make()
    assert reserve.whole
    assert disk_space(tmp_path) is not None
