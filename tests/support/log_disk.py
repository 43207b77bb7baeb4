"""A disk for tests: lists in memory, and a hand that says when something is on it, or that it is not.

What the Node asks of its disk is given to `ask`. `answer` carries out what was asked, in order, and returns the inputs
that tell of it; `refuse` says that it is full. What is not answered is lost when the broker dies, and `reopen` tells
the next life what is there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from headgate.broker.core.effects import (
    Append,
    CutLog,
    Effect,
    FindIds,
    FindSize,
    FindTime,
    KeepDurable,
    KeepProducer,
    KeepWatermarks,
    LogWrite,
    ReadRows,
    TrimLog,
)
from headgate.broker.core.inputs import Found, Input, NotStored, Opened, RowsRead, Stored, Trimmed
from headgate.broker.core.log_state import LogState, ProducerState
from headgate.protocol.data import LogName, Row, decode_row

__all__ = ["Disk"]

EPOCH = 1_000

_ASKED = (Append, KeepProducer, KeepDurable, CutLog, ReadRows, TrimLog, KeepWatermarks, FindTime, FindSize, FindIds)


@dataclass
class _Rows:
    """One log: its rows, and where it begins and ends."""

    rows: list[Append] = field(default_factory=list)
    first: int = 0
    next: int = 0
    safe: int = 0


class Disk:
    """Keeps rows in memory, and answers when the test says so."""

    def __init__(self, broker: str = "broker-1", epoch: int = EPOCH) -> None:
        self.broker = broker
        self.epoch = epoch
        self.logs: dict[LogName, _Rows] = {}
        self.producers: dict[str, ProducerState] = {}
        self.durables: dict[str, bytes] = {}
        self.asked: list[Any] = []
        self.ticket = 0
        self.damage: list[str] = []
        self.aside: list[bytes] = []
        self.unreadable: dict[LogName, int] = {}
        """From which position on a log cannot be read any more."""

    def opened(self) -> Opened:
        """What it holds; what was asked and not answered is gone."""
        self.asked.clear()
        self.ticket = 0
        states = [self.state(name) for name in self.logs]
        return Opened(self.epoch, states, list(self.producers.values()), self.damage, dict(self.durables))

    def ask(self, effects: Iterable[Effect]) -> None:
        """Take what is for the disk."""
        for effect in effects:
            if isinstance(effect, _ASKED):
                self.asked.append(effect)
                if isinstance(effect, LogWrite):
                    assert effect.ticket == self.ticket + 1, "tickets have no hole"
                    self.ticket = effect.ticket

    def answer(self) -> list[Input]:
        """Do all that was asked."""
        asked, self.asked = self.asked, []
        said: list[Input] = []
        for effect in asked:
            if isinstance(effect, LogWrite):
                self._write(effect)
                if said and isinstance(said[-1], Stored):
                    said.pop()
                said.append(Stored(effect.ticket))
            elif isinstance(effect, KeepWatermarks):
                for name, end in effect.logs.items():
                    self.logs[name].safe = end
            else:
                said.append(self._look(effect))
        return said

    def refuse(self, reason: str = "the disk is full", fatal: bool = False) -> list[Input]:
        """Nothing of what was asked to be kept is."""
        self.asked = [effect for effect in self.asked if not isinstance(effect, LogWrite)]
        return [NotStored(reason, fatal)]

    def rows(self, name: LogName) -> list[Row]:
        """What a log holds."""
        return [decode_row(append.row) for append in self.logs[name].rows] if name in self.logs else []

    def copy(self) -> Disk:
        """A backup: what is on it now."""
        other = Disk(self.broker, self.epoch)
        other.logs = {name: _Rows(list(log.rows), log.first, log.next, log.safe) for name, log in self.logs.items()}
        other.producers, other.durables = dict(self.producers), dict(self.durables)
        return other

    def state(self, name: LogName) -> LogState:
        """The same, added up."""
        log = self.logs[name]
        times = [append.time for append in log.rows] or [0]
        size = sum(len(append.row) for append in log.rows)
        return LogState(name, log.first, log.next, size, times[0], times[-1], min(log.safe, log.next))

    def _write(self, effect: LogWrite) -> None:
        if isinstance(effect, CutLog):
            self._cut(effect)
            return
        if isinstance(effect, KeepDurable):
            self.durables[effect.name] = effect.state
            if not effect.state:
                del self.durables[effect.name]
            return
        if effect.producer is not None:
            self._keep_producer(effect.producer)
        if isinstance(effect, KeepProducer):
            return
        log = self.logs.setdefault(effect.log, _Rows(first=effect.first, next=effect.first))
        if not log.rows and log.first == log.next:
            log.first = log.next = effect.first
        assert effect.first == log.next, (effect.log, effect.first, log.next)
        log.rows.append(effect)
        log.next += effect.count
        if effect.log.broker == self.broker:
            self.epoch = max(self.epoch, effect.log.epoch)

    def _keep_producer(self, state: ProducerState) -> None:
        former = self.producers.get(state.name)
        fence = state.fence or (b"" if former is None else former.fence)
        self.producers[state.name] = replace(state, fence=fence)

    def _cut(self, cut: CutLog) -> None:
        log = self.logs[cut.log]
        at = max(cut.at, log.first)
        self.aside += [row.row for row in log.rows if row.first >= at]
        log.rows, log.next = [row for row in log.rows if row.first < at], at
        for row in cut.rows:
            self._write(replace(row, producer=None))
        for state in cut.producers:
            self._keep_producer(state)
        self.epoch = max(self.epoch, cut.epoch)

    def _look(self, effect: Any) -> Input:
        if isinstance(effect, ReadRows):
            return self._read(effect)
        if isinstance(effect, TrimLog):
            log = self.logs[effect.log]
            log.rows = [one for one in log.rows if one.first + one.count > effect.below]
            log.next = max(log.next, effect.below)
            log.first = log.rows[0].first if log.rows else log.next
            return Trimmed(self.state(effect.log))
        if isinstance(effect, FindIds):
            named = [one for log in self.logs.values() for one in log.rows if one.ids]
            rows = [row for row in (decode_row(one.row) for one in named) if row.producer == effect.producer]
            rows.sort(key=lambda row: row.number)
            wanted = [row for row in rows if row.number + row.count > effect.after]
            return Found(effect.ticket, ([named_row(named, row) for row in wanted], None))
        if effect.log not in self.logs:
            return Found(effect.ticket, None)
        log = self.logs[effect.log]
        if isinstance(effect, FindTime):
            found = [one.first for one in log.rows if one.time >= effect.time]
            return Found(effect.ticket, found[0] if found else log.next)
        size, position = 0, log.next
        for one in reversed(log.rows):
            size += len(one.row)
            if size > effect.bytes:
                break
            position = one.first
        return Found(effect.ticket, position)

    def _read(self, effect: ReadRows) -> RowsRead:
        log = self.logs.get(effect.log, _Rows())
        rows: list[bytes] = []
        after = max(effect.position, log.first)
        damaged = self.unreadable.get(effect.log)
        for one in log.rows:
            if one.first + one.count > effect.position:
                if one.first == damaged:
                    return RowsRead(effect.ticket, rows, after, "" if rows else f"row {damaged} is damaged")
                if rows and sum(map(len, rows)) + len(one.row) > effect.bytes_max:
                    break
                rows.append(one.row)
                after = one.first + one.count
        return RowsRead(effect.ticket, rows, after)


def named_row(appends: list[Append], row: Row) -> bytes:
    """The bytes of a row."""
    return next(one.row for one in appends if (one.first, one.count) == (row.first, row.count))
