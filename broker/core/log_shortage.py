"""Shortage: why something is not on enough disks, in words for whoever waits: how many it takes, and who is missing."""

from __future__ import annotations

from collections.abc import Collection

from .cluster import Cluster

__all__ = ["shortage"]

_NAMED_MAX = 4


def shortage(cluster: Cluster, copies: int, silent: Collection[int] = (), full: Collection[int] = ()) -> str:
    """As in "stored means on 2 disks; bob at 10.0.0.2:7401 cannot be reached". `silent` were asked and say nothing, and
    the disks of those in `full` take nothing."""
    parts = [f"stored means on {copies} disks" if copies > 1 else "stored means on this broker's disk"]
    known, linked = cluster.peers.by_identifier, cluster.linked()
    names = {info.address: f"{info.name} at {info.address}" for info in known.values()}
    unreached = [names.get(address, address) for address in cluster.unreached()]
    if unreached:
        parts.append(f"{_listed(unreached)} cannot be reached")
    deaf = [info.name for info in linked if info.identifier in silent]
    if deaf:
        parts.append(f"no answer from {_listed(deaf)}")
    crowded = [info.name for info in linked if info.identifier in full]
    if crowded:
        parts.append(f"no room on the disk of {_listed(crowded)}")
    return "; ".join(parts)


def _listed(names: list[str]) -> str:
    more = len(names) - _NAMED_MAX
    return ", ".join(names[:_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
