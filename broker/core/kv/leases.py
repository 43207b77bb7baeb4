"""Leases on one's own keys: the first sibling says whether they are still ours, and we say so to the broker before us.

The broker that takes keys over is the first live one after their former owner, which is the former owner's first
sibling; or one between the two, of which the first sibling hears before it may serve. So the first sibling is asked,
and its yes is good from the moment of asking. It is no longer said once the asked broker owns the keys itself, nor
while it has said yes to another broker for some of the same keys. A broker without siblings is alone and asks none.

A broker that had no lease for a moment can no longer know whether another one owned its keys meanwhile, and gave them
back: it has *lapsed*, and gains its keys anew. A broker that takes keys over confirms nothing for the length of a
lease, so one that never was without a lease missed nothing.

When keys are handed on, what was promised of them runs out by itself, and may be answered from until then: the new
owner confirms nothing before. When the sibling that promised is found dead, its promise is void, for it is unknown what
it did last.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..keyspace import Arc
from ..safeguards import SAFEGUARDS, Safeguard
from ..timers import Timers
from .messages import KvEffect, Renew, Renewal, Renewed, Tell
from .replication import remember

__all__ = ["Leases"]


@dataclass(slots=True)
class _Promise:
    stretch: Arc
    until: float
    arbiter: int


class Leases:
    """Asks for the lease on our keys, and gives the one on the keys before ours."""

    def __init__(
        self,
        me: int,
        linked: dict[int, None],
        effects: list[KvEffect],
        timers: Timers,
        lease_seconds: float,
        safeguards: frozenset[Safeguard] = SAFEGUARDS,
    ) -> None:
        self._safeguards = safeguards
        self._me = me
        self._linked = linked
        self._effects = effects
        self._timers = timers
        self._lease_seconds = lease_seconds
        self._siblings: tuple[int, ...] = ()
        self._ours: Arc | None = None
        self._fences: list[_Promise] = []
        self._number = 0
        self._asked: dict[int, float] = {}
        self._asked_for: dict[int, tuple[int, Arc]] = {}
        self._sure_until = float("inf")
        """Until when no other broker can have owned our keys since they were complete here."""
        self._given: dict[int, tuple[Arc, float]] = {}
        """Broker -> what was promised to it, and until when."""

    # --- Our own keys ------------------------------------------------------------------------------------------------

    def set_siblings(self, siblings: tuple[int, ...], now: float) -> None:
        """Promises of brokers that are siblings no longer are void, but for our own while we were alone."""
        if self._ours is not None and not self._siblings and siblings:
            self._fences.append(_Promise(self._ours, now + self._lease_seconds, self._me))
            self._sure_until = now + self._lease_seconds
        kept = (*siblings, self._me)
        self._fences = [promise for promise in self._fences if promise.arbiter in kept]
        changed = siblings[:1] != self._siblings[:1]
        self._siblings = siblings
        if changed:
            self._ask(now)

    def set_ours(self, ours: Arc | None, now: float) -> None:
        """The keys that are ours and complete here."""
        if ours == self._ours:
            return
        former, self._ours = self._ours, ours
        if former is None:
            self._sure_until = now + self._lease_seconds
        if not self._siblings and former is not None and (ours is None or not ours.contains(former)):
            self._fences.append(_Promise(former, now + self._lease_seconds, self._me))
        self._ask(now)

    def sure_since(self, since: float) -> None:
        """Our keys were nobody's at that moment, before they were complete here."""
        self._sure_until = since + self._lease_seconds

    def forget(self) -> None:
        """We are in no ring: nothing is ours, whatever was promised."""
        self._ours = None
        self._fences.clear()
        self._asked.clear()
        self._asked_for.clear()

    def lapsed(self, now: float) -> bool:
        """Whether our keys may have been another broker's meanwhile."""
        late = self._ours is not None and bool(self._siblings) and now > self._sure_until
        return late and Safeguard.LAPSE in self._safeguards

    def link_new(self, identifier: int, now: float) -> None:
        """Ask at once when it is the one to ask."""
        if self._siblings[:1] == (identifier,):
            self._ask(now)

    def renewed(self, sender: int, number: int, verdict: int, now: float) -> bool:
        """The answer came. Whether the sibling believes the keys to be its own."""
        asked_at = self._asked.pop(number, None)
        asked_for = self._asked_for.pop(number, None)
        if asked_at is None or asked_for is None or asked_for[0] != sender or sender not in self._siblings:
            return False
        if verdict == Renewal.YES:
            if self._ours is not None and asked_for[1].contains(self._ours):
                self._sure_until = max(self._sure_until, asked_at + self._lease_seconds)
            self._promised(asked_for[1], self._good_until(asked_at, now), sender, now)
        return verdict == Renewal.MINE and sender == self._siblings[0]

    def holds(self, stretch: Arc, now: float) -> bool:
        """Whether all of it is ours beyond doubt at this moment."""
        return self.until(stretch, now) > now

    def until(self, stretch: Arc, now: float) -> float:
        """Until when it is; `now` when it is not."""
        if not self._siblings:
            return float("inf") if self._ours is not None and self._ours.contains(stretch) else now
        return max((one.until for one in self._fences if one.stretch.contains(stretch)), default=now)

    def scope(self, now: float) -> list[tuple[Arc, float]]:
        """What of our keys, and of those that were ours, may be answered for, and until when."""
        found = [(one.stretch, one.until) for one in self._fences if one.until > now]
        if Safeguard.LEASES not in self._safeguards and self._ours is not None:
            return [(self._ours, now + 0.01)]
        if not self._siblings and self._ours is not None:
            found.append((self._ours, float("inf")))
        return found

    # --- Others' keys ------------------------------------------------------------------------------------------------

    def asked(self, sender: int, number: int, stretch: Arc, own: Arc | None, now: float) -> None:
        """Another broker asks whether these are still its own."""
        self._given = {one: given for one, given in self._given.items() if given[1] > now}
        verdict = Renewal.YES
        if own is not None and own.covers(sender):
            verdict = Renewal.MINE
        elif any(one != sender and given[0].overlaps(stretch) for one, given in self._given.items()):
            verdict = Renewal.ANOTHERS
        else:
            self._given[sender] = (stretch, now + self._lease_seconds)
        self._effects.append(Tell(sender, Renewed(number, int(verdict))))

    # --- Time --------------------------------------------------------------------------------------------------------

    def ask_again(self, now: float) -> None:
        """It is time."""
        self._fences = [promise for promise in self._fences if promise.until > now]
        self._ask(now)

    def validate(self) -> None:
        """Asserts that each promise is by this broker or by one of its siblings."""
        assert self._asked.keys() == self._asked_for.keys()
        assert all(one.arbiter == self._me or one.arbiter in self._siblings for one in self._fences)

    # --- Inside ------------------------------------------------------------------------------------------------------

    def _ask(self, now: float) -> None:
        if not self._siblings or self._ours is None:
            self._timers.at("leases", float("inf"))
            return
        self._timers.at("leases", now + self._lease_seconds / 4)
        if self.lapsed(now):
            return
        first = self._siblings[0]
        if first in self._linked:
            self._number += 1
            remember(self._asked, self._number, now)
            self._asked_for[self._number] = (first, self._ours)
            self._asked_for = {number: it for number, it in self._asked_for.items() if number in self._asked}
            self._effects.append(Tell(first, Renew(self._number, self._ours.after)))

    def _promised(self, stretch: Arc, until: float, arbiter: int, now: float) -> None:
        if until <= now:
            return
        for promise in self._fences:
            if promise.stretch == stretch and promise.arbiter == arbiter:
                promise.until = max(promise.until, until)
                return
        self._fences.append(_Promise(stretch, until, arbiter))

    def _good_until(self, asked_at: float, now: float) -> float:
        return (asked_at if Safeguard.LEASE_FROM_ASKING in self._safeguards else now) + self._lease_seconds
