"""How events become batches: columns are cut by stream and to the size of a frame, open batches know their columns."""

from __future__ import annotations

from array import array

import pytest

from headgate.protocol.client import Outcome
from headgate.protocol.client.publishing import OpenBatch, cut_batches, cut_columns, encoded_size
from headgate.protocol.data import make_batch
from headgate.protocol.data.records import encode_record
from headgate.protocol.errors import LocalError
from headgate.protocol.limits import COLUMNS_MAX, ENTRY_OVERHEAD_BYTES, PUBLISH_LENGTH_MAX
from headgate.protocol.messages import Mode, Publish
from headgate.protocol.wire import encode


def test_cutting_keeps_typed_arrays_and_order() -> None:
    cut = cut_columns(lambda topic: topic[0], ["a1", "b1", "a2"], {"x": array("q", [1, 2, 3])}, [b"1", b"2", b"3"])
    assert list(cut) == [
        ("a", ["a1", "a2"], {"x": array("q", [1, 3])}, [b"1", b"3"]),
        ("b", ["b1"], {"x": array("q", [2])}, [b"2"]),
    ]
    with pytest.raises(LocalError, match="2 bodies"):
        list(cut_columns(lambda topic: "a", ["a"] * 3, {}, [b"1", b"2"]))


def test_batches_fit_a_frame_and_keep_the_order() -> None:
    bodies = [bytes([number]) * 400_000 for number in range(30)]
    batches = list(cut_batches(["a"], {"n": list(range(30))}, bodies, None, ""))
    assert len(batches) > 3
    assert [value for batch in batches for value in batch.column("n") or ()] == list(range(30))
    assert all(len(encode(Publish(1, 1, batch))) <= PUBLISH_LENGTH_MAX for batch in batches)


@pytest.mark.parametrize("topic", ["a", "ä/ö"])
def test_the_size_of_a_batch_is_known_before_it_is_encoded(topic: str) -> None:
    batch = make_batch([topic], {"x": [1, 2], "long name": ["y" * 100, None]}, [b"1", b"22"])
    spare = encoded_size(batch) + ENTRY_OVERHEAD_BYTES - len(encode(Publish(1, 1, batch)))
    assert 0 <= spare <= ENTRY_OVERHEAD_BYTES + 16 * len(batch.columns)


def test_an_event_may_have_more_attributes_than_a_batch_has_columns() -> None:
    attributes = {f"body.a{number}": number for number in range(COLUMNS_MAX + 1)}
    opened = OpenBatch(Mode.ACCEPTED, Outcome())
    opened.topics.append("orders")
    opened.attributes.append(attributes)
    opened.records.append(encode_record(attributes, b""))
    as_columns = make_batch(["orders"], {name: [value] for name, value in attributes.items()}, [b""])
    for batch in (opened.batch(None), as_columns):
        batch.check()
        assert len(batch.columns) == COLUMNS_MAX and not batch.complete
        assert batch.column(f"body.a{COLUMNS_MAX}") == [COLUMNS_MAX], "a broker looks into the record"


def test_an_open_batch_becomes_one_with_the_columns_that_are_wanted() -> None:
    opened = OpenBatch(Mode.ACCEPTED, Outcome())
    for number in range(2):
        opened.topics.append("a")
        opened.attributes.append({"x": number, "y": "s"})
        opened.records.append(encode_record({"x": number, "y": "s"}, b""))
    batch = opened.batch(["x"])
    assert (batch.topics, batch.column("x"), list(batch.columns), batch.complete) == ("a", [0, 1], ["x"], False)
    batch.check()
