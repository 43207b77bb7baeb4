"""Checkers of durable subscriptions: one for each promise. They know what clients were handed and said, and the logs.

    NothingOwed    L3: what matches from the start of the subscription on was acknowledged, given up, or told in a GAP
    Wanted         D2: what is handed out matches a condition that may be in force, and what `from now` left in place
    InLogOrder     D4: what is handed out for the first time comes in the order of its log
    Flagged        D5: an event comes once without a flag, never after its acknowledgement was confirmed, and an
                   acknowledgement of a delivery that is not current is refused
    CursorStands   C1, C3: on no disk a generation goes back, and no cursor passes what nobody acknowledged

An operator may go on from another place or remove a subscription (`Move`): what was before counts anew from then on, or
no more. What retention took is excused as far as brokers said that it was lost, or when a disk had let go of it before
the subscription began, or was moved back to the start of the logs.

They compare at the end of a run, by delivery numbers, because messages of several clients overtake each other; the
states on disks are looked at as the run goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from headgate.broker.core.durable import DurableState, decode_state
from headgate.broker.core.effects import Note
from headgate.protocol.data import LogKind, LogName, Row

from ..engine import Entry, Server
from ..workloads import CONDITIONS, Change, DurableName, Receipt, color_of, is_poison, lane_of
from .log import LogChecker, names_of

__all__ = ["CursorStands", "DurableChecker", "Flagged", "InLogOrder", "NothingOwed", "Wanted"]


_ON_THE_WAY_SECONDS = 8.0
"""Brokers are paused for six seconds, and send then what they had for a client."""


class DurableChecker(LogChecker):
    """A checker that knows all durable subscriptions of a run."""

    def __init__(self, *parts: Any, names: Sequence[DurableName]) -> None:
        super().__init__(*parts)
        self.names = names
        self.places: dict[str, dict[tuple[str, int], int]] = {}
        """Event -> (broker, epoch) of each log that has it -> its position."""

    def found(self, server: Server, log: LogName, entry: Entry, row: Row) -> None:
        """Remember where each event is."""
        if log.kind == LogKind.EVENTS:
            for place, event in enumerate(names_of(row)):
                self.places.setdefault(event, {})[log.broker, log.epoch] = entry.first + place

    def dead_letters(self) -> dict[str, dict[str, None]]:
        """Events that were given up, by what disks have: some of them never reached a client."""
        events = {(*place, at): event for event, where in self.places.items() for place, at in where.items()}
        found: dict[str, dict[str, None]] = {}
        for server in self.world.servers.values():
            for data in server.disk.content.durables.values():
                state = decode_state(data)
                for one in state.dead:
                    event = events.get((one.place.broker, one.place.epoch, one.position))
                    if event is not None:
                        found.setdefault(state.name, {})[event] = None
        return found


def _skipped(one: DurableName) -> float:
    """Events that were published before are nobody's: it went on from now, or began anew, since then."""
    return max((move.done_at for move in one.moves if move.to != "start"), default=0.0)


def _began(one: DurableName) -> float:
    """When it was registered, or went on from the start of the logs: what disks had let go of before is nobody's."""
    return max(one.registered, *(move.done_at for move in one.moves if move.to == "start"), 0.0)


def _moved(one: DurableName, since: float, until: float, *kinds: str) -> bool:
    """Whether it may have been moved so between these moments; what was sent before may come a while after."""
    return any(
        move.asked_at <= until and move.done_at + _ON_THE_WAY_SECONDS >= since and move.to in kinds
        for move in one.moves
    )


def _matches(condition: str, event: str) -> bool:
    return CONDITIONS[condition](color_of(event))


def _ever(changes: Sequence[Change], since: float) -> list[str]:
    """Conditions that may have been in force since that moment."""
    ends = [*(change.done_at for change in changes[1:]), float("inf")]
    return [change.condition for change, end in zip(changes, ends, strict=True) if end >= since]


def _told(changes: Sequence[Change]) -> str:
    spans = [f"{one.condition!r} {one.start} {one.asked_at:.2f} to {one.done_at:.2f}" for one in changes]
    return f"conditions {', '.join(spans)}"


def _receipts(one: DurableName, event: str) -> str:
    """Deliveries of one event, for people: generation, number, count, who, when, and whether it was settled."""
    return ", ".join(
        f"{each.number >> 32}/{each.number & 0xFFFFFFFF} x{each.count} {each.consumer} {each.at:.2f}"
        + " settled" * each.settled
        + " confirmed" * each.confirmed
        for each in sorted(one.receipts, key=lambda each: each.number)
        if each.event == event
    )


