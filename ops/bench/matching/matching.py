"""`headgate bench matching`: what the matching engine costs, without sockets; one table for each claim.

    topics      HIER's experiment: its three algorithms and ours       selective   symbol = ? AND price BETWEEN ? AND ?
    padres      real stock subscriptions and quotes                    mixed       all kinds of conditions
    flux        subscriptions come and go while events are matched     worst       the cases that must stay bounded
    numpy       a batch looked up at once, or row by row as we do      statistics  candidates, hit rates and bytes

Only ratios within one table mean anything. Times are of one core and in pure Python; memory is that of the index,
without the conditions' text that the caller holds. `first` is an event when no event has been matched yet: answers that
are not ready are made then and kept, and what is ready has to come from memory.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from rich.table import Table

from headgate.matching.index import Answers, RangeTable, Span

from ..wire import console, short
from .dynamic import BANDS, cost_of, series, spared
from .flux import disturbed_row, flux_row, fluxes
from .measure import Rates, built, bytes_each, rates, seconds
from .topics import topic_rows
from .workloads import batches_of, mixed, padres, quote_batch, quotes, selective
from .worst import worst_rows

__all__ = ["VERBS", "add_arguments", "run"]

_GROWTH_MAX = 3.0
_SYMBOLS = 100
_PADRES_EVENTS = 400
_TURNS = 10
_MIXED_MAX = 100_000
_SPANS: Answers[Span, Span] = Answers(
    tuple, lambda spans, span: (*spans, span), lambda spans, span: tuple(o for o in spans if o is not span), lambda _: 1
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `headgate bench matching`."""
    parser.add_argument("what", nargs="*", metavar="|".join(VERBS), help="which tables (default all)")
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[1_000, 10_000], help="numbers of subscriptions (default 1000 10000)"
    )
    parser.add_argument("--events", type=int, default=5_000, help="events in the ring (default 5000)")
    parser.add_argument("--batch", type=int, default=100, help="events in a batch (default 100)")
    parser.add_argument("--symbols", type=int, default=_SYMBOLS, help=f"symbols of selective (default {_SYMBOLS})")
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many is taken (default 3)")
    parser.add_argument("--seed", type=int, default=1, help="of everything that is drawn (default 1)")


def run(arguments: argparse.Namespace) -> int:
    """Measure and print; 2 when a verb is not known."""
    wanted = arguments.what or list(VERBS)
    unknown = [verb for verb in wanted if verb not in VERBS]
    if unknown:
        print(f"{unknown[0]}: choose from {', '.join(VERBS)}", file=sys.stderr)
        return 2
    for verb in wanted:
        console().print(VERBS[verb](arguments))
    return 0


def _table(title: str, *headings: str) -> Table:
    table = Table(title=title, title_justify="left")
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place else "left")
    return table


_RATE_HEADINGS = (
    "subscriptions", "add us", "bytes each", "matches", "first us", "batch us", "events/s", "growth", "single us",
    "events/s", "p50", "p99",
)  # fmt: skip


def _rate_row(count: int, add: float, each: float, found: Rates, least: float) -> list[str]:
    return [
        f"{count:,}",
        f"{add * 1e6:.0f}",
        f"{each:.0f}",
        f"{found.matches:.1f}",
        f"{found.first_us:.2f}",
        f"{found.batch_us:.2f}",
        short(1e6 / found.batch_us),
        f"{found.batch_us / least:.2f}",
        f"{found.single_us:.2f}",
        short(1e6 / found.single_us),
        f"{found.single_p50_us:.1f}",
        f"{found.single_p99_us:.1f}",
    ]


def _selective(arguments: argparse.Namespace) -> Table:
    """Time by number of subscriptions, with about ten matches an event throughout."""
    table = _table(
        f"selective: growth at most {_GROWTH_MAX:.0f} from 10^3 to 10^6; batches of {arguments.batch}", *_RATE_HEADINGS
    )
    least = 0.0
    for count in arguments.sizes:
        rng = Random(arguments.seed)
        wanted = selective(count, arguments.symbols, 10, rng)
        batches = batches_of(arguments.events, arguments.batch, arguments.symbols, rng)
        each = bytes_each(wanted, batches[:20])
        index, add = built(wanted)
        del wanted
        found = rates(index, batches, rounds=arguments.rounds)
        least = least or found.batch_us
        table.add_row(*_rate_row(count, add, each, found, least))
    return table


