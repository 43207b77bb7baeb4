"""The holder: copies of other brokers' logs on our disk, row by row as their owners send them (see `log_copies.py`).

A copy is appended to where it ends and nowhere else. A row that does not fit there is passed over: what went before it
was not stored, because our disk was full. The owner is told so (CANNOT), looks for another broker, and tries us again.

A row of a producer that was opened elsewhere since, by a broker that was told that this row is not here, waits until he
has said whether he has taken it himself: of the two only one may be on k disks.
"""

from __future__ import annotations

from typing import Any

from headgate.protocol.data import LogKind, LogName, Row, decode_row
from headgate.protocol.errors import ProtocolViolation
from headgate.protocol.limits import CREDIT_MAX, TEXT_LENGTH_MAX
from headgate.protocol.messages import Control, Copy

from ..cluster import Cluster
from ..limits import POSITIONS_MAX
from ..links import PeerInfo
from .log import Log
from .producers import Producers
from .reconcile import Claims, Owner, Span

__all__ = ["CANNOT", "CONTESTED", "COPIED", "FROM", "HELD", "OFFER", "Holder", "read_held", "read_word"]

COPIED, FROM, OFFER = 17, 18, 19
"""Kinds of Control; each body is [broker, epoch, kind, stream, first, next]."""

CONTESTED = 28
"""Kind of Control, of the same form: the row that begins where the copy ends is in another broker's log."""

CANNOT = 32
"""Kind of Control, of the same form: our disk is full, and the copy ends there."""

HELD = 22
"""Kind of Control: which logs of the other one are held here, up to where on disk, and where they end when that has
what it was asked for. [whether that is all, [epoch, kind, stream, next, end] ...]"""

_HELD_AT_A_TIME = 500


class Holder:
    """See the head of this file."""

    def __init__(self, log: Log, cluster: Cluster, producers: Producers, claims: Claims) -> None:
        self._claims = claims
        self._contested: dict[LogName, None] = {}
        self._log = log
        self._cluster = cluster
        self._producers = producers
        self._to_tell: dict[tuple[int, LogName], None] = {}
        self._to_refuse: dict[tuple[int, LogName], None] = {}
        cluster.take_controls({OFFER: self._offered})

    def peer_up(self, info: PeerInfo, now: float) -> None:
        """Tell another broker what is here of its logs, or about to be: it may know less of them than we."""
        if not self._log.available:
            return
        held = [[*name[1:], one.next, one.assigned] for name, one in self._log.logs.items() if name.broker == info.name]
        for at in range(0, max(1, len(held)), _HELD_AT_A_TIME):
            is_all = at + _HELD_AT_A_TIME >= len(held)
            word = Control(HELD, [is_all, *held[at : at + _HELD_AT_A_TIME]])
            self._cluster.peers.tell(info.address, word, now)

    def _offered(self, info: PeerInfo, body: list[Any], now: float) -> None:
        """Another broker has this log: where to go on."""
        name, first, end = read_word(body)
        _check_owner(info, name)
        if not self._log.available:
            return
        held = self._log.hold(name)
        if held.assigned != held.next:
            return  # from an earlier link, and not on disk yet: it will ask again
        if held.next < first:
            if held.next:
                self._log.trim(name, first)
            held.first = held.next = held.assigned = first
        self._producers.owes(held, end, now)
        self._say(info, FROM, name, now)

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
        opener = self._producers.promises.contested(row, info.identifier) if row.producer else None
        if opener is not None:
            self._contest(info, name, row, opener, now)
            return

        def on_disk(reason: str, now: float) -> None:
            if reason:
                self._to_refuse[info.identifier, name] = None
            else:
                self._producers.landed(row)
                self._to_tell[info.identifier, name] = None

        self._log.append_bytes(held, message.row, row, self._producers.copied(row), on_disk)

    def _contest(self, info: PeerInfo, name: LogName, row: Row, opener: PeerInfo, now: float) -> None:
        """Another broker was told that this row is not here, and may have taken it since: let him say."""
        if name in self._contested:
            return
        self._contested[name] = None

        def heard(spans: list[Span], now: float) -> None:
            del self._contested[name]
            self._claims.remember(name.stream, spans)
            if not spans and self._producers.promises.contested(row, info.identifier):
                self._producers.promises.release(row.producer, opener.identifier)
            if info.link is not None:
                self._say(info, CONTESTED if spans else FROM, name, now)

        wanted = {row.producer: (row.number, row.number + row.count)}
        self._claims.ask(opener, Owner(name.broker), name.stream, row.time, wanted, heard, now)

    def settle(self, now: float) -> None:
        """Tell the owners what our disk has of theirs, and what it has no room for."""
        if self._to_tell:
            self._producers.caught_up()
            to_tell, self._to_tell = self._to_tell, {}
            self._tell_ends(to_tell, COPIED, now)
        if self._to_refuse:
            to_refuse, self._to_refuse = self._to_refuse, {}
            self._tell_ends(to_refuse, CANNOT, now)

    def _tell_ends(self, whom: dict[tuple[int, LogName], None], kind: int, now: float) -> None:
        for identifier, name in whom:
            info = self._cluster.peers.by_identifier.get(identifier)
            if info is not None and info.link is not None:
                self._say(info, kind, name, now)

    def _say(self, info: PeerInfo, kind: int, name: LogName, now: float) -> None:
        held = self._log.logs[name]
        self._cluster.peers.tell(info.address, Control(kind, [*name, held.first, held.next]), now)


def _check_owner(info: PeerInfo, name: LogName) -> None:
    if name.broker != info.name:
        raise ProtocolViolation(f"a broker has its own logs copied, not those of {name.broker!r}")


def read_word(body: list[Any]) -> tuple[LogName, int, int]:
    """The log that a word is about, and from where to where. Raises ProtocolViolation."""
    types = (str, int, int, str, int, int)
    if tuple(map(type, body)) != types or not 0 <= body[1] <= CREDIT_MAX:
        raise ProtocolViolation("a word about a copy is [broker, epoch, kind, stream, first, next]")
    broker, epoch, kind, stream, first, end = body
    if kind not in set(LogKind) or max(len(broker), len(stream)) > TEXT_LENGTH_MAX or not 0 <= first <= end:
        raise ProtocolViolation("a word about a copy names a log, and where it begins and ends")
    if end > POSITIONS_MAX:
        raise ProtocolViolation(f"a log has {POSITIONS_MAX} positions, and this word is about position {end}")
    return LogName(broker, epoch, kind, stream), first, end


def read_held(broker: str, body: list[Any]) -> tuple[bool, list[tuple[LogName, int, int]]]:
    """Whether that is all, and the logs of that broker: to where on disk, and their ends. Raises ProtocolViolation."""
    if not body or type(body[0]) is not bool or not all(type(one) is list and len(one) == 5 for one in body[1:]):
        raise ProtocolViolation("HELD is whether that is all, and [epoch, kind, stream, next, end] of each log")
    return body[0], [read_word([broker, *one]) for one in body[1:]]
