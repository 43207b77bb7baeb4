"""A log with a disk in the test's hand, feeding on top of it, and a brute force that knows what has to be fed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from headgate.broker.core.cause import Cause
from headgate.broker.core.delivery import Stream
from headgate.broker.core.durable.feeding import FEEDING, Feeding, key_hash
from headgate.broker.core.durable.messages import EndFeed, Fed, Feed, FeedPlace, FeedSection, Place
from headgate.broker.core.durable.runs import split_runs
from headgate.broker.core.effects import Effect, Note, ReadRows, Send
from headgate.broker.core.inputs import Found, NotStored, Opened, RowsRead, Stored, Trimmed
from headgate.broker.core.limits import DEFAULT_LIMITS, Limits
from headgate.broker.core.log import Committed, HeldLog, Log
from headgate.broker.core.timers import Timers
from headgate.matching import evaluate, parse_condition, parse_pattern
from headgate.protocol.data import Batch, LogKind, LogName, Row, encode_row, split_u32
from tests.support.builders import quote_batch
from tests.support.log_disk import EPOCH, Disk

__all__ = ["FeedWorld", "Told"]


@dataclass
class Told:
    """What one feed was told of one log."""

    start: int
    upto: int
    positions: list[int] = field(default_factory=list)
    keys: dict[int, int] = field(default_factory=dict)
    first: int = 0
    times: list[int] = field(default_factory=list)
    facts: int = 0


class FeedWorld:
    """Broker `ann` with copies of the logs of others. With `copies`, rows are safe when the test says so."""

    def __init__(self, copies: bool = False, limits: Limits = DEFAULT_LIMITS) -> None:
        self.disk = Disk("ann")
        self.now = 0.0
        self.copies = copies
        self.limits = limits
        self.clock_us = 1_000_000
        self.events: dict[Place, dict[int, tuple[str, dict[str, Any], int]]] = {}
        """Place -> position -> topic, attributes and time."""
        self.asked: dict[tuple[int, int], Feed] = {}
        self.told: dict[tuple[int, int], dict[Place, Told]] = {}
        self.notes: list[Note] = []
        self.sent: list[Send] = []
        self.begin()

    def begin(self) -> None:
        """A life of the broker begins with what is on its disk."""
        self.effects: list[Effect] = []
        self.timers = Timers()
        self.log = Log("ann", self.effects, self.timers, Cause("ann"), limits=self.limits)
        self.log.needed = int(self.copies)
        self.paused: dict[int, None] = {}
        self.feeding = Feeding(
            self.log,
            self.heard,
            self.limits,
            effects=self.effects,
            timers=self.timers,
            paused=lambda asker: asker in self.paused,
        )
        self.asked.clear()
        self.told.clear()
        self.happens(self.disk.opened())

    def restart(self) -> None:
        """The broker dies, with what the disk did not do yet."""
        opened = self.disk.opened()
        for name in list(self.events):
            log = self.disk.logs.get(LogName(name.broker, name.epoch, int(LogKind.EVENTS), "quotes"))
            end = 0 if log is None else log.next
            self.events[name] = {at: event for at, event in self.events[name].items() if at < end}
        self.disk.epoch = max(self.disk.epoch, opened.epoch)
        self.begin()

    # --- the broker around it ----------------------------------------------------------------------------------------

    def happens(self, happened: Any) -> None:
        """The disk says something, and the Node passes on what comes of it."""
        log = self.log
        if isinstance(happened, Opened):
            log.opened(happened)
        elif isinstance(happened, Stored):
            log.stored(happened, self.now)
        elif isinstance(happened, NotStored):
            log.not_stored(happened, self.now)
        elif isinstance(happened, Trimmed):
            log.trimmed(happened)
        elif isinstance(happened, Found):
            log.take_lookup(happened.ticket)(happened.value, self.now)
        elif isinstance(happened, RowsRead):
            log.take_lookup(happened.ticket)(happened, self.now)
        self.after()

    def after(self) -> None:
        """What a Node does after each input."""
        self.log.take_landed()
        if self.log.committed:
            self.feeding.committed(self.log.take_committed(), self.now)
        self.feeding.go_on(self.now)
        self.ask_disk()

    def ask_disk(self) -> None:
        """What is asked of the disk goes there."""
        self.notes += [one for one in self.effects if isinstance(one, Note)]
        self.sent += [one for one in self.effects if isinstance(one, Send)]
        self.disk.ask(self.effects)
        self.effects.clear()

    def answer(self, most: int = 10**9) -> None:
        """The disk does what it was asked, or some of it."""
        asked = self.disk.asked
        self.disk.asked, later = asked[:most], asked[most:]
        said = self.disk.answer()
        self.disk.asked = later
        for happened in said:
            self.happens(happened)

    def read(self) -> RowsRead:
        """What the disk reads now, and says when the test hands it in."""
        (asked,) = [one for one in self.disk.asked if isinstance(one, ReadRows)]
        self.disk.asked.remove(asked)
        kept, self.disk.asked = self.disk.asked, [asked]
        (read,) = self.disk.answer()
        self.disk.asked = kept
        assert isinstance(read, RowsRead)
        return read

    def wake(self, seconds: float = 0.0) -> None:
        """Time goes by, and the feeding is woken if it asked for that."""
        self.now += seconds
        if FEEDING in self.timers.due(self.now):
            self.feeding.go_on(self.now)
            self.ask_disk()

    def settle(self) -> None:
        """Until nothing more happens."""
        for _ in range(2000):
            if self.disk.asked:
                self.answer()
            elif self.timers.when(FEEDING) <= self.now + 5.0:
                self.wake(max(0.0, self.timers.when(FEEDING) - self.now))
            else:
                return
        raise AssertionError("it never comes to rest")

    # --- logs --------------------------------------------------------------------------------------------------------

    def own(self) -> HeldLog:
        """Our log of the stream."""
        return self.log.own(LogKind.EVENTS, "quotes")

    def copy(self, broker: str = "bob") -> HeldLog:
        """Our copy of another broker's."""
        return self.log.hold(LogName(broker, EPOCH, int(LogKind.EVENTS), "quotes"))

    def append(
        self,
        prices: Sequence[Any],
        topic: str = "quotes/a",
        held: HeldLog | None = None,
        batch: Batch | None = None,
        origin: str = "",
    ) -> None:
        """A batch with an event for each price."""
        self.clock_us += 1000
        held = held or self.own()
        batch = batch or quote_batch(topic, [str(one) for one in prices], price=list(prices))
        row = Row(
            held.assigned,
            batch.count,
            self.clock_us,
            origin or held.name.broker,
            held.assigned,
            b"",
            batch.topics,
            batch.lengths,
            batch.columns,
            batch.complete,
            batch.records,
        )
        place = Place(held.name.broker, held.name.epoch)
        known = self.events.setdefault(place, {})
        for number, price in enumerate(prices):
            known[held.assigned + number] = topic, {"price": price}, self.clock_us
        if held.own:
            self.log.append(held, row, batch=Committed(Stream("quotes"), batch, row.base, self.clock_us))
        else:
            self.log.append_bytes(held, encode_row(row), row)
        self.after()

    def confirm(self, held: HeldLog | None = None, end: int | None = None) -> None:
        """A follower has it up to there."""
        held = held or self.own()
        ends = [row.first + row.count for row in self.disk.rows(held.name)]
        fit = [one for one in ends if end is None or one <= end]
        if fit:
            held.confirmed[7] = max(held.confirmed.get(7, 0), fit[-1])
            self.log.settle(held, self.now)
            self.after()

    def trim(self, below: int, held: HeldLog | None = None) -> None:
        """Retention takes rows."""
        held = held or self.own()
        if held.first < below <= held.readable:
            self.log.trim(held.name, below)
            self.ask_disk()

    # --- feeds -------------------------------------------------------------------------------------------------------

    def feed(
        self,
        number: int = 1,
        condition: str = "",
        pattern: str = "quotes",
        asker: int = 5,
        since: int = 0,
        places: Sequence[tuple[str, int, int]] = (),
        sections: Sequence[tuple[str, Sequence[tuple[str, int, int]]]] = (),
        key: str = "",
        present: Sequence[str] = ("ann", "bob"),
    ) -> None:
        """A coordinator asks for a feed."""
        message = Feed(
            number,
            "quotes",
            pattern,
            False,
            condition,
            tuple(FeedSection(text, tuple(FeedPlace(*end) for end in ends)) for text, ends in sections),
            key,
            since,
            tuple(FeedPlace(*place) for place in places),
            tuple(present),
        )
        self.told[asker, number] = {}
        self.asked[asker, number] = message
        self.feeding.feed(asker, message, self.now)
        self.after()

    def end(self, number: int = 1, asker: int = 5) -> None:
        """And no more."""
        self.told.pop((asker, number), None)
        self.asked.pop((asker, number), None)
        self.feeding.end(asker, EndFeed(number), self.now)
        self.ask_disk()

    def gone(self, asker: int) -> None:
        """The link to a coordinator is gone."""
        for key in [key for key in self.asked if key[0] == asker]:
            del self.asked[key], self.told[key]
        self.feeding.gone(asker)
        self.ask_disk()

    def heard(self, asker: int, fact: Any) -> None:
        """A fact came: it goes on where the one before ended, and says what is so."""
        assert isinstance(fact, Fed)
        told = self.told[asker, fact.number]
        known = told.get(fact.place)
        if known is None:
            known = told[fact.place] = Told(fact.start, fact.start)
            asked = self.asked[asker, fact.number]
            named = {Place(one.broker, one.epoch): one.position for one in asked.places}
            if fact.place in named:
                assert fact.start == named[fact.place]
        assert fact.start == known.upto <= fact.upto, "facts follow one another"
        runs = split_runs(fact.runs)
        positions = [position for start, stop in runs for position in range(start, stop)]
        assert runs == sorted(runs) and all(one[1] < two[0] for one, two in pairwise(runs))
        self._check(self.asked[asker, fact.number], fact, positions)
        known.upto, known.first = fact.upto, fact.first
        known.positions += positions
        known.times.append(fact.time)
        known.facts += 1

    def _check(self, asked: Feed, fact: Fed, positions: list[int]) -> None:
        """By brute force: what is in the log and matches, no more and no less."""
        events = self.events.get(fact.place, {})
        fits = [one for one in range(fact.start, fact.upto) if self.matches(asked, fact.place, one)]
        assert dict.fromkeys(positions).keys() <= dict.fromkeys(fits).keys(), "no other"
        assert [one for one in fits if one >= fact.first] == [one for one in positions if one >= fact.first], "all"
        assert fact.time == (events[positions[0]][2] if positions else 0)
        if asked.key:
            hashes = list(split_u32(fact.keys))
            assert hashes == [key_hash(events[one][1].get(asked.key)) for one in positions]
        else:
            assert not fact.keys
        held = self.log.logs[LogName(fact.place.broker, fact.place.epoch, int(LogKind.EVENTS), "quotes")]
        assert fact.upto <= max(held.readable, fact.start), "nothing that may be taken back"

    def matches(self, asked: Feed, place: Place, position: int) -> bool:
        """Whether an event does."""
        event = self.events.get(place, {}).get(position)
        if event is None:
            return False
        topic, values, _ = event
        levels, wanted = topic.split("/"), asked.pattern.split("/")
        if any(one not in ("*", two) for one, two in zip(wanted, levels, strict=False)) or len(wanted) > len(levels):
            return False
        assert parse_pattern(asked.pattern)
        conditions = [asked.condition]
        conditions += [
            one.condition
            for one in asked.sections
            if any((end.broker, end.epoch) == place and position < end.position for end in one.ends)
        ]
        return all(evaluate(parse_condition(one), values) is True for one in conditions if one)

    def positions(self, number: int = 1, asker: int = 5, broker: str = "ann", epoch: int = EPOCH) -> list[int]:
        """What a feed was told to match in a log."""
        told = self.told[asker, number].get(Place(broker, epoch))
        return [] if told is None else told.positions

    def check_end(self) -> None:
        """At rest every feed knows of every row that may be read, from where it began."""
        self.feeding.validate()
        for (asker, number), asked in self.asked.items():
            told = self.told[asker, number]
            for held in self.log.by_stream.get("quotes", ()):
                place = Place(held.name.broker, held.name.epoch)
                if not held.own and place.broker in asked.present:
                    assert place not in told
                    continue
                assert place in told, (asker, number, place)
                assert told[place].upto == max(held.readable, told[place].start), (asker, number, place)
                assert told[place].first == held.first
                if not any((one.broker, one.epoch) == place for one in asked.places):
                    begins = [at for at, event in self.events.get(place, {}).items() if event[2] >= asked.since]
                    assert told[place].start <= min([at for at in begins if at >= held.first], default=10**9)

    @property
    def reads(self) -> int:
        """Chunks that were asked of the disk and did not come."""
        return sum(isinstance(one, ReadRows) for one in self.disk.asked)
