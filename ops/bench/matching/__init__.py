"""FACE of matching."""

from . import matching

__all__ = [
    "matching",
]
