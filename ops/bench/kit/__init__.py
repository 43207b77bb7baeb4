"""FACE of kit."""

from .brokers import Fleet, Member, fleet
from .harness import (
    Child,
    Cores,
    MeasurementFailed,
    Server,
    cpu_seconds,
    free_port,
    peak_bytes,
    queued_seconds,
    raise_open_files,
    running,
)
from .workloads import WORKLOADS, Want, Workload, build

__all__ = [
    "Child",
    "Cores",
    "Fleet",
    "MeasurementFailed",
    "Member",
    "Server",
    "WORKLOADS",
    "Want",
    "Workload",
    "build",
    "cpu_seconds",
    "fleet",
    "free_port",
    "peak_bytes",
    "queued_seconds",
    "raise_open_files",
    "running",
]
