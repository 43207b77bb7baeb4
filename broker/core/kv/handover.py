"""What a broker that gained keys is answered, and how this one hands its own on to it.

    a living owner of them is known here     OWNED: the asker has not heard of it, or not of its end
    ours, and not ready                      BUSY, with as much hope as there is; later, anyway, parts
    ours, and ready                          the asker's from this moment on: we confirm nothing in them any more
    another's, or were ours                  what is here, and nothing is taken in from their former owner any more

What is here is whole when our ready keys, whole replicas and what was ours a moment ago cover it together. An asker
that says that it has a whole copy, and whose count and digest are the same, is sent no items but those removed: of an
item that it missed from its beginning to its end nothing shows in the digest, and another broker's old copy would bring
it back.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from ..keyspace import Arc
from ..safeguards import Safeguard
from .items import Items
from .limits import DEFAULT_LIMITS, KvLimits
from .messages import Fetch, Item, KvEffect, Name, Page, Tell, Verdict, pages
from .ownership import Ownership
from .replication import Replicas, is_covered

__all__ = [
    "Fetches",
    "Handover",
]

# Answering those who gained keys: what is here of them goes out page by page, and is theirs from then on.


@dataclass(slots=True)
class _Sending:
    number: int
    verdict: Verdict
    names: deque[Name]
    in_flight: int = 0
    done: bool = False


class Fetches:
    """One answer under way for each broker that asked; a new question replaces the former."""

    def __init__(self, items: Items, effects: list[KvEffect], limits: KvLimits = DEFAULT_LIMITS) -> None:
        self._items = items
        self._limits = limits
        self._effects = effects
        self._sending: dict[int, _Sending] = {}

    def __len__(self) -> int:
        """Answers under way."""
        return len(self._sending)

    def busy(self, asker: int, number: int, hope: int) -> None:
        """Not now; `hope` is a verdict from BUSY on."""
        self._sending.pop(asker, None)
        self._effects.append(Tell(asker, Page(number, True, int(hope), [])))

    def same(self, asker: int, number: int, stretch: Arc) -> None:
        """You have all that lives in it; and these were removed, which does not show in count and digest."""
        removed = [item.name for item in self._items.touching(stretch) if item.value is None]
        self._begin(asker, _Sending(number, Verdict.WHOLE, deque(removed)))

    def begin(self, asker: int, number: int, stretch: Arc, whole: bool) -> None:
        """Everything that touches the stretch."""
        names = deque(item.name for item in self._items.touching(stretch))
        self._begin(asker, _Sending(number, Verdict.WHOLE if whole else Verdict.PARTIAL, names))

    def paged(self, asker: int, number: int) -> None:
        """The asker took a page in."""
        sending = self._sending.get(asker)
        if sending is not None and sending.number == number and sending.in_flight > 0:
            sending.in_flight -= 1
            self._go_on(asker)

    def forget(self, asker: int) -> None:
        """The link to the asker is another; it will ask again."""
        self._sending.pop(asker, None)

    def _begin(self, asker: int, sending: _Sending) -> None:
        self._sending[asker] = sending
        self._go_on(asker)

    def _go_on(self, asker: int) -> None:
        sending = self._sending[asker]
        while not sending.done and sending.in_flight < self._limits.pages_in_flight:
            page = self._next_page(sending.names)
            sending.in_flight += 1
            sending.done = not sending.names
            said = Page(sending.number, sending.done, int(sending.verdict), page)
            self._effects.append(Tell(asker, said))
        if sending.done:
            del self._sending[asker]

    def _next_page(self, names: deque[Name]) -> list[Item]:
        table = self._items.table
        page = next(pages((item for item in map(table.get, names) if item is not None), self._limits.page_items), [])
        if not page:
            names.clear()
        while page and names.popleft() != page[-1].name:
            pass
        return page


class Handover:
    """Decides what a broker is answered that gained keys."""

    def __init__(self, me: int, replicas: Replicas, ownership: Ownership, fetches: Fetches) -> None:
        self._me = me
        self._replicas = replicas
        self._ownership = ownership
        self._fetches = fetches

    def asked(self, sender: int, fetch: Fetch, now: float) -> None:
        """A broker that gained keys asks for what is here."""
        number, anyway = fetch.number, fetch.anyway
        stretch = Arc(fetch.after, fetch.last)
        own = self._ownership.own
        hope = self._ownership.unready(stretch, now)
        if anyway and hope == Verdict.BUSY:
            hope = None  # we wait for others as the asker does, and it has waited long enough
        ours = own is not None and own.overlaps(stretch)
        yields = own is not None and own.covers(sender) and not stretch.covers(self._me)
        held = self._ownership.whole_for(sender, now)
        if self._replicas.alive(stretch, sender, now):
            self._fetches.busy(sender, number, Verdict.OWNED)
            return
        if ours and (hope is not None or not (yields or anyway)):
            self._fetches.busy(sender, number, hope or Verdict.BUSY)
            return
        if ours and yields:
            held += [piece.stretch for piece in self._ownership.pieces if piece.ready]
            self._hand_over(sender, now)
        complete = is_covered(stretch, held)
        if not complete and hope is not None:
            self._fetches.busy(sender, number, hope)
            return
        self._replicas.close(stretch, sender, now)
        self._ownership.former.came(sender, stretch, now)
        if complete and fetch.whole and self._ownership.fingerprint(stretch) == (fetch.count, fetch.digest):
            self._fetches.same(sender, number, stretch)
        else:
            self._fetches.begin(sender, number, stretch, complete)

    def _hand_over(self, newcomer: int, now: float) -> None:
        if Safeguard.HANDOVER_AT_FETCH in self._replicas.safeguards:
            self._ownership.hand_over(newcomer, now)
