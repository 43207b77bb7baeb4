"""Runs processes for measurements and counts the processor time they use.

`Server` and `Child` are processes of a measurement, `running` keeps one for a block, `Cores` says which core each
gets. `cpu_seconds`, `queued_seconds`, `resident_bytes` and `peak_bytes` read what a process used; `free_port` and
`raise_open_files` prepare the machine; `SOURCES` is the tree that is measured. `MeasurementFailed` says what to do when
something is missing.

`Fleet` is a cluster of real brokers on the loopback, each a `Member` that can be killed, stopped, woken and started
again; `fleet` keeps one for a block, and `ring_of` is the ring as one broker sees it.

A `NumberedPublisher` stores numbered events (`number_of`) while brokers are killed, and remembers which were
acknowledged; `say_refused` prints what was not.

A `Workload` is plain data: what each subscriber wants (`Want`), which events happen, and how many deliveries are right.
`WORKLOADS` names them and `build` makes one from its seed.
"""

from .brokers import Fleet, Member, fleet, ring_of
from .harness import (
    SOURCES,
    Child,
    Cores,
    MeasurementFailed,
    Server,
    cpu_seconds,
    free_port,
    peak_bytes,
    queued_seconds,
    raise_open_files,
    resident_bytes,
    running,
)
from .numbered import NumberedPublisher, number_of, say_refused
from .workloads import WORKLOADS, Want, Workload, build

__all__ = [
    "Child",
    "Cores",
    "Fleet",
    "MeasurementFailed",
    "Member",
    "NumberedPublisher",
    "SOURCES",
    "Server",
    "WORKLOADS",
    "Want",
    "Workload",
    "build",
    "cpu_seconds",
    "fleet",
    "free_port",
    "number_of",
    "peak_bytes",
    "queued_seconds",
    "raise_open_files",
    "ring_of",
    "resident_bytes",
    "running",
    "say_refused",
]
