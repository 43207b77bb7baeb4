"""Any message, batch or column that can be made comes back from its bytes, however the bytes are cut."""

from __future__ import annotations

import math
from array import array
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headgate.protocol.data import (
    Batch,
    LogShift,
    Portion,
    decode_column,
    decode_record,
    encode_column,
    join_u32,
    make_batch,
    split_u32,
)
from headgate.protocol.data.records import encode_record
from headgate.protocol.limits import CREDIT_MAX, FRAME_LENGTH_MAX
from headgate.protocol.messages import (
    Answer,
    Ask,
    Credit,
    Deliver,
    Error,
    Gap,
    Goodbye,
    Hello,
    Interest,
    Message,
    Ping,
    Pong,
    Puback,
    Publish,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
    Welcome,
)
from headgate.protocol.wire import FrameReader, decode, encode, encode_chunks, frame

counters = st.integers(0, CREDIT_MAX)
texts = st.text(max_size=40)
names = st.text(min_size=1, max_size=12)
keys = st.binary(max_size=16)
seconds = st.floats(0, 86_400) | st.integers(0, 86_400)
scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=8
)
maps = st.dictionaries(texts, values, max_size=4)
topics = st.lists(st.sampled_from(["a", "a/b", "a/ü", "a/b/c"]), min_size=1, max_size=8)


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    """A valid batch of 1 to 8 events: records are opaque, so any bytes will do."""
    lines = draw(topics)
    records = [draw(st.binary(max_size=9)) for _ in lines]
    named = lines[0] if draw(st.booleans()) else "\n".join(lines)
    columns = draw(st.dictionaries(names, st.binary(max_size=9), max_size=3))
    return Batch(named, len(lines), join_u32(map(len, records)), b"".join(records), columns, draw(st.booleans()))


@st.composite
def cuts(draw: st.DrawFn) -> tuple[Batch, list[int]]:
    """A batch and some of its rows."""
    batch = draw(batches())
    rows = draw(st.sets(st.integers(0, batch.count - 1), min_size=1))
    return batch, sorted(rows)


@st.composite
def delivers(draw: st.DrawFn) -> Deliver:
    """A portion and routes that cover it."""
    batch, rows = draw(cuts())
    portion = batch.portion(rows, draw(names), draw(st.integers(0, 2**50)), draw(counters))
    portion.log = draw(st.none() | st.builds(LogShift, names, st.integers(-portion.base, 2**52)))
    routes: list[Any] = []
    left = portion.count
    while left:
        run = draw(st.integers(1, left))
        routes += [draw(counters | st.lists(counters, min_size=1, max_size=3)), run]
        left -= run
    return Deliver(routes, portion)


messages: st.SearchStrategy[Message] = st.one_of(
    st.builds(Hello, counters, texts, keys, counters, counters, seconds, texts),
    st.builds(Welcome, counters, texts, keys, st.booleans(), counters, counters, seconds),
    st.builds(Error, counters, st.integers(0, 2), counters, texts),
    st.builds(Goodbye, counters, texts),
    st.builds(Ping, counters),
    st.builds(Pong, counters),
    st.builds(Credit, counters, counters),
    st.builds(Subscribe, counters, counters, texts, texts, maps),
    st.builds(Suback, counters, counters),
    st.builds(Unsubscribe, counters, counters),
    st.builds(Unsuback, counters, counters),
    st.builds(Publish, st.integers(1, CREDIT_MAX), st.integers(1, 2), batches()),
    st.builds(Publish, st.just(0), st.just(0), batches()),
    st.builds(Puback, counters),
    delivers(),
    st.builds(Gap, counters, counters, texts),
    st.builds(Interest, texts, st.none() | st.lists(names, max_size=4)),
    st.builds(Ask, counters, texts, maps),
    st.builds(Answer, counters, values),
)


@given(messages)
def test_a_message_comes_back_from_its_bytes(message: Message) -> None:
    data = encode(message)
    back = decode(data)
    assert back == message
    assert encode(back) == data


