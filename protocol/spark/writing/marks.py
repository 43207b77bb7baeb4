"""What a write is, and what the log keeps of it: the identity by which a write that comes again is known.

    who       STREAM/JOB/PARTITION is a producer. The stream is the one that option `topic` names, `*` when column
              `topic` does; the job is `producerId`, or the id of a streaming query; the partition is Spark's. The log
              counts its events, whatever run, attempt or micro-batch they came in
    when      a run is one `save()`, or one planning of a micro-batch; its attempts have epochs, so that a newer one
              shuts out the older
    what      every frame carries a mark, which the log gives back with its count: of the mode in which it was written,
              the micro-batch, the run that began it, where it began, and the digest of its events up to there

So an attempt finds out what has become of its partition, and of the others of its job, from their counts and marks
alone. Between two runs of a job, or of a micro-batch, these may differ:

    the mode                   told by the mark: refused
    the stream                 another stream is another producer
    rows, their order          guarded: the digest differs, refused. id: only ids count
    the number of partitions   guarded: refused, unless every partition that has events in the log begins with the
                               same rows as before; then what is in the log is a beginning of what is written, and the
                               rest follows. Nobody sends before all of these were compared: `rerun.py`. id: any

A purge of the stream (`headgate schema rm --purge`) takes its producers with it: what comes then is new. A job whose
rows name their streams in a column is refused, for a purge took some of what it had published: `rerun.check_purges`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

__all__ = ["Mark", "job_name", "mark_of"]

_HEAD = struct.Struct(">QQcQ")
_MODES = {b"g": "guarded", b"i": "id"}
_LETTERS = {mode: letter for letter, mode in _MODES.items()}


@dataclass(frozen=True, slots=True)
class Mark:
    """What a frame says of the write that it belongs to. `base` is its producer's count when the batch began."""

    batch: int
    run: int
    mode: str
    base: int
    digest: bytes = b""

    def with_digest(self, digest: bytes) -> bytes:
        """For the log: the mark as bytes, with the digest of the events so far."""
        return _HEAD.pack(self.batch, self.run, _LETTERS[self.mode], self.base) + digest

    @property
    def of_batch(self) -> bytes:
        """How the marks of all writes of this micro-batch begin."""
        return struct.pack(">Q", self.batch)

    @property
    def of_run(self) -> bytes:
        """How the marks of those begin that this run began."""
        return struct.pack(">QQ", self.batch, self.run)


def mark_of(data: bytes) -> Mark | None:
    """The mark in these bytes; None when they are none."""
    if len(data) < _HEAD.size:
        return None
    batch, run, letter, base = _HEAD.unpack_from(data)
    mode = _MODES.get(letter)
    return None if mode is None else Mark(batch, run, mode, base, data[_HEAD.size :])


def job_name(topic: str, job: str) -> str:
    """What the names of a job's producers begin with; `topic` is empty when every row has its own."""
    return f"{topic.partition('/')[0] or '*'}/{job}"
