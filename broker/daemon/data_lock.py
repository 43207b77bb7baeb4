"""A lock on the data directory: two brokers that shared one would write each other's records and repeat event ids."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from .records import RecordsError, make_directory

__all__ = ["DataInUse", "DataLock"]


class DataInUse(RecordsError):
    """Another process has the folder; it may be one that is about to end."""


class DataLock:
    """Held from the start to `release`, or to the end of the process, however it ends."""

    def __init__(self, directory: Path) -> None:
        path = directory / "lock"
        make_directory(directory)
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            reason = f"its file {path.name} cannot be opened ({error.strerror})"
            raise RecordsError(
                f"cannot use the data directory {directory}: {reason}; give a writable one with --data"
            ) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._file)
            raise DataInUse(
                f"another broker uses the data directory {directory}: give this one its own with --data"
            ) from error

    def release(self) -> None:
        """Let another broker have the directory. Safe to call twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