class NothingOwed(DurableChecker):
    """L3."""

    owed = 0

    def __init__(self, *parts: Any, names: Sequence[DurableName]) -> None:
        super().__init__(*parts, names=names)
        self.lost: dict[str, int] = {}
        """Events that brokers said retention took, by subscription: those that nobody had looked at, at the most."""

    def step(self, host: Any, happened: Any, effects: Sequence[Any]) -> None:
        """Count what is said to be lost."""
        for effect in effects:
            if isinstance(effect, Note) and effect.event == "durable subscription lost events":
                name = effect.facts["name"]
                self.lost[name] = self.lost.get(name, 0) + effect.facts["events"]

    def finish(self, clients: Sequence[Any] = ()) -> None:
        """Every event that was stored is accounted for."""
        dead = self.dead_letters()
        for one in self.names:
            done = _settled(one) | _given_up(one) | dead.get(one.name, {})
            if one.gaps and not self.lost.get(one.name):
                self.fail(f"{one.name} was told of a gap, and retention took nothing: {one.gaps[0]}")
            taken: list[str] = []
            skipped, began = _skipped(one), _began(one)
            for event in self.history.acknowledged:
                since = self.history.published[event]
                if since < skipped or (one.start == "now" and since < one.registered):
                    continue
                if not all(_matches(condition, event) for condition in _ever(one.changes, since)):
                    continue
                self.owed += 1
                if event in done:
                    continue
                if not self.disks.holders.get(event):
                    if self.disks.let_go_at[event] > began:
                        taken.append(event)
                    continue
                got = [
                    (each.number, each.count, each.settled, each.confirmed)
                    for each in one.receipts
                    if each.event == event
                ]
                self.fail(f"{one.name} ({one.sharing}) is owed {event} at {self.places.get(event)}; handed {got}")
            if len(taken) > self.lost.get(one.name, 0):
                told = f"{self.lost.get(one.name, 0)} were announced"
                self.fail(f"{one.name} ({one.sharing}) lost {len(taken)} events to retention, {told}: {taken[:3]}")


def _settled(one: DurableName) -> dict[str, None]:
    """Events of which a client said that it is done with them, and was not told that this came too late."""
    return {receipt.event: None for receipt in one.receipts if receipt.settled}


def _given_up(one: DurableName) -> dict[str, None]:
    """Events that may have been handed out as often as they may be; deliveries may be lost on the way to a client."""
    most = one.max_deliver or 10**9
    return {
        receipt.event: None
        for receipt in one.receipts
        if receipt.count >= most or (is_poison(receipt.event) and one.max_deliver)
    }


class Wanted(DurableChecker):
    """D2."""

    checked = 0

    def finish(self, clients: Sequence[Any] = ()) -> None:
        """Everything that was handed out was wanted at that time."""
        for one in self.names:
            for receipt in one.receipts:
                self.checked += 1
                is_moved = any(move.asked_at <= receipt.at for move in one.moves)
                if not any(
                    self._fits(one.changes[0 if not is_moved else number : number + 1], receipt.event)
                    for number, change in enumerate(one.changes)
                    if change.asked_at <= receipt.at
                ):
                    self.fail(f"{one.name} was handed {receipt.event} at {receipt.at:.2f}; {_told(one.changes)}")

    def _fits(self, changes: Sequence[Change], event: str) -> bool:
        """Whether it matches the last of these, and those before it that `from now` left in force for older events.

        Where it was gone on from another place, the condition of then holds alone.
        """
        if not _matches(changes[-1].condition, event):
            return False
        safe = self.history.acknowledged.get(event, float("inf"))
        for before, change in zip(changes[-2::-1], changes[:0:-1], strict=True):
            if change.start == "ack":
                break
            if safe < change.asked_at and not _matches(before.condition, event):
                return False
        return True


