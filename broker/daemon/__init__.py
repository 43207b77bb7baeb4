"""Runs a Node with sockets, a disk and real time: the first of its two hosts.

`run` is the daemon's whole life, from its `Settings` to its exit code: `load_settings` reads them from the environment
and the command line or raises `SettingsError`. `Daemon` is one broker that a test or a bench can start inside its own
loop. `GC_THRESHOLDS` is how the garbage collector is set while a broker runs.

Order of reading: `main` (wiring, signals, drain), `driver` (the loop around the Node; the simulator has its twin),
`server` (connections of clients), `peers` (links to other brokers), `settings`, `records` (the small things that
survive a restart), `disk_room`, `data_lock` and `copied_folder` (what protects them), `metrics`, `health`, `logs`,
`notify`, `descriptors`, `memory`. The room `log` stores the rows of logs.
"""

from .limits import GC_THRESHOLDS
from .main import Daemon, run
from .settings import Settings, SettingsError, load_settings

__all__ = [
    "Daemon",
    "GC_THRESHOLDS",
    "Settings",
    "SettingsError",
    "load_settings",
    "run",
]
