"""The small records that survive a restart: schemas, and how many lives this broker had. One JSON file, replaced whole.

A file that cannot be read is an error at the start, never an empty set of records: what is damaged must be seen.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from .disk_room import NO_ROOM, Reserve
from .limits import DEFAULT_LIMITS, DaemonLimits

__all__ = ["Records", "RecordsError", "make_directory"]


class RecordsError(Exception):
    """The data directory or its file cannot be used; the text says what to do."""


def make_directory(directory: Path) -> None:
    """The data directory exists from now on. Raises RecordsError, saying what stands in its way."""
    advice = "give a writable one with --data"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        return
    except FileExistsError:
        reason, advice = "this is a file", "give a directory with --data, or move the file away"
    except NotADirectoryError:
        reason, advice = "a part of its path is a file", "give another one with --data"
    except OSError as error:
        reason = str(error.strerror)
    raise RecordsError(f"cannot use the data directory {directory}: {reason}; {advice}")


class Records:
    """Key to JSON value, on disk before `put` returns."""

    def __init__(self, directory: Path, limits: DaemonLimits = DEFAULT_LIMITS) -> None:
        self._bytes_max = limits.records_bytes
        self._path = directory / "records.json"
        make_directory(directory)
        self.reserve = Reserve(directory, beside=self._path)
        self.unwritten = ""
        """Why the file is behind `values`; empty when it is not."""
        try:
            self.values = self._load()
        except OSError as error:
            text = f"cannot read {self._path}: {error.strerror}; repair it, or give another data directory with --data"
            raise RecordsError(text) from error

    def put(self, key: str, value: Any) -> None:
        """Keep a record; None forgets it. Raises RecordsError when the disk will not have it.

        On a full disk the reserve is given up for it. It is kept in memory all the same: see `catch_up`.
        """
        values = {**self.values, key: value}
        if value is None:
            del values[key]
        self._save(key, values)

    def _save(self, key: str, values: dict[str, Any]) -> None:
        try:
            text = json.dumps(values, indent=1, sort_keys=True)
            if len(text) > self._bytes_max:  # what could be written and never read again would be a last start
                raise RecordsError(f"{self._path} would be over {self._bytes_max} bytes: remove some schemas first")
            # Also when the disk fails: the next record that can be written brings this one along.
            self.values = values
            self.unwritten = ""
            try:
                self._write(text)
            except OSError as error:
                if error.errno not in NO_ROOM:
                    raise
                with self.reserve.given_up():
                    self._write(text)
        except OSError as error:
            self.unwritten = f"cannot write {self._path}: {error.strerror}; make room or repair it"
            raise RecordsError(self.unwritten) from error
        except (TypeError, ValueError, RecursionError) as error:
            raise RecordsError(f"record {key!r} is no JSON and was not written: {error}") from error

    @property
    def obstacle(self) -> str:
        """Why the next record may not be kept; empty when it will be."""
        return self.unwritten or ("" if self.reserve.whole else f"no room for {self._path}: make room on that disk")

    def catch_up(self) -> None:
        """Try again to write what could not be written, and to have the reserve whole."""
        if self.unwritten:
            with suppress(RecordsError):
                self._save("", self.values)
        elif not self.reserve.whole:
            self.reserve.make()

    def next_life(self, first: int) -> int:
        """The incarnation of this start: at least `first`, and more than the last.

        `first` is the time: a folder that was put back from a backup must not live a life again either.
        """
        incarnation = first
        if "incarnation" in self.values:
            last = self.values["incarnation"]
            if type(last) is not int or last < 0:
                # A life that was lived already would give event ids a second time.
                raise RecordsError(f"{self._path}: incarnation is {last!r}, not a number of lives: restore the file")
            incarnation = max(first, last + 1)
        self.put("incarnation", incarnation)
        return incarnation

    def _write(self, text: str) -> None:
        beside = self._path.with_suffix(".new")
        try:
            with beside.open("w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            if error.errno in NO_ROOM:
                beside.unlink(missing_ok=True)  # what is left of it would take the room of the next attempt
            raise
        beside.replace(self._path)
        self._sync_directory()

    def _sync_directory(self) -> None:
        """A new name is on disk when its directory is."""
        directory = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def _load(self) -> dict[str, Any]:
        if not self._path.exists():
            return {}
        if self._path.stat().st_size > self._bytes_max:
            raise RecordsError(f"{self._path} is over {self._bytes_max} bytes: this is not a file of this broker")
        try:
            values = json.loads(self._path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise RecordsError(
                f"{self._path} is damaged ({error}): restore it, or move it away to start without schemas"
            ) from error
        if not isinstance(values, dict):
            raise RecordsError(f"{self._path} does not hold records: restore it, or move it away")
        return values
