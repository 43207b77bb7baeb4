"""FACE of log."""

from . import lookups, recovery, salvage, store, writer
from .errors import LogUnusable
from .store import SqliteLogStore
from .writer import LogWriter

__all__ = [
    "LogUnusable",
    "LogWriter",
    "SqliteLogStore",
    "lookups",
    "recovery",
    "salvage",
    "store",
    "writer",
]
