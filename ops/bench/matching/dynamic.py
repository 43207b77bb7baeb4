"""DELTA by itself: what an event costs among many subscriptions to one topic, and what real series spare."""

from __future__ import annotations

import csv
import gc
import io
import os
import tarfile
import time
import tracemalloc
import zipfile
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import NamedTuple

from headgate.matching import Delta
from headgate.matching.dynamic import Band, DumbReferences, Levels, Triggers, moved

from ..kit import SOURCES
from .measure import MEASURED_BYTES_MAX, frozen, seconds

__all__ = ["BANDS", "Cost", "Spared", "cost_of", "series", "spared"]

_FIRED = 10
"""Subscriptions that an event fires on average, however many there are."""
_WIDTH = 100.0
_AWAY, _STEPS = 2 * _WIDTH, 100
"""How far the price goes while subscriptions come, and in how many steps."""
BANDS = (0.25, 1.0, 2.0)
"""Widths of bands, in standard deviations of the steps of a series."""
_UNITS = 21
_COLUMNS = ("value", "OT", "T", "CO(GT)")


class Cost(NamedTuple):
    """What one event costs, and one subscription."""

    event_us: float
    fired: float
    add_us: float
    bytes_each: float


def cost_of(count: int, events: int, rng: Random) -> Cost:
    """Among so many subscriptions to one topic, each with a band of its own; the price walks so that ten are fired."""
    triggers = Triggers(["price"])
    widths = [rng.uniform(_WIDTH / 2, 3 * _WIDTH / 2) for _ in range(count)]
    step = _FIRED * _WIDTH / count
    price = _AWAY
    prices = [price]
    for _ in range(events):
        price += rng.choice((step, -step)) if rng.random() < 0.2 else step
        prices.append(price)
    adding = 0.0
    for part in range(_STEPS):  # some at each price, so that references are spread
        some = range(part * count // _STEPS, (part + 1) * count // _STEPS)
        adding += seconds(lambda some=some: _fill(triggers, widths, some), 1)  # type: ignore[misc]  # bound now
        _go(triggers, [_AWAY * (part + 1) / _STEPS])
    with frozen():
        started = time.process_time()
        found = _go(triggers, prices[1:])
        taken = time.process_time() - started
    return Cost(taken / events * 1e6, found / events, adding / count * 1e6, _bytes_each(widths))


def _fill(triggers: Triggers, widths: Sequence[float], some: range) -> None:
    for place in some:
        triggers.add(place + 1, [Delta("price", widths[place], False)])


def _go(triggers: Triggers, prices: Sequence[float]) -> int:
    return sum(len(triggers.fire("t", (price,), 0.0)) for price in prices)


def _bytes_each(widths: Sequence[float]) -> float:
    few = widths[:MEASURED_BYTES_MAX]
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        triggers = Triggers(["price"])
        _fill(triggers, few, range(len(few)))
        _go(triggers, [0.0, _WIDTH / 10, _WIDTH])
        gc.collect()
        return (tracemalloc.get_traced_memory()[0] - before) / len(few)
    finally:
        tracemalloc.stop()


class Spared(NamedTuple):
    """One series under one band."""

    width: float
    events: int
    delivered: int
    exact: bool
    """Those that the plain meaning delivers, and no others."""
    kept: bool
    """After each event what was last delivered was within the band."""
    in_levels: int
    """What filters in levels would deliver, the values in units of which the band has 21 (STATE: 1 + 4 + 16)."""
    kept_in_levels: bool


def spared(values: Sequence[float], deviations: float) -> Spared:
    """What a subscription of this band, in deviations of a step, would get of a series."""
    steps = [after - before for before, after in pairwise(values)]
    width = deviations * (sum(step * step for step in steps) / len(steps)) ** 0.5
    delta, band = Delta("value", width, False), Band(width, False)
    triggers, twin = Triggers(["value"]), DumbReferences([None])
    for one in (triggers, twin):
        one.add(1, [delta])
    delivered, exact, kept, has = 0, True, True, values[0]
    for value in values:
        fired = triggers.fire("t", (value,), 0.0)
        exact = exact and fired == twin.fire("t", (value,), 0.0)
        if fired:
            delivered, has = delivered + 1, value
        kept = kept and not moved(value, has, band)
    return Spared(width, len(values), delivered, exact, kept, *_in_levels(values, width))


def _in_levels(values: Sequence[float], width: float) -> tuple[int, bool]:
    """Deliveries, and whether the bound was kept in units."""
    units = [round(value * _UNITS / width) if width else 0 for value in values]  # 0: a series that stands still
    levels = Levels(units[0])
    levels.subscribe(1, _UNITS)
    delivered, kept = 1, True
    for value in units[1:]:
        delivered += len(levels.publish(value).fired)
        kept = kept and abs(value - levels.reference(1)) <= _UNITS
    return delivered, kept


def series() -> Iterator[tuple[str, list[float]]]:
    """The real series there are: sensors, and ticks of one day. Nothing when there is no data."""
    folder = Path(os.environ.get("HEADGATE_DATA", SOURCES.parent / "shared" / "data"))
    for path in sorted((folder / "sensor").glob("*.csv")):
        yield path.stem, _of_csv(path)
    ticks = folder / "stock" / "lean-equity-tick-20131007.tar.gz"
    if ticks.exists():
        with tarfile.open(ticks) as archive:
            for member in sorted(archive.getnames()):
                packed = archive.extractfile(member) if member.endswith("_trade.zip") else None
                if packed is not None:
                    yield f"{member.split('/')[1]} ticks", _of_ticks(packed.read())


def _of_csv(path: Path) -> list[float]:
    with path.open(encoding="utf-8") as lines:
        rows = csv.DictReader(lines)
        name = next(name for name in _COLUMNS if name in (rows.fieldnames or ()))
        return [float(row[name]) for row in rows if row[name]]


def _of_ticks(packed: bytes) -> list[float]:
    """Prices are in ten-thousandths of a dollar."""
    with zipfile.ZipFile(io.BytesIO(packed)) as folder:
        text = folder.read(folder.namelist()[0]).decode()
    return [int(line.split(",")[1]) / 10_000 for line in text.splitlines() if line]
