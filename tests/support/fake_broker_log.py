"""The log of the fake broker: producers, rows, chunks, as SPEC.md section 19 has them, without a disk or a condition.

log.misfortunes.append(("full", ErrorCode.NOT_STORED))      the next batch is refused; unless "full" it is there
log.unavailable = 2                                         so often a producer cannot be opened
log.forget()                                                the producers must be opened again
log.trim(7)                                                 rows below are gone
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from headgate.protocol.data import Batch, LogShift, Row, decode_row, encode_row, join_u32
from headgate.protocol.errors import ErrorCode, Refused
from headgate.protocol.messages import LogChunk, Publish, ReadLog, Stamp

__all__ = ["FakeBrokerLog", "early"]


@dataclass
class FakeBrokerLog:
    """One log of events for each stream, of one broker and epoch."""

    broker: str = "fake"
    epoch: int = 1
    rows: dict[str, list[Row]] = field(default_factory=dict)
    producers: dict[str, tuple[int, int, bytes]] = field(default_factory=dict)
    opened: set[str] = field(default_factory=set)
    misfortunes: list[tuple[str, ErrorCode]] = field(default_factory=list)
    duplicates: int = 0
    chunk_rows: int = 2
    cutting: bool = True
    unavailable: int = 0

    def take(self, publish: Publish, base: int) -> bool:
        """Append a batch; False when it is a duplicate. Raises Refused."""
        stamp, batch = publish.stamp, publish.batch
        if stamp is None:
            self._append(batch, base, None)
            return True
        epoch, upcoming, _ = self.producers.get(stamp.producer, (0, 0, b""))
        if stamp.epoch < epoch:
            raise Refused(ErrorCode.FENCED, f"epoch {epoch} is at work")
        if stamp.producer not in self.opened:
            raise Refused(ErrorCode.NOT_FOUND, "open the producer")
        if stamp.number + batch.count <= upcoming:
            self.duplicates += 1
            return False
        if stamp.number != upcoming:
            raise Refused(ErrorCode.OUT_OF_SEQUENCE, f"{upcoming} comes next")
        what, code = self.misfortunes.pop(0) if self.misfortunes else ("", None)
        if what != "full":
            self._append(batch, base, stamp)
            self.producers[stamp.producer] = (stamp.epoch, upcoming + batch.count, stamp.digest)
        if code is not None:
            raise Refused(code, what)
        return True

    def forget(self) -> None:
        """As after a restart."""
        self.opened.clear()

    def trim(self, below: int) -> None:
        """Retention."""
        for rows in self.rows.values():
            rows[:] = [row for row in rows if row.first + row.count > below]

    def open(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """`producer.open`."""
        if self.unavailable:
            self.unavailable -= 1
            raise Refused(ErrorCode.UNAVAILABLE, "in a moment")
        name, epoch = arguments["producer"], arguments["epoch"]
        known, upcoming, digest = self.producers.get(name, (0, 0, b""))
        if epoch < known:
            raise Refused(ErrorCode.FENCED, f"epoch {known} is at work")
        self.producers[name] = (epoch, upcoming, digest)
        self.opened.add(name)
        return {"next": upcoming, "digest": digest, "epoch": epoch}

    def describe(self, arguments: dict[str, Any]) -> list[dict[str, Any]]:
        """`logs`."""
        found = []
        for stream, rows in sorted(self.rows.items()):
            if rows and arguments.get("stream", stream) == stream and arguments.get("kind", "events") == "events":
                row = {"broker": self.broker, "epoch": self.epoch, "kind": "events", "stream": stream, "own": True}
                row |= {"first": rows[0].first, "next": self.end(stream), "bytes": 1}
                found.append(row | {"first_time": rows[0].time, "last_time": rows[-1].time})
        return found[arguments.get("after", 0) :]

    def at(self, arguments: dict[str, Any]) -> dict[str, int]:
        """`log.at`."""
        rows = self.rows.get(arguments["stream"], [])
        later = [row.first for row in rows if row.time >= arguments["time"]]
        return {"position": later[0] if later else self.end(arguments["stream"])}

    def read(self, message: ReadLog) -> LogChunk:
        """READ_LOG; a pattern is an exact topic here. Raises Refused."""
        rows = self.rows.get(message.stream)
        name = (message.broker, message.epoch, message.kind)
        end = self.end(message.stream)
        if rows is None or name != (self.broker, self.epoch, 0) or message.position > end:
            raise Refused(ErrorCode.NOT_FOUND, "no such position")
        looked = [row for row in rows if row.first + row.count > message.position][: self.chunk_rows]
        cut = [_cut(row, message.pattern if self.cutting else "") for row in looked]
        following = looked[-1].first + looked[-1].count if looked else end
        chosen = [encode_row(row) for row in cut if row is not None]
        return LogChunk(message.request, rows[0].first if rows else end, following, end, chosen)

    def shift_of(self, batch: Batch, base: int) -> LogShift:
        """Where the events of a batch that was taken stand."""
        rows = self.rows[batch.topic_list()[0].split("/")[0]]
        return LogShift(f"{self.broker}@{self.epoch}", next(row.first for row in rows if row.base == base) - base)

    def end(self, stream: str) -> int:
        """The position of the next event."""
        rows = self.rows.get(stream)
        return rows[-1].first + rows[-1].count if rows else 0

    def _append(self, batch: Batch, base: int, stamp: Stamp | None) -> None:
        stream = batch.topic_list()[0].split("/")[0]
        parts = (batch.topics, batch.lengths, batch.columns, batch.complete, batch.records)
        first = self.end(stream)
        row = Row(first, batch.count, 1_000_000 + first, self.broker, base, b"", *parts)
        if stamp is not None:
            row.producer, row.epoch, row.number = stamp.producer, stamp.epoch, stamp.number
            row.digest, row.ids = stamp.digest, stamp.ids
        self.rows.setdefault(stream, []).append(row)


def early(position: int, read: Callable[[ReadLog], LogChunk]) -> Callable[[ReadLog], LogChunk]:
    """The same reading when siblings are slow: refused from that position on."""

    def reads(message: ReadLog) -> LogChunk:
        if message.position >= position:
            raise Refused(ErrorCode.NOT_STORED, "it is on too few disks")
        return read(message)

    return reads


def _cut(row: Row, topic: str) -> Row | None:
    """The events of one topic."""
    if not topic:
        return row
    batch = Batch(row.topics, row.count, row.lengths, row.records)
    topics = batch.topic_list() * (row.count if len(batch.topic_list()) == 1 else 1)
    places = [place for place, one in enumerate(topics) if one == topic]
    if not places:
        return None
    pieces = [batch.pieces()[place] for place in places]
    cut = decode_row(encode_row(row))
    cut.count, cut.offsets, cut.topics = len(places), join_u32(places), topic
    cut.lengths, cut.records = join_u32(map(len, pieces)), b"".join(pieces)
    cut.columns, cut.complete, cut.ids = {}, False, b""
    return cut
