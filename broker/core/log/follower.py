"""The follower: copies of other brokers' logs on our disk, row by row as their leaders send them (see `leader.py`).

A copy is appended to where it ends and nowhere else. A row that does not fit there is passed over: the row before it
was not stored, because our disk was full. The leader is told so (CannotCopy), chooses another follower, and tries this
one again later. Where the log begins behind the copy by now, the copy begins there anew as soon as our disk has let go
of what it had.

A row that is not on k disks yet is taken only from the opening of its producer that this broker holds to (`fences.py`).
Any other is refused (RowFenced): its owner finds out which opening holds (`reconcile.py`).
"""

from __future__ import annotations

from headgate.protocol.data import LogKind, LogName, decode_row
from headgate.protocol.errors import ProtocolViolation
from headgate.protocol.messages import Copy

from ..cluster import Cluster
from ..limits import POSITIONS_MAX
from ..links import PeerInfo
from .fences import Start
from .log import Log
from .messages import (
    CannotCopy,
    Copied,
    CopyFrom,
    CopyOffer,
    CopyPlace,
    HeldCopies,
    HeldPlace,
    HighWatermark,
    LostLogs,
    RowFenced,
)
from .producers import Producers

__all__ = ["Follower"]


class Follower:
    """Appends rows of other brokers' logs to the copies here, and tells their leaders how far they have come."""

    def __init__(self, log: Log, cluster: Cluster, producers: Producers) -> None:
        self._log = log
        self._cluster = cluster
        self._producers = producers
        self.to_tell: dict[tuple[int, LogName], None] = {}
        self.to_refuse: dict[tuple[int, LogName], None] = {}
        cluster.take_controls({CopyOffer: self._offered, LostLogs: self._lost_there, HighWatermark: self._safe_there})

    def peer_up(self, info: PeerInfo, now: float) -> None:
        """Tell another broker what is here of its logs, or about to be: it may know less of them than we."""
        if not self._log.available:
            return
        held = [
            HeldPlace(*name[1:], one.next, one.assigned)
            for name, one in self._log.logs.items()
            if name.broker == info.name
        ]
        most = self._log.limits.held_copies
        for at in range(0, max(1, len(held)), most):
            is_all = at + most >= len(held)
            self._cluster.tell(info, HeldCopies(is_all, tuple(held[at : at + most])), now)

    def _lost_there(self, info: PeerInfo, lost: LostLogs, now: float) -> None:
        """The broker that wrote these has not got them any more: what reads logs reads our copies."""
        for epoch, stream in lost.logs:
            held = self._log.logs.get(LogName(info.name, epoch, int(LogKind.EVENTS), stream))
            if held is not None:
                held.orphan, held.unproven = True, False
                self._log.settle(held, now)

    def _safe_there(self, info: PeerInfo, place: HighWatermark, now: float) -> None:
        """So much of a log is on enough disks."""
        _check_owner(info, place.name)
        held = self._log.logs.get(place.name)
        if held is not None:
            self._log.told_safe(held, place.end, now)

    def _offered(self, info: PeerInfo, offer: CopyOffer, now: float) -> None:
        """Another broker has this log: where to go on."""
        name, first = offer.name, offer.first
        _check_owner(info, name)
        if not self._log.available:
            return
        held = self._log.hold(name)
        held.offered = max(held.offered, offer.end)
        if held.assigned != held.next:
            return  # from an earlier link, and not on disk yet: it will ask again
        if held.next < first:
            if held.first < held.next:
                self._log.trim(name, first)
                return  # a disk that is full does not do it, and has no hole then: it will ask again
            held.first = held.next = held.assigned = first
        self._producers.owes(held, offer.end, now)
        self._say(info, CopyFrom, name, now)

    def copy(self, info: PeerInfo, message: Copy, now: float) -> None:
        """A row for our disk. Raises ProtocolViolation."""
        name = LogName(message.broker, message.epoch, message.kind, message.stream)
        _check_owner(info, name)
        row = decode_row(message.row)
        if row.first + row.count > POSITIONS_MAX:
            raise ProtocolViolation(
                f"a log has {POSITIONS_MAX} positions, and this row goes to {row.first + row.count}"
            )
        held = self._log.logs.get(name)
        if held is None or row.first != held.assigned:
            return
        self._log.told_safe(held, message.safe, now)
        if row.first + row.count > message.safe and self._producers.refuses(row, name, message.generation):
            self._log.when_landed(lambda reason, now: self._refuse(info, name, now), now)
            return
        state = self._producers.copied(row, Start(message.start, message.generation, name.broker, name.epoch))

        def on_disk(reason: str, now: float) -> None:
            if state is not None:
                self._producers.stored(state, reason)
            if reason:
                self.to_refuse[info.identifier, name] = None
            else:
                self._producers.landed(row)
                self.to_tell[info.identifier, name] = None

        self._log.append_bytes(held, message.row, row, state, on_disk)

    def _refuse(self, info: PeerInfo, name: LogName, now: float) -> None:
        """The rows before it are on our disk."""
        if info.link is not None:
            self._say(info, RowFenced, name, now)

    def settle(self, now: float) -> None:
        """Tell the owners what our disk has of theirs, and what it has no room for."""
        if self.to_tell:
            self._producers.caught_up()
            to_tell, self.to_tell = self.to_tell, {}
            self._tell_ends(to_tell, Copied, now)
        if self.to_refuse:
            to_refuse, self.to_refuse = self.to_refuse, {}
            self._tell_ends(to_refuse, CannotCopy, now)

    def _tell_ends(self, whom: dict[tuple[int, LogName], None], kind: type[CopyPlace], now: float) -> None:
        for identifier, name in whom:
            info = self._cluster.peers.by_identifier.get(identifier)
            if info is not None and info.link is not None:
                self._say(info, kind, name, now)

    def _say(self, info: PeerInfo, kind: type[CopyPlace], name: LogName, now: float) -> None:
        held = self._log.logs[name]
        self._cluster.tell(info, kind(*name, held.first, held.next), now)


def _check_owner(info: PeerInfo, name: LogName) -> None:
    if name.broker != info.name:
        raise ProtocolViolation(f"a broker has its own logs copied, not those of {name.broker!r}")
