"""STATE 4.3 and 5: what levels of filters (MFD) spare of what a segment hears (SF), over real stock-days.

The paper says nowhere how many brokers a segment has, so they are swept. No broker of the product does either: at one
broker a segment both are the trigger index, and that row costs the least. Messages are counted as in
`models/filters.py`: the way to the segment, half log2 N hops, then what the brokers on it tell each other.
"""

from __future__ import annotations

import argparse
import io
import os
import tarfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from rich.table import Table

from ..kit import SOURCES
from ..wire import console
from .models import Levels, mfd_messages, place_of_width, sf_messages

__all__ = ["Compared", "add_arguments", "compared", "run", "stock_days"]

_SEED = 4
_SEGMENTS = (1, 3, 9, 16)
_WIDTHS = (16, 32, 48, 63)
"""Largest c, in cents. The paper goes to 64, which has one digit more than its nine nodes hold."""
_MEMBERS = 24
"""Subscriptions of an item."""
_DAY_MIN = 100


@dataclass(frozen=True, slots=True)
class Compared:
    """Messages for a value on average, and what came of the values."""

    sf: float
    mfd: float
    values: int
    deliveries: int
    exact: int
    """Deliveries of filters by themselves: MFD may have more, and never misses the bound."""
    kept: bool
    """After each value every subscription was within c of it."""

    @property
    def spared(self) -> float:
        """The part of SF's messages that MFD does without."""
        return 1 - self.mfd / self.sf if self.sf else 0.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The sizes."""
    parser.add_argument("--filter-brokers", type=int, default=400, help="brokers on the ring (default 400)")
    parser.add_argument("--filter-days", type=int, default=8, help="stock-days at most (default 8)")
    parser.add_argument("--filter-values", type=int, default=400, help="values of each at most (default 400)")


def run(arguments: argparse.Namespace) -> int:
    """Print the table; 0."""
    days = stock_days(arguments.filter_days, arguments.filter_values)
    table = Table(
        title=f"STATE 4.3: messages a value, {arguments.filter_brokers} brokers, {len(days)} stock-days, {_MEMBERS} "
        "subscriptions each; the paper has MFD 20 to 40 % below SF",
        title_justify="left",
    )
    headings = ("largest c", "brokers a segment", "SF", "MFD", "spared", "deliveries", "by SF", "bound kept")
    for heading in headings:
        table.add_column(heading, justify="right")
    for largest in _WIDTHS:
        for segment in _SEGMENTS:
            found = compared(days, largest, segment, arguments.filter_brokers, Random(_SEED))
            table.add_row(
                str(largest), str(segment), f"{found.sf:.2f}", f"{found.mfd:.2f}", f"{found.spared:.0%}",
                f"{found.deliveries:,}", f"{found.exact:,}", "yes" if found.kept else "NO",
            )  # fmt: skip
    console().print(table)
    console().print(f"Seed {_SEED}. No row means no data: set HEADGATE_DATA." if not days else f"Seed {_SEED}.")
    return 0


def compared(days: Sequence[Sequence[int]], largest: int, segment: int, brokers: int, rng: Random) -> Compared:
    """Both over the same subscriptions and values."""
    sf = mfd = 0.0
    values = deliveries = exact = 0
    kept = True
    for day in days:
        widths = [rng.randint(1, largest) for _ in range(_MEMBERS)]
        levels, last, alone = Levels(), dict[int, int](), dict[int, int]()
        for width in widths:
            levels.subscribe(width)
        nodes = sorted({place_of_width(one)[2] for one in levels.filters()})
        for value in day:
            passed = levels.publish(value)
            last.update(dict.fromkeys(passed.delivered, value))
            kept = kept and all(abs(value - last[width]) <= width for width in set(widths))
            deliveries += sum(width in passed.delivered for width in widths)
            for width in set(widths):
                if width not in alone or abs(value - alone[width]) > width:
                    alone[width] = value
                    exact += widths.count(width)
            values += 1
            sf += sf_messages(brokers, segment)
            mfd += mfd_messages(brokers, segment, passed.levels, nodes)
    count = max(1, values)
    return Compared(sf / count, mfd / count, values, deliveries, exact, kept)


def stock_days(days_max: int, values_max: int) -> list[list[int]]:
    """Closing prices of each minute in cents, a list a stock and day; none when there is no data."""
    path = (
        Path(os.environ.get("HEADGATE_DATA", SOURCES.parent / "shared" / "data"))
        / "stock"
        / "lean-equity-minute.tar.gz"
    )
    days: list[list[int]] = []
    if not path.exists():
        return days
    with tarfile.open(path) as archive:
        for name in sorted(one for one in archive.getnames() if one.endswith("_trade.zip")):
            packed = archive.extractfile(name)
            if packed is None or len(days) >= days_max:
                continue
            with zipfile.ZipFile(io.BytesIO(packed.read())) as folder:
                lines = folder.read(folder.namelist()[0]).decode().splitlines()
            day = [round(int(line.split(",")[4]) / 100) for line in lines if line][:values_max]
            if len(day) >= _DAY_MIN:
                days.append(day)
    return days
