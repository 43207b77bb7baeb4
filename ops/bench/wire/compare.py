"""`headgate bench compare`: the same workloads through Headgate and through every peer that is installed, in one run.

Rounds are interleaved: each server has its turn before the first one has its second, so that whatever the machine
does meanwhile happens to all of them. A peer that is missing or fails is named and left out; nothing else stops.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ..kit import WORKLOADS, Cores, MeasurementFailed, Workload, raise_open_files
from ..peers import PEERS, Headgate, Peer
from . import latency, load, report
from .latency import Latency
from .load import Outcome

__all__ = ["Comparison", "add_arguments", "chosen_peers", "run"]

_LATENCY = "d"
_ALL = ("a", "b", "c", "d", "e", "e1k", "pa", "pc", "pe")
_USUAL = ("a", "b", "c", "d", "e", "e1k")
_BATCHES = "500,100,1"


def chosen_peers(names: str) -> list[Peer]:
    """The peers of a list with commas. Raises SystemExit(2) on a name that nobody has."""
    return [PEERS[name]() for name in _words(names, tuple(PEERS), "peer")]


def _words(text: str, known: tuple[str, ...], what: str) -> list[str]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in known:
            print(f"there is no {what} {word!r}; known are {', '.join(known)}", file=sys.stderr)
            raise SystemExit(2)
    return words


class Comparison:
    """What is compared, and what has been measured so far."""

    def __init__(self, contenders: list[Peer], cores: Cores, seconds: float) -> None:
        self.versions = {peer.name: peer.version() for peer in contenders}
        self.contenders = [peer for peer in contenders if self.versions[peer.name]]
        self.cores = cores
        self.seconds = seconds
        self.outcomes: dict[str, dict[str, list[Outcome]]] = {}
        self.latencies: dict[str, list[Latency]] = {}
        self.failures: list[str] = []

    @property
    def missing(self) -> list[str]:
        """Servers that are not installed."""
        return [name for name, version in self.versions.items() if not version]

    def round(self, workload: Workload) -> None:
        """Each contender once."""
        contenders = self.contenders
        if workload.publishers > 1:  # one event a write is a batch of one
            contenders = [Headgate(1), *(peer for peer in contenders if not isinstance(peer, Headgate))]
        results = self.outcomes.setdefault(workload.key, {peer.label: [] for peer in contenders})
        for peer in contenders:
            self._say(f"{workload.key}: {peer.label}")
            try:
                results[peer.label].append(load.measure(peer, workload, self.seconds, self.cores))
            except MeasurementFailed as failure:
                self.failures.append(f"{workload.key}, {peer.label}: {failure}")

    def round_of_latency(self) -> None:
        """Each server once; Headgate unbatched, under its own name."""
        for name in self.versions:
            if not self.versions[name]:
                continue
            peer = Headgate(1) if name == "headgate" else PEERS[name]()
            results = self.latencies.setdefault(name, [])
            self._say(f"d: {name}")
            try:
                results.append(latency.measure(peer, self.seconds, self.cores))
            except MeasurementFailed as failure:
                self.failures.append(f"d, {name}: {failure}")

    def print(self) -> None:
        """All tables, and what is not in them."""
        for key, results in self.outcomes.items():
            report.print_outcomes(WORKLOADS[key](), results, self.cores.shared)
        if self.latencies:
            report.print_latencies(self.latencies)
        report.print_targets(self.outcomes, self.latencies)
        print(f"{', '.join(f'{name} {version}' for name, version in self.versions.items() if version)}; {self.cores}")
        for name in self.missing:
            print(f"{name}: not measured, it is not installed")
        for failure in dict.fromkeys(self.failures):
            print(f"failed: {failure}")

    def _say(self, text: str) -> None:
        if sys.stderr.isatty():
            print(f"\r{text:<40}", end="", file=sys.stderr, flush=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `headgate bench compare`."""
    parser.add_argument("--rounds", type=int, default=3, help="how often everything is measured (default 3)")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each measurement lasts (default 2)")
    parser.add_argument(
        "--only",
        default=",".join(_USUAL),
        help=f"workloads, with commas, of {', '.join(_ALL)} (default {','.join(_USUAL)})",
    )
    parser.add_argument("--peers", default=",".join(PEERS), help="peers beside headgate, with commas (default all)")
    parser.add_argument(
        "--batches", default=_BATCHES, help=f"events in a Headgate batch, with commas (default {_BATCHES})"
    )
    parser.add_argument(
        "--unpinned",
        action="store_true",
        help="let the system choose cores; a server of many threads may then use more",
    )
    parser.add_argument("--json", metavar="FILE", help="write every number to this file")


def run(arguments: argparse.Namespace) -> int:
    """Measure and print; 0 when Headgate was measured in everything that was asked for."""
    raise_open_files()
    keys = _words(arguments.only, _ALL, "workload")
    sizes = [int(word) for word in _words(arguments.batches, ("500", "250", "100", "50", "10", "1"), "batch size")]
    contenders: list[Peer] = [*map(Headgate, sizes), *chosen_peers(arguments.peers)]
    cores = Cores(None, None, None) if arguments.unpinned else Cores.chosen()
    comparison = Comparison(contenders, cores, arguments.seconds)
    workloads = [WORKLOADS[key]() for key in keys if key != _LATENCY]
    for _ in range(arguments.rounds):
        for workload in workloads:
            comparison.round(workload)
        if _LATENCY in keys:
            comparison.round_of_latency()
    comparison.print()
    if arguments.json:
        value = report.as_json(comparison.outcomes, comparison.latencies, comparison.versions, str(comparison.cores))
        Path(arguments.json).write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
    ours = comparison.versions.get("headgate") and not any("headgate" in one for one in comparison.failures)
    return 0 if ours else 1


if __name__ == "__main__":
    _parser = argparse.ArgumentParser(prog="headgate bench compare", description=__doc__.splitlines()[0])
    add_arguments(_parser)
    sys.exit(run(_parser.parse_args()))
