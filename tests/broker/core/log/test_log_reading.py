"""Reading logs: whole rows, or the events that match; what was looked at; bounds, and what is refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.inputs import RowsRead
from headgate.matching.structure import pack, parse_twig
from headgate.protocol.data import LogKind, Row, decode_record, decode_row, encode_column, row_batch
from headgate.protocol.errors import ErrorCode
from headgate.protocol.limits import LOG_CHUNK_BYTES_MAX
from headgate.protocol.messages import Error, LogChunk, Mode, ReadLog
from tests.support.builders import make_publish, quote_batch
from tests.support.log_disk import EPOCH
from tests.support.log_world import LogWorld, stamped


def read(position: int = 0, events: int = 0, pattern: str = "", condition: str = "", **name: Any) -> ReadLog:
    parts = {"broker": "broker-1", "epoch": EPOCH, "kind": int(LogKind.EVENTS), "stream": "quotes"} | name
    return ReadLog(9, *parts.values(), position, events, pattern, condition)


def filled(prices: list[list[int]]) -> tuple[LogWorld, int]:
    """One batch for each list, with the price as body; topics alternate."""
    world = LogWorld(prompt=True)
    link = world.connect()
    for number, some in enumerate(prices, 1):
        topics = ["quotes/a" if price % 2 else "quotes/b" for price in some]
        world.say(link, make_publish(number, quote_batch(topics, [str(one) for one in some], price=some), Mode.STORED))
    return world, link


def chunk_of(world: LogWorld, link: int, message: ReadLog) -> LogChunk:
    (chunk,) = world.say(link, message)
    assert isinstance(chunk, LogChunk), chunk
    assert chunk.request == 9
    return chunk


def events_of(rows: list[Row]) -> list[tuple[int, str]]:
    """(position, body) of each."""
    found: list[tuple[int, str]] = []
    for row in rows:
        bodies = [decode_record(piece)[1].decode() for piece in row_batch(row).pieces()]
        found += [(row.first + place, body) for place, body in zip(row.places(), bodies, strict=True)]
    return found


def test_whole_rows_go_out_as_they_are_on_disk() -> None:
    world, link = filled([[1, 2], [3]])
    chunk = chunk_of(world, link, read())
    assert chunk.rows == [one.row for one in world.disk.logs[world.name()].rows]
    assert (chunk.first, chunk.next, chunk.end) == (0, 3, 3)
    chunk = chunk_of(world, link, read(position=1, events=1))
    assert [decode_row(data).first for data in chunk.rows] == [0]
    assert chunk.next == 2
    assert chunk_of(world, link, read(position=3)).rows == []


def test_a_filter_leaves_the_events_that_match() -> None:
    world, link = filled([[1, 2, 3], [4, 6], [5, 7]])
    chunk = chunk_of(world, link, read(pattern="quotes/a", condition="price >= 3"))
    rows = [decode_row(data) for data in chunk.rows]
    assert events_of(rows) == [(2, "3"), (5, "5"), (6, "7")]
    assert [(row.first, row.count, row.base) for row in rows] == [(0, 1, 0), (5, 2, 5)]
    assert chunk.next == 7
    nothing = chunk_of(world, link, read(position=1, events=2, condition="price > 100"))
    assert (nothing.rows, nothing.next) == ([], 3)


def test_a_twig_is_asked_of_the_filters_that_rows_have() -> None:
    world = LogWorld(prompt=True)
    link = world.connect()
    filters = [pack(parse_twig(text).filter(1024, 1), 1024) for text in ("/bib/book[title]", "/bib/book")]
    batch = quote_batch(["quotes/a"] * 4, ["both", "one", "unknown", "no document"])
    batch.columns["#structure/1024/1"] = encode_column([*filters, None, b""])
    world.say(link, make_publish(1, batch, Mode.STORED))
    world.say(link, make_publish(2, quote_batch(["quotes/a"], ["of nobody who knew"]), Mode.STORED))
    for condition, bodies in (
        ("XPATH '//book[title]'", ["both", "unknown", "of nobody who knew"]),
        ("XPATH 'bib/book'", ["both", "one", "unknown", "of nobody who knew"]),
    ):
        rows = [decode_row(data) for data in chunk_of(world, link, read(condition=condition)).rows]
        assert [body for _, body in events_of(rows)] == bodies


@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=4), min_size=1, max_size=6),
    st.integers(0, 9),
    st.integers(0, 30),
    st.integers(0, 3),
)
def test_by_chunks_of_any_size_every_match_is_read_once(
    prices: list[list[int]], least: int, position: int, events: int
) -> None:
    world, link = filled(prices)
    flat = [price for some in prices for price in some]
    at, found = min(position, len(flat)), []
    wanted = [(place, str(price)) for place, price in enumerate(flat) if price >= least and place >= at]
    for _ in range(len(prices) + 1):
        chunk = chunk_of(world, link, read(at, events, condition=f"price >= {least}"))
        found += events_of([decode_row(data) for data in chunk.rows])
        at = chunk.next
    assert at == chunk.end == len(flat)
    assert found == wanted


def test_a_verified_row_is_filtered_by_its_records() -> None:
    world = LogWorld(prompt=True, schema={"durability": "stored", "verify": True})
    link = world.connect()
    world.say(link, make_publish(1, quote_batch(bodies=["a", "b"], price=[1, 2]), Mode.STORED))
    (row,) = world.rows()
    assert (row.columns, row.complete) == ({}, False)
    chunk = chunk_of(world, link, read(condition="price = 2"))
    assert events_of([decode_row(data) for data in chunk.rows]) == [(1, "b")]


def test_what_retention_took_is_seen_by_the_first_position() -> None:
    world, link = filled([[1], [2], [3]])
    world.node.log.trim(world.name(), 2)
    world.disk.ask(world.node.effects)
    world.node.effects.clear()
    world.sync()
    chunk = chunk_of(world, link, read(position=0))
    assert (chunk.first, chunk.next, [decode_row(data).first for data in chunk.rows]) == (2, 3, [2])


@pytest.mark.parametrize(
    ("message", "code", "word"),
    [
        (read(position=3), ErrorCode.NOT_FOUND, "ends at 2"),
        (read(broker="bob"), ErrorCode.NOT_FOUND, "ask `logs`"),
        (read(kind=7), ErrorCode.NOT_FOUND, "kind 7"),
        (read(condition="DELTA(price) > 1"), ErrorCode.UNSUPPORTED, "DELTA is not asked of a log"),
        (read(condition="price >"), ErrorCode.BAD_CONDITION, ""),
        (read(pattern="quotes/#"), ErrorCode.BAD_PATTERN, ""),
    ],
)
def test_what_cannot_be_read_is_refused(message: ReadLog, code: ErrorCode, word: str) -> None:
    world, link = filled([[1, 2]])
    (error,) = world.say(link, message)
    assert isinstance(error, Error)
    assert (error.code, error.reference) == (code, 9)
    assert word in error.text


def aged() -> tuple[LogWorld, int]:
    """Three batches, a hundred seconds apart; the last is from now."""
    world = LogWorld(prompt=True)
    link = world.connect()
    for number in range(3):
        world.now += 100.0
        world.say(link, make_publish(number + 1, quote_batch(["quotes/a"] * 2, list("ab"), price=[1, 2]), Mode.STORED))
    return world, link


@pytest.mark.parametrize(("ago", "position", "after"), [(150.0, 0, 2), (150.0, 1, 2), (50.0, 0, 4), (150.0, 3, None)])
def test_what_is_older_may_be_passed_over(ago: float, position: int, after: int | None) -> None:
    world, link = aged()
    chunk = chunk_of(world, link, dataclasses.replace(read(position, condition="price > 1"), ago=ago))
    if after is not None:
        assert (chunk.rows, chunk.first, chunk.next, chunk.end) == ([], 0, after, 6), "it only says where to go on"
    else:
        assert [decode_row(data).first for data in chunk.rows] == [2, 4], "nothing from there on is older"
    assert not world.node.log_reading._reading


def test_nothing_behind_the_high_watermark_is_passed_over() -> None:
    world, link = aged()
    held = world.node.log.logs[world.name()]
    held.safe = 4
    chunk = chunk_of(world, link, dataclasses.replace(read(1), ago=1e-6))
    assert (chunk.rows, chunk.next) == ([], 4)


def test_only_events_are_filtered() -> None:
    world = LogWorld(prompt=True)
    link = world.connect()
    world.node.log.append(
        world.node.log.own(LogKind.DELIVERIES, "quotes"), Row(0, 1, 1, "", 0, b"", "", b"", {}, False, b"")
    )
    world.disk.ask(world.node.effects)
    world.node.effects.clear()
    world.sync()
    (error,) = world.say(link, read(kind=int(LogKind.DELIVERIES), condition="price > 1"))
    assert error.code == ErrorCode.BAD_REQUEST  # type: ignore[attr-defined]
    assert len(chunk_of(world, link, read(kind=int(LogKind.DELIVERIES))).rows) == 1


def test_a_damaged_row_is_told_and_where_to_go_on() -> None:
    world, link = filled([[1], [2]])
    world.prompt = False
    world.say(link, read())
    (asked,) = world.disk.asked
    world.feed(RowsRead(asked.ticket, [], 1, "row 0 is damaged"))
    (error,) = world.take(link)
    assert "row 0 is damaged: read on at 1" in error.text  # type: ignore[attr-defined]
    world.say(link, read())
    world.feed(RowsRead(asked.ticket + 1, [b"\xc1"], 1))
    (error,) = world.take(link)
    assert "cannot be read" in error.text  # type: ignore[attr-defined]


def test_a_session_reads_a_few_chunks_at_a_time_and_asks_for_bounded_ones() -> None:
    world, link = filled([[1]])
    world.prompt = False
    said = world.say(link, *[read()] * 9)
    assert [one.code for one in said if isinstance(one, Error)] == [ErrorCode.LIMIT]
    assert {asked.bytes_max for asked in world.disk.asked} == {LOG_CHUNK_BYTES_MAX}
    world.sync()
    assert len(world.take(link)) == 8
    world.prompt = True
    chunk_of(world, link, read())


def test_a_row_keeps_its_producer_when_it_is_cut() -> None:
    world = LogWorld(prompt=True)
    link = world.connect()
    world.ask(link, "producer.open", producer="p", epoch=1)
    world.say(link, stamped(1, 0, "a", "b", digest=b"x"))
    chunk = chunk_of(world, link, read(position=1, pattern="quotes"))
    (row,) = [decode_row(data) for data in chunk.rows]
    assert (row.producer, row.epoch, row.number, row.digest, list(row.places())) == ("p", 1, 0, b"x", [1])
