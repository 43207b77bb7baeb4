"""What goes wrong in a run: a nemesis strikes at rates drawn from the seed, and heals all in the end.

    nemesis    Nemesis, the base of all; kinds_of reads the names of faults
    clients    FAULTS of clients' connections: ClientFaults, ClientNemesis
    cluster    CLUSTER_FAULTS of brokers and their links: ClusterFaults, ClusterNemesis
    log        LOG_FAULTS of brokers and disks, and NAMED_FAULTS that are asked for by name: LogFaults, LogNemesis
    ring       churn and storms of the bare ring: RingFaults, RingNemesis; may_crash asks the ring's assumptions

A run draws its own rates: a swarm of runs finds more than one average would.
"""

from .clients import FAULTS, ClientFaults, ClientNemesis
from .cluster import CLUSTER_FAULTS, ClusterFaults, ClusterNemesis
from .log import LOG_FAULTS, NAMED_FAULTS, LogFaults, LogNemesis
from .nemesis import Nemesis, kinds_of
from .ring import RingFaults, RingNemesis, may_crash

__all__ = [
    "CLUSTER_FAULTS",
    "FAULTS",
    "LOG_FAULTS",
    "NAMED_FAULTS",
    "ClientFaults",
    "ClientNemesis",
    "ClusterFaults",
    "ClusterNemesis",
    "LogFaults",
    "LogNemesis",
    "Nemesis",
    "RingFaults",
    "RingNemesis",
    "kinds_of",
    "may_crash",
]
