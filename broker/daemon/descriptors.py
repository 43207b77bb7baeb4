"""File descriptors: as many as the system gives, and never all of them to clients."""

from __future__ import annotations

import resource

from .limits import DESCRIPTORS_RESERVED

__all__ = ["connections_possible"]


def connections_possible(wanted: int) -> int:
    """So many sockets of clients can be had, at most `wanted`; raises the process's soft limit where that helps."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + DESCRIPTORS_RESERVED
    if soft != resource.RLIM_INFINITY and soft < needed:
        raised = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
            soft = raised
        except (OSError, ValueError):
            # Some systems allow less than their own hard limit says; what there is has to do.
            pass
    if soft == resource.RLIM_INFINITY:
        return wanted
    return max(1, min(wanted, soft - DESCRIPTORS_RESERVED))
