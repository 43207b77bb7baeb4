"""The command with `--log`: one seed of a cluster that keeps logs, with its digest and verdict, or a campaign."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from .arguments import within
from .faults import LOG_FAULTS, NAMED_FAULTS
from .limits import CLIENTS_MAX, NODES_MAX, REPORTED_FAILURES_MAX, STEPS_MAX
from .scenarios import DISK_ABLATIONS, LOG_ABLATIONS, LogRunOptions, LogVerdict, run_log

__all__ = ["command_of_log", "log_campaign", "log_main", "log_parser"]


def log_campaign(
    options: LogRunOptions, seeds: Sequence[int], write: Callable[[str], object] = lambda text: None
) -> tuple[list[LogVerdict], Counter[str]]:
    """Run many seeds; each failure is told at once. What failed, and what happened in all of them."""
    failures: list[LogVerdict] = []
    counts: Counter[str] = Counter()
    for seed in seeds:
        verdict = run_log(replace(options, seed=seed))
        counts.update(verdict.counts)
        if verdict.failure:
            failures.append(verdict)
            if len(failures) <= REPORTED_FAILURES_MAX:
                write(f"{verdict.failure.splitlines()[0][:300]}\n    {command_of_log(verdict.options)}\n")
    return failures, counts


def log_main(argv: Sequence[str], write: Callable[[str], object], prog: str) -> int:
    """0 when every promise was kept, 1 when one was broken; argparse says 2 for a wrong command line."""
    arguments = log_parser(prog).parse_args(argv)
    options = LogRunOptions(
        arguments.seed, arguments.nodes, arguments.seconds, arguments.producers, arguments.faults, arguments.ablate
    )
    if arguments.campaign:
        failures, counts = log_campaign(options, range(options.seed, options.seed + arguments.campaign), write)
        write(f"{arguments.campaign} seeds, {len(failures)} failed\n{_happened(counts)}\n")
        return 1 if failures else 0
    with ExitStack() as stack:
        trace = None
        if arguments.trace is not None:
            trace = stack.enter_context(arguments.trace.open("w", encoding="utf-8")).write
        verdict = run_log(options, trace)
    lines = [
        command_of_log(options),
        f"swarm    {verdict.swarm}",
        _happened(verdict.counts),
        f"digest   {verdict.digest}",
    ]
    lines += [f"verdict  {verdict.failure or 'every promise was kept'}", verdict.details.rstrip()]
    write("".join(f"{line}\n" for line in lines if line))
    return 1 if verdict.failure else 0


def command_of_log(options: LogRunOptions) -> str:
    """What to type to see this run again."""
    text = f"python -m headgate.broker.simulator --log --nodes {options.nodes} --seed {options.seed} "
    text += (
        f"--seconds {options.seconds:g} --producers {options.producers} --faults {','.join(options.faults) or 'none'}"
    )
    return f"{text} --ablate {options.ablation}" if options.ablation else text


def _happened(counts: dict[str, int]) -> str:
    return "happened " + ", ".join(f"{count:,} {name}" for name, count in counts.items())


def log_parser(prog: str) -> argparse.ArgumentParser:
    """Its arguments; `prog` is how the simulator was called."""
    parser = argparse.ArgumentParser(
        prog=f"{prog} --log",
        description="Run a cluster that keeps logs in virtual time, harm its disks, and check every promise it makes.",
    )
    parser.add_argument("--log", action="store_true", help="this one")
    parser.add_argument("--nodes", type=within(1, NODES_MAX), default=3, help="brokers (3)")
    parser.add_argument("--seed", type=int, default=1, help="everything in a run follows from it (1)")
    parser.add_argument("--seconds", type=float, default=20.0, help="virtual seconds of the safety phase (20)")
    parser.add_argument("--producers", type=within(1, CLIENTS_MAX), default=4, help="how many (4)")
    text = f"comma-separated of {', '.join((*LOG_FAULTS, *NAMED_FAULTS))}; or none (all but the last two)"
    parser.add_argument("--faults", type=_faults, default=LOG_FAULTS, help=text)
    parser.add_argument(
        "--ablate", choices=sorted(LOG_ABLATIONS | DISK_ABLATIONS), default="", help="switch off one safeguard"
    )
    parser.add_argument("--trace", type=Path, help="write every input and effect to this file")
    parser.add_argument("--campaign", type=within(1, STEPS_MAX), metavar="N", help="run N seeds, print what fails")
    return parser


def _faults(text: str) -> tuple[str, ...]:
    kinds = tuple(kind for kind in text.split(",") if kind and kind != "none")
    for kind in kinds:
        if kind not in (*LOG_FAULTS, *NAMED_FAULTS):
            raise argparse.ArgumentTypeError(
                f"no such fault: {kind}; there are {', '.join((*LOG_FAULTS, *NAMED_FAULTS))}, and none"
            )
    return kinds
