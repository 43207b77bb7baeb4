"""FACE of log."""

from . import durability, kills, store

__all__ = [
    "durability",
    "kills",
    "store",
]
