"""`headgate bench`: measure this broker, its clients, and its peers beside it."""

from __future__ import annotations

import argparse
import importlib
from typing import Any

from ..exits import DONE
from ..tables import print_map

__all__ = ["BENCHES", "add_arguments", "run"]

BENCHES = {
    "compare": ("wire.compare", "throughput and latency, beside the peers that are installed"),
    "latency": ("wire.latency", "the time from publish to delivery at a steady pace"),
    "clients": ("wire.clients", "what the shipped clients reach by themselves"),
    "rights": ("wire.rights", "what TLS, names, and rights with conditions cost, beside NATS with TLS"),
    "strangers": ("wire.strangers", "what 2,000 handshakes that fail do to a client that works"),
    "slow": ("wire.slow", "what one stalled subscriber does to the others"),
    "matching": ("matching.matching", "the index by itself: topics, conditions, flux, worst cases"),
    "failover": ("cluster.failover", "the time from the kill of a broker until everything works again, part by part"),
    "cluster": ("cluster.cluster", "what it costs to be several brokers, and where the time goes"),
    "moved": ("cluster.moved", "DELTA through several brokers, beside peers that send every event to everybody"),
    "log_store": ("log.store", "the disk under the log: rows a second, and how long one waits for it"),
    "durability": ("log.durability", "what it costs to have events on disks before they are acknowledged"),
    "durable": ("durable.durable", "durable subscriptions: acknowledging, catching up, and many that are idle"),
    "spark_read": ("spark.read", "rows of one broker's log into a DataFrame, beside writing them and beside Parquet"),
    "spark_audit": ("spark.audit", "the audit beside pandas, on a log with planted faults"),
    "spark_publish": ("spark.publish", "rows of a DataFrame into one broker's log, beside a loop over MQTT"),
}
"""Name -> the module of `ops.bench`, and what it measures."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `bench`: each measurement brings its own."""
    benches = parser.add_subparsers(dest="bench", metavar="|".join(BENCHES))
    for bench, (_, text) in BENCHES.items():
        _module(bench).add_arguments(benches.add_parser(bench, help=text, description=text, allow_abbrev=False))


def run(arguments: argparse.Namespace) -> int:
    """Measure, or say what can be measured."""
    if arguments.bench is None:
        print("headgate bench NAME measures; `headgate bench NAME --help` says how. There are:\n")
        print_map({f"  {bench}": text for bench, (_, text) in BENCHES.items()})
        return DONE
    return int(_module(arguments.bench).run(arguments))


def _module(bench: str) -> Any:
    return importlib.import_module(f"headgate.ops.bench.{BENCHES[bench][0]}")