def _mixed(arguments: argparse.Namespace) -> Table:
    table = _table(
        f"mixed: p50 at most 200 us at 10^4, at most 1 KiB each; batches of {arguments.batch}", *_RATE_HEADINGS
    )
    least = 0.0
    for count in arguments.sizes:
        if count > _MIXED_MAX:
            continue  # parsing a million conditions takes longer than anybody waits
        rng = Random(arguments.seed)
        wanted = mixed(count, rng)
        batches = batches_of(arguments.events, arguments.batch, 200, rng, price=1000.0)
        each = bytes_each(wanted, batches[:20])
        index, add = built(wanted)
        found = rates(index, batches, rounds=arguments.rounds)
        least = least or found.batch_us
        table.add_row(*_rate_row(count, add, each, found, least))
    return table


def _padres(arguments: argparse.Namespace) -> Table:
    rng = Random(arguments.seed)
    known, real = quotes(rng)
    source = "PADRES quotes" if real else "drawn quotes (no data found: set HEADGATE_DATA)"
    table = _table(f"padres: the template mix over {source}; ns for each match", *_RATE_HEADINGS, "ns/match")
    least = 0.0
    for count in arguments.sizes:
        wanted = padres(count, known, rng)
        events = max(50, min(arguments.events, _PADRES_EVENTS * 10_000 // count))
        rows = [rng.choice(known) for _ in range(events)]
        size = min(arguments.batch, events)
        batches = [quote_batch(rows[at : at + size]) for at in range(0, events - size + 1, size)]
        each = bytes_each(wanted, batches[:2])
        index, add = built(wanted)
        found = rates(index, batches, rounds=arguments.rounds)
        least = least or found.batch_us
        table.add_row(*_rate_row(count, add, each, found, least), f"{found.batch_us * 1e3 / max(found.matches, 1):.1f}")
    return table


def _topics(arguments: argparse.Namespace) -> Table:
    table = _table(
        "topics (HIER IV-B): 7 levels of 50 values, one wildcard; memory and times beside the tree's",
        "algorithm", "patterns", "resolve us", "ratio", "add us", "ratio", "remove us", "ratio", "bytes each", "ratio",
    )  # fmt: skip
    for row in topic_rows(arguments.sizes, arguments.seed, arguments.rounds):
        table.add_row(*row)
    return table


def _flux(arguments: argparse.Namespace) -> Table:
    table = _table(
        "flux: one goes and one comes before each match, or each tenth; p99 of a match at most 2 times that of idle "
        "ones.\nDisturbed: the same changes, made in another index",
        "held", "events", "changes/s", "idle p50", "p99", "flux p50", "p99", "ratio", "a change", "disturbed p50",
        "p99", "ratio",
    )  # fmt: skip
    shapes = [(1, 1), (1, _TURNS), (arguments.batch, 1)]
    for count in arguments.sizes:
        found = fluxes(count, arguments.symbols, arguments.events, shapes, Random(arguments.seed), arguments.rounds)
        for (size, every), one in zip(shapes, found, strict=True):
            table.add_row(*flux_row(count, size, one), f"each {every}", *disturbed_row(one))
    return table


def _statistics(arguments: argparse.Namespace) -> Table:
    """The statistics of an index, beside the measured figures."""
    table = _table(
        "statistics: what the index says after matching; measured is by tracemalloc",
        "workload", "subscriptions", "conditions", "places", "scanned", "candidates each", "true of them", "matches",
        "bytes each", "measured",
    )  # fmt: skip
    for name, make in {"selective": selective, "mixed": mixed}.items():
        for count in arguments.sizes:
            if count > _MIXED_MAX:
                continue
            rng = Random(arguments.seed)
            wanted = selective(count, arguments.symbols, 10, rng) if make is selective else mixed(count, rng)
            symbols, price = (arguments.symbols, 100.0) if make is selective else (200, 1000.0)
            batches = batches_of(arguments.events, arguments.batch, symbols, rng, price=price)
            index = built(wanted)[0]
            found = [index.match(("q",), len(batch["symbol"]), batch) for batch in batches]
            matches = sum(len(ids) * len(rows) for groups in found for ids, rows in groups)
            said = index.statistics()
            table.add_row(
                name,
                f"{count:,}",
                f"{said.conditions:,}",
                f"{said.places:,}",
                f"{said.scanned_conditions:,}",
                f"{said.candidates_each:.1f}",
                f"{said.hit_rate:.2f}",
                f"{matches / said.rows:.1f}",
                f"{said.bytes_each:.0f}",
                f"{bytes_each(wanted, batches):.0f}",
            )
    return table


def _numpy(arguments: argparse.Namespace) -> Table:
    """Where rows of one batch meet in one range table, numpy can look all of them up at once."""
    table = _table(
        "numpy: ranges of one table, ns an event; ours is one search for each row",
        "ranges", "rows that meet", "ours", "searchsorted", "ratio",
    )  # fmt: skip
    try:
        import numpy as np  # a tool of developers, which a broker does without
    except ImportError:
        table.title = "numpy: not installed, so not measured"
        return table
    rng = Random(arguments.seed)
    for count in arguments.sizes:
        spans = [Span(low, low + 1000.0 / count) for low in (rng.uniform(0, 100) for _ in range(count))]
        ranges = RangeTable(_SPANS)
        for span in spans:
            ranges.add(span)
        ends = np.array(sorted({end for span in spans for end in (span.low, span.high)}))
        answers: list[list[tuple[Span, ...]]] = [[] for _ in range(len(ends) + 1)]
        for answer, value in zip(answers, (-1.0, *ends.tolist()), strict=True):
            ranges.find(value, answer)
        for rows in (1, 10, 100, 1000):
            values = [rng.uniform(0, 100) for _ in range(rows)]

            def at_once(values: list[float] = values, ends: Any = ends, answers: Any = answers) -> None:
                [answers[cell] for cell in np.searchsorted(ends, np.array(values), "right").tolist()]

            ours, theirs = _both_ways(ranges, at_once, values, arguments.rounds)
            table.add_row(f"{count:,}", str(rows), f"{ours:.1f}", f"{theirs:.1f}", f"{ours / theirs:.2f}")
    return table


def _both_ways(
    ranges: RangeTable[Span, Span], at_once: Callable[[], None], values: list[float], rounds: int
) -> tuple[float, float]:
    """Nanoseconds a row, one by one and at once; the conversion of a column is part of numpy's."""
    turns = max(1, 2_000 // len(values))

    def one_by_one() -> None:
        found: list[tuple[Span, ...]] = []
        for value in values:
            ranges.find(value, found)

    def nanoseconds(act: Callable[[], None]) -> float:
        def repeat() -> None:
            for _ in range(turns):
                act()

        return seconds(repeat, rounds) * 1e9 / turns / len(values)

    return nanoseconds(one_by_one), nanoseconds(at_once)


def _worst(arguments: argparse.Namespace) -> Table:
    table = _table("worst cases, each with its bound", "case", "size", "us an event", "what bounds it")
    rows: Sequence[tuple[str, ...]] = worst_rows(max(arguments.sizes), Random(arguments.seed))
    for row in rows:
        table.add_row(*row)
    return table


def _dynamic(arguments: argparse.Namespace) -> Table:
    """Time by number of DELTA subscriptions to one topic, with about ten deliveries an event throughout."""
    table = _table(
        f"dynamic: time follows what is fired: growth at most {_GROWTH_MAX:.0f} from 10^3 to 10^6",
        "subscriptions", "add us", "bytes each", "fired", "us an event", "us a fired one", "growth",
    )  # fmt: skip
    least = 0.0
    for count in arguments.sizes:
        found = cost_of(count, arguments.events, Random(arguments.seed))
        each = found.event_us / max(found.fired, 1 / arguments.events)
        least = least or each
        table.add_row(
            f"{count:,}", f"{found.add_us:.1f}", f"{found.bytes_each:.0f}", f"{found.fired:.1f}",
            f"{found.event_us:.1f}", f"{each:.2f}", f"{each / least:.2f}",
        )  # fmt: skip
    return table


def _series(arguments: argparse.Namespace) -> Table:
    """Real series under bands of some deviations of their steps."""
    table = _table(
        "series: deliveries of DELTA(value) > c over real series (no rows: set HEADGATE_DATA)",
        "series", "events", "c in deviations of a step", "c", "delivered", "suppressed", "exact", "bound kept",
        "in levels", "bound kept",
    )  # fmt: skip
    for name, values in series():
        for deviations in BANDS:
            found = spared(values, deviations)
            share = 1 - found.delivered / found.events
            table.add_row(
                name, f"{found.events:,}", f"{deviations:g}", f"{found.width:.4g}", f"{found.delivered:,}",
                f"{share:.1%}", "yes" if found.exact else "NO", "yes" if found.kept else "NO",
                f"{found.in_levels:,}", "yes" if found.kept_in_levels else "NO",
            )  # fmt: skip
    return table


VERBS: dict[str, Callable[[argparse.Namespace], Table]] = {
    "topics": _topics,
    "selective": _selective,
    "mixed": _mixed,
    "padres": _padres,
    "flux": _flux,
    "dynamic": _dynamic,
    "series": _series,
    "worst": _worst,
    "numpy": _numpy,
    "statistics": _statistics,
}
"""What can be measured, in the order in which all is."""


if __name__ == "__main__":
    _parser = argparse.ArgumentParser(prog="headgate bench matching", description=__doc__.splitlines()[0])
    add_arguments(_parser)
    sys.exit(run(_parser.parse_args()))
