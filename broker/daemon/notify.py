"""What systemd wants to hear (Type=notify): READY, STOPPING, WATCHDOG. Without NOTIFY_SOCKET nothing is said."""

from __future__ import annotations

import os
import socket

__all__ = ["notify", "watchdog_seconds"]


def notify(state: str) -> bool:
    """Tell the service manager, for example `READY=1`; True when there is one and it was told."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address or address[0] not in "/@":
        return False
    if address[0] == "@":
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
        # A service manager that does not read must not stop the broker.
        channel.setblocking(False)
        try:
            channel.sendto(state.encode(), address)
        except OSError:
            return False
    return True


def watchdog_seconds() -> float | None:
    """How often to say WATCHDOG=1: half of what the service manager allows; None when it does not watch."""
    microseconds = os.environ.get("WATCHDOG_USEC", "")
    watched = os.environ.get("WATCHDOG_PID", str(os.getpid()))
    if not microseconds.isdigit() or watched != str(os.getpid()) or int(microseconds) == 0:
        return None
    return int(microseconds) / 2e6
