"""The event loop that a client belongs to, and a clear error in any other, where who waits would never be woken."""

from __future__ import annotations

from asyncio import AbstractEventLoop, _get_running_loop

from ..errors import LocalError

__all__ = ["check_loop", "current_loop"]

current_loop = _get_running_loop
"""The loop that runs in this thread, or None."""


def check_loop(owner: AbstractEventLoop | None) -> None:
    """Raises LocalError unless `owner` runs here; whatever was made outside of any loop belongs to all of them."""
    current = current_loop()
    if current is not owner and owner is not None:
        where = "another event loop" if current is not None else "an event loop that does not run here"
        raise LocalError(
            f"this client belongs to {where}: connect and await in one loop; "
            "without asyncio, or from other threads, use headgate.connect_blocking"
        )
