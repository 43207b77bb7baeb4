"""Runs many seeds of the ring world and reports them: `python -m headgate.broker.simulator.ring_campaign`.

--seeds 1000 --steps 300 --nodes 8            churn within the assumptions: every seed must keep the invariant
--kind storm | start | partition              other kinds of runs (`ring_run.py`)
--ablate notify                               without one safeguard: prints what it breaks, and in how many seeds
--table                                       the table of reliability 1.5, each variant in a row
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from .limits import REPORTED_FAILURES_MAX
from .scenarios import KINDS, RING_ABLATIONS, RingOptions, RingVerdict, run_ring

__all__ = ["VARIANTS", "RingSummary", "campaign", "main", "ring_parser"]

_PROGRAM = "python -m headgate.broker.simulator.ring_campaign"

_TOO_LATE = "BecomesIdeal"

VARIANTS: dict[str, dict[str, object]] = {
    "corrected, r=2": {},
    "corrected, r=3": {"list_length": 3},
    "dead head dropped, no padding": {"ablation": "padding"},
    "pad by repeating the last entry": {"ablation": "repeat-last"},
    "join with one successor, no list": {"ablation": "one-successor"},
    "adopt new successor unchecked": {"ablation": "unchecked"},
    "no notify after a dead new successor": {"ablation": "notify"},
    "initial ring of 2 with r=2": {"ablation": "round", "nodes": 2},
    "failures not limited by A3/A4": {"limited": False, "only_invariant": True},
    "busy rule on, answers not spared": {"sees_answers": False, "only_invariant": True},
    "busy rule off, answers not spared": {"sees_answers": False, "ablation": "busy", "only_invariant": True},
}
"""Rows of the table: what is different from the corrected protocol with two successors."""


@dataclass(slots=True)
class RingSummary:
    """Adds up verdicts."""

    runs: int = 0
    safety: int = 0
    liveness: int = 0
    settle_seconds_max: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[RingVerdict] = field(default_factory=list)

    def add(self, verdict: RingVerdict) -> None:
        """One more run."""
        self.runs += 1
        self.counts.update(verdict.counts)
        if not verdict.failure:
            self.settle_seconds_max = max(self.settle_seconds_max, verdict.settle_seconds)
            return
        late = verdict.failure.startswith(_TOO_LATE)
        self.liveness += late
        self.safety += not late
        if len(self.failures) < REPORTED_FAILURES_MAX:
            self.failures.append(verdict)

    def lines(self) -> list[str]:
        """For people."""
        happened = ", ".join(f"{count:,} {name}" for name, count in self.counts.items())
        return [
            f"{self.runs} seeds: {self.safety} broke safety, {self.liveness} never became ideal",
            f"happened: {happened}; settled within {self.settle_seconds_max:.0f} virtual seconds",
        ]


def campaign(options: RingOptions, seeds: Iterable[int]) -> RingSummary:
    """Run all of these seeds."""
    summary = RingSummary()
    for seed in seeds:
        summary.add(run_ring(replace(options, seed=seed)))
    return summary


def main(argv: Sequence[str] | None = None, write: Callable[[str], object] | None = None, prog: str = _PROGRAM) -> int:
    """0 when every seed kept every promise, 1 otherwise; argparse says 2 for a wrong command line."""
    arguments = ring_parser(prog).parse_args(argv)
    write = sys.stdout.write if write is None else write
    options = RingOptions(
        arguments.first_seed,
        steps=arguments.steps,
        nodes=arguments.nodes,
        list_length=arguments.list_length,
        kind=arguments.kind,
        ablation=arguments.ablate,
        limited=not arguments.unlimited,
        sees_answers=not arguments.answers_not_spared,
        churn_seconds=arguments.churn_seconds,
    )
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    if arguments.table:
        return _table(options, seeds, write)
    summary = campaign(options, seeds)
    for verdict in summary.failures:
        write(f"seed {verdict.options.seed}: {verdict.failure.splitlines()[0][:300]}\n{verdict.details}")
    write("".join(f"{line}\n" for line in summary.lines()))
    return 1 if summary.failures else 0


def _table(options: RingOptions, seeds: Sequence[int], write: Callable[[str], object]) -> int:
    """Each variant in a row; the command fails only when the corrected protocol does."""
    write(f"{'variant':<38} {'broke safety':>14} {'never ideal':>13} {'crashes refused':>16}\n")
    failed = 0
    for name, different in VARIANTS.items():
        summary = campaign(replace(options, **different), seeds)  # type: ignore[arg-type]  # names are checked by it
        refused = summary.counts["refused"]
        share = 100.0 * refused / max(1, refused + summary.counts["crashes"])
        safety, liveness = (f"{count} / {summary.runs}" for count in (summary.safety, summary.liveness))
        write(f"{name:<38} {safety:>14} {liveness:>13} {share:>14.1f} %\n")
        failed += bool(summary.failures) and name.startswith("corrected")
    return 1 if failed else 0


def ring_parser(prog: str) -> argparse.ArgumentParser:
    """Its arguments; `prog` is how it was called."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Run the ring of brokers in virtual time under faults, and check its invariant at every change.",
    )
    parser.add_argument("--seeds", type=_positive, default=100, help="how many seeds (100)")
    parser.add_argument("--first-seed", type=int, default=1, help="the first one (1)")
    parser.add_argument("--steps", type=_positive, default=300, help="protocol steps and faults of a run (300)")
    parser.add_argument("--nodes", type=_positive, default=8, help="brokers at the beginning (8)")
    parser.add_argument("--list-length", type=int, choices=range(2, 17), default=2, help="successors a member (2)")
    parser.add_argument("--kind", choices=KINDS, default="churn", help="what happens to the ring (churn)")
    parser.add_argument("--ablate", choices=RING_ABLATIONS, default="", help="switch off one safeguard")
    parser.add_argument("--unlimited", action="store_true", help="crash whoever comes up, whatever A3 and A4 say")
    parser.add_argument(
        "--answers-not-spared", action="store_true", help="read A3 for members' own lists only, not for answers"
    )
    parser.add_argument("--churn-seconds", type=float, default=0.0, help="mean time between faults (drawn)")
    parser.add_argument("--table", action="store_true", help="every variant of the protocol in a row")
    return parser


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"a number from 1 up, not {text}")
    return value


if __name__ == "__main__":
    sys.exit(main())
