"""Paces: how fast each user may publish at this broker. Who is faster than its roles allow is not read for a while.

A user has two token buckets, of events and of bytes of records, over all of its connections. A bucket fills by its
rate, up to what comes in PACE_BURST_SECONDS, and what was published is taken out of it: that may be more than there is,
since a batch is not cut. Until such a debt is paid the links on which the user publishes are muted: nothing is read
from them, the socket fills up, and the publisher waits, whatever program it is. (So does Kafka: it mutes the channels
of a client over its quota.)

    rate 10 a second, level 2 -> take 5 -> level -3: even again in 0.3 s, full again in 1.3 s

Nothing is refused and nothing is lost. Without a limit none of this is asked.
"""

from __future__ import annotations

from ..delivery import ClientSession
from ..effects import Effect, Mute, Note
from ..limits import PACE_BURST_SECONDS, PACES_TIDIED_MIN
from ..timers import NEVER, Timers

__all__ = ["PACES", "Bucket", "Paces"]

PACES = "paces"
"""Key of the timer: a user that was too fast may be read again."""


class Bucket:
    """A token bucket that may be in debt, kept as moments (GCRA, ATM Forum 1996): when it is even, and when it is full.

    Of a level nothing is kept that time would have to change, and the rate may be another one at each `take`.
    """

    __slots__ = ("even", "full")

    def __init__(self) -> None:
        self.even = self.full = float("-inf")

    def take(self, amount: int, rate: int, now: float) -> None:
        """Take so much out of it; it fills with `rate` a second (0: it is never empty)."""
        if rate:
            self.full = max(self.full, now) + amount / rate
            self.even = self.full - PACE_BURST_SECONDS


class Paces:
    """Keeps the buckets, and says which links are to be read."""

    def __init__(self, effects: list[Effect], timers: Timers) -> None:
        self._effects = effects
        self._timers = timers
        self._of: dict[str, tuple[Bucket, Bucket]] = {}
        self._tidy_at = PACES_TIDIED_MIN
        self._muted: dict[int, str] = {}  # link -> its user
        self.mutes = 0

    def published(self, session: ClientSession, events: int, size: int, now: float) -> None:
        """A client with limits publishes so much."""
        assert session.rights is not None
        buckets = self._of.get(session.user)
        if buckets is None:
            if len(self._of) >= self._tidy_at:
                self._tidy(now)
            buckets = self._of[session.user] = Bucket(), Bucket()
        for bucket, amount, rate in zip(buckets, (events, size), session.rights.pace, strict=True):
            bucket.take(amount, rate, now)
        self.look(session, now)

    def look(self, session: ClientSession, now: float) -> None:
        """Mute its link if its user is in debt: another connection is no way around it."""
        buckets = self._of.get(session.user)
        if buckets is None or session.link is None or session.link in self._muted:
            return
        even = max(bucket.even for bucket in buckets)
        if even > now:
            self.mutes += 1
            self._muted[session.link] = session.user
            self._effects.append(Mute(session.link, True))
            facts = {"client": session.name, "user": session.user, "seconds": round(even - now, 3)}
            self._effects.append(Note("publisher is slowed", facts, routine=True))
            self._timers.by(PACES, even)

    def go_on(self, now: float) -> None:
        """Read the links of users whose buckets are no longer below zero."""
        soonest = NEVER
        for link, user in list(self._muted.items()):
            even = max(bucket.even for bucket in self._of[user])
            if even <= now:
                self._speak(link)
            else:
                soonest = min(soonest, even)
        self._timers.at(PACES, soonest)

    def gone(self, link: int) -> None:
        """The link is down."""
        self._muted.pop(link, None)

    def begin_anew(self) -> None:
        """The limits may be others: all buckets begin full."""
        self._of.clear()
        for link in list(self._muted):
            self._speak(link)
        self._timers.at(PACES, NEVER)

    def validate(self) -> None:
        """Asserts that each muted user has buckets, and that the timer is set while there are some."""
        assert all(user in self._of for user in self._muted.values())
        assert not self._muted or self._timers.when(PACES) < NEVER

    def _speak(self, link: int) -> None:
        del self._muted[link]
        self._effects.append(Mute(link, False))

    def _tidy(self, now: float) -> None:
        """Forget the buckets that are full: new ones are as they are."""
        muted = dict.fromkeys(self._muted.values())
        owing = [user for user, two in self._of.items() if user in muted or max(one.full for one in two) > now]
        self._of = {user: self._of[user] for user in owing}
        self._tidy_at = max(PACES_TIDIED_MIN, 2 * len(self._of))
