"""A frame that was read from a log, written to a log, and read again, is the same events."""

from __future__ import annotations

from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")

from headgate.protocol.data import (  # noqa: E402
    LogKind,
    LogName,
    Row,
    decode_record,
    make_batch,
)
from headgate.protocol.spark.errors import BadRow, UnsupportedType  # noqa: E402
from headgate.protocol.spark.layout import Layout, plan_layout  # noqa: E402
from headgate.protocol.spark.options import write_options  # noqa: E402
from headgate.protocol.spark.reading import Decoder  # noqa: E402
from headgate.protocol.spark.reading.decoding import Portion  # noqa: E402
from headgate.protocol.spark.writing.frames import Encoder, Frame  # noqa: E402

MEMBERS = pa.struct({"l": pa.int64(), "d": pa.float64(), "s": pa.string(), "b": pa.bool_()})
TEXTS = pa.map_(pa.string(), pa.string())
COLUMNS = {"topic": pa.string(), "partition": pa.int32(), "offset": pa.int64(), "event_id": pa.string()}
EVENTS: list[dict[str, Any]] = [
    {"price": 8.5, "volume": 1200, "symbol": "OTE", "live": True, "headers.from": "desk"},
    {"price": 8, "symbol": "IBM"},
    {},
]


def read(attributes: Any) -> Any:
    """The events as a batch of a log's columns."""
    batch = make_batch(["q/a", "q/b", "q/a"], rows(EVENTS), [b"one", b"two", b"three"])
    row = Row(7, 3, 1, "ann.1", 9, b"", batch.topics, batch.lengths, {}, False, batch.records)
    schema = pa.schema(COLUMNS | {"attributes": attributes, "headers": TEXTS, "value": pa.binary()})
    (found,) = Decoder("events", schema, 10).batches([Portion(LogName("ann", 1, LogKind.EVENTS, "q"), 0, row, 0, 99)])
    return found


def rows(events: list[dict[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for event in events for name in event)
    return {name: [event.get(name) for event in events] for name in names}


def written(frame: Any, layout: Layout) -> tuple[Frame, list[Any]]:
    (made,) = Encoder(layout, 1 << 20).frames(frame)
    return made, [decode_record(record) for record in made.records.to_pylist()]


def planned(
    attributes: str, fields: list[tuple[str, str]] | None = None, content_type: str = "", **more: str
) -> Layout:
    kinds = {"topic": "string", "partition": "int", "offset": "bigint", "event_id": "string", "attributes": attributes}
    kinds |= {"headers": "map<string,string>", "value": "binary"}
    kinds |= {"content_type": content_type} if content_type else {}
    return plan_layout(list(kinds.items()), write_options({"headgate.bootstrap.servers": "x:1"} | more), fields)


def test_typed_values_come_back_as_they_were() -> None:
    layout = planned("map<string,struct<l:bigint,d:double,s:string,b:boolean>>")
    frame, records = written(read(pa.map_(pa.string(), MEMBERS)), layout)
    assert [attributes for attributes, _, _ in records] == EVENTS
    assert [type(attributes.get("price")) for attributes, _, _ in records] == [float, int, type(None)]
    assert [body for _, body, _ in records] == [b"one", b"two", b"three"]
    assert frame.topics == "q/a\nq/b\nq/a"
    batch = frame.batch(["price", "volume", "nobody"])
    assert list(batch.column("price") or ()) == [8.5, 8, None]
    assert list(batch.column("volume") or ()) == [1200, None, None]
    assert list(frame.slice(1, 2).batch(["price"]).column("price") or ()) == [8, None]


def test_bodies_keep_their_content_type() -> None:
    frame = read(pa.map_(pa.string(), MEMBERS))
    types = pa.array(["application/xml", None, "text/" + "x" * 40])
    frame = pa.RecordBatch.from_arrays([*frame.columns, types], [*frame.schema.names, "content_type"])
    layout = planned("map<string,struct<l:bigint,d:double,s:string,b:boolean>>", content_type="string")
    made, records = written(frame, layout)
    assert [kind for _, _, kind in records] == ["application/xml", "", "text/" + "x" * 40]
    assert [attributes for attributes, _, _ in records] == EVENTS
    for one, count in ((made, 3), (made.slice(1, 2), 2)):
        column = one.batch(["#structure/1024/1"]).column("#structure/1024/1")
        assert list(column or ()) == [None] * count, "nothing is known of them"


def test_a_map_of_texts_is_texts() -> None:
    _, records = written(read(TEXTS), planned("map<string,string>"))
    assert records[0][0] == {
        "price": "8.5",
        "volume": "1200",
        "symbol": "OTE",
        "live": "true",
        "headers.from": "desk",
    }
    assert [len(attributes) for attributes, _, _ in records] == [5, 2, 0]


def test_a_struct_has_what_was_declared() -> None:
    kind = pa.struct({"price": pa.float64(), "symbol": pa.string()})
    _, records = written(read(kind), planned("struct<...>", [("price", "double"), ("symbol", "string")]))
    assert [attributes for attributes, _, _ in records] == [
        {"price": 8.5, "symbol": "OTE", "headers.from": "desk"},
        {"price": 8.0, "symbol": "IBM"},
        {},
    ]


def test_headers_may_be_bytes_that_are_text() -> None:
    kafka = pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))
    layout = plan_layout(
        [("headers", "array<struct<key:string,value:binary>>")],
        write_options({"headgate.bootstrap.servers": "x:1", "topic": "q"}),
    )
    for kind, members in ((kafka, [{"key": "a", "value": b"1"}]), (pa.map_(pa.string(), pa.binary()), [("a", b"1")])):
        _, records = written(pa.RecordBatch.from_arrays([pa.array([members, None], kind)], ["headers"]), layout)
        assert [attributes for attributes, _, _ in records] == [{"headers.a": "1"}, {}]
    column = pa.array([[("a", b"\xff")]], pa.map_(pa.string(), pa.binary()))
    with pytest.raises(BadRow, match="base64"):
        written(pa.RecordBatch.from_arrays([column], ["headers"]), layout)


def test_an_attribute_in_a_map_and_beside_it_is_refused() -> None:
    column = pa.array([[("price", "1")]], TEXTS)
    layout = Layout("q", "", ("attributes",), (("price", "double"),), "")
    with pytest.raises(BadRow, match="'price'"):
        written(pa.RecordBatch.from_arrays([column, pa.array([1.0])], ["attributes", "price"]), layout)


def test_a_member_named_like_a_column_of_the_log_is_the_attribute() -> None:
    frame = read(pa.struct({"offset": pa.int64(), "price": pa.float64()}))
    _, records = written(frame, planned("struct<...>", [("offset", "bigint"), ("price", "double")]))
    assert [attributes.get("price") for attributes, _, _ in records] == [8.5, 8.0, None]
    with pytest.raises(UnsupportedType, match=r"attributes\.event_id"):
        planned("struct<...>", [("event_id", "string")], eventIdColumn="event_id")
