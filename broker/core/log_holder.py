"""The holder: copies of other brokers' logs on our disk, row by row as their owners send them (see `log_copies.py`).

A copy is appended to where it ends and nowhere else. A row that does not fit there is passed over: what went before it
was not stored, because our disk was full, and is asked for again in a moment.
"""

from __future__ import annotations

from typing import Any

from protocol.errors import ProtocolViolation
from protocol.limits import CREDIT_MAX, TEXT_LENGTH_MAX
from protocol.log_rows import LogKind, LogName, decode_row
from protocol.messages import Control, Copy

from .cluster import Cluster
from .limits import COPY_RETRY_SECONDS
from .log import Log
from .peers import PeerInfo
from .producers import Producers

__all__ = ["COPIED", "FROM", "HELD", "OFFER", "Holder", "read_held", "read_word"]

COPIED, FROM, OFFER = 17, 18, 19
"""Kinds of Control; each body is [broker, epoch, kind, stream, first, next]."""

HELD = 22
"""Kind of Control: which logs of the other one are held here. [whether that is all, [epoch, kind, stream, next] ...]"""

_HELD_AT_A_TIME = 500


class Holder:
    """See the head of this file."""

    def __init__(self, log: Log, cluster: Cluster, producers: Producers) -> None:
        self._log = log
        self._cluster = cluster
        self._producers = producers
        self._to_tell: dict[tuple[int, LogName], None] = {}
        self._to_ask: dict[tuple[int, LogName], None] = {}
        self.deadline = float("inf")
        cluster.table_of_controls[OFFER] = self._offered

    def peer_up(self, info: PeerInfo, now: float) -> None:
        """Tell another broker what is here of its logs: it may know less of them than we."""
        if not self._log.available:
            return
        held = [[*name[1:], one.next] for name, one in self._log.logs.items() if name.broker == info.name]
        for at in range(0, max(1, len(held)), _HELD_AT_A_TIME):
            is_all = at + _HELD_AT_A_TIME >= len(held)
            word = Control(HELD, [is_all, *held[at : at + _HELD_AT_A_TIME]])
            self._cluster.peers.tell(info.address, word, now)

    def _offered(self, info: PeerInfo, body: list[Any], now: float) -> None:
        """Another broker has this log: where to go on."""
        name, first, _ = read_word(body)
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
        self._say(info, FROM, name, now)

    def copy(self, info: PeerInfo, message: Copy, now: float) -> None:
        """A row for our disk. Raises ProtocolViolation."""
        name = LogName(message.broker, message.epoch, message.kind, message.stream)
        _check_owner(info, name)
        row = decode_row(message.row)
        held = self._log.logs.get(name)
        if held is None or row.first != held.assigned:
            return

        def on_disk(reason: str, now: float) -> None:
            if reason:
                self._to_ask[info.identifier, name] = None
                self.deadline = min(self.deadline, now + COPY_RETRY_SECONDS)
            else:
                self._to_tell[info.identifier, name] = None

        self._log.append_bytes(held, message.row, row, self._producers.copied(row), on_disk)

    def settle(self, now: float) -> None:
        """Tell the owners what our disk has of theirs."""
        if self._to_tell:
            to_tell, self._to_tell = self._to_tell, {}
            self._tell_ends(to_tell, COPIED, now)

    def wake(self, now: float) -> None:
        """The disk may take again what it did not."""
        if self.deadline <= now:
            self.deadline = float("inf")
            to_ask, self._to_ask = self._to_ask, {}
            self._tell_ends(to_ask, FROM, now)

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
    if tuple(map(type, body)) != types or not all(0 <= body[place] <= CREDIT_MAX for place in (1, 4, 5)):
        raise ProtocolViolation("a word about a copy is [broker, epoch, kind, stream, first, next]")
    broker, epoch, kind, stream, first, end = body
    if kind not in set(LogKind) or max(len(broker), len(stream)) > TEXT_LENGTH_MAX or first > end:
        raise ProtocolViolation("a word about a copy names a log, and where it begins and ends")
    return LogName(broker, epoch, kind, stream), first, end


def read_held(broker: str, body: list[Any]) -> tuple[bool, list[tuple[LogName, int]]]:
    """Whether that is all, and the logs of that broker with their ends. Raises ProtocolViolation."""
    if not body or type(body[0]) is not bool or not all(type(one) is list and len(one) == 4 for one in body[1:]):
        raise ProtocolViolation("HELD is whether that is all, and [epoch, kind, stream, next] of each log")
    words = [read_word([broker, *one[:3], 0, one[3]]) for one in body[1:]]
    return body[0], [(name, end) for name, _, end in words]
