"""FACE of cluster."""

from . import address_book, cluster
from .cluster import HERE, LIFE_SHIFT, WAIT, Cluster

__all__ = [
    "Cluster",
    "HERE",
    "LIFE_SHIFT",
    "WAIT",
    "address_book",
    "cluster",
]
