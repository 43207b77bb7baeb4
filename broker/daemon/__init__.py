"""Host 1: the Node with sockets, a disk and real time.

Order of reading: `main` (wiring, signals, drain), `driver` (the loop around the Node; twin of `simulator/world.py`),
`server` (connections of clients), `peers` (links to other brokers), `settings`, `records` (what survives a restart),
`metrics`, `health`, `logs`, `notify`, `descriptors`.

Re-exported: Daemon, Settings, run.
"""

from . import copied_folder, disk_room, main, metrics, peers, records, server
from .limits import GC_THRESHOLDS
from .main import Daemon, run
from .settings import Settings, SettingsError, load_settings

__all__ = [
    "Daemon",
    "GC_THRESHOLDS",
    "Settings",
    "SettingsError",
    "copied_folder",
    "disk_room",
    "load_settings",
    "main",
    "metrics",
    "peers",
    "records",
    "run",
    "server",
]