@given(st.lists(messages, max_size=5), st.data())
def test_frames_come_back_however_they_are_cut(said: list[Message], data: st.DataObject) -> None:
    stream = b"".join(b"".join(frame(encode_chunks(message))) for message in said)
    places = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    reader = FrameReader(FRAME_LENGTH_MAX)
    heard: list[Message] = []
    for start, end in zip([0, *places], [*places, len(stream)], strict=True):
        heard += [decode(view) for view in reader.feed(stream[start:end])]
    assert heard == said
    assert not reader.waiting


def twin_of_batch(batch: Batch) -> list[tuple[str, bytes]]:
    """The dumb twin: a batch as a list of events."""
    lines = batch.topics.split("\n")
    lines = lines * batch.count if len(lines) == 1 else lines
    events, start = [], 0
    for topic, length in zip(lines, split_u32(batch.lengths), strict=True):
        events.append((topic, batch.records[start : start + length]))
        start += length
    return events


def read_portion(portion: Portion) -> list[tuple[int, str, bytes]]:
    """(number, topic, record) of each event of a portion, read as SPEC.md says."""
    inside = Batch(portion.topics, portion.count, portion.lengths, portion.records)
    inside.check()
    events = zip(portion.rows(), twin_of_batch(inside), strict=True)
    return [(portion.base + row, topic, record) for row, (topic, record) in events]


@given(cuts(), st.integers(0, 2**40))
def test_a_portion_agrees_with_a_list_of_events(cut: tuple[Batch, list[int]], base: int) -> None:
    batch, rows = cut
    portion = batch.portion(rows, "ann", base, 7)
    twin = twin_of_batch(batch)
    assert read_portion(portion) == [(base + row, *twin[row]) for row in rows]
    assert portion.count == len(rows)
    back = decode(encode(Deliver([[1], len(rows)], portion)))
    assert isinstance(back, Deliver)
    assert read_portion(back.portion) == read_portion(portion)


@given(st.lists(scalars, min_size=1, max_size=20))
def test_a_mixed_column_comes_back(column: list[Any]) -> None:
    assert repr(decode_column(encode_column(column), len(column))) == repr(column)


@given(st.lists(st.floats(), min_size=1, max_size=20), st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_a_typed_column_comes_back(floats: list[float], integers: list[int]) -> None:
    back = decode_column(encode_column(array("d", floats)), len(floats))
    assert all(left == right or math.isnan(right) for left, right in zip(back, floats, strict=True))
    assert decode_column(encode_column(array("q", integers)), len(integers)) == integers


@given(st.dictionaries(names, scalars, max_size=5), st.binary(max_size=20), st.text(max_size=5))
def test_a_record_comes_back(attributes: dict[str, Any], body: bytes, content_type: str) -> None:
    assert decode_record(encode_record(attributes, body, content_type)) == (attributes, body, content_type)


@given(st.lists(st.tuples(st.sampled_from(["a", "a/b"]), scalars, scalars, st.binary(max_size=5)), min_size=1))
def test_a_made_batch_holds_its_events(rows: list[tuple[str, Any, Any, bytes]]) -> None:
    lines, first, second, bodies = (list(column) for column in zip(*rows, strict=True))
    for interest in (None, ["first"], []):
        batch = make_batch(lines, {"first": first, "second": second}, bodies, interest)
        back = decode(encode(Publish(1, 1, batch)))
        assert isinstance(back, Publish)
        topics = back.batch.topic_list()
        assert (topics if len(topics) > 1 else topics * len(rows)) == lines
        assert [decode_record(piece)[:2] for piece in back.batch.pieces()] == [
            ({"first": one, "second": two}, body) for _, one, two, body in rows
        ]
        for name, column in (("first", first), ("second", second)):
            assert repr(list(back.batch.column(name) or [])) == repr(column) == repr(list(back.batch.derived(name)))
