"""Copied folder: whether the data folder is another one than at the last start, as when a backup was put back.

A broker that goes on in an older copy of its log would give positions a second time that were given in the part that is
missing. Another broker with a copy notices that; a lone broker has none to tell it. But a file that was copied was
*made* when it was copied, whatever times it shows and whoever owns it: the file system remembers that, and no program
sets it. So records.json has the births of `lock` and `log.db`; when one is not the file's own, a new epoch begins,
which takes nothing away. A folder that was moved over from another disk begins one as well, for nothing, and at no
cost.

Not noticed: a snapshot of the whole disk that was put back, files that were overwritten in place, and file systems that
keep no births.
"""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path
from typing import Any

from .records import Records, RecordsError

__all__ = ["begin_epoch", "birth_of", "least_epoch", "note_births"]

_FILES = ("lock", "log.db")
_BIRTHS, _EPOCH = "births", "log_epoch"
_AT_WORKING_DIRECTORY, _WANTED, _BUFFER_BYTES, _BIRTH_PLACE = -100, 0x800, 256, 80
"""Names and places in Linux's statx; they are part of its interface and do not change."""


def least_epoch(records: Records, directory: Path, now: int) -> tuple[int, list[str]]:
    """The least epoch of this broker's own logs, 0 when any will do; and the files that turn out to be copies.

    Raises RecordsError when what is written down is damaged, or cannot be written down.
    """
    before, epoch = records.values.get(_BIRTHS, {}), records.values.get(_EPOCH, 0)
    if type(before) is not dict or type(epoch) is not int or epoch < 0:
        raise RecordsError(f"records.json in {directory} holds {_BIRTHS} or {_EPOCH} that are none: restore the file")
    births = _births(directory)
    copies = [name for name, one in births.items() if one and before.get(name, one) not in (one, "")]
    if copies:
        epoch = max(now, epoch + 1)
        records.put(_EPOCH, epoch)
    return epoch, copies


def begin_epoch(records: Records, least: int, last: int) -> int:
    """The least epoch of a copy whose log says that `last` was its own: a newer one, wherever the clock stands.

    Raises RecordsError when it cannot be written down.
    """
    if last >= least:
        least = last + 1
        records.put(_EPOCH, least)
    return least


def note_births(records: Records, directory: Path) -> None:
    """These files are ours, from now on. Raises RecordsError."""
    births = _births(directory)
    if births != records.values.get(_BIRTHS):
        records.put(_BIRTHS, births)


def _births(directory: Path) -> dict[str, str]:
    return {name: birth_of(directory / name) for name in _FILES}


def birth_of(path: Path, library: Any = None) -> str:
    """When the file system made this file; empty when there is none, or it is unknown."""
    try:
        made = getattr(path.stat(), "st_birthtime", None)
        if made is not None:
            return str(made)
        statx = (ctypes.CDLL(None) if library is None else library).statx
    except (OSError, AttributeError, TypeError):  # no such file, or neither Linux nor a system that says it by itself
        return ""
    found = ctypes.create_string_buffer(_BUFFER_BYTES)
    if statx(_AT_WORKING_DIRECTORY, os.fsencode(path), 0, _WANTED, found) != 0:
        return ""
    (known,) = struct.unpack_from("=I", found, 0)
    seconds, nanoseconds = struct.unpack_from("=qI", found, _BIRTH_PLACE)
    return f"{seconds}.{nanoseconds:09}" if known & _WANTED else ""
