"""A bookmark: how far deliveries were printed, in words that `sub --from` goes on behind.

Each log stands with the position behind its last event that was printed, or with the one where it was begun.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headgate.protocol.client import Event

__all__ = ["Bookmark"]


class Bookmark:
    """Remembers the place behind the last printed event of each log."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def passed(self, events: Sequence[Event]) -> None:
        """Note that these events were printed, in this order."""
        last: dict[str, Event] = {one.log.partition: one for one in events if one.log is not None}
        for event in last.values():
            assert event.log is not None
            partition, shift = event.log
            self._places[partition] = max(event.sequence + shift + 1, self._places.get(partition, 0))

    def text(self, begins: Mapping[str, int]) -> str:
        """The place to continue from, for `--from`; `begins` says where each log was begun. Empty if it is the same."""
        places = {**begins, **self._places} if self._places else {}
        return ",".join(f"{partition}:{number}" for partition, number in sorted(places.items()))
