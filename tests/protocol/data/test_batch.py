"""The batch: its parts must fit, and every way to cut a portion gives the rows that were asked for."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.protocol.data import (
    Batch,
    Portion,
    decode_record,
    encode_column,
    join_batches,
    join_u32,
    make_batch,
    split_u32,
)
from headgate.protocol.errors import LocalError, ProtocolViolation
from headgate.protocol.limits import BATCH_EVENTS_MAX, COLUMNS_MAX, RECORD_LENGTH_MAX


def plain(topics: str = "a\nb\nc", sizes: tuple[int, ...] = (1, 0, 2), records: bytes = b"xyz", **more: Any) -> Batch:
    return Batch(topics, len(sizes), join_u32(sizes), records, **more)


def events_of(portion: Portion) -> list[tuple[int, str, bytes]]:
    """(number, topic, record) of each event: the slow way to read a portion."""
    topics = portion.topics.split("\n")
    topics = topics * portion.count if len(topics) == 1 else topics
    events, start = [], 0
    for row, topic, length in zip(portion.rows(), topics, split_u32(portion.lengths), strict=True):
        events.append((portion.base + row, topic, portion.records[start : start + length]))
        start += length
    assert start == len(portion.records)
    return events


def test_lengths_are_little_endian() -> None:
    assert join_u32([1, 2**32 - 1]) == bytes.fromhex("01000000ffffffff")
    assert split_u32(bytes.fromhex("01000000ffffffff")) == array("I", [1, 2**32 - 1])
    assert split_u32(b"") == array("I")


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_a_broken_column_of_lengths_is_a_violation(size: int) -> None:
    with pytest.raises(ProtocolViolation, match="multiple of 4"):
        split_u32(bytes(size))


def test_parts_that_fit_pass() -> None:
    plain().check()
    plain(topics="a").check()
    plain(topics="a", sizes=(0,), records=b"").check()
    plain(topics="a", sizes=(0,) * BATCH_EVENTS_MAX, records=b"").check()


@pytest.mark.parametrize(
    ("batch", "text"),
    [
        (plain(sizes=(), records=b""), "1 to 4096 events"),
        (plain(topics="a", sizes=(0,) * (BATCH_EVENTS_MAX + 1), records=b""), "1 to 4096 events"),
        (Batch("a", 2, bytes(4), b""), "a batch of 2 events"),
        (Batch("a", 1, bytes(5), b""), "multiple of 4"),
        (plain(records=b"wxyz"), "add up to 3"),
        (plain(records=b"xy"), "add up to 3"),
        (plain(sizes=(2**32 - 1, 2**32 - 1, 2), records=b""), "add up to"),
        (plain(topics="a\nb"), "1 or 3 topics, not 2"),
        (plain(topics="a\nb\nc\n"), "1 or 3 topics, not 4"),
        (plain(columns={str(number): b"" for number in range(COLUMNS_MAX + 1)}), "at most 256 match columns"),
        (Batch("a", 1, join_u32([RECORD_LENGTH_MAX + 1]), bytes(RECORD_LENGTH_MAX + 1)), "a record has at most"),
    ],
)
def test_parts_that_do_not_fit_are_a_violation(batch: Batch, text: str) -> None:
    with pytest.raises(ProtocolViolation, match=text):
        batch.check()


def test_records_of_the_largest_size_pass() -> None:
    Batch("a", 2, join_u32([RECORD_LENGTH_MAX] * 2), bytes(2 * RECORD_LENGTH_MAX)).check()


@pytest.mark.parametrize(
    ("rows", "events"),
    [
        ([0, 1, 2], [(10, "a", b"x"), (11, "b", b""), (12, "c", b"yz")]),
        ([0, 1], [(10, "a", b"x"), (11, "b", b"")]),
        ([1, 2], [(11, "b", b""), (12, "c", b"yz")]),
        ([2], [(12, "c", b"yz")]),
        ([0, 2], [(10, "a", b"x"), (12, "c", b"yz")]),
    ],
)
def test_a_portion_has_the_rows_asked_for(rows: list[int], events: list[tuple[int, str, bytes]]) -> None:
    portion = plain().portion(rows, "ann", 10, 99)
    assert events_of(portion) == events
    assert (portion.origin, portion.time, portion.count) == ("ann", 99, len(rows))


def test_rows_in_a_row_need_no_offsets() -> None:
    assert plain().portion([1, 2], "ann", 10, 0).offsets == b""
    assert plain().portion([0, 2], "ann", 10, 0).offsets == join_u32([0, 2])


def test_a_shared_topic_stays_one() -> None:
    assert plain(topics="a").portion([0, 2], "ann", 0, 0).topics == "a"


def test_the_encoded_bytes_of_a_portion_are_no_part_of_its_value() -> None:
    portion, twin = (plain().portion([0], "ann", 0, 0) for _ in range(2))
    portion.encoded = b"bytes"
    assert portion == twin


def test_a_column_is_decoded_once() -> None:
    batch = plain(columns={"price": encode_column([1, None, 2.5])})
    values = batch.column("price")
    assert values == [1, None, 2.5]
    assert batch.column("price") is values


def test_a_complete_batch_has_no_other_columns() -> None:
    assert plain(complete=True).column("price") is None


def test_what_was_not_sent_is_derived_from_the_records() -> None:
    made = make_batch(["a"], {"price": [1, None], "size": [3, 4]}, [b"", b"x"], interest=["size", "unknown"])
    assert (list(made.columns), made.complete) == (["size", "unknown"], False)
    assert made.column("size") == [3, 4]
    assert made.column("price") == [1, None]
    assert made.column("unknown") == [None, None]


def test_many_records_are_opened_together_and_one_that_is_broken_is_told() -> None:
    made = make_batch(["a"], {"price": [*range(40)]}, [b"x"] * 40, interest=["size"])
    assert made.column("price") == [*range(40)]
    begin = len(made.records) - 3
    for broken in (made.records[:begin] + b"\xc0\xc4\x01", made.records[: begin - 1] + b"\xc1" + made.records[begin:]):
        with pytest.raises(ProtocolViolation):
            Batch("a", 40, made.lengths, broken, {}, complete=False).column("price")


def test_a_broken_record_or_column_is_a_violation_when_it_is_read() -> None:
    with pytest.raises(ProtocolViolation):
        plain(complete=False).column("price")
    with pytest.raises(ProtocolViolation):
        plain(columns={"price": b"m\x92\x01\x02"}).column("price")


def test_a_batch_is_made_of_columns() -> None:
    made = make_batch(["q/a", "q/b"], {"price": [1.5, 2]}, [b"x", b"y"], content_type="t")
    made.check()
    assert made.topic_list() == ["q/a", "q/b"]
    assert made.complete
    assert [decode_record(piece) for piece in made.pieces()] == [({"price": 1.5}, b"x", "t"), ({"price": 2}, b"y", "t")]
    assert made.column("price") == [1.5, 2]


def test_equal_topics_become_one() -> None:
    assert make_batch(["q/a", "q/a"], {}, [b"x", b"y"]).topics == "q/a"
    assert make_batch(["q/a"], {}, [b"x", b"y"]).topic_list() == ["q/a"]


@pytest.mark.parametrize(
    ("topics", "attributes", "bodies", "text"),
    [
        (["a"], {}, [], "1 to 4096"),
        (["a"], {}, [b""] * (BATCH_EVENTS_MAX + 1), "1 to 4096"),
        (["a", "b"], {}, [b""] * 3, "1 topic or 3"),
        ([], {}, [b""], "1 topic or 1"),
        (["a"], {"price": [1]}, [b"", b""], "2 values of 'price'"),
        (["a\nb"], {}, [b"", b""], "line feed"),
        (["a\nb", "c"], {}, [b"", b""], "line feed"),
        (["a"], {"price": [[1]]}, [b""], "list"),
        (["a"], {"price": [2**63]}, [b""], "64 bits"),
    ],
)
def test_a_batch_that_cannot_be_is_our_own_error(topics: Any, attributes: Any, bodies: Any, text: str) -> None:
    with pytest.raises(LocalError, match=text):
        make_batch(topics, attributes, bodies)


# --- Clever forms against their dumb ones -----------------------------------------------------------------------------


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    """Of one topic or many, of records of one length or of many, with and without a remainder behind the runs."""
    count = draw(st.sampled_from([1, 2, 3, 5, 8, 64, 65, 74, 130]))
    alike = draw(st.none() | st.integers(0, 3))
    sizes = [draw(st.integers(0, 3)) if alike is None else alike for _ in range(count)]
    topics = "a" if draw(st.booleans()) else "\n".join(f"a/{row % 7}" for row in range(count))
    return Batch(topics, count, join_u32(sizes), bytes(place % 251 for place in range(sum(sizes))))


@given(st.data(), batches(), st.booleans())
def test_portions_cut_in_bulk_are_those_cut_one_by_one(data: st.DataObject, batch: Batch, wide: bool) -> None:
    wanted = st.sets(st.integers(0, batch.count - 1), min_size=1).map(sorted)
    shares = data.draw(st.lists(wanted, min_size=1, max_size=6)) * (9 if wide else 1)
    rows = [row for share in shares for row in share]
    ends = [sum(map(len, shares[: number + 1])) for number in range(len(shares))]
    portions = batch.portions(rows, ends, "ann", 100, 7)
    events = events_of(batch.portion(range(batch.count), "ann", 100, 7))
    assert [events_of(portion) for portion in portions] == [[events[row] for row in share] for share in shares]
    for portion, share in zip(portions, shares, strict=True):
        assert (portion.origin, portion.time, portion.count) == ("ann", 7, len(share))
        assert bool(portion.offsets) == (share[-1] - share[0] >= len(share))
    for one, share in zip(portions, shares, strict=True):
        assert all(one is other for other, rows in zip(portions, shares, strict=True) if rows == share)


@given(batches())
def test_pieces_are_the_records_as_their_lengths_say(batch: Batch) -> None:
    expected, start = [], 0
    for length in split_u32(batch.lengths):
        expected.append(batch.records[start : start + length])
        start += length
    assert batch.pieces() == expected


@given(batches(), st.integers(0, 12))
def test_topics_split_before_the_check_are_judged_the_same(batch: Batch, count: int) -> None:
    early, late = (Batch(batch.topics, count, bytes(4 * count), b"") for _ in range(2))
    early.split_topics()

    def verdict(one: Batch) -> str:
        try:
            one.check()
        except ProtocolViolation as violation:
            return str(violation)
        return "\n".join(one.topic_list())

    assert verdict(early) == verdict(late)


def test_splitting_topics_that_do_not_fit_stops_early() -> None:
    for lines, count in ((10 * BATCH_EVENTS_MAX, 2), (10 * BATCH_EVENTS_MAX, 10 * BATCH_EVENTS_MAX)):
        batch = Batch("\n" * lines, count, b"", b"")
        batch.split_topics()
        assert len(batch.topic_list()) <= BATCH_EVENTS_MAX + 1


@given(st.lists(batches(), min_size=1, max_size=4))
def test_joined_batches_have_the_events_of_each(parts: list[Batch]) -> None:
    joined = join_batches(parts)
    expected = [event[1:] for part in parts for event in events_of(part.portion(range(part.count), "ann", 0, 0))]
    assert [event[1:] for event in events_of(joined.portion(range(joined.count), "ann", 0, 0))] == expected
    assert len(joined.topic_list()) in (1, joined.count)
    assert joined.topics == "\n".join(joined.topic_list())


@given(
    st.sampled_from([b"", b"x", b"xy"]), st.binary(max_size=5), st.sampled_from(["a", "a\nb", ""]), st.integers(0, 2)
)
def test_an_event_alone_is_judged_as_among_others(records: bytes, lengths: bytes, topics: str, count: int) -> None:
    def verdict(batch: Batch) -> str:
        try:
            batch.check()
        except ProtocolViolation as violation:
            return str(violation)
        return ""

    class Careful(Batch):
        def _is_lone(self) -> bool:
            return False

    for some in (lengths, join_u32([len(records)])):
        assert verdict(Batch(topics, count, some, records)) == verdict(Careful(topics, count, some, records))


@given(st.data())
def test_selected_rows_are_a_batch_of_their_own(data: st.DataObject) -> None:
    """What is filtered on comes along as columns; of the rest, only that it must be derived from the records."""
    count = data.draw(st.integers(1, 6))
    rows = sorted(data.draw(st.sets(st.integers(0, count - 1), min_size=1)))
    values = st.sampled_from([None, 1, 2.5, "x", True])
    columns = {name: data.draw(st.lists(values, min_size=count, max_size=count)) for name in "abc"}
    topics = [f"s/{row}" for row in range(count)] if data.draw(st.booleans()) else ["s/all"]
    interest = data.draw(st.none() | st.lists(st.sampled_from("abcd"), unique=True))
    batch = make_batch(topics, columns, [b"%d" % row for row in range(count)], interest)
    names = data.draw(st.lists(st.sampled_from("abcd"), unique=True))
    part = batch.select(rows, names)
    part.check()
    assert part.count == len(rows)
    assert part.pieces() == [batch.pieces()[row] for row in rows]
    whole = batch.topic_list() if len(batch.topic_list()) > 1 else batch.topic_list() * count
    assert part.topic_list() in ([whole[row] for row in rows], [whole[0]] if len({*whole}) == 1 else None)
    assert set(part.columns) == set(names) & set(batch.columns)
    for name in "abcd":
        expected = [columns[name][row] for row in rows] if name in columns else [None] * len(rows)
        assert list(part.column(name) or [None] * len(rows)) == expected, name


def test_a_selection_that_needs_a_broken_column_is_refused_and_one_that_does_not_is_not() -> None:
    good = make_batch(["s"], {"a": [1, 2], "b": [1, 2]}, [b"", b""])
    broken = Batch(good.topics, 2, good.lengths, good.records, good.columns | {"a": b"\xc1"})
    assert list(broken.select([1], ["b"]).columns) == ["b"]
    with pytest.raises(ProtocolViolation):
        broken.select([1], ["a", "b"])