class InLogOrder(DurableChecker):
    """D4. A change `from ack` goes back once, a move each time it is asked for; keys have orders of their own."""

    compared = 0

    def finish(self, clients: Sequence[Any] = ()) -> None:
        """In the order of delivery numbers the positions of first deliveries ascend."""
        for one in self.names:
            allowed = sum(change.start == "ack" for change in one.changes[1:]) + sum(move.asks for move in one.moves)
            last: dict[Any, tuple[int, str]] = {}
            back: dict[Any, int] = {}
            for receipt in sorted(one.receipts, key=lambda receipt: receipt.number):
                where = self.places.get(receipt.event, {})
                if receipt.count > 1 or len(where) != 1:
                    continue
                (place, position), lane = next(iter(where.items())), lane_of(receipt.event)
                key = (place, lane) if one.sharing.startswith("key") else place
                before = last.get(key)
                self.compared += 1
                if before is not None and position < before[0]:
                    back[key] = back.get(key, 0) + 1
                    if back[key] > allowed:
                        self.fail(
                            f"{one.name} ({one.sharing}): {receipt.event} ({position}) after {before[1]} ({before[0]})"
                        )
                last[key] = (position, receipt.event)


class Flagged(DurableChecker):
    """D5."""

    repeated = 0

    def finish(self, clients: Sequence[Any] = ()) -> None:
        """Every delivery but the first has a count, and none comes after a confirmation."""
        for one in self.names:
            by_event: dict[str, list[Receipt]] = {}
            for receipt in sorted(one.receipts, key=lambda receipt: receipt.number):
                by_event.setdefault(receipt.event, []).append(receipt)
            for event, receipts in by_event.items():
                if len(self.places.get(event, {})) > 1:
                    continue  # it was sent again to another broker, and is stored twice
                self.repeated += len(receipts) > 1
                self._look_at(one, receipts)

    def _look_at(self, one: DurableName, receipts: list[Receipt]) -> None:
        event = receipts[0].event
        first = [receipt for receipt in receipts if receipt.count == 1]
        for before, after in pairwise(first):
            if not _moved(one, before.at, after.at, "removed"):
                self._fail("handed out twice without a flag", one, event)
        for place, receipt in enumerate(receipts):
            if receipt.confirmed and receipt.acked_at is not None:
                for later in receipts[place + 1 :]:
                    if later.at < receipt.acked_at:
                        self._fail("an acknowledgement of an old delivery counted", one, event)
                    if not _moved(one, receipt.at, later.at, "start", "now", "removed"):
                        self._fail("handed out after its acknowledgement was confirmed", one, event)

    def _fail(self, what: str, one: DurableName, event: str) -> None:
        self.fail(f"{what}: {event} ({one.sharing} {one.name}): {_receipts(one, event)}; {_told(one.changes)}")


class CursorStands(DurableChecker):
    """C1, C3."""

    looked = 0

    def __init__(self, *parts: Any, names: Sequence[DurableName]) -> None:
        super().__init__(*parts, names=names)
        self._generations: dict[tuple[str, str], int] = {}
        self._seen: dict[tuple[str, str], bytes] = {}

    def look(self) -> None:
        """States that are new on disks."""
        for server in self.world.servers.values():
            for name, data in server.disk.content.durables.items():
                if self._seen.get((server.name, name)) is not data:
                    self._seen[server.name, name] = data
                    self._look_at(server.name, decode_state(data))

    def _look_at(self, broker: str, state: DurableState) -> None:
        self.looked += 1
        key = (broker, state.name)
        if state.generation < self._generations.get(key, 0):
            self.fail(f"the generation of {state.name} went back on the disk of {broker}")
        self._generations[key] = state.generation

    def finish(self, clients: Sequence[Any] = ()) -> None:
        """What a cursor has passed was settled by a client, or nobody wanted it."""
        self.look()
        names = {one.name: one for one in self.names}
        dead = self.dead_letters()
        settled = {one.name: _settled(one) | _given_up(one) | dead.get(one.name, {}) for one in self.names}
        for server in self.world.servers.values():
            for data in server.disk.content.durables.values():
                state = decode_state(data)
                if state.removed:
                    continue
                one = names[state.name]
                skipped = _skipped(one)
                for event, where in self.places.items():
                    for place, cursor in state.cursors.items():
                        position = where.get((place.broker, place.epoch))
                        if position is None or position >= cursor.upto:
                            continue
                        if any(start <= position < stop for start, stop in cursor.owed):
                            continue
                        since = self.history.published[event]
                        if event not in self.history.acknowledged or (one.start == "now" and since < one.registered):
                            continue
                        if since < skipped or not self.disks.holders.get(event):
                            continue
                        if event in settled[one.name]:
                            continue
                        if all(_matches(condition, event) for condition in _ever(one.changes, since)):
                            self.fail(
                                f"{one.name}: the cursor on {server.name} has passed {event} at {where}, not settled: "
                                f"{_receipts(one, event)}; {_told(one.changes)}"
                            )
