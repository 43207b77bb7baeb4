"""FACE of chaos."""

from . import audit, chaos

__all__ = [
    "audit",
    "chaos",
]
