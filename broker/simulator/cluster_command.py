"""The command with `--nodes`: one seed of a whole cluster with its swarm options, digest and verdict, or a campaign."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from .arguments import within
from .faults import CLUSTER_FAULTS, parse_cluster_faults
from .limits import CLIENTS_MAX, NODES_MAX, REPORTED_FAILURES_MAX, STEPS_MAX
from .scenarios import CLUSTER_ABLATIONS, ClusterRunOptions, ClusterVerdict, run_cluster

__all__ = ["ClusterSummary", "cluster_campaign", "cluster_main", "cluster_parser", "command_of_cluster"]

PLACEMENTS = ("anchored", "counting")
"""What a stream's setting may be, the default first."""


class ClusterSummary:
    """What a campaign came to."""

    def __init__(self) -> None:
        self.runs = 0
        self.failures: list[ClusterVerdict] = []
        self.counts: Counter[str] = Counter()

    def lines(self) -> list[str]:
        """The sums."""
        happened = ", ".join(f"{count:,} {name}" for name, count in self.counts.items())
        return [f"{self.runs} seeds, {len(self.failures)} failed", f"happened: {happened}"]


def cluster_campaign(
    options: ClusterRunOptions, seeds: Sequence[int], write: Callable[[str], object] = lambda text: None
) -> ClusterSummary:
    """Run many seeds; each failure is told at once."""
    summary = ClusterSummary()
    for seed in seeds:
        verdict = run_cluster(replace(options, seed=seed))
        summary.runs += 1
        summary.counts.update(verdict.counts)
        if verdict.failure:
            summary.failures.append(verdict)
            if len(summary.failures) <= REPORTED_FAILURES_MAX:
                write(f"{verdict.failure.splitlines()[0][:300]}\n    {command_of_cluster(verdict.options)}\n")
    return summary


def cluster_main(argv: Sequence[str], write: Callable[[str], object], prog: str) -> int:
    """0 when every promise was kept, 1 when one was broken; argparse says 2 for a wrong command line."""
    arguments = cluster_parser(prog).parse_args(argv)
    options = ClusterRunOptions(
        seed=arguments.seed,
        nodes=arguments.nodes,
        seconds=arguments.seconds,
        clients=arguments.clients,
        faults=arguments.faults,
        ablation=arguments.ablate,
        placement=arguments.placement,
    )
    if arguments.campaign:
        first = arguments.seed if arguments.first_seed is None else arguments.first_seed
        summary = cluster_campaign(options, range(first, first + arguments.campaign), write)
        write("".join(f"{line}\n" for line in summary.lines()))
        return 1 if summary.failures else 0
    with ExitStack() as stack:
        trace = None
        if arguments.trace is not None:
            trace = stack.enter_context(arguments.trace.open("w", encoding="utf-8")).write
        verdict = run_cluster(options, trace)
    write("".join(f"{line}\n" for line in _lines(verdict)))
    return 1 if verdict.failure else 0


def command_of_cluster(options: ClusterRunOptions) -> str:
    """What to type to see this run again."""
    parts = [
        "python -m headgate.broker.simulator",
        f"--nodes {options.nodes} --seed {options.seed} --seconds {options.seconds:g} --clients {options.clients}",
        f"--faults {','.join(options.faults) or 'none'}",
    ]
    if options.placement != PLACEMENTS[0]:
        parts.append(f"--placement {options.placement}")
    return " ".join([*parts, f"--ablate {options.ablation}"] if options.ablation else parts)


def _lines(verdict: ClusterVerdict) -> list[str]:
    counts = ", ".join(f"{count:,} {name}" for name, count in verdict.counts.items())
    lines = [
        command_of_cluster(verdict.options),
        f"swarm    {verdict.swarm}",
        f"happened {counts}; {verdict.seconds:.1f} virtual seconds",
        f"digest   {verdict.digest}",
        f"verdict  {verdict.failure or 'every promise was kept'}",
    ]
    return lines + ([verdict.details.rstrip()] if verdict.details else [])


def cluster_parser(prog: str) -> argparse.ArgumentParser:
    """Its arguments; `prog` is how the simulator was called."""
    parser = argparse.ArgumentParser(
        prog=f"{prog} --nodes N",
        description="Run a cluster in virtual time under faults, and check every promise it makes.",
    )
    parser.add_argument("--nodes", type=within(1, NODES_MAX), required=True, help="brokers at the start")
    parser.add_argument("--seed", type=int, default=1, help="everything in a run follows from it (1)")
    parser.add_argument("--seconds", type=_seconds, default=20.0, help="virtual seconds of the safety phase (20)")
    parser.add_argument("--clients", type=within(1, CLIENTS_MAX), default=6, help="how many (6)")
    text = f"comma-separated of {', '.join(CLUSTER_FAULTS)}; or none, or all (all)"
    parser.add_argument("--faults", type=_faults, default=CLUSTER_FAULTS, help=text)
    parser.add_argument("--ablate", choices=sorted(CLUSTER_ABLATIONS), default="", help="switch off one safeguard")
    text = "how subscriptions are put where events pass: the setting of every stream (anchored)"
    parser.add_argument("--placement", choices=PLACEMENTS, default=PLACEMENTS[0], help=text)
    parser.add_argument("--trace", type=Path, help="write every input and effect to this file")
    parser.add_argument("--campaign", type=within(1, STEPS_MAX), metavar="N", help="run N seeds, print what fails")
    parser.add_argument("--first-seed", type=int, help="where a campaign begins (the seed)")
    return parser


def _faults(text: str) -> tuple[str, ...]:
    try:
        return parse_cluster_faults(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _seconds(text: str) -> float:
    value = float(text)
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"seconds above 0, not {text}")
    return value
