"""Answering those who gained keys: what is here of them goes out page by page, and is theirs from then on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .keyed_arcs import Stretch
from .keyed_items import Items
from .keyed_limits import PAGES_IN_FLIGHT_MAX
from .keyed_messages import Item, Kind, Name, Verdict, pages, written

__all__ = ["Fetches"]

SendTo = Callable[[int, int, list[Any]], None]


@dataclass(slots=True)
class _Sending:
    number: int
    verdict: Verdict
    names: deque[Name]
    in_flight: int = 0
    done: bool = False


class Fetches:
    """One answer under way for each broker that asked; a new question replaces the former."""

    def __init__(self, items: Items, send: SendTo) -> None:
        self._items = items
        self._send = send
        self._sending: dict[int, _Sending] = {}

    def __len__(self) -> int:
        """Answers under way."""
        return len(self._sending)

    def busy(self, asker: int, number: int, hope: int) -> None:
        """Not now; `hope` is a verdict from BUSY on."""
        self._sending.pop(asker, None)
        self._send(asker, Kind.PAGE, [number, True, int(hope), []])

    def same(self, asker: int, number: int, stretch: Stretch) -> None:
        """You have all that lives in it; and these were removed, which does not show in count and digest."""
        removed = [item.name for item in self._items.touching(stretch) if item.value is None]
        self._begin(asker, _Sending(number, Verdict.WHOLE, deque(removed)))

    def begin(self, asker: int, number: int, stretch: Stretch, whole: bool) -> None:
        """Everything that touches the stretch."""
        names = deque(item.name for item in self._items.touching(stretch))
        self._begin(asker, _Sending(number, Verdict.WHOLE if whole else Verdict.PARTIAL, names))

    def paged(self, asker: int, number: int) -> None:
        """He took a page in."""
        sending = self._sending.get(asker)
        if sending is not None and sending.number == number and sending.in_flight > 0:
            sending.in_flight -= 1
            self._go_on(asker)

    def forget(self, asker: int) -> None:
        """His link is another; he will ask again."""
        self._sending.pop(asker, None)

    def _begin(self, asker: int, sending: _Sending) -> None:
        self._sending[asker] = sending
        self._go_on(asker)

    def _go_on(self, asker: int) -> None:
        sending = self._sending[asker]
        while not sending.done and sending.in_flight < PAGES_IN_FLIGHT_MAX:
            page = self._next_page(sending.names)
            sending.in_flight += 1
            sending.done = not sending.names
            self._send(asker, Kind.PAGE, [sending.number, sending.done, int(sending.verdict), written(page)])
        if sending.done:
            del self._sending[asker]

    def _next_page(self, names: deque[Name]) -> list[Item]:
        table = self._items.table
        page = next(pages(item for item in map(table.get, names) if item is not None), [])
        if not page:
            names.clear()
        while page and names.popleft() != page[-1].name:
            pass
        return page
