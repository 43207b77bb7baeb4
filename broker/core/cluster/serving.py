"""Serving: which keys the store is told are this broker's, and whether it may begin to answer for them.

Mostly the ring machine decides that. But a broker that has just started, or that stood still, must not believe too soon
that there is no other, or that it knows all others:

    alone           at once when no other was ever known (`certain`), else after asking for ALONE_SECONDS; but not
                    while a broker that was asked refuses to link: then this one is not alone but shut out, and the
                    keys that it took for its own would be others'
    alone, linked   this broker stood still, and membership has not yet heard of the others again: the view stays
    in a mesh       after the same brokers were there for STILL_SECONDS: the first greeting names only a few; at once
                    when all of them are new, and see the same (`cold_start`)
    in a ring       when the broker before us has adopted us (`membership/ring.py`)
"""

from __future__ import annotations

from ..config import NodeConfig
from ..kv import View
from ..limits import ALONE_SECONDS, STILL_SECONDS
from ..membership import Chord
from .address_book import AddressBook

__all__ = ["Serving"]


class Serving:
    """Decides when a broker may begin to answer: at once when it is alone, else when others took it in."""

    def __init__(self, me: int, config: NodeConfig, address_book: AddressBook, now: float) -> None:
        self._me = me
        self._config = config
        self._address_book = address_book
        self._alone_from = now
        self._seen: list[int] = []
        self._seen_at = now
        self.last: View | None = None

    def begin(self, now: float) -> None:
        """Others can reach us from now on, and we them."""
        self._alone_from = now + ALONE_SECONDS

    def founder(self) -> bool:
        """Whether there is no broker that this one could join: it was told of none, and never met one."""
        seeds = [one for one in self._config.seeds if one != self._address_book.own]
        return not seeds and self._address_book.nobody()

    def before(self) -> View:
        """What holds until then: a broker that knows of others answers for nothing before they were asked."""
        nobody = self.founder()
        return View(self._me, self._me, (), nobody, nobody)

    def view(
        self,
        chord: Chord,
        predecessor: int | None,
        others: list[int],
        linked: bool,
        now: float,
        refused: bool = False,
        all_new: bool = False,
    ) -> View | None:
        """What holds now; None when that is not known at this moment. `others` follow us on the ring, nearest first.

        `linked`: there is a link to a broker. `refused`: one that this broker would join does not let it in.
        `all_new`: these are all brokers that there are, and none has answered for keys.
        """
        in_ring = chord.ring is not None
        alone = not in_ring and predecessor is None
        if alone and linked:
            return None
        certain = alone and self.founder()
        serving = chord.owning().serving and not (in_ring and predecessor is None)
        if alone:
            serving = serving and (certain or self._was_serving() or (now >= self._alone_from and not refused))
        elif not in_ring:
            serving = serving and (self._has_looked_round(others, now) or all_new)
        replicas = self._config.replicas
        further = others[replicas : replicas + self._config.chord.list_length]
        after = self._me if predecessor is None else predecessor
        return View(after, self._me, tuple(others[:replicas]), serving, certain, tuple(further))

    def _was_serving(self) -> bool:
        return self.last is not None and self.last.serving

    def _has_looked_round(self, others: list[int], now: float) -> bool:
        if others != self._seen:
            self._seen, self._seen_at = others, now
        return self._was_serving() or now >= self._seen_at + STILL_SECONDS
