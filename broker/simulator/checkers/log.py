"""Checkers of the log: one for each promise. They get every step, every row on a disk, and the end of the run.

    OnEnoughDisks     P1: when PUBACK of a batch in mode stored goes out, as many synced disks have it as were promised
    OnlyOnce          P2: a resend never makes a second position in a log
    SeenWhenSafe      P4: what is delivered or can be read is on as many disks as were promised, in one place, as one id
    PositionsStand    P3: positions are dense, given out once and never rewritten; copies of one log agree
    ComesBackWhole    S1: a broker restarts with every row that its disk confirmed, or reports that some are missing
    StoredElsewhere   A1: one full disk hinders only the clients of its own broker

They ask Disks what is on the disks, event by event, and ask brokers nothing about it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from headgate.broker.core.effects import Effect, Send
from headgate.broker.core.inputs import Input, Opened, Received, Stored
from headgate.protocol.data import Batch, LogKind, LogName, LogShift, Portion, Row, decode_record, decode_row, row_batch
from headgate.protocol.messages import Answer, Deliver, Error, Mode, Puback, Publish, Scope

from ..engine import WALL_CLOCK_OFFSET_SECONDS, ClusterWorld, Entry, Host, LogList, Server
from ..workloads import Client, LogHistory
from .checker import Checker

__all__ = [
    "ComesBackWhole",
    "Disks",
    "LogChecker",
    "OnEnoughDisks",
    "OnlyOnce",
    "PositionsStand",
    "SeenWhenSafe",
    "StoredElsewhere",
    "names_of",
]


class LogChecker(Checker):
    """A checker that knows what is on all disks."""

    def __init__(self, world: ClusterWorld, history: LogHistory, disks: Disks) -> None:
        self.world: ClusterWorld = world
        self.history = history
        self.disks = disks


def names_of(row: Row) -> list[str]:
    """The names of the events in a row of events: their bodies."""
    return [decode_record(piece)[1].decode() for piece in row_batch(row).pieces()]


@dataclass(slots=True)
class _Seen:
    """How far one log on one disk was read."""

    log: LogList
    entries: list[Entry]


class Disks:
    """Index of all disks by event. `found` is called for every row that is new on a disk."""

    def __init__(self, world: ClusterWorld) -> None:
        self._world = world
        self.found: list[Callable[[Server, LogName, Entry, Row], None]] = []
        self.holders: dict[str, dict[tuple[str, LogName], None]] = {}
        """Event -> the brokers whose disks have it, and in which log."""
        self.had: dict[str, dict[str, None]] = {}
        """Event -> brokers whose disks ever had it, harmed or not."""
        self.let_go_at: dict[str, float] = {}
        """Event -> when it was seen that the first disk had let go of it."""
        self._seen: dict[tuple[str, LogName], _Seen] = {}
        self.rows = 0

    def look(self) -> None:
        """Read what changed since the last look."""
        forgotten: dict[tuple[str, LogName], list[str]] = {}
        for server in self._world.servers.values():
            logs = server.disk.content.logs
            for key in [key for key in self._seen if key[0] == server.name]:
                seen = self._seen[key]
                log = logs.get(key[1])
                if log is not seen.log or not _goes_on(log, seen.entries):
                    forgotten[key] = self._forget(key)
            for name, log in logs.items():
                self._take_in(server, name, log)
        for key, events in forgotten.items():
            for event in events:
                if key not in self.holders[event]:
                    self.let_go_at.setdefault(event, self._world.now)

    def _take_in(self, server: Server, name: LogName, log: LogList) -> None:
        seen = self._seen.setdefault((server.name, name), _Seen(log, []))
        for entry in log.entries[len(seen.entries) :]:
            seen.entries.append(entry)
            row = decode_row(entry.row)
            self.rows += 1
            if name.kind == LogKind.EVENTS:
                for event in names_of(row):
                    self.holders.setdefault(event, {})[server.name, name] = None
                    self.had.setdefault(event, {})[server.name] = None
            for hear in self.found:
                hear(server, name, entry, row)

    def _forget(self, key: tuple[str, LogName]) -> list[str]:
        """The disk let go of old rows, was replaced, or lost rows: read it from the start. Returns what it had."""
        seen = self._seen.pop(key)
        if key[1].kind != LogKind.EVENTS:
            return []
        events = [event for entry in seen.entries for event in names_of(decode_row(entry.row))]
        for event in events:
            self.holders[event].pop(key, None)
        return events


def _goes_on(log: LogList | None, entries: list[Entry]) -> bool:
    return log is not None and len(log.entries) >= len(entries) and (not entries or log.entries[0] is entries[0])


_RECENT = 50
"""How many events before the next one are checked; older ones were checked earlier."""


class OnEnoughDisks(LogChecker):
    """P1, and the same when a producer is told how far it has come: it takes that for an acknowledgement.

    Batches are known by session and sequence; a refused one has its answer already.

    A PUBACK says nothing of a batch that was refused on the same connection. Its publisher may send the batch again
    because the refusal had not reached it yet; it gets the refusal before the PUBACK. Over a new connection a publisher
    sends everything it waits for, in order: it has given up what came before the first of these.
    """

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._open: dict[tuple[bytes, int], list[str]] = {}
        self._refused: dict[tuple[bytes, int], int] = {}
        """(session, sequence) -> the link over which the refusal was sent last."""
        self._links: dict[bytes, int] = {}
        """Session -> the link over which it published last."""
        self.checked = 0

    def step(self, host: Host, happened: Input, effects: Sequence[Effect]) -> None:
        """Remember each PUBLISH, and check each PUBACK and producer answer."""
        by_link = host.node.subscribers.by_link
        if isinstance(happened, Received) and happened.link in by_link:
            key = by_link[happened.link].key
            for message in happened.messages:
                if isinstance(message, Publish) and message.mode == Mode.STORED:
                    self._published(key, happened.link, message)
        for effect in effects:
            if isinstance(effect, Send) and effect.link in by_link:
                self._said(host, effect.link, by_link[effect.link].key, effect.message)

    def _published(self, key: bytes, link: int, message: Publish) -> None:
        if self._links.get(key) != link:
            self._links[key] = link
            for one in [one for one in self._open if one[0] == key and one[1] < message.sequence]:
                del self._open[one]
        if self._refused.get((key, message.sequence)) != link:
            self._open.setdefault((key, message.sequence), _names(message.batch))

    def _said(self, host: Host, link: int, key: bytes, message: object) -> None:
        if isinstance(message, Error) and message.scope == Scope.PUBLISH:
            self._open.pop((key, message.reference), None)
            self._refused[key, message.reference] = link
        elif isinstance(message, Puback):
            answered = [one for one in self._open if one[0] == key and one[1] <= message.sequence]
            if answered:
                self.disks.look()
            for one in answered:
                self._check(host, self._open.pop(one))
        elif isinstance(message, Answer) and "digest" in message.value:
            self.disks.look()
            following = message.value["next"]
            name = host.node.subscribers.by_key[key].name
            self._check(host, [f"{name}:{number}" for number in range(max(0, following - _RECENT), following)])

    def _check(self, host: Host, names: list[str]) -> None:
        promised = 1 + host.node.leader.needed
        for name in names:
            self.checked += 1
            had = len(self.disks.had.get(name, {}))
            if had < promised:
                broker = host.node.config.name
                self.fail(f"{broker} acknowledged {name}, and {had} of {promised} disks have it")


def _names(batch: Batch) -> list[str]:
    return [decode_record(piece)[1].decode() for piece in batch.pieces()]


class OnlyOnce(LogChecker):
    """P2: an event with a stamp is in one log once, whatever was sent again.

    A row of another broker's log may have it as well, on that broker's disk alone; no client sees it, and it is taken
    back when brokers meet again. What was acknowledged is not appended again.
    """

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._places: dict[str, list[tuple[LogName, int]]] = {}
        self.moved = 0

    def found(self, server: Server, log: LogName, entry: Entry, row: Row) -> None:
        """Each event of the row is at its former place, or has none."""
        if log.kind != LogKind.EVENTS or not row.producer:
            return
        for place, name in enumerate(names_of(row)):
            position = (log, row.first + place)
            places = self._places.setdefault(name, [])
            if position in places:
                continue
            for other, number in places:
                if log.broker not in self.history.harmed and self._stays(server, log, other, number):
                    self.fail(f"{name} is at {other} {number} and at {log} {position[1]}")
                if (
                    name in self.history.acknowledged
                    and self.history.acknowledged[name] < entry.time / 1e6 - WALL_CLOCK_OFFSET_SECONDS
                ):
                    self.fail(f"{name} was acknowledged, at {other} {number}, and is at {log} {position[1]} as well")
                self.moved += other.broker != log.broker
            places.append(position)

    def _stays(self, server: Server, log: LogName, other: LogName, number: int) -> bool:
        """Whether the broker still has the row at its former place: a row may move, and not be there twice."""
        if other.broker != log.broker or server.name != log.broker:
            return other == log
        return other in server.disk.content.logs and server.disk.content.logs[other].next > number


class SeenWhenSafe(LogChecker):
    """P4: what a client can see, delivered or read, is on as many disks as were promised, and stands in one place,
    which a delivery tells.

    So no event is ever seen under two ids, and none is seen that may still be taken back. Deliveries are looked at
    where they leave a broker, rows as soon as any broker lets them be read.
    """

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._disks: dict[tuple[str, int], dict[str, None]] = {}
        """Id of an event -> brokers whose disks ever had it under that id."""
        self._shifts: dict[tuple[str, int], LogShift] = {}
        """Id of an event -> where it stands."""
        self._ids: dict[str, tuple[str, int]] = {}
        """Event -> the id under which it was seen."""
        self._readable: dict[str, tuple[LogName, int]] = {}
        self._read_to: dict[tuple[str, LogName], int] = {}
        self.delivered_events = self.read = 0

    def found(self, server: Server, log: LogName, entry: Entry, row: Row) -> None:
        """One disk more has these."""
        if log.kind == LogKind.EVENTS:
            shift = LogShift(log.partition, row.first - row.base)
            for number in range(row.base, row.base + row.count):
                self._shifts[row.origin, number] = shift
                self._disks.setdefault((row.origin, number), {})[server.name] = None

    def step(self, host: Host, happened: Input, effects: Sequence[Effect]) -> None:
        """What goes out to subscribers, and what readers may have from now on."""
        by_link = host.node.subscribers.by_link
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.message, Deliver) and effect.link in by_link:
                self._delivers(host, effect.message.portion)
        name = host.node.config.name
        for log, held in host.node.log.logs.items():
            if log.kind == LogKind.EVENTS and held.readable > self._read_to.get((name, log), 0):
                self._can_be_read(host, log, held.readable)

    def _delivers(self, host: Host, portion: Portion) -> None:
        self.disks.look()
        pieces = Batch(portion.topics, portion.count, portion.lengths, portion.records).pieces()
        for piece, row in zip(pieces, portion.rows(), strict=True):
            number, name = portion.base + row, decode_record(piece)[1].decode()
            self.delivered_events += 1
            event_id = portion.origin, number
            self._is_safe(host, name, event_id, "is delivered")
            if portion.log != self._shifts.get(event_id):
                self.fail(f"{name} is delivered as one of {portion.log}, and stands at {self._shifts.get(event_id)}")

    def _can_be_read(self, host: Host, log: LogName, end: int) -> None:
        broker = host.node.config.name
        disk = self.world.servers[broker].disk.content.logs
        if log not in disk:
            return
        self.disks.look()
        since = self._read_to.get((broker, log), 0)
        for entry in disk[log].entries:
            if since <= entry.first and entry.next <= end:
                self._reads(host, log, decode_row(entry.row))
        self._read_to[broker, log] = end

    def _reads(self, host: Host, log: LogName, row: Row) -> None:
        for place, name in enumerate(names_of(row)):
            self.read += 1
            self._is_safe(host, name, (row.origin, row.base + place), "can be read")
            position = (log, row.first + place)
            known = self._readable.setdefault(name, position)
            if known != position:
                broker = host.node.config.name
                self.fail(f"{name} can be read at {log} {position[1]} of {broker}, and at {known[0]} {known[1]}")

    def _is_safe(self, host: Host, name: str, event_id: tuple[str, int], seen: str) -> None:
        broker, promised = host.node.config.name, 1 + host.node.leader.needed
        had = len(self._disks.get(event_id, {}))
        if had < promised:
            self.fail(f"{name} {seen} at {broker}, and {had} of {promised} disks have it")
        known = self._ids.setdefault(name, event_id)
        if known != event_id:
            self.fail(f"{name} {seen} at {broker} as {event_id}, and was seen as {known}")


@dataclass(slots=True)
class _Known:
    """The row of a position, since when it is there, and which disks ever had it."""

    row: bytes
    since: float
    holders: dict[str, None] = field(default_factory=dict)


class PositionsStand(LogChecker):
    """P3: a position that was on two disks belongs to its bytes for ever, whatever is harmed or put back afterwards.

    A row that only its owner's disk had was neither acknowledged nor readable, so no broker knows of it when that disk
    is lost: a disk with a backup continues where the backup ends. (When another broker has more, a new epoch begins.)
    """

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._rows: dict[tuple[LogName, int], _Known] = {}
        self.compared = 0

    def found(self, server: Server, log: LogName, entry: Entry, row: Row) -> None:
        """The row equals its copies, and begins where the row before it ends."""
        known = self._rows.get((log, entry.first))
        if known is None or self._is_gone(log, known):
            known = self._rows[log, entry.first] = _Known(entry.row, self.world.now)
        known.holders[server.name] = None
        self.compared += known.row is not entry.row
        if known.row != entry.row:
            self.fail(f"{server.name} has another row at {log} {entry.first} than some disk had before")
        if (row.first, row.count) != (entry.first, entry.count):
            self.fail(f"{server.name} has a row of {row.first} at {log} {entry.first}")
        entries = server.disk.content.logs[log].entries
        place = next(place for place, one in enumerate(entries) if one is entry)
        if place and entries[place - 1].next != entry.first:
            self.fail(f"{server.name}: {log} has a hole before {entry.first}")

    def _is_gone(self, log: LogName, known: _Known) -> bool:
        """Whether the only disk that ever had the row was harmed since."""
        return list(known.holders) == [log.broker] and self.history.harmed.get(log.broker, -1.0) >= known.since


class ComesBackWhole(LogChecker):
    """S1: what a disk had said it has is there when its broker comes back.

    A disk that was harmed in a way that nobody can see (a backup put back) is found out by its followers, and its log
    goes on under another epoch; nothing that was acknowledged is gone while one disk at a time is harmed.
    """

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._said: dict[tuple[str, LogName], int] = {}
        self._epochs: dict[str, int] = {}
        self.openings = 0

    def step(self, host: Host, happened: Input, effects: Sequence[Effect]) -> None:
        """Every log continues at its confirmed end, and epochs never go back."""
        name = host.node.config.name
        if isinstance(happened, Stored):
            for log, held in host.node.log.logs.items():
                self._said[name, log] = held.next
        elif isinstance(happened, Opened):
            self.openings += 1
            ends = {state.name: state.next for state in happened.logs}
            if name not in self.history.harmed and not happened.damage:
                for (broker, log), end in self._said.items():
                    if broker == name and ends.get(log, 0) < end:
                        self.fail(f"{name} had {log} up to {end}, and came back with {ends.get(log, 0)}")
            if happened.epoch < self._epochs.get(name, 0) and name not in self.history.harmed:
                self.fail(f"{name} came back in epoch {happened.epoch}, after {self._epochs[name]}")
        self._epochs[name] = max(self._epochs.get(name, 0), host.node.log.epoch)

    def finish(self, clients: Sequence[Client] = ()) -> None:
        """Every acknowledged batch is on some disk."""
        self.disks.look()
        for event in self.history.acknowledged:
            if not self.disks.holders.get(event):
                self.fail(f"{event} was acknowledged, and no disk has it any more")


class StoredElsewhere(LogChecker):
    """A1: nobody is told "too few disks have it by now" where enough other brokers have room.

    Judged in runs whose only fault is `follower`, one full disk at a time: others may hinder as well.
    """

    def finish(self, clients: Sequence[Client] = ()) -> None:
        """No batch was refused while enough brokers had room."""
        if len(self.world.servers) > 2:
            late = {node.config.name: node.log.late for node in self.world.nodes() if node.log.late}
            if late:
                self.fail(f"batches waited too long for other disks: {late}")
