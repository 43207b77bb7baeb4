"""Host 1: the Node with sockets, a disk and real time.

Order of reading: `main` (wiring, signals, drain), `driver` (the loop around the Node; twin of `simulator/world.py`),
`server` (connections of clients), `peers` (links to other brokers), `settings`, `records` (what survives a restart),
`metrics`, `health`, `logs`, `notify`, `descriptors`.

Re-exported: Daemon, Settings, run.
"""

from .main import Daemon, run
from .settings import Settings

__all__ = ["Daemon", "Settings", "run"]
