"""Gathering: how events become batches. Events collect in the open batch of their stream, columns are cut into batches.

Match columns are made here, for the attributes that brokers filter on.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

from .batch import Batch, join_u32, make_batch
from .columns import Scalar, encode_column
from .errors import LocalError
from .limits import BATCH_EVENTS_MAX, COLUMNS_MAX, ENTRY_OVERHEAD_BYTES, PUBLISH_LENGTH_MAX
from .outcome import Outcome

__all__ = ["OpenBatch", "cut_batches", "cut_columns", "encoded_size"]


class OpenBatch:
    """Events of one stream and mode that wait for company."""

    __slots__ = ("attributes", "mode", "outcome", "records", "size", "topics")

    def __init__(self, mode: int, outcome: Outcome) -> None:
        self.mode = mode
        self.outcome = outcome
        self.topics: list[str] = []
        self.records: list[bytes] = []
        self.attributes: list[Mapping[str, Scalar]] = []
        self.size = 0

    def batch(self, interest: Sequence[str] | None) -> Batch:
        """The columnar form; match columns for what brokers filter on."""
        topics, records = self.topics, self.records
        columns, complete = _match_columns(self.attributes, interest)
        same = topics.count(topics[0]) == len(topics)
        joined = topics[0] if same else "\n".join(topics)
        return Batch(joined, len(records), join_u32(map(len, records)), b"".join(records), columns, complete)


def cut_batches(
    topics: Sequence[str],
    columns: Mapping[str, Sequence[Scalar]],
    bodies: Sequence[bytes],
    interest: Sequence[str] | None,
    content_type: str,
) -> Iterator[Batch]:
    """Batches that fit a PUBLISH each, halving what does not."""
    # Large bodies would otherwise be encoded, found too large, halved and encoded again.
    share = len(bodies) * (PUBLISH_LENGTH_MAX // 4) // max(1, sum(map(len, bodies)))
    step = max(1, min(BATCH_EVENTS_MAX, share))
    pending = [(start, min(start + step, len(bodies))) for start in range(0, len(bodies), step)][::-1]
    while pending:
        start, stop = pending.pop()
        part = {name: values[start:stop] for name, values in columns.items()}
        some = topics if len(topics) == 1 else topics[start:stop]
        batch = make_batch(some, part, bodies[start:stop], interest, content_type)
        if encoded_size(batch) > PUBLISH_LENGTH_MAX - ENTRY_OVERHEAD_BYTES and stop - start > 1:
            middle = (start + stop) // 2
            pending += [(middle, stop), (start, middle)]
        else:
            yield batch


def cut_columns(
    stream_of: Callable[[str], str],
    topics: str | Sequence[str],
    columns: Mapping[str, Sequence[Scalar]],
    bodies: Sequence[bytes],
) -> Iterator[tuple[str, Sequence[str], Mapping[str, Sequence[Scalar]], Sequence[bytes]]]:
    """Columns by stream: (stream, topics, columns, bodies), rows in their order within each."""
    names = [topics] if isinstance(topics, str) else list(topics)
    if len(names) != 1 and len(names) != len(bodies):
        raise LocalError(f"{len(bodies)} bodies want 1 topic or {len(bodies)}, not {len(names)}")
    streams = {topic: stream_of(topic) for topic in dict.fromkeys(names)}
    if len(set(streams.values())) <= 1:
        if bodies:
            yield streams[names[0]], names, columns, bodies
        return
    rows: dict[str, list[int]] = {}
    for row, topic in enumerate(names):
        rows.setdefault(streams[topic], []).append(row)
    for stream, chosen in rows.items():
        part = {name: _pick(values, chosen) for name, values in columns.items()}
        yield stream, [names[row] for row in chosen], part, [bodies[row] for row in chosen]


def _pick(values: Sequence[Scalar], rows: Sequence[int]) -> Sequence[Scalar]:
    chosen = [values[row] for row in rows]
    return array(values.typecode, chosen) if isinstance(values, array) else chosen  # type: ignore[arg-type]


def encoded_size(batch: Batch) -> int:
    """What the batch takes in a frame, within a few bytes a column."""
    columns = sum(len(name) + len(column) + 16 for name, column in batch.columns.items())
    topics = len(batch.topics) if batch.topics.isascii() else len(batch.topics.encode())
    return len(batch.records) + len(batch.lengths) + topics + columns


def _match_columns(
    attributes: Sequence[Mapping[str, Scalar]], interest: Sequence[str] | None
) -> tuple[dict[str, bytes], bool]:
    """The columns that brokers filter on, and whether they cover every attribute that occurs."""
    if interest is not None and not interest:
        return {}, not any(attributes)
    if interest is not None:
        columns = {name: [event.get(name) for event in attributes] for name in interest}
        absent = [name for name, values in columns.items() if values.count(None) == len(values)]
        occurring = dict.fromkeys(chain.from_iterable(attributes))
        complete = columns.keys() >= occurring.keys()
        # A column of nothing but nil says what `complete` would: that no event has it, so that nobody looks for it.
        for name in absent if complete else ():
            del columns[name]
    else:
        names = list(dict.fromkeys(chain.from_iterable(attributes)))
        complete = len(names) <= COLUMNS_MAX
        columns = {name: [event.get(name) for event in attributes] for name in names[:COLUMNS_MAX]}
    return {name: encode_column(values) for name, values in columns.items()}, complete
