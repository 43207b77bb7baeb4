"""Forks: a client belongs to the process that connected it. In a child of that process it says so at once.

A child that is forked has the same socket as its parent, and would read what is meant for it. So in the child every
client that was made before is ended, without a word on the socket: `forked(error)`. No call of it takes a lock that was
there before the fork, for the thread that holds such a lock is not in the child.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol

from ..errors import LocalError

__all__ = ["remember"]


class Forked(Protocol):
    """A client, or a subscription of one."""

    def forked(self, error: LocalError) -> None: ...


_clients: weakref.WeakSet[Forked] = weakref.WeakSet()


def remember(client: Forked) -> None:
    """Call `forked` of this client in every child of this process."""
    _clients.add(client)


def _in_child() -> None:
    for client in list(_clients):
        client.forked(LocalError("this client was connected before the process was forked: connect in the child"))
    _clients.clear()


if hasattr(os, "register_at_fork"):  # where processes are forked at all
    os.register_at_fork(after_in_child=_in_child)
