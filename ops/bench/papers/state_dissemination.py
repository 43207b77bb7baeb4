"""STATE 5, Figures 9 and 10: what subscriptions and values cost by SF and MFD, beside one owner and the product's way.

Sources are days of real prices, as in the paper: a stock (or one side of its quotes) and 240 values in a row, in cents,
in ten groups by their standard deviation. The paper had 5,453 of minutes; ours are those of minutes that there are, and
pieces of bars of a second. Each says a value a minute; each subscriber makes a subscription every ten minutes on the
average (Poisson), with a c from 1 to the largest, uniform or Pareto (small ones preferred), of a source whose group is
drawn uniformly or by Pareto (quiet ones preferred). Pareto has exponent 1; the paper does not say. Costs are messages
and hops, over the ways of the broker's own routing.

The paper says nowhere how many brokers a segment has: they are swept. `auto` is what a broker would choose by itself:
one owner with the trigger index, which costs the least messages at any size, until an item has more subscriptions than
one broker should keep (AUTO_MAX); then MFD where the topic alone decides, else SF. `home` is what the product does:
each value goes to all homes of the item, and they decide.
"""

from __future__ import annotations

import argparse
import io
import math
import os
import statistics
import tarfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from rich.table import Table

from ..kit import SOURCES
from ..wire import console
from .models import Home, Item, Local, Mfd, Overlay, Sf, key_of

__all__ = ["AUTO_MAX", "Setting", "Sums", "add_arguments", "chosen", "played", "run", "sources"]

_SEED = 9
_MIXES = (("uniform", "uniform"), ("uniform", "pareto"), ("pareto", "uniform"), ("pareto", "pareto"))
"""Of c, and of the choice of a source."""
_LARGEST = (16, 32, 48, 64)
_SEGMENTS = (1, 3, 9, 16)
_RINGS = (100, 200, 400, 800, 1600)
_VALUES = 240
_GROUPS = 10
_MINUTES_BETWEEN = 10.0

AUTO_MAX = 100_000
"""Subscriptions of one item at one broker: a reference takes some 400 bytes, and the cost of an event follows those
that it fires, so memory comes first."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One run."""

    brokers: int = 400
    segment: int = 9
    largest: int = 64
    widths: str = "pareto"
    choice: str = "uniform"
    sources: int = 200
    minutes: int = 240


