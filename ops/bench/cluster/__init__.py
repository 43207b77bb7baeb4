"""FACE of cluster."""

from . import cluster, failover, profile

__all__ = [
    "cluster",
    "failover",
    "profile",
]
