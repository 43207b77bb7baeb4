"""The command `python -m headgate.broker.simulator`: one seed with its digest and verdict, or a campaign of many.

Which kind of run is meant is said by `--nodes`, `--log`, `--durable` or `ring`; without, it is one broker. What a kind
can be asked for are the fields of its Options. `prog` is how the command was called: `headgate simulate` is one way.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from .limits import JOBS_MAX, STEPS_MAX
from .scenarios import (
    CORES,
    PROGRAM,
    VARIANTS,
    BrokerOptions,
    ClusterOptions,
    DurableOptions,
    LogOptions,
    Options,
    RingOptions,
    campaign,
    flags,
    play,
    within,
)

__all__ = ["main", "parsers"]

_KINDS = """\
This is one broker with its clients. The other kinds have arguments of their own:

  {prog} --nodes 3 --help    a cluster of brokers
  {prog} --log --help        a cluster that keeps logs, on disks that fail
  {prog} --durable --help    clients with durable subscriptions, that come and go
  {prog} ring --help         the ring of brokers alone, and its invariant
"""


def main(argv: Sequence[str] | None = None, write: Callable[[str], object] | None = None, prog: str = PROGRAM) -> int:
    """Run the command: 0 when every promise was kept, 1 when one was broken. argparse exits with 2 for wrong words."""
    argv = sys.argv[1:] if argv is None else list(argv)
    write = sys.stdout.write if write is None else write
    kind = _kind_of(argv)
    words = [word for word in argv if word not in kind.words]
    arguments = _parser(kind, prog).parse_args(words)
    options = kind(**{one.name: getattr(arguments, one.name) for _, one in flags(kind)})
    first = options.seed if arguments.first_seed is None else arguments.first_seed
    if isinstance(options, RingOptions) and arguments.table:
        return _table(options, range(first, first + (arguments.campaign or 100)), write, arguments.jobs)
    if arguments.campaign:
        summary = campaign(options, range(first, first + arguments.campaign), write, arguments.jobs)
        write("".join(f"{line}\n" for line in summary.lines()))
        return 1 if summary.failures else 0
    with ExitStack() as stack:
        trace = None
        if arguments.trace is not None:
            trace = stack.enter_context(arguments.trace.open("w", encoding="utf-8")).write
        verdict = play(options, trace)
    write("".join(f"{line}\n" for line in verdict.lines()))
    return 1 if verdict.failure else 0


def _kind_of(argv: Sequence[str]) -> type[Options]:
    if argv[:1] == ["ring"]:
        return RingOptions
    if "--log" in argv:
        return LogOptions
    if "--durable" in argv:
        return DurableOptions
    return ClusterOptions if any(word.partition("=")[0] == "--nodes" for word in argv) else BrokerOptions


def _table(options: RingOptions, seeds: Sequence[int], write: Callable[[str], object], jobs: int) -> int:
    """Each variant of the ring in a row; the command fails only when the corrected protocol does, and says where."""
    write(f"{'variant':<38} {'broke safety':>14} {'never ideal':>13} {'crashes refused':>16}\n")
    failed = 0
    for name, different in VARIANTS.items():
        changed: Any = different
        must_hold = name.startswith("corrected")
        summary = campaign(replace(options, **changed), seeds, write if must_hold else lambda text: None, jobs)
        refused, late = summary.counts["refused"], summary.broken["BecomesIdeal"]
        share = 100.0 * refused / max(1, refused + summary.counts["crashes"])
        safety, liveness = (f"{count} / {summary.runs}" for count in (len(summary.failures) - late, late))
        write(f"{name:<38} {safety:>14} {liveness:>13} {share:>14.1f} %\n")
        failed += bool(summary.failures) and must_hold
    return 1 if failed else 0


def parsers(prog: str) -> list[ArgumentParser]:
    """The parsers of all kinds of runs."""
    return [_parser(kind, prog) for kind in (BrokerOptions, ClusterOptions, LogOptions, DurableOptions, RingOptions)]


def _parser(kind: type[Options], prog: str) -> ArgumentParser:
    words = ("--nodes N",) if kind is ClusterOptions else kind.words
    parser = ArgumentParser(
        prog=" ".join((prog, *words)),
        description=kind.about,
        epilog=_KINDS.format(prog=prog) if kind is BrokerOptions else None,
        formatter_class=RawDescriptionHelpFormatter,
    )
    for flag, one in flags(kind):
        about = one.metadata
        default = about.get("unsaid", one.default)
        if isinstance(default, bool):
            parser.add_argument(flag, dest=one.name, action="store_true", help=about["help"])
        else:
            more = {"choices": about["choices"]} if "choices" in about else {"type": about["read"]}
            parser.add_argument(flag, dest=one.name, default=default, help=about["help"], **more)
    parser.add_argument("--trace", type=Path, help="write every input and effect to this file")
    number = within(1, STEPS_MAX)
    parser.add_argument("--campaign", "--seeds", type=number, metavar="N", help="run N seeds, print what fails")
    jobs = within(1, JOBS_MAX)
    parser.add_argument("--jobs", type=jobs, default=CORES, metavar="N", help="play N seeds at a time (one a core)")
    parser.add_argument("--first-seed", type=int, help="where a campaign begins (the seed)")
    if kind is RingOptions:
        parser.add_argument("--table", action="store_true", help="every variant of the protocol in a row")
    return parser
