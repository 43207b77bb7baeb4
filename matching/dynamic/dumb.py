"""The dumb twin of the triggers: what each subscription was last sent of each topic, compared by the plain meaning."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.matching.dynamic.bands import Number, band_of, moved, reading
from headgate.matching.tree import Delta

__all__ = ["DumbReferences"]


class DumbReferences:
    """The verbs of `Triggers`, without any structure and without bounds."""

    def __init__(self, precisions: Sequence[Number | None]) -> None:
        self._precisions = precisions
        self._deltas: dict[int, Sequence[Delta]] = {}
        self._references: dict[tuple[int, str], tuple[float, list[Number]]] = {}

    def add(self, number: int, deltas: Sequence[Delta]) -> None:
        """A subscription that has been sent nothing yet; one DELTA for each attribute."""
        self._deltas[number] = deltas

    def remove(self, number: int) -> None:
        """It is no more."""
        del self._deltas[number]
        self._references = {key: value for key, value in self._references.items() if key[0] != number}

    def forget(self, number: int, topic: str) -> None:
        """What it was sent last of a topic does not count."""
        self._references.pop((number, topic), None)

    def fire(self, topic: str, values: Sequence[object], time: float) -> list[int]:
        """The subscriptions that get this event, ascending; it is their reference from now on."""
        numbers = [reading(value, precision) for value, precision in zip(values, self._precisions, strict=True)]
        if None in numbers:
            return []
        known: list[Number] = [number for number in numbers if number is not None]
        fired = [one for one in self._deltas if self._wants(one, topic, known, time)]
        self._references.update(dict.fromkeys(((one, topic) for one in fired), (time, known)))
        return sorted(fired)

    def _wants(self, one: int, topic: str, values: Sequence[Number], time: float) -> bool:
        last = self._references.get((one, topic))
        if last is None:
            return True
        told, references = last
        for delta, precision, value, reference in zip(
            self._deltas[one], self._precisions, values, references, strict=True
        ):
            band = band_of(delta, precision)
            silent = band.heartbeat_seconds is not None and time >= told + band.heartbeat_seconds
            if not silent and not moved(value, reference, band):
                return False
        return True
