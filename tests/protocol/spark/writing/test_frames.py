"""Frames: one stream each, small enough, in order, with the match columns that are asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow")

from headgate.matching.structure import DEFAULT_SHAPE  # noqa: E402
from headgate.protocol.data import decode_record  # noqa: E402
from headgate.protocol.spark.errors import BadRow  # noqa: E402
from headgate.protocol.spark.layout import Layout  # noqa: E402
from headgate.protocol.spark.writing.frames import Encoder, Frame  # noqa: E402
from headgate.protocol.structure import filters_of_body, is_filter_name  # noqa: E402
from tests.support.arrow_rows import LAYOUT, batches, expected_attributes  # noqa: E402

BY_TOPIC = Layout("", "", (), (("n", "int"),), "n")


def numbers(frames: list[Frame]) -> list[Any]:
    return [decode_record(piece)[0]["n"] for frame in frames for piece in frame.batch([]).pieces()]


def rows(topics: list[str | None]) -> Any:
    return pa.RecordBatch.from_pydict({"topic": pa.array(topics, pa.string()), "n": list(range(len(topics)))})


@settings(max_examples=60, deadline=None)
@given(batches(), st.sampled_from([1, 200, 100_000]))
def test_batches_are_whole_and_carry_the_rows(made: tuple[Any, list[dict[str, Any]]], frame_bytes: int) -> None:
    batch, wanted = made
    found = []
    for frame in Encoder(LAYOUT, frame_bytes).frames(batch):
        one = frame.batch(None)
        one.check()
        assert one.complete
        assert one.topics == "quotes/a"
        assert one.count == 1 or len(one.records) <= frame_bytes
        for name in one.columns:
            assert list(one.column(name) or []) == list(one.derived(name))
        found += [decode_record(piece) for piece in one.pieces()]
    assert found == [(expected_attributes(row), row["value"] or b"", "") for row in wanted]


def test_a_frame_holds_at_most_a_batch() -> None:
    frames = list(Encoder(BY_TOPIC, 1 << 20).frames(rows(["q"] * 10_000)))
    assert [frame.count for frame in frames] == [4096, 4096, 1808]
    assert numbers(frames) == list(range(10_000))


def test_each_stream_has_its_own_frames_and_its_order() -> None:
    frames = list(Encoder(BY_TOPIC, 1 << 20).frames(rows(["q/a", "r", "q/b", "q/a", "r"])))
    assert [frame.topics for frame in frames] == ["q/a\nq/b\nq/a", "r"]
    assert numbers(frames) == [0, 2, 3, 1, 4]
    assert [frame.ids.to_pylist() for frame in frames] == [[0, 2, 3], [1, 4]]


@pytest.mark.parametrize("topic", [None, "", "q//a", "q/*", "q\nr"])
def test_a_row_without_a_proper_topic_is_refused(topic: str | None) -> None:
    with pytest.raises(BadRow, match="'topic'"):
        list(Encoder(BY_TOPIC, 1 << 20).frames(rows(["q", topic])))


def test_a_slice_is_a_frame_of_its_own() -> None:
    (frame,) = Encoder(BY_TOPIC, 1 << 20).frames(rows(["q/a", "q/b", "q/a"]))
    part = frame.slice(1, 2)
    batch = part.batch(None)
    batch.check()
    assert (batch.topics, numbers([part]), list(batch.column("n") or [])) == ("q/b\nq/a", [1, 2], [1, 2])
    assert part.ids.to_pylist() == [1, 2]


def test_match_columns_follow_the_interest() -> None:
    (frame,) = Encoder(BY_TOPIC, 1 << 20).frames(rows(["q"]))
    assert (list(frame.batch([]).columns), frame.batch([]).complete) == ([], False)
    one = frame.batch(["n", "price"])
    assert (sorted(one.columns), one.complete) == (["n", "price"], True)
    assert one.column("price") == [None]


DOCUMENTS = Layout("q", "string", (), (("n", "int"),), "", body="xml", content_type="application/xml")
STRUCTURE = DEFAULT_SHAPE.column


def documents(*texts: str | None) -> Any:
    return pa.RecordBatch.from_pydict({"xml": pa.array(texts, pa.string()), "n": list(range(len(texts)))})


def test_documents_have_their_content_type_and_filters_when_somebody_asks() -> None:
    texts = ("<a><b/></a>", None, "<c>é</c>")
    (frame,) = Encoder(DOCUMENTS, 1 << 20).frames(documents(*texts))
    found = [decode_record(one)[1:] for one in frame.batch([]).pieces()]
    kind = "application/xml"
    assert found == [(b"<a><b/></a>", kind), (b"", ""), ("<c>é</c>".encode(), kind)]
    assert list(frame.batch(["n"]).columns) == ["n"] and not any(map(is_filter_name, frame.batch(None).columns))
    wanted = [filters_of_body(*one, [STRUCTURE]).get(STRUCTURE) for one in found]
    batch = frame.batch(["n", STRUCTURE])
    batch.check()
    assert list(batch.column(STRUCTURE) or []) == wanted and wanted[1] == b"" and len(set(wanted)) == 3
    assert list(frame.slice(1, 2).batch([STRUCTURE]).column(STRUCTURE) or []) == wanted[1:]


def test_of_bodies_that_are_no_documents_brokers_hear_so() -> None:
    (frame,) = Encoder(BY_TOPIC, 1 << 20).frames(rows(["q", "q"]))
    assert list(frame.batch([STRUCTURE]).column(STRUCTURE) or []) == [b"", b""]


def test_filters_that_a_publish_would_not_take_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    (frame,) = Encoder(DOCUMENTS, 1 << 20).frames(documents("<a/>", "<b/>"))
    monkeypatch.setattr("headgate.protocol.spark.writing.frames.FILTERED_BYTES_MAX", len(frame.data()))
    assert list(frame.batch([STRUCTURE]).column(STRUCTURE) or []) == [None, None]


def test_documents_that_are_all_there_and_json() -> None:
    layout = replace(DOCUMENTS, content_type="application/json")
    (frame,) = Encoder(layout, 1 << 20).frames(documents('{"a": 1}', "[]"))
    assert [decode_record(one)[2] for one in frame.batch([]).pieces()] == ["application/json"] * 2


@pytest.mark.parametrize("text", ["<a>", "", "x", '<!DOCTYPE a [<!ENTITY e "x">]><a>&e;</a>'])
def test_what_is_no_document_is_refused_with_its_beginning(text: str) -> None:
    with pytest.raises(BadRow, match=r"column 'xml': holds .* in a row: this is no XML"):
        list(Encoder(DOCUMENTS, 1 << 20).frames(documents("<a/>", text)))


def test_an_event_over_the_limit_is_refused() -> None:
    layout = Layout("q", "binary", (), (("name", "string"),), "")
    batch = pa.RecordBatch.from_pydict({"value": [b"x" * (1 << 19)], "name": ["y" * (1 << 19)]})
    with pytest.raises(BadRow, match="over the limit"):
        list(Encoder(layout, 1 << 20).frames(batch))
