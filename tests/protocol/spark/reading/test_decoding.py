"""Rows of logs as Arrow batches: every column of every log, cut to the positions that are wanted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow")

from headgate.protocol.data import (  # noqa: E402  # noqa: E402
    LogKind,
    LogName,
    Row,
    decode_row,
    encode_column,
    encode_row,
    join_u32,
    make_batch,
)
from headgate.protocol.spark.errors import UnsupportedType  # noqa: E402
from headgate.protocol.spark.reading import Decoder  # noqa: E402
from headgate.protocol.spark.reading.decoding import Portion  # noqa: E402

TIME = pa.timestamp("us", tz="UTC")
TEXTS = pa.map_(pa.string(), pa.string())
EVENTS = pa.schema(
    {
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": TIME,
        "event_id": pa.string(),
        "producer_id": pa.string(),
        "sequence": pa.int64(),
        "attributes": pa.struct({"n": pa.int64()}),
        "headers": TEXTS,
        "value": pa.binary(),
        "content_type": pa.string(),
    }
)
NAME = LogName("ann", 7, LogKind.EVENTS, "q")


def events_row(count: int = 4, first: int = 100, offsets: bytes = b"", **more: Any) -> Row:
    numbers = list(range(count))
    batch = make_batch(
        ["q/a"] if count == 1 else [f"q/{n % 2}" for n in numbers], {"n": numbers}, [b"%d" % n for n in numbers]
    )
    row = Row(
        first,
        count,
        2_000_000,
        "ann.1",
        50,
        offsets,
        batch.topics,
        batch.lengths,
        batch.columns,
        True,
        batch.records,
        **more,
    )
    return decode_row(encode_row(row))


def decoded(row: Row, start: int, end: int, schema: Any = EVENTS, kind: str = "events", size: int = 1000) -> list[Any]:
    name = NAME._replace(kind=["events", "deliveries", "subscriptions"].index(kind))
    found = list(Decoder(kind, schema, size).batches([Portion(name, 3, row, start, end)]))
    assert all(batch.schema == schema for batch in found)
    return found


def rows_of(batches: list[Any]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


def test_every_column_of_events() -> None:
    (first, *_, last) = rows_of(decoded(events_row(producer="job/0", number=40), 0, 1000))
    assert first == {
        "topic": "q/0",
        "partition": 3,
        "offset": 100,
        "timestamp": pa.scalar(2_000_000, TIME).as_py(),
        "event_id": "ann.1.50",
        "producer_id": "job/0",
        "sequence": 40,
        "attributes": {"n": 0},
        "headers": [],
        "value": b"0",
        "content_type": None,
    }
    assert (last["topic"], last["offset"], last["event_id"], last["sequence"]) == ("q/1", 103, "ann.1.53", 43)


def test_a_body_comes_with_its_content_type() -> None:
    batch = make_batch(["q/a"] * 2, {}, [b"<a/>", b"1"], None, "application/xml")
    row = replace(events_row(2), topics=batch.topics, lengths=batch.lengths, columns={}, records=batch.records)
    found = [(one["value"], one["content_type"]) for one in rows_of(decoded(row, 0, 1000))]
    assert found == [(b"<a/>", "application/xml"), (b"1", "application/xml")]


def test_an_event_of_no_producer_has_no_sequence() -> None:
    (row,) = rows_of(decoded(events_row(1), 0, 1000))
    assert (row["producer_id"], row["sequence"]) == (None, None)


@given(st.integers(1, 30), st.integers(90, 140), st.integers(90, 140), st.integers(1, 40))
def test_only_wanted_positions_come_in_batches_of_the_size(count: int, start: int, end: int, size: int) -> None:
    batches = decoded(events_row(count), start, end, size=size)
    wanted = [position for position in range(100, 100 + count) if start <= position < end]
    assert [row["offset"] for row in rows_of(batches)] == wanted
    assert [row["attributes"]["n"] for row in rows_of(batches)] == [position - 100 for position in wanted]
    assert all(0 < batch.num_rows <= size for batch in batches)


def test_events_that_a_broker_chose_keep_their_positions() -> None:
    row = events_row(3, offsets=join_u32([1, 4, 9]), producer="p", number=20)
    found = rows_of(decoded(row, 102, 200))
    assert [(one["offset"], one["event_id"], one["sequence"]) for one in found] == [
        (104, "ann.1.54", 24),
        (109, "ann.1.59", 29),
    ]
    assert [one["attributes"]["n"] for one in found] == [1, 2]


def test_a_record_that_is_none_has_no_value() -> None:
    row = events_row(2)
    row.records = row.records[:4] + b"\xc1" * (len(row.records) - 4)
    assert [(one["attributes"], one["value"]) for one in rows_of(decoded(row, 0, 1000))] == [({"n": None}, None)] * 2


def test_fewer_columns_in_another_order() -> None:
    schema = pa.schema({"value": pa.binary(), "offset": pa.int64()})
    assert rows_of(decoded(events_row(1), 0, 1000, schema)) == [{"value": b"0", "offset": 100}]


def test_no_columns_at_all_still_count() -> None:
    (batch,) = decoded(events_row(4), 101, 1000, pa.schema([]))
    assert batch.num_rows == 3


def test_many_rows_of_a_log_are_one_batch() -> None:
    portions = [Portion(NAME, 3, events_row(1, first), 0, 1000) for first in (100, 101, 102)]
    (batch,) = Decoder("events", EVENTS, 10).batches(portions)
    assert [row["offset"] for row in batch.to_pylist()] == [100, 101, 102]


def test_an_unknown_column_is_refused() -> None:
    with pytest.raises(UnsupportedType, match="'price'"):
        Decoder("events", pa.schema({"price": pa.float64()}), 10)


def test_every_column_of_deliveries() -> None:
    kinds = {"partition": pa.int32(), "offset": pa.int64(), "timestamp": TIME, "event_id": pa.string()}
    kinds |= {"subscription_id": pa.string(), "subscriber_id": pa.string(), "published_at": TIME, "delivered_at": TIME}
    kinds |= {
        "acked_at": TIME,
        "attempt": pa.int32(),
        "node": pa.string(),
        "outcome": pa.int32(),
        "stream": pa.string(),
    }
    columns = {
        "subscription": encode_column([8, 9]),
        "sequence": encode_column([51, 52]),
        "sent_at": encode_column([30, 40]),
        "published_at": encode_column([10, 20]),
        "outcome": encode_column([0, 2]),
    }
    row = decode_row(encode_row(Row(5, 2, 60, "bob.3", 0, b"", "ann.1", b"", columns, True, b"")))
    found = rows_of(decoded(row, 6, 100, pa.schema(kinds), "deliveries"))
    micro = [pa.scalar(value, TIME).as_py() for value in (60, 20, 40)]
    assert found == [
        {
            "partition": 3,
            "offset": 6,
            "timestamp": micro[0],
            "event_id": "bob.3.52",
            "subscription_id": "ann.1-9",
            "subscriber_id": None,
            "published_at": micro[1],
            "delivered_at": micro[2],
            "acked_at": None,
            "attempt": 1,
            "node": "ann",
            "outcome": 2,
            "stream": "q",
        }
    ]


def test_every_column_of_subscriptions() -> None:
    texts = ("subscription_id", "subscriber_id", "pattern", "filter", "spark", "action", "reason", "node", "stream")
    kinds = {
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": TIME,
        "effective_at": TIME,
        "exact": pa.bool_(),
    }
    values: dict[str, Any] = {
        "subscription": 8,
        "subscriber": "eve",
        "pattern": "q/*",
        "exact": True,
        "condition": "`a` = 1",
    }
    values |= {"spark": "`a.l` = 1L", "action": "subscribe", "effective_at": 70, "reason": ""}
    columns = {name: encode_column([value]) for name, value in values.items()}
    row = decode_row(encode_row(Row(5, 1, 60, "ann.1", 0, b"", "ann.1", b"", columns, True, b"")))
    schema = pa.schema(kinds | dict.fromkeys(texts, pa.string()))
    (found,) = rows_of(decoded(row, 0, 100, schema, "subscriptions"))
    assert found == {
        "partition": 3,
        "offset": 5,
        "timestamp": pa.scalar(60, TIME).as_py(),
        "effective_at": pa.scalar(70, TIME).as_py(),
        "exact": True,
        "subscription_id": "ann.1-8",
        "subscriber_id": "eve",
        "pattern": "q/*",
        "filter": "`a` = 1",
        "spark": "`a.l` = 1L",
        "action": "subscribe",
        "reason": "",
        "node": "ann",
        "stream": "q",
    }
