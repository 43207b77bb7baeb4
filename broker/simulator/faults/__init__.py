"""What goes wrong in a run: one nemesis for each kind, with rates drawn from the seed, which heals all in the end.

    broker     FAULTS of clients' connections: FaultOptions, Nemesis, parse_faults
    cluster    CLUSTER_FAULTS of brokers and their links: ClusterFaultOptions, ClusterNemesis, parse_cluster_faults
    log        LOG_FAULTS of brokers and disks, and NAMED_FAULTS that are asked for by name: LogFaults, LogNemesis
    ring       churn and storms of the bare ring: RingFaultOptions, RingNemesis; may_crash asks the ring's assumptions

A run draws its own rates: a swarm of runs finds more than one average would.
"""

from .broker import FAULTS, FaultOptions, Nemesis, parse_faults
from .cluster import CLUSTER_FAULTS, ClusterFaultOptions, ClusterNemesis, parse_cluster_faults
from .log import LOG_FAULTS, NAMED_FAULTS, LogFaults, LogNemesis
from .ring import RingFaultOptions, RingNemesis, may_crash

__all__ = [
    "CLUSTER_FAULTS",
    "FAULTS",
    "LOG_FAULTS",
    "NAMED_FAULTS",
    "ClusterFaultOptions",
    "ClusterNemesis",
    "FaultOptions",
    "LogFaults",
    "LogNemesis",
    "Nemesis",
    "RingFaultOptions",
    "RingNemesis",
    "may_crash",
    "parse_cluster_faults",
    "parse_faults",
]
