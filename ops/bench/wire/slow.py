"""`headgate bench slow`: what a subscriber that stops reading does to the others, and to the broker's memory.

Fan-out to 50 connections, with all of them reading and with some that subscribe and never read again. Two promises
are checked: the others keep at least nine tenths of their throughput, and the broker's memory grows by no more than
the outbox that each stalled subscriber is allowed, and the buffer of its socket.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from statistics import median

from rich.table import Table

from headgate.broker.core.limits import OUTBOX_BYTES_DEFAULT, OUTBOX_BYTES_TOTAL_DEFAULT
from headgate.protocol.aio import WRITE_BUFFER_HIGH

from ..kit import Cores, MeasurementFailed, build, raise_open_files
from ..peers import Headgate
from .load import Outcome, measure
from .report import console, short

__all__ = ["LOSS_MAX", "Verdict", "add_arguments", "declared_bytes", "judge", "run"]

LOSS_MAX = 0.10
"""Of the others' throughput, the share that stalled subscribers may cost."""

_MIB = 1 << 20
_CONNECTIONS = 50


@dataclass(frozen=True, slots=True)
class Verdict:
    """Events a second to each connection that reads, peaks of the broker's memory, and the declared bound of growth."""

    rate_alone: float
    rate_beside: float
    bytes_alone: float
    bytes_beside: float
    bytes_declared: int
    lost: int

    @property
    def change(self) -> float:
        """Of the others' throughput; negative is a loss."""
        return self.rate_beside / self.rate_alone - 1

    @property
    def kept(self) -> bool:
        """Whether both promises held, and nobody who was reading lost anything."""
        growth = self.bytes_beside - self.bytes_alone
        return self.change > -LOSS_MAX and growth <= self.bytes_declared and not self.lost


def declared_bytes(stalled: int) -> int:
    """What so many stalled subscribers may make the broker keep: outboxes within both bounds, and socket buffers."""
    return min(stalled * OUTBOX_BYTES_DEFAULT, OUTBOX_BYTES_TOTAL_DEFAULT) + 2 * stalled * WRITE_BUFFER_HIGH


def judge(alone: list[Outcome], beside: list[Outcome], stalled: int) -> Verdict:
    """Medians of the rounds."""

    def rate(outcomes: list[Outcome], reading: int) -> float:
        return median(one.arrivals / reading / one.seconds for one in outcomes)

    return Verdict(
        rate(alone, _CONNECTIONS),
        rate(beside, _CONNECTIONS - stalled),
        median(one.peak_bytes for one in alone),
        median(one.peak_bytes for one in beside),
        declared_bytes(stalled),
        sum(one.lost for one in [*alone, *beside]),
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `headgate bench slow`."""
    parser.add_argument("--rounds", type=int, default=3, help="how often both cases are measured (default 3)")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each measurement lasts (default 2)")
    parser.add_argument("--stalled", type=int, default=1, help="subscribers of the 50 that never read (default 1)")


def run(arguments: argparse.Namespace) -> int:
    """Measure and print; 0 when the promises held."""
    if not 0 < arguments.stalled < _CONNECTIONS:
        print(f"--stalled is 1 to {_CONNECTIONS - 1}: somebody has to read", file=sys.stderr)
        return 2
    raise_open_files()
    cores, workload, peer = Cores.chosen(), build("b"), Headgate()
    alone: list[Outcome] = []
    beside: list[Outcome] = []
    try:
        for _ in range(arguments.rounds):
            alone.append(measure(peer, workload, arguments.seconds, cores))
            beside.append(measure(peer, workload, arguments.seconds, cores, arguments.stalled))
    except MeasurementFailed as failure:
        print(f"failed: {failure}", file=sys.stderr)
        return 1
    verdict = judge(alone, beside, arguments.stalled)
    _print(verdict, arguments.stalled)
    return 0 if verdict.kept else 1


def _print(verdict: Verdict, stalled: int) -> None:
    table = Table(title=f"slow consumers: {stalled} of {_CONNECTIONS} never read", title_justify="left")
    for heading in ("", "all read", f"{stalled} stalled", "change", "allowed"):
        table.add_column(heading, justify="right" if heading else "left")
    table.add_row(
        "events/s to each who reads",
        short(verdict.rate_alone),
        short(verdict.rate_beside),
        f"{verdict.change:+.1%}",
        f"-{LOSS_MAX:.0%}",
    )
    table.add_row(
        "broker memory, peak, MiB",
        f"{verdict.bytes_alone / _MIB:.1f}",
        f"{verdict.bytes_beside / _MIB:.1f}",
        f"{(verdict.bytes_beside - verdict.bytes_alone) / _MIB:+.1f}",
        f"+{verdict.bytes_declared / _MIB:.0f}",
    )
    table.add_row("lost by those who read", "", str(verdict.lost), "", "0")
    console().print(table)
    print("the promises held" if verdict.kept else "a promise was BROKEN")


if __name__ == "__main__":
    _parser = argparse.ArgumentParser(prog="headgate bench slow", description=__doc__.splitlines()[0])
    add_arguments(_parser)
    sys.exit(run(_parser.parse_args()))
