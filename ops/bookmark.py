"""A bookmark: how far deliveries were printed, in words that `sub --from` goes on behind.

A log from which nothing was printed yet stands with the position where it was begun; one whose last event came live
with the id of that event, which stands for the place behind it; one that was being replayed with the next position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headgate.protocol.client import Event

__all__ = ["Bookmark"]


class Bookmark:
    """Remembers the last printed event of each origin, which is one incarnation of a broker."""

    def __init__(self) -> None:
        self._last: dict[str, Event] = {}

    def passed(self, events: Sequence[Event]) -> None:
        """Note that these events were printed, in this order."""
        for origin, event in {event.origin: event for event in events}.items():
            known = self._last.get(origin)
            if known is None or known.sequence < event.sequence:
                self._last[origin] = event

    def text(self, begins: Mapping[str, int]) -> str:
        """The place to continue from, for `--from`; `begins` says where each log was begun. Empty if it is the same."""
        places, ids = dict(begins), []
        for event in self._last.values():
            partition, _, number = event.position.rpartition(":")
            if partition:
                places[partition] = max(int(number) + 1, places.get(partition, 0))
            else:
                ids.append(event.id)
        if not self._last:
            return ""
        return ",".join([f"{partition}:{number}" for partition, number in sorted(places.items())] + sorted(ids))
