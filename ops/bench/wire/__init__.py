"""FACE of wire."""

from . import clients, compare, latency, load, report, slow
from .load import ARRIVED, LAST_NS, STOP, Cells, Totals, collect, wait_until_ready
from .report import console, short

__all__ = [
    "ARRIVED",
    "Cells",
    "LAST_NS",
    "STOP",
    "Totals",
    "clients",
    "collect",
    "compare",
    "console",
    "latency",
    "load",
    "report",
    "short",
    "slow",
    "wait_until_ready",
]
