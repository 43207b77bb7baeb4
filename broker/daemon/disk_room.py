"""Disk room: what of a disk is kept free, so that a full one stops neither a start nor what makes room again.

    the reserve   a file of up to a MiB whose place no other program can take. It is given up for a moment by what
                  must write a little: the start (records.json, recovery of the log), a schema that is put; and made
                  again, whole or as large as it still can be
    the margin    free bytes that the log leaves alone (a low-space watermark): room for taking over its write-ahead
                  file, and for trimming. See `log/store.py`

The margin keeps the log from filling the disk; the reserve stands when another program has.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from errno import EDQUOT, EFBIG, ENOSPC
from pathlib import Path
from typing import NamedTuple

from .limits import DISK_MARGIN_BYTES, DISK_MARGIN_SHARE, RESERVE_BYTES, RESERVE_BYTES_MIN, RESERVE_SHARE

__all__ = ["NO_ROOM", "DiskSpace", "Reserve", "disk_space"]

NO_ROOM = (ENOSPC, EDQUOT, EFBIG)
"""What a system says when there is no room."""


class DiskSpace(NamedTuple):
    """Bytes of the disk under a folder: all, and those that this process may still take."""

    total: int
    free: int

    @property
    def margin(self) -> int:
        """Free bytes that the log leaves alone."""
        return min(DISK_MARGIN_BYTES, self.total // DISK_MARGIN_SHARE)


def disk_space(directory: Path) -> DiskSpace | None:
    """As the system tells it; None where it does not."""
    try:
        told = os.statvfs(directory)
    except OSError:
        return None
    free = told.f_bfree if os.geteuid() == 0 else told.f_bavail
    return DiskSpace(told.f_blocks * told.f_frsize, free * told.f_frsize) if told.f_blocks else None


class Reserve:
    """Keeps a file of ballast on the disk, whose room is given to small files when the disk is full.

    `beside` is the file whose size comes on top: it is written anew as a whole.
    """

    def __init__(self, directory: Path, beside: Path, space: Callable[[Path], DiskSpace | None] = disk_space) -> None:
        self._path = directory / "reserve"
        self._beside = beside
        self._space = space
        self.whole = True
        """Whether it is as large as it should be, or the disk says nothing of its size."""

    @contextmanager
    def given_up(self) -> Iterator[None]:
        """There is room for a little, and the reserve is made again behind it."""
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
        try:
            yield
        finally:
            self.make()

    def make(self) -> None:
        """Have it as large as it should be, or as it can be."""
        space = self._space(self._path.parent)
        if space is None:
            return
        wanted = min(RESERVE_BYTES, space.total // RESERVE_SHARE) + _size(self._beside)
        held = _size(self._path)
        self.whole = held >= wanted
        if self.whole:
            return
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return
        try:
            size = wanted
            while size > max(held, RESERVE_BYTES_MIN) and not _allocate(file, size):
                size //= 2
        finally:
            os.close(file)
        self.whole = _size(self._path) >= wanted


def _allocate(file: int, size: int) -> bool:
    try:
        os.posix_fallocate(file, 0, size)
    except OSError:
        return False
    return True


def _size(path: Path) -> int:
    """Bytes that it takes on the disk."""
    try:
        return path.stat().st_blocks * 512
    except OSError:
        return 0
