"""Siblings, at the owner: keeping the next brokers' copies of our keys complete, and letting them answer for them.

Each sibling gets, over one link, in one sequence of numbers that begins anew with the link:

    STREAM pages   everything in a stretch, when the sibling, the link or the stretch is new; a few in flight at a time
    COPY           every write, at once, between the pages: copies merge in any order
    CHECK          now and then count and digest of the whole; twice different means a stream from the beginning

and says with COPIED up to where it has them. After the last page it is *synced*, and may ask for a grant. Grants are
remembered until they end, even if the sibling is one no longer: a write waits for whoever may still answer without it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .keyed_arcs import Stretch
from .keyed_items import Items
from .keyed_limits import PAGES_IN_FLIGHT_MAX, REFUSED_SECONDS
from .keyed_messages import Copied, Item, Kind, Name, pages, written

__all__ = ["Siblings"]

OUR_TALLY = -1
"""Where Items keeps the tally of our own keys."""

SendTo = Callable[[int, int, list[Any]], None]
"""(broker, kind, body)"""

Unconfirmed = Callable[[int], list[tuple[list[Item], int]]]
"""Sibling -> the writes that wait for it, each with who waits: sent anew when its link, or the sibling, is new."""


@dataclass(slots=True)
class _Stream:
    piece: Stretch
    names: deque[Name]
    first: bool = True
    last_sequence: int | None = None
    in_flight: deque[int] = field(default_factory=deque)


@dataclass(slots=True)
class _Sibling:
    identifier: int
    sequence: int = 0
    copied: int = 0
    stream: _Stream | None = None
    synced: Stretch | None = None
    refused: bool = False
    again_at: float = 0.0
    """Once refused, not before."""
    check_at: float = 0.0
    check_sequence: int = 0
    differences: int = 0
    awaited: deque[tuple[int, int]] = field(default_factory=deque)
    """(sequence, what the caller waits for), in order."""


class Siblings:
    """See the head of this file."""

    def __init__(
        self,
        me: int,
        items: Items,
        linked: dict[int, None],
        send: SendTo,
        unconfirmed: Unconfirmed,
        check_seconds: float,
    ) -> None:
        self._me = me
        self._unconfirmed = unconfirmed
        self._items = items
        self._linked = linked
        self._send = send
        self._check_seconds = check_seconds
        self._present: dict[int, _Sibling] = {}
        self._ours: Stretch | None = None
        self.grants: dict[int, float] = {}
        """Broker -> until when it may answer for keys of ours."""
        self.streams = 0
        self.differences = 0

    # --- What the caller tells ---------------------------------------------------------------------------------------

    def set_siblings(self, identifiers: tuple[int, ...]) -> None:
        """These are the next ones; links of the new ones may be up already."""
        self._present = {one: self._present.get(one) or _Sibling(one) for one in identifiers}

    def set_ours(self, ours: Stretch | None, now: float) -> None:
        """The keys that are ours and complete here."""
        if ours == self._ours:
            return
        shrunk = ours is not None and self._ours is not None and self._ours.contains(ours)
        self._ours = ours
        self._items.watch(OUR_TALLY, ours)
        for sibling in self._present.values():
            if ours is None:
                sibling.synced = sibling.stream = None
            elif shrunk and sibling.synced is not None and sibling.synced.contains(ours):
                sibling.synced = ours
                self._check(sibling, now)
        self.tick(now)

    def link_new(self, identifier: int) -> None:
        """Whatever was under way is lost; the numbers begin anew. Also when the link is gone."""
        if identifier in self._present:
            self._present[identifier] = _Sibling(identifier)

    # --- Writes ------------------------------------------------------------------------------------------------------

    def copy(self, items: list[Item]) -> None:
        """Send a write to all that can hear it; whoever cannot gets everything later."""
        body: list[Any] | None = None
        for sibling in self._present.values():
            if self._hears(sibling):
                body = written(items) if body is None else body
                self._copy(sibling, body)

    def wait_for(self, items: list[Item], sent: bool, waiting: int) -> list[int]:
        """Who is still to acknowledge these items? `sent`: all of them went out with `copy` just now.

        Each of those returned will be named, with `waiting`, by `copied`.
        """
        outstanding = []
        for identifier, sibling in self._present.items():
            if not self._hears(sibling):
                outstanding.append(identifier)
                continue
            if not sent and (sibling.synced is None or sibling.stream is not None):
                self._copy(sibling, written(items))
            if sibling.copied < sibling.sequence:
                sibling.awaited.append((sibling.sequence, waiting))
                outstanding.append(identifier)
        return outstanding

    def copied(self, sender: int, sequence: int, verdict: int, now: float) -> list[int]:
        """The sibling has everything up to this. Returns what waited for it."""
        sibling = self._present.get(sender)
        if sibling is None or not sibling.copied <= sequence <= sibling.sequence:
            return []
        if verdict == Copied.REFUSED:
            self._refused(sibling, now)
            return []
        sibling.copied = sequence
        arrived = []
        while sibling.awaited and sibling.awaited[0][0] <= sequence:
            arrived.append(sibling.awaited.popleft()[1])
        stream = sibling.stream
        if stream is not None:
            while stream.in_flight and stream.in_flight[0] <= sequence:
                stream.in_flight.popleft()
            if stream.last_sequence is not None and sequence >= stream.last_sequence:
                self._synced(sibling, Stretch(stream.piece.after, self._me), now)
        if sibling.check_sequence == sequence:
            self._compared(sibling, verdict == Copied.DIFFERENT, now)
        self._go_on(sibling, now)
        return arrived

    # --- Grants ------------------------------------------------------------------------------------------------------

    def granted(self, sender: int, now: float, until: float) -> Stretch | None:
        """The sibling asks whether it may go on: the keys it may answer for until then, or None."""
        sibling = self._present.get(sender)
        if sibling is None or sibling.synced is None or self._ours is None or until <= now:
            return None
        self.grants[sender] = max(until, self.grants.get(sender, 0.0))
        return min(sibling.synced, self._ours, key=lambda stretch: stretch.size)

    def counts(self, identifier: int) -> bool:
        """Whether we write nothing without this one; whoever asks for a grant and is none hears that he is left out."""
        return identifier in self._present

    def others_until(self, now: float) -> float:
        """When the last grant ends of those that are siblings no longer; `now` when there is none."""
        for identifier in [one for one, until in self.grants.items() if until <= now]:
            del self.grants[identifier]
        return max((until for one, until in self.grants.items() if one not in self._present), default=now)

    # --- Time --------------------------------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Begin streams that are due, and compare."""
        for sibling in self._present.values():
            self._go_on(sibling, now)
            if sibling.synced is not None and sibling.stream is None and now >= sibling.check_at:
                self._check(sibling, now)

    def next_deadline(self) -> float:
        """When to tick."""
        deadline = float("inf")
        for identifier, sibling in self._present.items():
            if identifier in self._linked and self._ours is not None:
                if sibling.synced is not None and sibling.stream is None:
                    deadline = min(deadline, sibling.check_at)
                elif sibling.synced is None and sibling.stream is None:
                    deadline = min(deadline, sibling.again_at)
        return deadline

    @property
    def present(self) -> dict[int, bool]:
        """Sibling -> synced."""
        return {one: it.synced is not None and it.synced == self._ours for one, it in self._present.items()}

    @property
    def awaited(self) -> int:
        """Acknowledgements that somebody waits for."""
        return sum(len(sibling.awaited) for sibling in self._present.values())

    def validate(self) -> None:
        """Asserts what must always hold."""
        for sibling in self._present.values():
            assert sibling.copied <= sibling.sequence
            assert list(sibling.awaited) == sorted(sibling.awaited, key=lambda pair: pair[0])
            assert sibling.stream is None or len(sibling.stream.in_flight) <= PAGES_IN_FLIGHT_MAX

    # --- Inside ------------------------------------------------------------------------------------------------------

    def _hears(self, sibling: _Sibling) -> bool:
        return sibling.identifier in self._linked and not sibling.refused

    def _copy(self, sibling: _Sibling, body: list[Any]) -> None:
        sibling.sequence += 1
        self._send(sibling.identifier, Kind.COPY, [sibling.sequence, body])

    def _go_on(self, sibling: _Sibling, now: float) -> None:
        """Begin a stream, or send its next pages."""
        if sibling.identifier not in self._linked or self._ours is None or now < sibling.again_at:
            return
        if sibling.stream is None:
            if sibling.synced is None:
                sibling.refused = False
                for items, waiting in self._unconfirmed(sibling.identifier):
                    self._copy(sibling, written(items))
                    sibling.awaited.append((sibling.sequence, waiting))
                self._begin(sibling, self._ours)
            elif not sibling.synced.contains(self._ours):
                self._begin(sibling, Stretch(self._ours.after, sibling.synced.after))
            else:
                return
        stream = sibling.stream
        assert stream is not None
        while stream.last_sequence is None and len(stream.in_flight) < PAGES_IN_FLIGHT_MAX:
            page = self._next_page(stream)
            sibling.sequence += 1
            stream.in_flight.append(sibling.sequence)
            last = not stream.names
            body = [sibling.sequence, stream.first, last, stream.piece.after, stream.piece.last, written(page)]
            self._send(sibling.identifier, Kind.STREAM, body)
            stream.first = False
            if last:
                stream.last_sequence = sibling.sequence

    def _synced(self, sibling: _Sibling, arc: Stretch, now: float) -> None:
        sibling.stream = None
        sibling.synced = arc
        sibling.check_at = now + self._check_seconds
        if self._ours is not None and arc != self._ours and arc.contains(self._ours):  # ours shrank meanwhile
            sibling.synced = self._ours
            self._check(sibling, now)

    def _begin(self, sibling: _Sibling, piece: Stretch) -> None:
        self.streams += 1
        sibling.differences = 0
        sibling.stream = _Stream(piece, deque(item.name for item in self._items.touching(piece)))

    def _next_page(self, stream: _Stream) -> list[Item]:
        table = self._items.table
        present = (item for item in map(table.get, stream.names) if item is not None)
        page = next(pages(present), [])
        if not page:
            stream.names.clear()
            return page
        while stream.names.popleft() != page[-1].name:
            pass
        return page

    def _check(self, sibling: _Sibling, now: float) -> None:
        sibling.check_at = now + self._check_seconds
        tally = self._items.watched(OUR_TALLY)
        if sibling.identifier in self._linked and sibling.stream is None and tally is not None:
            sibling.sequence += 1
            sibling.check_sequence = sibling.sequence
            self._send(
                sibling.identifier, Kind.CHECK, [sibling.sequence, tally.stretch.after, tally.count, tally.digest]
            )

    def _compared(self, sibling: _Sibling, different: bool, now: float) -> None:
        """Once may be a write that reached the sibling by another way; twice is a difference."""
        sibling.differences = sibling.differences + 1 if different else 0
        if sibling.differences == 1:
            sibling.check_at = now + self._check_seconds / 4
        elif sibling.differences > 1 and sibling.stream is None and self._ours is not None:
            self.differences += 1
            self._begin(sibling, self._ours)

    def _refused(self, sibling: _Sibling, now: float) -> None:
        sequence = sibling.sequence
        self._present[sibling.identifier] = _Sibling(
            sibling.identifier, sequence=sequence, copied=sequence, refused=True, again_at=now + REFUSED_SECONDS
        )
