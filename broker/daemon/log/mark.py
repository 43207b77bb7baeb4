"""log.mark: how many commits the log has seen, beside it, so that a log that lost its newest ones does not go unseen.

SQLite drops a write-ahead file that is missing, cut short or damaged, and opens what is left as if nothing had been
there. So the number of the last commit is also written here, after the commit is on the disk and before the Node hears
of it. It is not synchronised itself: after a power failure it may be behind, and never ahead.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

__all__ = ["Mark", "MarkFile"]

_MAGIC = b"HGMARK1\n"
_FORM = struct.Struct(">8s20sQQ")
_CHECK = struct.Struct(">I")


class Mark(NamedTuple):
    """Which log.db it stands beside, its commits so far, and the epoch of the broker's own logs."""

    identity: bytes
    commits: int
    epoch: int


class MarkFile:
    """The file, open from the first `write` on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = -1

    def read(self) -> Mark | None:
        """What it says; None when it is missing or damaged."""
        try:
            data = self.path.read_bytes()
        except OSError:
            return None
        if len(data) != _FORM.size + _CHECK.size or crc32(data[: _FORM.size]) != _CHECK.unpack(data[_FORM.size :])[0]:
            return None
        magic, identity, commits, epoch = _FORM.unpack(data[: _FORM.size])
        return Mark(identity, commits, epoch) if magic == _MAGIC else None

    def write(self, mark: Mark) -> None:
        """Say this from now on. Raises OSError."""
        data = _FORM.pack(_MAGIC, *mark)
        if self._file < 0:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.ftruncate(self._file, _FORM.size + _CHECK.size)
        os.pwrite(self._file, data + _CHECK.pack(crc32(data)), 0)

    def synchronise(self) -> None:
        """Have it on the disk: when the log begins, and when it is closed in order. Raises OSError."""
        os.fsync(self._file)

    def close(self) -> None:
        """Let the file go. Safe to call twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
