"""FACE of spark."""

from . import publish, read

__all__ = [
    "publish",
    "read",
]
