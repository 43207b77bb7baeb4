"""A lock that nobody waits for: a second thread is told instead."""

from __future__ import annotations

import threading

from ..errors import LocalError

__all__ = ["OneThread"]


class OneThread:
    """Entered by one thread at a time, by that one as often as it likes."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise LocalError("another thread is using this client: make one for each thread")

    def __exit__(self, *_: object) -> None:
        self._lock.release()
