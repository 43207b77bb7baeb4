"""What DELTA means: a value as a number, the band around a reference, and whether the number is beyond it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from headgate.matching.limits import INTEGER_MAX, INTEGER_MIN
from headgate.matching.tree import Delta

__all__ = ["Band", "Edge", "Number", "band_of", "edge_of", "moved", "precision_of", "reading"]

Number: TypeAlias = int | float

_LARGEST: Final = math.nextafter(math.inf, 0.0)
_WHOLE_MAX: Final = 2.0**52
"""From here on every double is a whole number."""
_NEARLY: Final = 1e-9
"""0.15 / 0.05 is 2.9999999999999996, and means 3."""


@dataclass(frozen=True, slots=True)
class Band:
    """How far an attribute may move from its reference unsaid, and how long it may be silent."""

    width: Number
    inclusive: bool
    """A move of exactly the width is told: `>=`."""
    heartbeat_seconds: Number | None = None
    percent: bool = False
    """The width is so many hundredths of the reference."""
    rises: bool = True
    """A greater value may be told."""
    falls: bool = True
    """A smaller value may be told."""

    def width_at(self, reference: Number) -> Number:
        """The width around a reference that is finite."""
        return abs(reference) * self.width / 100 if self.percent else self.width


def band_of(delta: Delta, precision: Number | None = None) -> Band:
    """The band of a DELTA; in units of the attribute's precision, where that is declared."""
    width = delta.threshold
    if precision is not None and not delta.percent:
        width = min(width / precision, _LARGEST)
        if abs(width - round(width)) <= _NEARLY * max(1.0, width):
            width = round(width)
    rises, falls = delta.side != "FALL", delta.side != "RISE"
    return Band(width, delta.inclusive, delta.heartbeat_seconds, delta.percent, rises, falls)


def reading(value: object, precision: Number | None = None) -> Number | None:
    """The number that is compared, None when there is none; in whole units where the precision is declared."""
    kind = type(value)
    if kind is float:
        if value != value:
            return None
    elif kind is not int or not INTEGER_MIN <= value <= INTEGER_MAX:  # type: ignore[operator]  # an int by then
        return None
    if precision is None:
        return value  # type: ignore[return-value]  # an int or a float
    units: float = value / precision  # type: ignore[operator]
    return math.floor(units + 0.5) if abs(units) < _WHOLE_MAX else units


def moved(value: Number, reference: Number, band: Band) -> bool:
    """Whether the value is beyond the band around the reference: the meaning of DELTA."""
    if math.isinf(value) or math.isinf(reference):
        return value != reference and (band.rises if value > reference else band.falls)
    width = band.width_at(reference)
    low, high = reference - width, reference + width
    rose, fell = (value >= high, value <= low) if band.inclusive else (value > high, value < low)
    return (rose and band.rises) or (fell and band.falls)


Edge: TypeAlias = tuple[Number, bool]
"""The upper end of a band: a greater value is beyond it; one that is equal as well, unless the second is true."""


def edge_of(reference: Number, band: Band) -> Edge:
    """The upper end of the band around a reference. The lower end is that of -reference, for -value."""
    if math.isinf(reference):
        return reference, True
    trigger = reference + band.width_at(reference)
    if math.isinf(trigger):
        return _LARGEST, True  # only Infinity is beyond it
    return trigger, not band.inclusive


def precision_of(schema: Any, attribute: str) -> Number | None:
    """The precision that a stream's schema declares for an attribute, if it does."""
    attributes = schema.get("attributes") if isinstance(schema, Mapping) else None
    entry = attributes.get(attribute) if isinstance(attributes, Mapping) else None
    precision = entry.get("precision") if isinstance(entry, Mapping) else None
    return precision if isinstance(precision, int | float) and 0 < precision < math.inf else None
