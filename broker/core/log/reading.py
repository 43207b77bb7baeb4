"""Reading logs: one READ_LOG is answered by one LOG_CHUNK, so a reader sets the pace and nothing is held for it.

Without a filter rows go out as they are on the disk. With a pattern or a condition each row is matched as a batch that
is published would be, and only the events that match go out: their row is cut, `offsets` says which are left.

What is on our disk alone and may be taken back is not read (`HeldLog.readable`). Who asks for it waits until it is
safe, at most STORE_SECONDS_MAX.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.matching import (
    ConditionError,
    Delta,
    Index,
    MatchingError,
    Pattern,
    Tree,
    extensions,
    parse_condition,
    parse_pattern,
)
from headgate.protocol.data import (
    FILTER_COLUMNS,
    Columns,
    LogKind,
    LogName,
    Row,
    decode_row,
    encode_row,
    join_u32,
    row_batch,
)
from headgate.protocol.errors import ErrorCode, ProtocolViolation, Refused
from headgate.protocol.limits import LOG_CHUNK_BYTES_MAX, LOG_CHUNK_ROWS_MAX
from headgate.protocol.messages import Error, LogChunk, ReadLog, Scope

from ..clock import Clock
from ..delivery import ClientSession
from ..effects import Effect, Send
from ..inputs import RowsRead
from ..limits import ERROR_TEXT_LENGTH_MAX, LOG_FILTERS_MAX, READS_PER_SESSION_MAX
from ..rights import Rights
from ..safeguards import SAFEGUARDS, Safeguard
from .log import HeldLog, Log

__all__ = ["LogReading"]

_ONE = 1
_NO_DELTA = "DELTA is not asked of a log: read it with the rest of the condition"


@dataclass(slots=True)
class _Chunk:
    """What was looked at of the rows that were read, and what goes out of it."""

    next: int
    rows: list[bytes]


class LogReading:
    """Answers READ_LOG: reads rows from the disk, filters them, and cuts them to a chunk."""

    def __init__(
        self, log: Log, effects: list[Effect], clock: Clock, safeguards: frozenset[Safeguard] = SAFEGUARDS
    ) -> None:
        self._log = log
        self._looks_again = Safeguard.RIGHTS_AT_READING in safeguards
        self._effects = effects
        self._clock = clock
        self._filters: dict[tuple[str, ...], Index] = {}
        self._reading: dict[bytes, int] = {}
        self.chunks = self.rows = 0

    def read(self, session: ClientSession, message: ReadLog, now: float) -> None:
        """A client says READ_LOG."""
        try:
            held, index = self._find(session, message), self._filter(session, message)
        except Refused as error:
            self._refuse(session, message, error)
            return
        if message.position == held.next:
            self._say(session, message, held, _Chunk(held.next, []))
            return
        self._reading[session.key] = self._reading.get(session.key, 0) + 1
        rights = session.rights

        def done() -> None:
            self._reading[session.key] -= 1
            if not self._reading[session.key]:
                del self._reading[session.key]

        def rows_came(rows: RowsRead, now: float) -> None:
            done()
            try:
                # The disk took its time: what is given is what is allowed now.
                allowed = index if session.rights is rights else self._filter(session, message)
            except Refused as error:
                self._refuse(session, message, error)
            else:
                self._answer(session, message, held, allowed, rows)

        def readable(refused: Refused | None, now: float) -> None:
            if refused is None and message.position < held.next:
                self._log.read_rows(held.name, message.position, LOG_CHUNK_BYTES_MAX, rows_came)
            else:
                rows_came(RowsRead(0, [], message.position), now)

        def found(position: int | None, now: float) -> None:
            """The first that is younger than `ago`; None when the disk does not know."""
            after = min(position or 0, held.readable)
            if after <= message.position:
                readable(None, now)
                return
            done()
            self._say(session, message, held, _Chunk(after, []))

        if message.position < held.readable and message.ago:
            self._log.find_time(held.name, max(0, self._clock.us(now) - int(message.ago * 1e6)), found)
        elif message.position < held.readable:
            readable(None, now)
        else:
            self._log.wait([(held, message.position + 1)], readable, now)

    def _find(self, session: ClientSession, message: ReadLog) -> HeldLog:
        """The log that it names, if the position is one. Raises Refused."""
        name = LogName(message.broker, message.epoch, message.kind, message.stream)
        held = self._log.logs.get(name)
        if held is None:
            text = f"this broker has no log {name.partition} of {_kind(message.kind)} of stream {message.stream!r}: "
            raise Refused(ErrorCode.NOT_FOUND, text + "ask `logs` which broker has it")
        if message.position > held.next:
            text = f"log {name.partition} of stream {message.stream!r} ends at {held.next}: there is no such position"
            raise Refused(ErrorCode.NOT_FOUND, f"{text} as {message.position}")
        if self._reading.get(session.key, 0) >= READS_PER_SESSION_MAX:
            text = f"a session reads at most {READS_PER_SESSION_MAX} chunks at a time: wait for one of them"
            raise Refused(ErrorCode.LIMIT, text)
        return held

    def _filter(self, session: ClientSession, message: ReadLog) -> Index | None:
        """What picks the events that it asks for and may have; None: all. Raises Refused."""
        if session.rights is not None and not session.rights.audit and self._looks_again:
            return self._within_rights(session.rights, message)
        if not message.pattern and not message.condition:
            return None
        if message.kind != LogKind.EVENTS:
            raise Refused(ErrorCode.BAD_REQUEST, "a pattern or a condition is about events: leave both out here")
        return self._index_asked(message)

    def _within_rights(self, rights: Rights, message: ReadLog) -> Index:
        """What it may read of what it asks for, by its rights of now. Raises Refused."""
        if message.kind != LogKind.EVENTS:
            raise Refused(ErrorCode.FORBIDDEN, f"logs of {_kind(message.kind)} are for auditors (audit = true)")
        try:
            pattern = parse_pattern(message.pattern or message.stream)
            condition = parse_condition(message.condition) if message.condition.strip() else None
        except MatchingError as error:
            code = ErrorCode.BAD_CONDITION if isinstance(error, ConditionError) else ErrorCode.BAD_PATTERN
            raise Refused(code, str(error)) from error
        if condition is not None and any(isinstance(one, Delta) for one in extensions(condition)):
            raise Refused(ErrorCode.UNSUPPORTED, _NO_DELTA)
        narrowed = rights.narrow(pattern, condition)
        return self._index_of(
            (message.stream, str(narrowed.pattern), narrowed.text, "exact" if narrowed.pattern.exact else "rights"),
            narrowed.pattern,
            narrowed.condition,
        )

    def _index_of(self, key: tuple[str, ...], pattern: Pattern, condition: Tree | None) -> Index:
        index = self._filters.get(key)
        if index is None:
            index = Index()
            index.add(_ONE, pattern, condition)
            if len(self._filters) >= LOG_FILTERS_MAX:
                del self._filters[next(iter(self._filters))]
            self._filters[key] = index
        return index

    def _index_asked(self, message: ReadLog) -> Index:
        key = message.stream, message.pattern, message.condition
        index = self._filters.get(key)
        if index is None:
            try:
                pattern = parse_pattern(message.pattern or message.stream)
                condition = parse_condition(message.condition) if message.condition.strip() else None
                if condition is not None and any(isinstance(one, Delta) for one in extensions(condition)):
                    raise Refused(ErrorCode.UNSUPPORTED, _NO_DELTA)
            except MatchingError as error:
                code = ErrorCode.BAD_CONDITION if isinstance(error, ConditionError) else ErrorCode.BAD_PATTERN
                raise Refused(code, str(error)) from error
            index = self._index_of(key, pattern, condition)
        return index

    def _answer(
        self, session: ClientSession, message: ReadLog, held: HeldLog, index: Index | None, read: RowsRead
    ) -> None:
        if read.damage:
            text = f"{read.damage}: read on at {read.next}, or ask another broker that has this log"
            self._refuse(session, message, Refused(ErrorCode.NOT_FOUND, text))
            return
        if message.position >= held.readable and message.position < held.next:
            text = f"log {held.name.partition} of stream {message.stream!r} is on too few disks from position "
            text += f"{held.readable} on, and is not read there before it is safe: try again in a moment"
            self._refuse(session, message, Refused(ErrorCode.NOT_STORED, text))
            return
        chunk = _Chunk(message.position if read.rows else max(read.next, held.first), [])
        looked_at = 0
        for data in read.rows:
            if len(chunk.rows) >= LOG_CHUNK_ROWS_MAX or looked_at >= message.events > 0:
                break
            try:
                row = decode_row(data)
            except ProtocolViolation as error:
                text = f"a row of this log cannot be read: {error.text}"
                self._refuse(session, message, Refused(ErrorCode.NOT_FOUND, text))
                return
            if row.first >= held.readable:
                break
            looked_at += row.count
            chunk.next = row.first + row.count
            if index is None:
                chunk.rows.append(data)
                continue
            places = _matching(index, row, message.position, derived=session.rights is not None)
            if places:
                chunk.rows.append(encode_row(_cut(row, places)))
        self._say(session, message, held, chunk)

    def _say(self, session: ClientSession, message: ReadLog, held: HeldLog, chunk: _Chunk) -> None:
        self.chunks += 1
        self.rows += len(chunk.rows)
        if session.link is not None:
            answer = LogChunk(message.request, held.first, chunk.next, held.next, chunk.rows)
            self._effects.append(Send(session.link, answer))

    def _refuse(self, session: ClientSession, message: ReadLog, error: Refused) -> None:
        if session.link is not None:
            text = error.text[:ERROR_TEXT_LENGTH_MAX]
            self._effects.append(Send(session.link, Error(error.code, Scope.REQUEST, message.request, text)))


def _kind(kind: int) -> str:
    return LogKind(kind).name.lower() if kind in set(LogKind) else f"kind {kind}"


def _matching(index: Index, row: Row, position: int, derived: bool = False) -> Sequence[int]:
    """The places of the events that match, from this position on. What cannot be read matches nothing.

    `derived`: match columns are not believed but where they are filters of documents, which no record has.
    """
    try:
        batch = row_batch(row)
        if derived:
            columns = {name: column for name, column in batch.columns.items() if name.startswith(FILTER_COLUMNS)}
            batch = batch.with_columns(columns)
        groups = list(index.match(batch.topic_list(), batch.count, Columns(batch)))
    except ProtocolViolation:
        return ()
    places = sorted(place for _, rows in groups for place in rows)
    return [place for place in places if row.first + place >= position]


def _cut(row: Row, places: Sequence[int]) -> Row:
    """Some events of a row (ascending, at least one)."""
    if len(places) == row.count:
        return row
    part = row_batch(row).portion(places, row.origin, 0, row.time)
    return Row(
        row.first,
        len(places),
        row.time,
        row.origin,
        row.base,
        join_u32(places),
        part.topics,
        part.lengths,
        {},
        False,
        part.records,
        row.producer,
        row.epoch,
        row.number,
        row.digest,
    )
