"""DELTA at the reader: which events of a subscription that begins in the past have moved enough to be handed out.

Live, the broker that a client is connected to decides that, but beside XPATH: the reader alone knows which documents it
keeps back, and those are no references. A reader of logs sees every event that matches the rest of the condition, so it
decides by itself, and is exact: what it handed out last of a topic is what it compares with, and nothing can be lost on
the way from here to the application. The broker says what to compare (`moves` in the answer to `explain`); the meaning
is that of `matching/SPEC.md`, section 8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import ProtocolViolation
from ..limits import MOVES_MAX, MOVES_TOPICS_MAX

if TYPE_CHECKING:
    from .receiving import Event

__all__ = ["Move", "Moves", "is_left_to_reader"]

_Number: TypeAlias = int | float
_INTEGERS = range(-(2**63), 2**63)
_WHOLE_MAX = 2.0**52
_SIDES = ("DELTA", "RISE", "FALL")


def is_left_to_reader(condition: str) -> bool:
    """Whether a condition may have XPATH and DELTA: its words say so, of which some may be names and texts."""
    words = condition.upper()
    return "XPATH" in words and any(side in words for side in _SIDES)


@dataclass(frozen=True, slots=True)
class Move:
    """How far an attribute has to move: `width` in units of `precision`, where that is not 0."""

    attribute: str
    side: str
    width: _Number
    percent: bool
    inclusive: bool
    heartbeat_seconds: _Number
    """After so long a silence any value will do; 0: never."""
    precision: _Number

    @classmethod
    def of(cls, said: Any) -> Move:
        """What a broker said. Raises ProtocolViolation."""
        if type(said) is list and len(said) == 7:
            made = cls(*said)
            numbers = made.width, made.heartbeat_seconds, made.precision
            if (
                type(made.attribute) is str
                and made.side in _SIDES
                and type(made.percent) is type(made.inclusive) is bool
                and all(type(one) in (int, float) and 0 <= one < math.inf for one in numbers)
            ):
                return made
        raise ProtocolViolation("explain: each of `moves` is an attribute, a side and what it takes to move")

    def reading(self, value: object) -> _Number | None:
        """The number that is compared; None when there is none."""
        if type(value) is float:
            if value != value:
                return None
        elif type(value) is not int or value not in _INTEGERS:
            return None
        if not self.precision:
            return value
        units = value / self.precision
        return math.floor(units + 0.5) if abs(units) < _WHOLE_MAX else units

    def moved(self, value: _Number, reference: _Number) -> bool:
        """Whether a number is beyond the band around another one."""
        rises, falls = self.side != "FALL", self.side != "RISE"
        if math.isinf(value) or math.isinf(reference):
            return value != reference and (rises if value > reference else falls)
        width = abs(reference) * self.width / 100 if self.percent else self.width
        low, high = reference - width, reference + width
        rose, fell = (value >= high, value <= low) if self.inclusive else (value > high, value < low)
        return (rose and rises) or (fell and falls)


class Moves:
    """What was handed out last of each topic, and what of an event has to have moved since: all of some attributes."""

    def __init__(self, said: Sequence[Any], topics_max: int = MOVES_TOPICS_MAX) -> None:
        """`said`: as `explain` has it. Raises ProtocolViolation."""
        if len(said) > MOVES_MAX:
            raise ProtocolViolation(f"explain: at most {MOVES_MAX} `moves`")
        self._moves = [Move.of(one) for one in said]
        self._topics_max = topics_max
        self._references: dict[str, tuple[float, list[_Number]]] = {}
        self.suppressed = 0

    def passed(self, events: list[Event]) -> list[Event]:
        """Those of these events, in order, that are handed out."""
        passed = [one for one in events if self._passes(one)]
        self.suppressed += len(events) - len(passed)
        return passed

    def _passes(self, event: Event) -> bool:
        values: list[_Number] = []
        for move in self._moves:
            value = move.reading(event.attributes.get(move.attribute))
            if value is None:
                return False
            values.append(value)
        last = self._references.get(event.topic)
        if last is not None:
            for move, value, reference in zip(self._moves, values, last[1], strict=True):
                is_silent = move.heartbeat_seconds and event.time >= last[0] + move.heartbeat_seconds
                if not is_silent and not move.moved(value, reference):
                    return False
            del self._references[event.topic]
        elif len(self._references) >= self._topics_max:
            del self._references[next(iter(self._references))]  # of which nothing was handed out for longest
        self._references[event.topic] = event.time, values
        return True
