"""Feeding: which positions of the logs that are held here match the feeds that coordinators asked for.

A feed is told facts (`Fed`): of these positions of a log exactly those match. All of a feed's facts about one log
follow one another without a hole, and they are about rows before the high watermark, so none is ever taken back. That
is why a fact may come twice, and from several holders of a log.

For each log a feed is in one of two states.

    behind   it is fed by reading. One scan of a log feeds all that are behind in it, as an elevator serves the floors:
             it begins at the lowest place that anybody waits at and goes up to the end. Who asks for a place below it
             meanwhile waits for the next scan.
    live     it is fed by the batches that pass the high watermark. All that are live stand at one place, `upto`, so
             that an idle feed costs its entry in the index and in one table. What no batch tells of, as rows of an
             earlier life or those of a copy, is read for all of them by the scan.

While a chunk is on its way from the disk, the batches that pass the high watermark are kept (`recent`): behind what was
read come those, and whoever is behind arrives even where the log grows faster than a disk answers.

A fact that something matches is told at once. That nothing matched is told at the end of a scan, and now and then to
those that are live, some at a time (`Limits.feed_idle_feeds`): it moves a cursor and can wait.

Matching is that of live subscriptions and of READ_LOG: one `Index`, over the columns of the batch. A column that cannot
be read makes the batch match nothing for those conditions that name it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import count
from typing import Any, TypeAlias, TypeVar

from headgate.matching import Index, Matches, MatchingError, Pattern, Tree, attributes, parse_condition, parse_pattern
from headgate.protocol.data import Batch, Columns, LogKind, Scalar, decode_row, join_u32
from headgate.protocol.errors import ProtocolViolation

from ..effects import Effect, Note
from ..inputs import RowsRead
from ..limits import DEFAULT_LIMITS, FEED_IDLE_SECONDS, FEED_PAUSE_SECONDS, Limits
from ..log import Committed, HeldLog, Log
from ..timers import Timers
from .messages import EndFeed, Fed, Feed, Place
from .runs import Run, count_of, join_runs, runs_of, union

__all__ = ["FEEDING", "Feeding", "Tell", "key_hash"]

FEEDING = "feeding"
"""Key of the timer: feeds are fed on."""

Tell: TypeAlias = Callable[[int, Any], None]
"""Say this to a broker, which may be this one."""

_RUNS_MAX = 4096
_KEYS_MAX = 16_384
_RUN_BYTES = 16
_FED_BYTES = 64  # what a Fed takes beside its runs


@dataclass(slots=True, eq=False)
class _Feed:
    """What a coordinator asked for. `live`: in how many logs it is fed live."""

    asker: int
    number: int
    identity: int
    stream: _Stream
    pattern: Pattern
    condition: str
    sections: tuple[tuple[str, dict[Place, int]], ...]
    key: str
    since: int
    places: dict[Place, int] | None
    present: tuple[str, ...]
    live: int = 0


@dataclass(slots=True, eq=False)
class _Log:
    """A log that feeds are fed from. The tables of feeds hold up to where each was told of it."""

    held: HeldLog
    place: Place
    upto: int  # all that are live were looked at up to there
    at: int  # all that are aboard were looked at up to there, or where they began if that is later
    live: dict[int, int] = field(default_factory=dict)
    aboard: dict[int, int] = field(default_factory=dict)  # behind, and served by the scan that is under way
    waiting: dict[int, int] = field(default_factory=dict)  # behind, and waiting for the next scan
    finding: dict[int, None] = field(default_factory=dict)  # it is being looked up where they begin
    index: Index = field(default_factory=Index)  # of those that are behind
    rows: deque[bytes] | None = None  # what was read and not looked at
    rows_end: int = 0
    recent: deque[Committed] | None = None  # batches since the last chunk was asked for
    recent_bytes: int = 0
    first: int = 0  # where it began when those that are live began to be told so last
    untold: list[int] = field(default_factory=list)  # of this round of telling how far the log was looked at
    all_untold: bool = False  # whether they are told even if it is nothing new
    lags: bool = False  # it moved since the round began
    gone: bool = False


@dataclass(slots=True, eq=False)
class _Stream:
    """A stream that there are feeds of; `index` has those that are live in some log."""

    name: str
    index: Index = field(default_factory=Index)
    feeds: dict[int, _Feed] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)  # attribute -> feeds that are filtered on it
    logs: dict[Place, _Log] = field(default_factory=dict)


@dataclass(slots=True)
class _Found:
    """What matched one feed, in one step. With a key, each position has its hash."""

    time: int
    runs: list[Run] = field(default_factory=list)
    keys: list[tuple[int, int]] = field(default_factory=list)


_Finds: TypeAlias = dict[int, _Found]


class Feeding:
    """Tells coordinators which positions of the logs here match."""

    def __init__(
        self,
        log: Log,
        tell: Tell,
        limits: Limits = DEFAULT_LIMITS,
        *,
        effects: list[Effect],
        timers: Timers,
        paused: Callable[[int], bool] = lambda asker: False,
    ) -> None:
        self._log = log
        self._tell = tell
        self._limits = limits
        self._effects = effects
        self._timers = timers
        self._paused = paused
        self._identities = count(1)
        self.streams: dict[str, _Stream] = {}
        """Those that there are feeds of; while it is empty nothing has to be told here."""
        self._askers: dict[int, dict[int, _Feed]] = {}
        self._behind: dict[_Log, _Stream] = {}
        """Logs that have to be read on, because a feed of them is behind."""
        self._reading: dict[_Log, _Stream] = {}
        """Logs of which a chunk is on its way from the disk, or was not looked at to its end."""
        self._lagging: dict[_Log, _Stream] = {}
        """Logs of which not all that are live know how far they were looked at."""
        self._idle_at = 0.0
        self._leaving: deque[tuple[Index, int]] = deque()
        self._out: deque[tuple[int, Fed]] = deque()
        self._telling = False
        self._step_bytes = 0
        self._patterns: dict[tuple[str, bool], Pattern] = {}
        self._conditions: dict[str, Tree | None] = {}
        self._sections: dict[tuple[str, str], Index] = {}
        self._present: dict[tuple[str, ...], tuple[str, ...]] = {}
        """Most feeds have the same, and share it."""
        self.interest: dict[str, tuple[str, ...]] = {}
        """Streams whose feeds are filtered on other attributes than before, and on which; the caller takes them out."""
        self.facts = self.rows = 0

    # --- what coordinators ask ---------------------------------------------------------------------------------------

    def feed(self, asker: int, message: Feed, now: float) -> None:
        """Begin to feed, anew when there is a feed of that number."""
        self.end(asker, EndFeed(message.number), now)
        self._hear_of_logs(now)
        try:
            pattern = self._pattern(message.pattern or message.stream, message.exact)
            self._condition(message.condition)
            for section in message.sections:
                self._section(message.stream, section.condition)
        except MatchingError as error:
            facts = {"stream": message.stream, "pattern": message.pattern, "reason": str(error)}
            self._effects.append(Note("feed not understood", facts, alarming=True))
            return
        stream = self.streams.get(message.stream)
        if stream is None:
            stream = self.streams[message.stream] = _Stream(message.stream)
        feed = _Feed(
            asker,
            message.number,
            next(self._identities),
            stream,
            pattern,
            message.condition,
            tuple(
                (one.condition, {Place(end.broker, end.epoch): end.position for end in one.ends})
                for one in message.sections
            ),
            message.key,
            message.since,
            {Place(one.broker, one.epoch): one.position for one in message.places} or None,
            _remembered(self._present, message.present, lambda: message.present, self._limits.feed_conditions),
        )
        self._askers.setdefault(asker, {})[feed.number] = feed
        stream.feeds[feed.identity] = feed
        self._use(feed, 1)
        for held in self._log.by_stream.get(message.stream, ()):
            self._begin_in(feed, held, now)
        self._flush()

    def end(self, asker: int, message: EndFeed, now: float) -> None:
        """No more of that."""
        feeds = self._askers.get(asker)
        feed = None if feeds is None else feeds.pop(message.number, None)
        if feeds is not None and not feeds:
            del self._askers[asker]
        if feed is not None:
            self._forget(feed)
            self._let_go(2)

    def gone(self, asker: int) -> None:
        """There is no link to that broker: its feeds end."""
        for feed in self._askers.pop(asker, {}).values():
            self._forget(feed)
        if self._leaving:
            self._timers.by(FEEDING, 0.0)

    def take_interest(self) -> dict[str, tuple[str, ...]]:
        """Takes it out."""
        interest, self.interest = self.interest, {}
        return interest

    @property
    def count(self) -> int:
        """How many feeds are served."""
        return sum(len(feeds) for feeds in self._askers.values())

    # --- what happens to the logs ------------------------------------------------------------------------------------

    def committed(self, committed: Iterable[Committed], now: float) -> None:
        """These batches of ours have passed the high watermark, those of one log in its order."""
        if not self.streams:
            return
        moved: dict[_Log, tuple[_Stream, _Finds]] = {}
        for one in committed:
            stream = self.streams.get(one.stream.name)
            if stream is None or one.log is None:
                continue
            log = stream.logs.get(Place(one.log.broker, one.log.epoch))
            if log is None:
                continue
            self._keep_recent(log, one)
            end = one.first + one.batch.count
            if not log.live:
                log.upto = max(log.upto, end)
            elif one.first <= log.upto < end:
                finds = moved.setdefault(log, (stream, {}))[1]
                self._match(stream, stream.index, log, log.live, one.first, one.batch, one.time, log.upto, finds)
                log.upto = end
        for log, (stream, finds) in moved.items():
            self._tell_finds(stream, log, log.live, finds, log.upto)
            self._lags(log, stream, now)
        self._flush()

    def _keep_recent(self, log: _Log, one: Committed) -> None:
        if log.recent is not None:
            log.recent.append(one)
            log.recent_bytes += len(one.batch.records)
            if log.recent_bytes > self._limits.feed_recent_bytes:
                log.recent = None

    def go_on(self, now: float) -> None:
        """Feed on: logs may have grown or been trimmed, the disk may have answered, or it is time."""
        if self._log.changed:
            self._hear_of_logs(now)
        if self._leaving:
            self._let_go(self._limits.feed_step_feeds)
        if self._behind or self._reading:
            self._read_on(now)
        if self._lagging:
            self._tell_idle(now)
        if self._leaving:
            self._timers.by(FEEDING, now)
        if self._out:
            self._flush()

    def _hear_of_logs(self, now: float) -> None:
        if not self.streams:
            self._log.changed.clear()
            return
        for name in self._log.take_changed():
            stream = self.streams.get(name.stream)
            if stream is None or name.kind != LogKind.EVENTS:
                continue
            held = self._log.logs[name]
            log = stream.logs.get(Place(name.broker, name.epoch))
            if log is not None:
                self._moved(log, stream, now)
            else:
                for feed in list(stream.feeds.values()):
                    self._begin_in(feed, held, now, new=True)

    def _moved(self, log: _Log, stream: _Stream, now: float) -> None:
        """It may be read further, or its beginning is gone."""
        if log.held.first > log.first:
            self._lags(log, stream, now)
        if log.waiting or log.aboard or (log.live and log.upto < log.held.readable):
            self._is_behind(log, stream, now)

    # --- where a feed begins -----------------------------------------------------------------------------------------

    def _begin_in(self, feed: _Feed, held: HeldLog, now: float, new: bool = False) -> None:
        """Feed from this log as well, if it is one that we feed from. `new`: it began after the feed."""
        name, stream = held.name, feed.stream
        if not held.own and name.broker in feed.present and not held.orphan:
            return
        new = new and held.own
        place = Place(name.broker, name.epoch)
        log = stream.logs.get(place)
        if log is None:
            log = stream.logs[place] = _Log(held, place, held.first, held.first, first=held.first)
        position = None if feed.places is None else feed.places.pop(place, None)
        if not feed.places:
            feed.places = None
        if position is None and (new or held.first_time >= feed.since or not held.first_time):
            position = held.first
        if position is None and held.last_time < feed.since:
            position = held.next
        if position is not None:
            self._begin_at(feed, log, position, now, new)
            return
        log.finding[feed.identity] = None

        def found(position: int | None, now: float) -> None:
            if feed.identity in log.finding:
                del log.finding[feed.identity]
                self._begin_at(feed, log, held.first if position is None else position, now)
                self._flush()

        self._log.find_time(name, feed.since, found)

    def _begin_at(self, feed: _Feed, log: _Log, position: int, now: float, new: bool = False) -> None:
        if not log.live and not new:
            log.upto = max(log.at, log.held.readable)
        if position >= log.upto:
            self._join(feed, log, position)
            self._say(feed, log, position, position)
            if log.upto < log.held.readable:
                self._is_behind(log, feed.stream, now)
            return
        log.index.add(feed.identity, feed.pattern, self._condition(feed.condition))
        if log.aboard and position >= log.at:
            log.aboard[feed.identity] = position
        else:
            log.waiting[feed.identity] = position
        self._is_behind(log, feed.stream, now)

    def _join(self, feed: _Feed, log: _Log, told: int) -> None:
        """From now on it is fed live."""
        log.live[feed.identity] = told
        if not feed.live:
            feed.stream.index.add(feed.identity, feed.pattern, self._condition(feed.condition))
        feed.live += 1

    def _forget(self, feed: _Feed) -> None:
        """It is in no table any more, and so is told nothing. The indexes let go of it in steps."""
        stream, identity = feed.stream, feed.identity
        del stream.feeds[identity]
        self._use(feed, -1)
        for log in stream.logs.values():
            log.live.pop(identity, None)
            log.finding.pop(identity, None)
            if log.aboard.pop(identity, None) is not None or log.waiting.pop(identity, None) is not None:
                self._leaving.append((log.index, identity))
        if feed.live:
            self._leaving.append((stream.index, identity))
        if not stream.feeds:
            del self.streams[stream.name]
            for log in stream.logs.values():
                log.gone = True
                self._behind.pop(log, None)
                self._lagging.pop(log, None)

    def _use(self, feed: _Feed, sign: int) -> None:
        """Its condition, and its key, are read from columns, which publishers send once they are told so."""
        used, stream = feed.stream.used, feed.stream
        tree = self._condition(feed.condition)
        names = () if tree is None else attributes(tree)
        for name in (*names, feed.key) if feed.key and feed.key not in names else names:
            before = used.get(name, 0)
            used[name] = before + sign
            if not before or not used[name]:
                self.interest[stream.name] = ()
            if not used[name]:
                del used[name]
        if stream.name in self.interest:
            self.interest[stream.name] = tuple(sorted(used))

    def _let_go(self, most: int) -> None:
        for _ in range(min(most, len(self._leaving))):
            index, identity = self._leaving.popleft()
            index.remove(identity)

    # --- reading -----------------------------------------------------------------------------------------------------

    def _is_behind(self, log: _Log, stream: _Stream, now: float) -> None:
        if log not in self._reading:
            self._behind[log] = stream
            self._timers.by(FEEDING, now)

    def _read_on(self, now: float) -> None:
        if any(map(self._paused, self._askers)):
            self._timers.by(FEEDING, now + FEED_PAUSE_SECONDS)
            return
        self._step_bytes = 0
        for log, stream in list(self._reading.items()):
            if log.rows is not None:
                if self._step_bytes < self._limits.feed_step_bytes:
                    self._look_at_rows(log, stream, now)
                if log.rows is None:
                    del self._reading[log]
                    self._behind[log] = stream
                else:
                    self._timers.by(FEEDING, now)
        for log, stream in list(self._behind.items()):
            if len(self._reading) >= self._limits.feed_reads:
                break
            del self._behind[log]
            self._scan(log, stream, now)

    def _scan(self, log: _Log, stream: _Stream, now: float) -> None:
        """Read the next chunk; at the end of the log begin another scan, if feeds wait for one."""
        held = log.held
        if log.aboard and log.at >= held.readable:
            self._arrive(log, stream, now)
        if not log.aboard:
            self._board(log)
            if log.aboard and log.at >= held.readable:  # retention took all that they were behind of
                self._arrive(log, stream, now)
        if log.at < held.readable and (log.aboard or (log.live and log.upto < held.readable)):
            self._reading[log] = stream
            log.recent, log.recent_bytes = deque(), 0
            self._log.read_rows(
                held.name, log.at, self._limits.feed_chunk_bytes, lambda read, now: self._came(log, read, now)
            )
        else:
            log.recent = None

    def _board(self, log: _Log) -> None:
        """Begin a scan where the lowest of them is."""
        log.aboard, log.waiting = log.waiting, {}
        places = list(log.aboard.values())
        if log.live and log.upto < log.held.readable:
            places.append(log.upto)
        if places:
            log.at = max(min(places), log.held.first)

    def _arrive(self, log: _Log, stream: _Stream, now: float) -> None:
        """The scan is at the end of the log: those aboard are fed live from now on, so many of them in one step."""
        if not log.live:
            log.upto = log.at
        if log.at < log.upto:  # which only batches can do that are delivered before they are safe
            return
        for identity in list(log.aboard)[: self._limits.feed_step_feeds]:
            told, feed = log.aboard.pop(identity), stream.feeds[identity]
            log.index.remove(identity)
            self._join(feed, log, max(told, log.upto))
            if told < log.upto:
                self._say(feed, log, told, log.upto)
        if log.aboard:
            self._is_behind(log, stream, now)

    def _came(self, log: _Log, read: RowsRead, now: float) -> None:
        """The disk has read a chunk."""
        self._timers.by(FEEDING, now)
        if log.gone:
            del self._reading[log]
            return
        if read.damage:
            self._damaged(log, read.damage)
        log.rows = deque(read.rows)
        log.rows_end = min(max(read.next, log.held.first), log.held.readable)
        if not read.rows and log.rows_end <= log.at:  # it has nothing there, and does not know where it goes on
            log.rows_end = min(log.at + 1, log.held.readable)

    def _damaged(self, log: _Log, damage: str) -> None:
        facts = {"stream": log.held.name.stream, "log": log.held.name.partition, "damage": damage}
        self._effects.append(Note("rows not fed", facts, alarming=True))

    def _look_at_rows(self, log: _Log, stream: _Stream, now: float) -> None:
        """Match what was read, and then what was published in the meantime."""
        if log.gone:
            log.rows = None
            return
        begun = log.upto
        behind: _Finds = {}
        live: _Finds = {}
        rows = log.rows
        while rows and self._step_bytes < self._limits.feed_step_bytes:
            data = rows.popleft()
            try:
                row = decode_row(data)
            except ProtocolViolation as error:
                self._damaged(log, error.text)
                continue
            if row.first >= log.held.readable:
                rows.clear()
                break
            batch = Batch(row.topics, row.count, row.lengths, row.records, row.columns, row.complete)
            self._look_at(stream, log, row.first, batch, row.time, behind, live)
        if not rows:
            log.rows = None
            self._looked_at(log, log.rows_end)
            while log.recent and log.recent[0].first <= log.at:
                one = log.recent.popleft()
                self._look_at(stream, log, one.first, one.batch, one.time, behind, live)
            log.recent = None
        self._tell_finds(stream, log, log.aboard, behind, log.at)
        self._tell_finds(stream, log, log.live, live, log.upto)
        if log.upto > begun:
            self._lags(log, stream, now)

    def _look_at(
        self, stream: _Stream, log: _Log, first: int, batch: Batch, time: int, behind: _Finds, live: _Finds
    ) -> None:
        """Match a batch for those that are behind, and for those that are live if it was not before."""
        self.rows += 1
        end = first + batch.count
        if end > log.at and log.aboard:
            self._match(stream, log.index, log, log.aboard, first, batch, time, log.at, behind)
        if end > log.upto and log.live:
            self._match(stream, stream.index, log, log.live, first, batch, time, log.upto, live)
        self._looked_at(log, end)

    def _looked_at(self, log: _Log, end: int) -> None:
        """By reading; what is before it and did not come is gone, or damaged."""
        log.at = max(log.at, end)
        log.upto = max(log.upto, log.at)

    # --- matching ----------------------------------------------------------------------------------------------------

    def _match(
        self,
        stream: _Stream,
        index: Index,
        log: _Log,
        table: dict[int, int],
        first: int,
        batch: Batch,
        time: int,
        start: int,
        finds: _Finds,
    ) -> None:
        """Add to `finds` which positions from `start` on match the feeds of this table."""
        for identities, rows in self._groups(stream, index, batch):
            positions = [first + row for row in rows if first + row >= start]
            runs = _runs_of(positions)
            for identity in identities:
                told = table.get(identity)
                if told is None or not runs:
                    continue
                feed, own, own_runs = stream.feeds[identity], positions, runs
                if told > start or feed.sections:
                    own = self._narrowed(feed, log, positions, told, first, batch)
                    own_runs = _runs_of(own)
                    if not own:
                        continue
                found = finds.get(identity)
                if found is None:
                    found = finds[identity] = _Found(time)
                    self._step_bytes += _FED_BYTES
                found.runs += own_runs
                self._step_bytes += _RUN_BYTES * len(own_runs)
                if feed.key:
                    found.keys += zip(own, _keys(batch, feed.key, [one - first for one in own]), strict=True)

    def _groups(self, stream: _Stream, index: Index, batch: Batch) -> Matches:
        """The index's answer. What cannot be read matches nothing."""
        try:
            batch.check()
            return index.match(batch.topic_list(), batch.count, Columns(batch))
        except ProtocolViolation:
            readable = _Readable(batch)
        try:
            batch.check()
            groups = index.match(batch.topic_list(), batch.count, readable)
        except ProtocolViolation:
            return []
        broken = readable.broken
        return [
            (tuple([one for one in identities if not self._reads(stream.feeds.get(one), broken)]), rows)
            for identities, rows in groups
        ]

    def _reads(self, feed: _Feed | None, names: dict[str, None]) -> bool:
        tree = None if feed is None else self._condition(feed.condition)
        return tree is not None and any(name in names for name in attributes(tree))

    def _narrowed(self, feed: _Feed, log: _Log, positions: list[int], told: int, first: int, batch: Batch) -> list[int]:
        """Those that were not told before, and that match the sections they are in."""
        positions = [one for one in positions if one >= told]
        for condition, ends in feed.sections:
            end = ends.get(log.place, 0)
            if positions and positions[0] < end:
                try:
                    groups = self._section(feed.stream.name, condition).match(
                        batch.topic_list(), batch.count, Columns(batch)
                    )
                except ProtocolViolation:
                    groups = []
                fit = dict.fromkeys(first + row for _, rows in groups for row in rows)
                positions = [one for one in positions if one >= end or one in fit]
        return positions

    def _pattern(self, text: str, exact: bool) -> Pattern:
        """Raises MatchingError."""
        return _remembered(
            self._patterns, (text, exact), lambda: parse_pattern(text, exact=exact), self._limits.feed_conditions
        )

    def _condition(self, text: str) -> Tree | None:
        """Raises MatchingError."""
        return _remembered(
            self._conditions,
            text,
            lambda: parse_condition(text) if text.strip() else None,
            self._limits.feed_conditions,
        )

    def _section(self, stream: str, condition: str) -> Index:
        """An index of that condition alone, for any topic. Raises MatchingError."""

        def make() -> Index:
            index = Index()
            index.add(1, self._pattern(stream, False), self._condition(condition))
            return index

        return _remembered(self._sections, (stream, condition), make, self._limits.feed_conditions)

    # --- telling -----------------------------------------------------------------------------------------------------

    def _tell_finds(self, stream: _Stream, log: _Log, table: dict[int, int], finds: _Finds, upto: int) -> None:
        for identity, found in finds.items():
            told = table[identity]
            table[identity] = upto
            self._say(stream.feeds[identity], log, told, upto, found)

    def _say(self, feed: _Feed, log: _Log, start: int, upto: int, found: _Found | None = None) -> None:
        """Tell a feed which positions from `start` to `upto` match, in as many facts as that takes."""
        first = log.held.first
        if found is None:
            self._out.append((feed.asker, Fed(feed.number, log.place, first, start, upto, b"", b"", 0)))
            return
        keys = [key for _, key in sorted(found.keys)]
        begin = 0
        for runs, last in _parts(union(found.runs), _KEYS_MAX if keys else 0):
            count = count_of(runs)
            end = upto if last else runs[-1][1]
            packed, hashes = join_runs(runs), join_u32(keys[begin : begin + count])
            self._out.append((feed.asker, Fed(feed.number, log.place, first, start, end, packed, hashes, found.time)))
            start, begin = end, begin + count

    def _flush(self) -> None:
        """Say what there is to be said; it may come back to us at once, as another question."""
        if self._telling:
            return
        self._telling = True
        try:
            while self._out:
                asker, fact = self._out.popleft()
                self.facts += 1
                self._tell(asker, fact)
        finally:
            self._telling = False

    def _lags(self, log: _Log, stream: _Stream, now: float) -> None:
        log.lags = True
        if not self._lagging:
            self._idle_at = max(self._idle_at, now + FEED_IDLE_SECONDS)
        self._lagging[log] = stream
        self._timers.by(FEEDING, self._idle_at)

    def _tell_idle(self, now: float) -> None:
        """Tell those that are live and heard of no match how far the log was looked at, and where it begins by now."""
        if now < self._idle_at:
            self._timers.by(FEEDING, self._idle_at)
            return
        left = self._limits.feed_idle_feeds
        for log, stream in list(self._lagging.items()):
            if not log.untold and log.lags:
                log.untold, log.all_untold, log.lags = list(log.live), log.held.first > log.first, False
                log.first = log.held.first
            while log.untold and left:
                identity = log.untold.pop()
                told = log.live.get(identity)
                if told is not None and (told < log.upto or log.all_untold):
                    left -= 1
                    log.live[identity] = upto = max(told, log.upto)
                    self._say(stream.feeds[identity], log, told, upto)
            if log.untold:
                break
            if not log.lags:
                del self._lagging[log]
        self._idle_at = now + FEED_IDLE_SECONDS
        if self._lagging:
            self._timers.by(FEEDING, self._idle_at)

    def validate(self) -> None:
        """Each feed is in one state in each log, and in the indexes that go with it."""
        leaving = [(id(index), identity) for index, identity in self._leaving]
        feeds = {feed.identity: feed for some in self._askers.values() for feed in some.values()}
        assert sum(len(stream.feeds) for stream in self.streams.values()) == len(feeds)
        assert not self._out
        for stream in self.streams.values():
            live: dict[int, int] = {}
            for log in stream.logs.values():
                states = [*log.live, *log.aboard, *log.waiting, *log.finding]
                assert len(set(states)) == len(states) and all(one in stream.feeds for one in states)
                for identity in log.live:
                    live[identity] = live.get(identity, 0) + 1
                behind = log.aboard | log.waiting
                assert len(log.index) == len(behind) + sum(one == id(log.index) for one, _ in leaving)
                assert all(one in log.index for one in behind)
                assert not log.live or not log.aboard or log.at <= log.upto
                assert not behind or log in self._behind or log in self._reading or log.at >= log.held.readable
                assert log not in self._behind or log not in self._reading
            assert all(feed.live == live.get(feed.identity, 0) for feed in stream.feeds.values())
            assert len(stream.index) == len(live) + sum(one == id(stream.index) for one, _ in leaving)


