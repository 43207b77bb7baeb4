"""The command `python -m headgate.broker.simulator`: one seed with its digest and verdict, or a campaign of many.

With `--nodes` it is a whole cluster that runs, with arguments of its own (`cluster_command.py`); with `--log` one that
keeps logs on disks that fail (`log_command.py`); `ring` is the ring of brokers alone (`ring_campaign.py`). `prog` is
how the command was called: `headgate simulate` is one way.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from .arguments import within
from .cluster_command import cluster_main, cluster_parser
from .faults import FAULTS, parse_faults
from .limits import CLIENTS_MAX, REPORTED_FAILURES_MAX, STEPS_MAX
from .log_command import log_main, log_parser
from .report import Summary, command_of, verdict_lines
from .ring_campaign import main as ring_main
from .ring_campaign import ring_parser
from .scenarios import ABLATIONS, Options, run_seed

__all__ = ["main", "parsers"]

_PROGRAM = "python -m headgate.broker.simulator"
_RING = "ring"
_KINDS = """\
This is one broker with its clients. The other kinds have arguments of their own:

  {prog} --nodes 3 --help    a cluster of brokers
  {prog} --log --help        a cluster that keeps logs, on disks that fail
  {prog} ring --help         the ring of brokers alone, and its invariant
"""


def main(argv: Sequence[str] | None = None, write: Callable[[str], object] | None = None, prog: str = _PROGRAM) -> int:
    """0 when every promise was kept, 1 when one was broken; argparse says 2 for a wrong command line."""
    argv = sys.argv[1:] if argv is None else argv
    write = sys.stdout.write if write is None else write
    if argv[:1] == [_RING]:
        return ring_main(argv[1:], write, f"{prog} {_RING}")
    if "--log" in argv:
        return log_main(argv, write, prog)
    if any(argument.partition("=")[0] == "--nodes" for argument in argv):
        return cluster_main(argv, write, prog)
    arguments = broker_parser(prog).parse_args(argv)
    options = Options(
        seed=arguments.seed,
        steps=arguments.steps,
        clients=arguments.clients,
        faults=arguments.faults,
        checked=not arguments.fast,
        ablation=arguments.ablate,
    )
    if arguments.campaign:
        first = arguments.seed if arguments.first_seed is None else arguments.first_seed
        return _campaign(options, range(first, first + arguments.campaign), write)
    with ExitStack() as stack:
        trace = None
        if arguments.trace is not None:
            trace = stack.enter_context(arguments.trace.open("w", encoding="utf-8")).write
        verdict = run_seed(options, trace)
    write("".join(f"{line}\n" for line in verdict_lines(verdict)))
    return 1 if verdict.failure else 0


def _campaign(options: Options, seeds: Sequence[int], write: Callable[[str], object]) -> int:
    """One line for each failing seed, then the sums."""
    summary = Summary()
    for seed in seeds:
        verdict = run_seed(replace(options, seed=seed))
        summary.add(verdict)
        if verdict.failure and summary.failures <= REPORTED_FAILURES_MAX:
            write(f"{verdict.failure.splitlines()[0][:300]}\n    {command_of(verdict)}\n")
    write("".join(f"{line}\n" for line in summary.lines()))
    return 1 if summary.failures else 0


def parsers(prog: str) -> list[argparse.ArgumentParser]:
    """The arguments of each kind of simulation."""
    return [broker_parser(prog), cluster_parser(prog), log_parser(prog), ring_parser(f"{prog} {_RING}")]


def broker_parser(prog: str) -> argparse.ArgumentParser:
    """The arguments of the kind that is meant when nothing else is said."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Run the broker in virtual time under faults, and check every promise it makes.",
        epilog=_KINDS.format(prog=prog),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=1, help="everything in a run follows from it (1)")
    parser.add_argument("--steps", type=within(1, STEPS_MAX), default=2_000, help="events of the safety phase (2000)")
    parser.add_argument("--clients", type=within(1, CLIENTS_MAX), default=6, help="how many (6)")
    text = f"comma-separated of {', '.join(FAULTS)}; or none (all of them)"
    parser.add_argument("--faults", type=_faults, default=FAULTS, help=text)
    parser.add_argument("--ablate", choices=sorted(ABLATIONS), default="", help="switch off one safeguard")
    parser.add_argument("--trace", type=Path, help="write every input and effect to this file")
    parser.add_argument("--fast", action="store_true", help="pass message objects instead of bytes")
    parser.add_argument("--campaign", type=within(1, STEPS_MAX), metavar="N", help="run N seeds, print what fails")
    parser.add_argument("--first-seed", type=int, help="where a campaign begins (the seed)")
    return parser


def _faults(text: str) -> tuple[str, ...]:
    try:
        return parse_faults(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
