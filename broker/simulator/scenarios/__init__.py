"""The kinds of runs: a topology, its workload, its faults, its checkers and its phases, all from one seed.

    broker     one broker with its clients: Options, Run, Verdict, run_seed
    cluster    brokers that come and go: ClusterRunOptions, ClusterRun, ClusterVerdict, run_cluster
    log        brokers that keep logs, on disks that fail: LogRunOptions, LogRun, LogVerdict, run_log
    ring       the ring of brokers alone, in several KINDS: RingOptions, RingRun, RingVerdict, run_ring

Each has its ablations, one safeguard switched off: ABLATIONS and ablate, CLUSTER_ABLATIONS and ablate_cluster,
LOG_ABLATIONS and DISK_ABLATIONS, RING_ABLATIONS and ablate_ring.
"""

from .ablations import ABLATIONS, ablate
from .broker import Options, Run, Verdict, run_seed
from .cluster import ClusterRun, ClusterRunOptions, ClusterVerdict, run_cluster
from .cluster_ablations import CLUSTER_ABLATIONS, ablate_cluster
from .log import LogRun, LogRunOptions, LogVerdict, run_log
from .log_ablations import DISK_ABLATIONS, LOG_ABLATIONS
from .ring import KINDS, RingOptions, RingRun, RingVerdict, run_ring
from .ring_ablations import RING_ABLATIONS, ablate_ring

__all__ = [
    "ABLATIONS",
    "CLUSTER_ABLATIONS",
    "DISK_ABLATIONS",
    "KINDS",
    "LOG_ABLATIONS",
    "RING_ABLATIONS",
    "ClusterRun",
    "ClusterRunOptions",
    "ClusterVerdict",
    "LogRun",
    "LogRunOptions",
    "LogVerdict",
    "Options",
    "RingOptions",
    "RingRun",
    "RingVerdict",
    "Run",
    "Verdict",
    "ablate",
    "ablate_cluster",
    "ablate_ring",
    "run_cluster",
    "run_log",
    "run_ring",
    "run_seed",
]
