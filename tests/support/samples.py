"""One message of every type, with no field left at its default: what the vectors of SPEC.md and the tests speak."""

from __future__ import annotations

from dataclasses import replace

from headgate.protocol.data import Batch, LogShift, Portion, Row, encode_column, encode_row, join_u32, split_u32
from headgate.protocol.data.records import encode_record
from headgate.protocol.messages import (
    Ack,
    Acked,
    AckVerb,
    Answer,
    Ask,
    Control,
    Copy,
    Credit,
    Deliver,
    Ended,
    Error,
    Fetched,
    Forward,
    Gap,
    Goodbye,
    Handed,
    Hello,
    Hold,
    Interest,
    Letter,
    LogChunk,
    Message,
    Mode,
    Peer,
    Ping,
    Pong,
    Puback,
    Publish,
    ReadLog,
    Rejected,
    Scope,
    Stamp,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
    Welcome,
    wire_name,
)

__all__ = ["MESSAGES", "RECORDS", "batch", "deliver", "forward", "handed", "name_of", "row"]

RECORDS = [
    encode_record({"symbol": "OTE", "price": 8.5}, b"up"),
    encode_record({"symbol": "IBM", "price": 94}, b"", "text/plain"),
]


def batch() -> Batch:
    """Two events of one stream with two topics; a new object each time, because a batch remembers what it decoded."""
    return Batch(
        "quotes/NYSE/OTE\nquotes/NYSE/IBM",
        2,
        join_u32(map(len, RECORDS)),
        b"".join(RECORDS),
        {"symbol": encode_column(["OTE", "IBM"])},
        False,
    )


def deliver() -> Deliver:
    """Two events, three rows apart: one for two subscriptions, one for a third."""
    lengths, records = join_u32(map(len, RECORDS)), b"".join(RECORDS)
    portion = Portion("ann", 41, 1_700_000_000_000_000, join_u32([0, 3]), "quotes/NYSE/OTE", lengths, records, 2)
    portion.log = LogShift("ann@1763492000", 79)
    return Deliver([[1, 2], 1, [3], 1], portion)


def handed() -> Handed:
    """Two events of a row, of which the second is handed out for the third time."""
    return Handed(1, (2 << 32) + 7, join_u32([1, 3]), replace(deliver().portion, log=None))


def forward() -> Forward:
    """Two events, three rows apart: one dimension takes both, another one the second."""
    dimensions = [
        [["equal", "symbol", 0, None, None, None], split_u32(join_u32([0, 1]))],
        [["range", "price", 0, 0, 100.0, 0.01], split_u32(join_u32([1]))],
    ]
    log = LogShift("ann@1763492000", 79)
    return Forward.make(dimensions, 1, batch(), "ann", 41, [0, 3], 1_700_000_000_000_000, log)


def row() -> Row:
    """The same two events in a log, from a producer that gave them ids."""
    events = batch()
    parts = (events.topics, events.lengths, events.columns, events.complete, events.records)
    ids = encode_column(["a", "b"])
    return Row(120, 2, 1_700_000_000_000_000, "ann", 41, b"", *parts, "job", 2, 100, b"\x01\x02", ids)


def name_of(message: Message) -> str:
    """A message's name as SPEC.md writes it."""
    return "PRODUCE" if isinstance(message, Publish) and message.stamp else wire_name(type(message))


MESSAGES: list[Message] = [
    Hello(2, "feed", b"\x01\x02", 7, 65_536, 15.0, "secret", 1_048_576),
    Welcome(2, "ann", b"\x01\x02", True, 12, 256, 15.0),
    Error(100, Scope.REQUEST, 3, "expected a value"),
    Goodbye(7, "restarting"),
    Ping(5),
    Pong(5),
    Credit(65_543, 7, 1_049_000, 5),
    Subscribe(3, 1, "quotes/*/OTE", "price > 8.3", {"exact": True}),
    Suback(3, 1),
    Unsubscribe(4, 1),
    Unsuback(4, 1),
    Publish(13, Mode.ACCEPTED, batch()),
    Puback(13),
    deliver(),
    Gap(1, 20, "slow consumer"),
    Interest("quotes", ["symbol", "price"]),
    Ask(9, "explain", {"pattern": "quotes", "condition": "price > 8.3"}),
    Answer(9, {"verdict": None}),
    Publish(13, Mode.STORED, batch(), Stamp("job", 2, 100, b"\x01\x02", encode_column(["a", "b"]))),
    ReadLog(10, "ann", 1_763_492_000, 0, "quotes", 120, 500, "quotes/*/OTE", "price > 8.3", 60.0),
    LogChunk(10, 7, 122, 200, [encode_row(row())]),
    Hold(1, True),
    handed(),
    Ack(11, 1, AckVerb.NAK, [8589934599, 8589934600, 8589934604, 8589934604], 2.5, "busy"),
    Acked(11, [8589934604, 8589934604]),
    Ended(1, 110, "its coordinator is gone"),
    Rejected(13, 114, [0, 2, 5, 5], True, "not yours"),
    Peer(5, "ann", 3, "ann:7401", "ann:7400", "headgate", False, {"replicas": 2}),
    Letter([2**64 - 1, 196_608, 0, "ann:7401"], [5, 65_536, 0, "bob:7401"], 1, [7, None, [[5, 65_536, 1, ""]]]),
    Control(1, [3, "quotes", {"low": 0}]),
    forward(),
    Copy("ann", 1_763_492_000, 0, "quotes", encode_row(row()), 40, 7, 30),
    Fetched(12, 0, "", [encode_row(row())]),
]
