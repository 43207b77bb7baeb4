"""Results as tables for people and as JSON for scripts. Rates are medians of the rounds, and ratios are to nats-server.

A ratio only means something within one run on one machine; that is why no table of another run is ever mixed in.
`per core` is the rate divided by the share of a core that the server had: where others use the machine at the same
time it is the steadier figure, because it leaves out the time that was theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from headgate.ops.tables import console_for

from ..kit import Workload
from .latency import Latency
from .load import Outcome, Shares, bottleneck

__all__ = [
    "REFERENCE",
    "TARGETS",
    "as_json",
    "console",
    "latency_ratio",
    "median_rate",
    "print_latencies",
    "print_outcomes",
    "print_targets",
    "short",
]

_WIDTH_IN_FILES = 120

REFERENCE = "nats"
"""The peer that ratios are given to."""

TARGETS: dict[str, float] = {"a": 1.0, "b": 3.0, "c": 2.0, "e1k": 40.0}
"""Workload -> at least so many times the reference's rate, for Headgate with batches as shipped."""

LATENCY_RATIO_MAX = 1.2
"""p50 and p99 of Headgate, at most so many times the reference's."""


def short(value: float) -> str:
    """A number in four characters or so: 950, 12.3 k, 4.56 M.

    >>> short(950), short(12_340), short(4_560_000)
    ('950', '12.3 k', '4.56 M')
    """
    if value >= 1e6:
        return f"{value / 1e6:.2f} M" if value < 1e7 else f"{value / 1e6:.1f} M"
    return f"{value / 1e3:.1f} k" if value >= 1e4 else f"{value:.0f}"


def console() -> Console:
    """A terminal's own width; in a file or pipe enough that nothing is cut."""
    return console_for(None, _WIDTH_IN_FILES)


def median_rate(outcomes: Sequence[Outcome]) -> float:
    """The rate in the middle of the rounds."""
    return median(outcome.rate for outcome in outcomes)


def _median_shares(outcomes: Sequence[Outcome]) -> Shares:
    return Shares(
        median(outcome.shares.server for outcome in outcomes),
        median(outcome.shares.generator for outcome in outcomes),
        median(outcome.shares.sink for outcome in outcomes),
        median(outcome.shares.queued for outcome in outcomes),
    )


def _ratio(value: float, reference: float | None) -> str:
    return f"{value / reference:.2f}" if reference else "-"


def print_outcomes(
    workload: Workload, results: Mapping[str, Sequence[Outcome]], shared_core: bool, target: Console | None = None
) -> None:
    """The table of one workload."""
    table = Table(title=f"{workload.key}: {workload.title}", title_justify="left")
    table.add_column("server")
    for heading in (workload.unit, "lowest", "highest", f"x {REFERENCE}", "per core", "server", "gener.", "sink"):
        table.add_column(heading, justify="right")
    table.add_column("bottleneck")
    table.add_column("lost", justify="right")
    reference = median_rate(results[REFERENCE]) if results.get(REFERENCE) else None
    for label, outcomes in results.items():
        if not outcomes:
            table.add_row(label, "not measured")
            continue
        rates = [outcome.rate for outcome in outcomes]
        shares = _median_shares(outcomes)
        table.add_row(
            label,
            short(median(rates)),
            short(min(rates)),
            short(max(rates)),
            _ratio(median(rates), reference),
            short(median(outcome.rate_of_core for outcome in outcomes)),
            *(f"{share:.0%}" for share in (shares.server, shares.generator, shares.sink)),
            bottleneck(shares, shared_core),
            str(sum(outcome.lost for outcome in outcomes)),
        )
    (target or console()).print(table)


def print_latencies(results: Mapping[str, Sequence[Latency]], target: Console | None = None) -> None:
    """The table of workload d."""
    table = Table(title="d: latency at 1,000 events a second, one to one", title_justify="left")
    table.add_column("server")
    for heading in ("p50 us", "p99 us", f"p50 x {REFERENCE}", f"p99 x {REFERENCE}", "server CPU", "lost"):
        table.add_column(heading, justify="right")
    for label, latencies in results.items():
        if not latencies:
            table.add_row(label, "not measured")
            continue
        table.add_row(
            label,
            f"{median(one.p50 for one in latencies):.0f}",
            f"{median(one.p99 for one in latencies):.0f}",
            *(f"{ratio:.2f}" if ratio else "-" for ratio in latency_ratio(results, label)),
            f"{median(one.server_share for one in latencies):.1%}",
            str(sum(one.lost for one in latencies)),
        )
    (target or console()).print(table)


def latency_ratio(results: Mapping[str, Sequence[Latency]], label: str) -> tuple[float | None, float | None]:
    """(p50, p99) of a server over those of the reference; None when one of them was not measured."""
    mine, reference = results.get(label), results.get(REFERENCE)
    if not mine or not reference:
        return None, None
    return (
        median(one.p50 for one in mine) / median(one.p50 for one in reference),
        median(one.p99 for one in mine) / median(one.p99 for one in reference),
    )


def print_targets(
    outcomes: Mapping[str, Mapping[str, Sequence[Outcome]]],
    latencies: Mapping[str, Sequence[Latency]],
    target: Console | None = None,
) -> None:
    """What Headgate, with batches as shipped, set out to reach against the reference, and whether it did."""
    table = Table(title=f"headgate against {REFERENCE}", title_justify="left")
    for heading in ("workload", "wanted", "measured", "per core", "verdict"):
        table.add_column(heading)
    for key, wanted in TARGETS.items():
        mine, reference = outcomes.get(key, {}).get("headgate"), outcomes.get(key, {}).get(REFERENCE)
        if not mine or not reference:
            table.add_row(key, f">= {wanted:g} x", "not measured", "-", "-")
            continue
        ratio = median_rate(mine) / median_rate(reference)
        core = median(one.rate_of_core for one in mine) / median(one.rate_of_core for one in reference)
        table.add_row(
            key, f">= {wanted:g} x", f"{ratio:.2f} x", f"{core:.2f} x", "reached" if ratio >= wanted else "MISSED"
        )
    for name, latency in zip(("d, p50", "d, p99"), latency_ratio(latencies, "headgate"), strict=True):
        if latency is None:
            table.add_row(name, f"<= {LATENCY_RATIO_MAX:g} x", "not measured", "-", "-")
        else:
            verdict = "reached" if latency <= LATENCY_RATIO_MAX else "MISSED"
            table.add_row(name, f"<= {LATENCY_RATIO_MAX:g} x", f"{latency:.2f} x", "-", verdict)
    (target or console()).print(table)


def as_json(
    outcomes: Mapping[str, Mapping[str, Sequence[Outcome]]],
    latencies: Mapping[str, Sequence[Latency]],
    versions: Mapping[str, str | None],
    cores: str,
) -> dict[str, Any]:
    """Everything, round by round; `None` as a version says that the server was not installed and not measured."""
    return {
        "versions": dict(versions),
        "cores": cores,
        "workloads": {
            key: {
                label: {
                    "rate": median_rate(rounds) if rounds else None,
                    "rate_of_core": median(one.rate_of_core for one in rounds) if rounds else None,
                    "rounds": [asdict(one) | {"rate": one.rate, "lost": one.lost} for one in rounds],
                }
                for label, rounds in results.items()
            }
            for key, results in outcomes.items()
        },
        "latency": {label: [asdict(one) for one in rounds] for label, rounds in latencies.items()},
    }
