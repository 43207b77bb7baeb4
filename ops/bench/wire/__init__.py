"""Measures one server over sockets: rates, latency, the shipped clients, rights, and who stalls or does not get in.

`compare`, `latency`, `clients`, `rights`, `strangers` and `slow` are the benches. `load` is generator and sink of one
run: the processes share `Cells` of memory (`ARRIVED`, `LAST_NS`, `STOP` are their places), `collect` counts arrivals
until the run is over, `Totals` is what came of it and `wait_until_ready` holds the clock until all subscribers are
there.
`report` prints tables for people and JSON for scripts; `console` is where to, `short` a number in few characters.
"""

from . import latency, load, report
from .load import ARRIVED, LAST_NS, STOP, Cells, Totals, collect, wait_until_ready
from .report import console, short

__all__ = [
    "ARRIVED",
    "Cells",
    "LAST_NS",
    "STOP",
    "Totals",
    "collect",
    "console",
    "latency",
    "load",
    "report",
    "short",
    "wait_until_ready",
]
