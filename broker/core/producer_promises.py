"""Promises: what was said about producers to whoever opened them, and is kept to while he may build on it.

Who opens a producer is told how far it has come on this disk. A row of it that comes here afterwards, as a copy from
another broker, may by then be in the opener's own log as well. Only one of the two may come to be on k disks, so such a
row is `contested`: the opener is asked first. He is believed for as long as there is a link to him; without one he
can have nothing on two disks that this broker would not know of.
"""

from __future__ import annotations

from headgate.protocol.log_rows import Row

from .cluster import Cluster
from .limits import PRODUCERS_MAX
from .peers import PeerInfo

__all__ = ["Promises"]


class Promises:
    """See the head of this file."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._made: dict[str, tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self._made)

    def make(self, name: str, opener: int, after: int) -> None:
        """This broker is told that the producer has come so far here."""
        self._made.pop(name, None)
        self._made[name] = opener, after
        if len(self._made) > PRODUCERS_MAX:
            del self._made[next(iter(self._made))]

    def amend(self, name: str, opener: int, after: int) -> None:
        """It is told something else, unless somebody else has asked since."""
        if self._made.get(name, (0, 0))[0] == opener:
            self.make(name, opener, after)

    def end(self, name: str) -> None:
        """This broker opens it itself."""
        self._made.pop(name, None)

    def release(self, name: str, opener: int) -> None:
        """He has no such row, and asks again before he takes one."""
        if self._made.get(name, (0, 0))[0] == opener:
            del self._made[name]

    def contested(self, row: Row, owner: int) -> PeerInfo | None:
        """Whoever may have this row of another broker's log in his own; None when nobody may."""
        opener, after = self._made.get(row.producer, (owner, 0))
        info = self._cluster.peers.by_identifier.get(opener)
        if opener == owner or row.number + row.count <= after or info is None or info.link is None:
            return None
        return info
