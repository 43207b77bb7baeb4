"""Freed memory is kept for the next turn instead of being given back to the system and asked for again.

Under load each turn takes some MiB in pieces of some hundred KiB and frees them. The C library may give such pieces
back at once, and every page of the next ones is a fault then.
"""

from __future__ import annotations

import ctypes
from typing import Any

from .limits import FREED_BYTES_KEPT, MAPPED_BYTES_MIN

__all__ = ["keep_freed_memory"]

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Names of settings in glibc's malloc.h; they are part of its interface and do not change."""


def keep_freed_memory(library: Any = None) -> bool:
    """Tell the C library of this process so; False when it is none that can be told."""
    try:
        mallopt = (ctypes.CDLL(None) if library is None else library).mallopt
    except (OSError, AttributeError, TypeError):  # not glibc, or not Linux
        return False
    mapped: int = mallopt(_MMAP_THRESHOLD, MAPPED_BYTES_MIN)
    kept: int = mallopt(_TRIM_THRESHOLD, FREED_BYTES_KEPT)
    return mapped == kept == 1
