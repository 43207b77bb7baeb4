"""Cold start: all brokers of a cluster were started again at once, and find out that there is nobody to wait for.

What brokers know of keys, they know in memory. So a broker that starts waits: for a copy that another may still give
(SETTLE_SECONDS), and until every right to answer that its former life gave is over (LEASE_SECONDS). When all brokers
are *new*, that is, none of them has answered for keys in this life, there is no copy and nobody who could use a right.
This is recovery from total failure (Skeen, 1985): it is over when all who were there at the last are back.

Each new broker asks all others, again and again: do you see what I see? One that does says whom it sees, itself
included; one that does not says nobody. It sees what another may rely on when

    it is new, or has had no keys but those that it took by such an agreement among the same brokers;
    it has a link to every broker that it knows of: its seeds, those it ever met (kept over restarts), those that
    others told it of;
    membership, which names the owners of keys, knows the same brokers;
    its disk tells whom its former life met, or it is up for so long that all which that life promised is over.

When all of them say the same brokers, the asker takes its keys. It goes on to say what it saw as long as it sees the
same without a break, for others come to know it later. Answers count from the moment of asking, and not for long:
nobody that said so, and lost sight of the asker afterwards, can have taken its keys meanwhile. Whoever does not come so
far (a broker is away, or stands still, or one of them serves) goes on as any newcomer does.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..limits import CONTACTS_KEPT_MAX, NEWS_SECONDS

__all__ = ["ColdStart"]


class ColdStart:
    """Keeps the newest answer of each broker that was asked what it sees."""

    def __init__(self, me: int) -> None:
        self._me = me
        self._number = 0
        self._asked: dict[int, tuple[int, float]] = {}
        """Broker -> the number and the moment of the last question."""
        self._answers: dict[int, tuple[float, frozenset[int]]] = {}
        """Broker -> when it was asked, and whom it saw."""
        self.began: frozenset[int] = frozenset()
        """Whom this broker has seen without a break since it took its keys by an agreement of these; or nobody."""

    def ask(self, broker: int, now: float) -> int:
        """This broker is asked now: the number of the question."""
        self._number += 1
        self._asked[broker] = (self._number, now)
        return self._number

    def answered(self, broker: int, number: int, seen: Iterable[int]) -> None:
        """It sees these, itself included, and is new; or nobody."""
        asked_number, asked_at = self._asked.get(broker, (0, 0.0))
        if number == asked_number:
            self._answers[broker] = (asked_at, frozenset(seen))

    def forget(self, broker: int) -> None:
        """The link to it is another, or gone: it may be another life of it."""
        self._asked.pop(broker, None)
        self._answers.pop(broker, None)
        self.began = frozenset()

    def agreed_since(self, seen: frozenset[int], now: float) -> float | None:
        """Since when all whom this broker sees have been known to be new, and to see the same; None: they are not."""
        if self.began != seen:
            self.began = frozenset()
        if not seen:
            return None
        since = self._since(seen, now)
        if since is not None:
            self.began = seen
        return since

    def _since(self, seen: frozenset[int], now: float) -> float | None:
        since = now
        for broker in seen - {self._me}:
            asked_at, theirs = self._answers.get(broker, (float("-inf"), frozenset()))
            if theirs != seen or asked_at + NEWS_SECONDS < now:
                return None
            since = min(since, asked_at)
        return since if 1 < len(seen) <= CONTACTS_KEPT_MAX else None