class _Readable(Mapping[str, Sequence[Scalar]]):
    """The columns of a batch that can be read; it notes which cannot."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self.broken: dict[str, None] = {}

    def __getitem__(self, name: str) -> Sequence[Scalar]:
        try:
            column = self._batch.column(name)
        except ProtocolViolation:
            self.broken[name] = None
            column = None
        if column is None:
            raise KeyError(name)
        return column

    def __iter__(self) -> Iterator[str]:
        return iter(self._batch.columns)

    def __len__(self) -> int:
        return len(self._batch.columns)


K = TypeVar("K")
V = TypeVar("V")


def _remembered(known: dict[K, V], key: K, make: Callable[[], V], most: int) -> V:
    """What was made for this key; the oldest is forgotten when there are too many."""
    if key not in known:
        made = make()
        if len(known) >= most:
            del known[next(iter(known))]
        known[key] = made
    return known[key]


def key_hash(value: Scalar) -> int:
    """A number of 32 bits for a value, the same in every broker; equal numbers have one, of whatever type."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    kind = "b" if isinstance(value, bool) else "s" if isinstance(value, str) else "n"
    return int.from_bytes(
        blake2b(f"{kind}{value!r}".encode("utf-8", "surrogatepass"), digest_size=4).digest(), "little"
    )


def _keys(batch: Batch, name: str, rows: Sequence[int]) -> list[int]:
    """The hash of this attribute's value in each of these rows."""
    try:
        values = batch.column(name)
    except ProtocolViolation:
        values = None
    return [key_hash(None if values is None else values[row]) for row in rows]


def _runs_of(positions: Sequence[int]) -> list[Run]:
    """Ascending positions as runs; mostly they follow one another."""
    if positions and positions[-1] - positions[0] == len(positions) - 1:
        return [(positions[0], positions[-1] + 1)]
    return runs_of(positions)


def _parts(runs: list[Run], positions_max: int) -> Iterator[tuple[list[Run], bool]]:
    """As many of them at a time as one fact may hold, and whether these are the last."""
    part: list[Run] = []
    left = positions_max
    for number, (start, stop) in enumerate(runs):
        while positions_max and stop - start > left:
            if left:
                part.append((start, start + left))
            start += left
            left = positions_max
            yield part, False
            part = []
        part.append((start, stop))
        left -= stop - start
        if len(part) == _RUNS_MAX and number + 1 < len(runs):
            yield part, False
            part, left = [], positions_max
    yield part, True