@dataclass(slots=True)
class Sums:
    """What one strategy cost."""

    subscriptions: int = 0
    subscribing: int = 0
    values: int = 0
    messages: int = 0
    deliveries: int = 0
    hops: int = 0
    kept: bool = True
    """After each value each subscriber was within its c of it."""
    _has: dict[int, int] = field(default_factory=dict)

    @property
    def subscription_cost(self) -> float:
        """Messages a subscription."""
        return self.subscribing / max(1, self.subscriptions)

    @property
    def publication_cost(self) -> float:
        """Messages a value."""
        return self.messages / max(1, self.values)

    @property
    def delay(self) -> float:
        """Hops from a source to a subscriber."""
        return self.hops / max(1, self.deliveries)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The sizes."""
    parser.add_argument("--state-sources", type=int, default=30, help="sources, and subscribers (the paper: 200)")
    parser.add_argument("--state-minutes", type=int, default=_VALUES, help=f"minutes (default {_VALUES}, the paper's)")
    parser.add_argument("--state-rings", type=int, nargs="+", default=list(_RINGS), help="brokers, of Figure 10")
    parser.add_argument("--state-brokers", type=int, default=400, help="brokers, of Figure 9")


def run(arguments: argparse.Namespace) -> int:
    """Print the tables; 0."""
    pool = sources()
    print_ = console().print
    if not pool:
        print_("No prices: set HEADGATE_DATA.")
        return 0
    count, minutes = min(arguments.state_sources, len(pool)), arguments.state_minutes
    print_(f"{len(pool)} sources of {_VALUES} values, of which {count}; seed {_SEED}")
    base = Setting(arguments.state_brokers, sources=count, minutes=minutes)
    print_(_figure_9(pool, base))
    print_(_segments(pool, base))
    rings, costs = _figure_10(pool, base, arguments.state_rings)
    print_(rings)
    if len(arguments.state_rings) > 1:
        for name, found in costs.items():
            far = _extrapolated(arguments.state_rings, found, 10**6)
            print_(
                f"{name}: {far:.1f} messages a value at 10^6 brokers, by the line through log N; the paper: below 60"
            )
    return 0


def _figure_9(pool: Sequence[Sequence[int]], base: Setting) -> Table:
    sizes = f"{base.brokers} brokers, {base.segment} a segment, {base.sources} sources and subscribers"
    table = _table(f"Figure 9: {sizes}")
    for heading in ("c, choice", "largest c", "sub SF", "sub MFD", "pub SF", "pub MFD", "spared", "auto", "home",
                    "hops SF", "hops MFD", "hops auto", "bound"):  # fmt: skip
        table.add_column(heading, justify="right")
    overlay = Overlay(base.brokers)
    for widths, choice in _MIXES:
        for largest in _LARGEST:
            setting = Setting(base.brokers, base.segment, largest, widths, choice, base.sources, base.minutes)
            sums = played(pool, setting, overlay)
            sf, mfd, auto = sums["SF"], sums["MFD"], sums["auto"]
            table.add_row(
                f"{widths[:3]}-{choice[:3]}", str(largest), f"{sf.subscription_cost:.2f}",
                f"{mfd.subscription_cost:.2f}", f"{sf.publication_cost:.2f}", f"{mfd.publication_cost:.2f}",
                f"{1 - mfd.publication_cost / sf.publication_cost:.0%}", f"{auto.publication_cost:.2f}",
                f"{sums['home'].publication_cost:.2f}", f"{sf.delay:.2f}", f"{mfd.delay:.2f}", f"{auto.delay:.2f}",
                "kept" if all(one.kept for one in sums.values()) else "BROKEN",
            )  # fmt: skip
    return table


def _segments(pool: Sequence[Sequence[int]], base: Setting) -> Table:
    table = _table(f"Brokers a segment: {base.brokers} brokers, Par-Uni, c up to {base.largest}")
    for heading in ("brokers a segment", "pub SF", "pub MFD", "spared", "and all say none", "auto", "deliveries SF",
                    "deliveries MFD"):  # fmt: skip
        table.add_column(heading, justify="right")
    overlay = Overlay(base.brokers)
    for segment in _SEGMENTS:
        setting = Setting(base.brokers, segment, sources=base.sources, minutes=base.minutes)
        sums = played(pool, setting, overlay)
        sf, mfd, none = sums["SF"], sums["MFD"], sums["MFD, none said"]
        table.add_row(
            str(segment), f"{sf.publication_cost:.2f}", f"{mfd.publication_cost:.2f}",
            f"{1 - mfd.publication_cost / sf.publication_cost:.0%}",
            f"{1 - none.publication_cost / sf.publication_cost:.0%}",
            f"{sums['auto'].publication_cost:.2f}", f"{sf.deliveries:,}", f"{mfd.deliveries:,}",
        )  # fmt: skip
    return table


def _figure_10(
    pool: Sequence[Sequence[int]], base: Setting, rings: Sequence[int]
) -> tuple[Table, dict[str, list[float]]]:
    table = _table(f"Figure 10: Par-Uni, c up to {base.largest}, {base.segment} brokers a segment")
    for heading in (
        "brokers",
        "sub SF",
        "sub MFD",
        "hops SF",
        "hops MFD",
        "pub SF",
        "pub MFD",
        "spared",
        "auto",
        "home",
    ):
        table.add_column(heading, justify="right")
    costs: dict[str, list[float]] = {"SF": [], "MFD": [], "auto": [], "home": []}
    for brokers in rings:
        setting = Setting(brokers, base.segment, sources=base.sources, minutes=base.minutes)
        sums = played(pool, setting, Overlay(brokers))
        for name, found in costs.items():
            found.append(sums[name].publication_cost)
        sf, mfd = sums["SF"], sums["MFD"]
        table.add_row(
            f"{brokers:,}", f"{sf.subscription_cost:.2f}", f"{mfd.subscription_cost:.2f}", f"{sf.delay:.2f}",
            f"{mfd.delay:.2f}", f"{sf.publication_cost:.2f}", f"{mfd.publication_cost:.2f}",
            f"{1 - mfd.publication_cost / sf.publication_cost:.0%}", f"{sums['auto'].publication_cost:.2f}",
            f"{sums['home'].publication_cost:.2f}",
        )  # fmt: skip
    return table, costs


def played(pool: Sequence[Sequence[int]], setting: Setting, overlay: Overlay) -> dict[str, Sums]:
    """The same subscriptions and values by each strategy."""
    rng = Random(_SEED)
    groups = _in_groups(pool, setting.sources)
    length = (setting.segment - 1) * 2**64 // setting.brokers
    items = [
        Item(key_of(f"source {place}"), rng.choice(overlay.members), day[0])
        for place, day in enumerate(day for group in groups for day in group)
    ]
    days = [day for group in groups for day in group]
    firsts = [sum(len(one) for one in groups[:place]) for place in range(len(groups))]
    makers: dict[str, Callable[[Item], Any]] = {
        "SF": lambda item: Sf(overlay, item, length, setting.largest),
        "MFD": lambda item: Mfd(overlay, item, length, setting.largest),
        "MFD, none said": lambda item: Mfd(overlay, item, length, setting.largest, says_none=True),
        "auto": lambda item: Local(overlay, item, 0, setting.largest),
        "home": lambda item: Home(overlay, item, 0, setting.largest),
    }
    made = {name: [make(item) for item in items] for name, make in makers.items()}
    sums = {name: Sums() for name in made}
    subscribers = [rng.choice(overlay.members) for _ in range(setting.sources)]
    due = [rng.expovariate(1 / _MINUTES_BETWEEN) for _ in subscribers]
    of_item: list[dict[int, int]] = [{} for _ in items]
    number = 0
    for minute in range(setting.minutes):
        for place, broker in enumerate(subscribers):
            while due[place] <= minute:
                due[place] += rng.expovariate(1 / _MINUTES_BETWEEN)
                number += 1
                group = _drawn(rng, setting.choice, len(groups)) - 1
                chosen_item = firsts[group] + rng.randrange(len(groups[group]))
                width = _drawn(rng, setting.widths, setting.largest)
                assert chosen(len(of_item[chosen_item]), True) == "local", "auto is one owner at these sizes"
                of_item[chosen_item][number] = width
                for name, strategies in made.items():
                    sums[name].subscriptions += 1
                    sums[name].subscribing += strategies[chosen_item].subscribe(number, width, broker)
                    sums[name]._has[number] = items[chosen_item].value
        for at, day in enumerate(days):
            items[at].value = value = day[minute % len(day)]
            for name, strategies in made.items():
                _count(sums[name], strategies[at].publish(value), value, of_item[at])
    return sums


def _count(sums: Sums, cost: Any, value: int, widths: dict[int, int]) -> None:
    sums.values += 1
    sums.messages += cost.messages
    sums.deliveries += len(cost.hops)
    sums.hops += sum(cost.hops)
    for number in cost.fired:
        sums._has[number] = value
    sums.kept = sums.kept and all(abs(value - sums._has[number]) <= width for number, width in widths.items())


def chosen(subscriptions: int, by_topic_alone: bool) -> str:
    """What `auto` takes for an item with so many subscriptions, whose conditions the topic decides or not."""
    if subscriptions <= AUTO_MAX:
        return "local"
    return "mfd" if by_topic_alone else "sf"


def _drawn(rng: Random, distribution: str, largest: int) -> int:
    """A number from 1 to the largest."""
    if distribution == "uniform":
        return rng.randint(1, largest)
    while True:
        number = int(rng.paretovariate(1.0))
        if number <= largest:
            return number


def _in_groups(pool: Sequence[Sequence[int]], count: int) -> list[list[Sequence[int]]]:
    """So many sources in ten groups by standard deviation, the quiet ones first, spread evenly over all there are."""
    ranked = sorted(pool, key=statistics.pstdev)
    taken = [ranked[place * len(ranked) // count] for place in range(count)]
    size = math.ceil(count / _GROUPS)
    return [taken[start : start + size] for start in range(0, count, size)]


def _extrapolated(sizes: Sequence[int], costs: Sequence[float], size: int) -> float:
    """The value at a size of the line through the costs over log N."""
    slope, start = statistics.linear_regression([math.log2(one) for one in sizes], costs)
    return start + slope * math.log2(size)


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left")


def sources() -> list[list[int]]:
    """Prices in cents, 240 in a row: closing prices of bars of a minute and of a second, and quotes of a minute."""
    folder = Path(os.environ.get("HEADGATE_DATA", SOURCES.parent / "shared" / "data")) / "stock"
    found: list[list[int]] = []
    for name, columns in (
        ("lean-equity-minute.tar.gz", {"trade": (4,), "quote": (4, 9)}),
        ("lean-equity-second-20131007.tar.gz", {"trade": (4,)}),
    ):
        if not (folder / name).exists():
            continue
        with tarfile.open(folder / name) as archive:
            for member in sorted(archive.getnames()):
                kind = member.removesuffix(".zip").rpartition("_")[2]
                packed = archive.extractfile(member) if member.endswith(".zip") else None
                if packed is None or kind not in columns:
                    continue
                with zipfile.ZipFile(io.BytesIO(packed.read())) as inner:
                    lines = inner.read(inner.namelist()[0]).decode().splitlines()
                for column in columns[kind]:
                    series = [round(int(cell) / 100) for cell in (line.split(",")[column] for line in lines) if cell]
                    found += [series[at : at + _VALUES] for at in range(0, len(series) - _VALUES + 1, _VALUES)]
    return found
