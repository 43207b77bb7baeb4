"""Sending one partition's events, so that no retry, twin or rerun puts an event into the log twice.

A task publishes as a producer of its own (`marks.py`), with the number of its attempt as epoch. Opening it tells how
many events of it are in the log, and fences attempts with lower epochs. What comes next is the idempotence:

    guarded   the attempt goes through its rows from the first on, sends nothing up to that number, and compares its
              digest there with the one in the log. Equal: it goes on behind it, as soon as the other partitions were
              compared too (`rerun.py`). Otherwise its rows, or their order, are others than before, and it fails:
              Spark tries again, and either finds the old order or fails the job.
    id        the attempt asks which event ids are in the log, of its own and of earlier runs' producers, leaves out
              those rows, and numbers the rest on from there. Order does not matter, nor how a rerun is partitioned.
    none      every attempt is a producer of its own: a retry repeats what its predecessor sent.

Why that is exact. The log accepts from a producer only the next number, in the same transaction in which it keeps the
mark and the ids; a fenced attempt can add nothing behind what its successor was told. So what an attempt finds at its
opening stays true until itself adds to it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from headgate.protocol.data import Batch, encode_column

from ..errors import BadRow, NondeterministicInput
from ..layout import Layout
from .digests import RollingDigest
from .frames import Encoder, Frame
from .marks import Mark

__all__ = ["Guarded", "Producing", "Sent", "WithIds", "send_partition"]


class Producing(Protocol):
    """What is asked of a producer; `protocol.blocking` has it."""

    name: str

    @property
    def next(self) -> int:
        """Events accepted so far, when it was opened."""

    @property
    def digest(self) -> bytes:
        """The digest that came with the last of them."""

    def interest(self, stream: str) -> list[str] | None:
        """The attributes that brokers filter on; None: unknown."""

    def publish(self, batch: Batch, digest: bytes = b"", ids: bytes = b"") -> None:
        """Send the next batch; waits for room in the window only."""

    def flush(self) -> None:
        """Wait until everything is in the log."""


@dataclass(slots=True)
class Sent:
    """What became of one partition's rows."""

    published: int = 0
    skipped: int = 0
    frames: int = 0
    bytes: int = 0


class Guarded:
    """Leaves out what is in the log already, if it is the same.

    `compared` is called with the streams of what was left out when it is, and `wait` once before anything is sent.
    """

    def __init__(
        self,
        producer: str,
        accepted: int,
        digest: bytes,
        seed: str,
        mark: Mark,
        compared: Callable[[Collection[str]], None],
        wait: Callable[[], None],
    ) -> None:
        self._producer = producer
        self._accepted = accepted
        self._wanted = digest
        self._digest = RollingDigest(seed)
        self._number = 0
        self._mark = mark
        self._compared = compared
        self._streams: dict[str, None] = {}
        self._wait: Callable[[], None] | None = wait

    def pieces(self, frame: Frame) -> Iterator[tuple[Frame, bytes, bytes]]:
        """(frame, mark, ids) of what has to be sent of this one."""
        known = self._accepted - self._number
        self._number += frame.count
        if known > 0:
            self._streams[_stream(frame.topics)] = None
        if known >= frame.count:
            self._digest.add(frame)
            if known == frame.count:
                self._compare()
            return
        if known > 0:
            self._digest.add(frame.slice(0, known))
            self._compare()
            frame = frame.slice(known, frame.count - known)
        if self._wait is not None:
            self._wait()
            self._wait = None
        yield frame, self._mark.with_digest(self._digest.add(frame)), b""

    def finish(self) -> None:
        """All rows are through. Raises NondeterministicInput when there were fewer than the log has."""
        if self._number < self._accepted:
            raise NondeterministicInput(
                self._producer, self._accepted, f"this attempt of its partition has only {self._number} rows"
            )

    def _compare(self) -> None:
        if self._digest.value() != self._wanted:
            raise NondeterministicInput(
                self._producer, self._accepted, "this attempt of its partition has other rows, or another order"
            )
        self._compared(self._streams)


class WithIds:
    """Leaves out rows whose ids are in the log; they are taken out before they are encoded."""

    def __init__(self, column: str, known: Iterable[Collection[str]], mark: Mark) -> None:
        self._column = column
        self._known = [ids for ids in known if ids]
        self._mark = mark.with_digest(b"")

    def rows(self, rows: Any) -> Any:
        """The rows that are not in the log yet. Raises BadRow for one without an id."""
        if rows.column(self._column).null_count:
            raise BadRow(self._column, "is NULL in a row; every row needs an id, or take 'eventIdColumn' away")
        if not self._known:
            return rows
        import pyarrow as pa

        ids = rows.column(self._column).cast(pa.string()).to_pylist()
        return rows.filter(pa.array([not any(one in known for known in self._known) for one in ids], pa.bool_()))

    def pieces(self, frame: Frame) -> Iterator[tuple[Frame, bytes, bytes]]:
        """(frame, mark, ids)."""
        import pyarrow as pa

        yield frame, self._mark, encode_column(frame.ids.cast(pa.string()).to_pylist())

    def finish(self) -> None:
        """Nothing to compare."""


class _Unguarded:
    """Sends everything."""

    def pieces(self, frame: Frame) -> Iterator[tuple[Frame, bytes, bytes]]:
        yield frame, b"", b""

    def finish(self) -> None:
        pass


def send_partition(
    batches: Iterable[Any],
    layout: Layout,
    frame_bytes: int,
    producer: Producing,
    guard: Guarded | WithIds | None,
    stop: Callable[[int], None] | None = None,
) -> Sent:
    """Send the rows of pyarrow record batches; returns when all of them are in the log.

    `stop` is called with the number of events sent after every frame; a test lets a task die there.
    """
    sent = Sent()
    encoder = Encoder(layout, frame_bytes)
    keeper = guard or _Unguarded()
    for rows in batches:
        left = guard.rows(rows) if isinstance(guard, WithIds) else rows
        sent.skipped += rows.num_rows - left.num_rows
        for frame in encoder.frames(left):
            sent.skipped += frame.count
            for piece, mark, ids in keeper.pieces(frame):
                batch = piece.batch(producer.interest(_stream(piece.topics)))
                producer.publish(batch, mark, ids)
                sent.skipped -= piece.count
                sent.published += piece.count
                sent.frames += 1
                sent.bytes += len(batch.records)
            if stop is not None:
                stop(sent.published)
    keeper.finish()
    producer.flush()
    return sent


def _stream(topics: str) -> str:
    return topics.partition("\n")[0].partition("/")[0]
