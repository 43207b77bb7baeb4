"""The kinds of runs: each a topology, its workloads, its faults, its checkers and its phases, all from one seed.

    scenario   Options -> Scenario -> Verdict: `play` plays one seed; command_of says what to type to see a run again;
               PROGRAM, flags and within are what a command line is read by
    campaign   many seeds, added up in a Summary; CORES is how many it can play at a time
    broker     one broker with its clients: BrokerOptions, BrokerScenario
    cluster    brokers that come and go: ClusterOptions, ClusterScenario
    log        brokers that keep logs, on disks that fail: LogOptions, LogScenario
    durable    clients with durable subscriptions, that come and go: DurableOptions, DurableScenario
    ring       the ring of brokers alone, in several KINDS and VARIANTS of the protocol: RingOptions, RingScenario
    script     a story of a cluster as text, with its trace: Script, rewritten

Each kind has its ablations, runs with one safeguard switched off in the configuration of brokers: BROKER_ABLATIONS,
CLUSTER_ABLATIONS, LOG_ABLATIONS, DURABLE_ABLATIONS and RING_ABLATIONS.
"""

from .broker import BROKER_ABLATIONS, BrokerOptions, BrokerScenario
from .campaign import CORES, Summary, campaign
from .cluster import CLUSTER_ABLATIONS, ClusterOptions, ClusterScenario
from .durable import DURABLE_ABLATIONS, DurableOptions, DurableScenario
from .log import LOG_ABLATIONS, LogOptions, LogScenario
from .ring import KINDS, RING_ABLATIONS, VARIANTS, RingOptions, RingScenario
from .scenario import PROGRAM, Options, Scenario, Verdict, command_of, flags, play, within
from .script import Script, rewritten

__all__ = [
    "BROKER_ABLATIONS",
    "CLUSTER_ABLATIONS",
    "CORES",
    "DURABLE_ABLATIONS",
    "KINDS",
    "LOG_ABLATIONS",
    "PROGRAM",
    "RING_ABLATIONS",
    "VARIANTS",
    "BrokerOptions",
    "BrokerScenario",
    "ClusterOptions",
    "ClusterScenario",
    "DurableOptions",
    "DurableScenario",
    "LogOptions",
    "LogScenario",
    "Options",
    "RingOptions",
    "RingScenario",
    "Scenario",
    "Script",
    "Summary",
    "Verdict",
    "campaign",
    "command_of",
    "flags",
    "play",
    "rewritten",
    "within",
]
