"""One virtual world: time and chance, brokers and their links, and disks that fail.

Order of reading: `world`, then what lives in it.

    world          World: one heap of (time, tie, action) and one seed. Host: the twin of the daemon's driver, one Node
                   for one life. Violation ends a run; WALL_CLOCK_OFFSET_SECONDS is what all wall clocks start at
    link           one side of any link: a session and a pipe to it; PlainSession carries messages where bytes would be
                   too slow
    network        Network, Connection: clients' connections with a Host, as NetworkOptions say
    peer_network   PeerNetwork: the links between brokers, as PeerNetworkOptions say
    disk           Disk, Entry, LogList, ListStore: what a broker keeps; LogHost: the thread that writes it
    cluster        ClusterWorld: brokers (each a Server over all its lives) with both networks, as their Topology says
    ring           RingWorld, RingHost, RingNetworkOptions: membership machines alone; pointers_of, outcome and
                   snapshot_of show their ring to the oracle
    trace          Trace, as_text: inputs and effects as stable text and its digest

Time moves only by `World.step` and `World.run_for`; whoever wants something later says `World.after`. All chance comes
from the seed, so a run can be had again from its number.
"""

from .cluster import ClusterWorld, Server, Topology
from .disk import Disk, Entry, ListStore, LogHost, LogList
from .link import PlainSession
from .network import Connection, Network, NetworkOptions
from .peer_network import PeerNetwork, PeerNetworkOptions
from .ring import RingHost, RingNetworkOptions, RingWorld, outcome, pointers_of, snapshot_of
from .trace import Trace, as_text
from .world import WALL_CLOCK_OFFSET_SECONDS, Host, Violation, World

__all__ = [
    "WALL_CLOCK_OFFSET_SECONDS",
    "ClusterWorld",
    "Connection",
    "Disk",
    "Entry",
    "Host",
    "ListStore",
    "LogHost",
    "LogList",
    "Network",
    "NetworkOptions",
    "PeerNetwork",
    "PeerNetworkOptions",
    "PlainSession",
    "RingHost",
    "RingNetworkOptions",
    "RingWorld",
    "Server",
    "Topology",
    "Trace",
    "Violation",
    "World",
    "as_text",
    "outcome",
    "pointers_of",
    "snapshot_of",
]
