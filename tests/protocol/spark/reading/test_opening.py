"""Records opened side by side mean what they mean one by one."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow")

import msgpack  # noqa: E402

from headgate.protocol.data.records import encode_record  # noqa: E402
from headgate.protocol.spark.reading import opening  # noqa: E402
from headgate.protocol.spark.reading.opening import (  # noqa: E402
    ABSENT,
    BOOL,
    FLOAT,
    INT,
    TEXT,
    Opened,
    open_one_by_one,
    open_records,
)

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from(
        [0, 127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32, -1, -32, -33, -128, -129, -32769, -(2**31) - 1]
    ),
    st.floats(),
    st.text(max_size=40),
    st.sampled_from(["x" * 31, "x" * 32, "x" * 255, "é" * 128, "x" * 70_000]),
)
NAMES = st.sampled_from(["a", "b", "price", "a.much.longer.name", "é", "n" * 31, "n" * 32, "n" * 250, "b2", ""])
RECORDS = st.builds(
    lambda attributes, body, kind: msgpack.packb([attributes, body, kind] if kind is not None else [attributes, body]),
    st.dictionaries(NAMES, VALUES, max_size=6),
    st.binary(max_size=300) | st.just(b"y" * 70_000),
    st.none() | st.sampled_from(["", "text/plain", "z" * 300]),
)
ODD = st.one_of(
    st.binary(max_size=20),
    st.just(b""),
    st.builds(lambda record, cut: record[:cut], RECORDS, st.integers(0, 60)),
    st.sampled_from(
        [
            msgpack.packb([{"a": [1]}, b""]),
            msgpack.packb([{"a": {"b": 1}}, b""]),
            msgpack.packb([{"a": b"bytes"}, b""]),
            msgpack.packb([{"a": 2**63}, b""]),
            msgpack.packb([{"a": 2**64 - 1}, b""]),
            msgpack.packb([{1: 1}, b""]),
            msgpack.packb([{"a": 1}, "text"]),
            msgpack.packb([{"a": 1}, b"", 5]),
            msgpack.packb([{"a": 1}, b"", "x", "y"]),
            msgpack.packb({"a": 1}),
            b"\x92\x81\xa1a\xa1\xff\xc4\x00",  # a text that is no UTF-8
            b"\x92\x81\xa1\xff\x01\xc4\x00",  # a name that is none
            b"\x93\x80\xc4\x00\xa1\xff",  # a content type that is none
            b"\x92\x82\xa1a\x01\xa1a\xa1b\xc4\x00",  # a name twice
            b"\x92\x82\xa1a\xa1b\xa1a\x01\xc4\x00",
            b"\x92\x81\xa1a\xca\x3f\xc0\x00\x00\xc4\x00",  # a float of 32 bits
            b"\x92\x81\xa1a\xdb\xff\xff\xff\xff\xc4\x00",  # a length beyond everything
            b"\x92\x80\xc6\xff\xff\xff\xff",
            b"\x92\x81\xd9\x01a\x01\xc4\x00",  # a name with a longer header than it needs
            b"\x92\xde\x00\x01\xa1a\x01\xc4\x00",
            b"\x92\x80\xc4\x00\x00",  # one byte too many
        ]
    ),
)


def placed(records: list[bytes]) -> tuple[bytes, list[int], list[int]]:
    ends = list(accumulate(map(len, records)))
    return b"".join(records), [0, *ends[:-1]], ends


def meaning(opened: Opened) -> list[Any]:
    """Attributes, and body with content type, of each event, as Python has them."""
    rows: list[dict[str, Any]] = [{} for _ in range(opened.count)]
    for name, values in opened.attributes.items():
        kinds, words, doubles, texts = values.kinds, values.words, values.doubles(), values.texts().to_pylist()
        for at, row in enumerate(rows):
            found = {ABSENT: None, INT: int(words[at]), FLOAT: repr(float(doubles[at])), TEXT: texts[at]}
            found[BOOL] = bool(words[at])
            if kinds[at] != ABSENT:
                row[name] = (int(kinds[at]), found[int(kinds[at])])
    bodies = zip(opened.bodies().to_pylist(), opened.types().to_pylist(), strict=True)
    return list(zip(rows, bodies, strict=True))


@given(st.lists(RECORDS, min_size=1, max_size=12))
def test_records_side_by_side(records: list[bytes]) -> None:
    assert meaning(open_records(*placed(records))) == meaning(open_one_by_one(records))


@given(st.lists(RECORDS | ODD, min_size=1, max_size=8))
def test_whatever_publishers_send(records: list[bytes]) -> None:
    assert meaning(open_records(*placed(records))) == meaning(open_one_by_one(records))


@given(st.lists(RECORDS | ODD, min_size=1, max_size=8), st.frozensets(NAMES, max_size=3))
def test_some_attributes_of_them(records: list[bytes], wanted: frozenset[str]) -> None:
    chosen = meaning(open_records(*placed(records), wanted))
    whole = meaning(open_one_by_one(records))
    assert chosen == [({name: value for name, value in row.items() if name in wanted}, body) for row, body in whole]


@given(st.lists(RECORDS, min_size=1, max_size=8), st.data())
def test_some_records_of_them(records: list[bytes], draw: st.DataObject) -> None:
    data, starts, ends = placed(records)
    some = sorted(draw.draw(st.sets(st.integers(0, len(records) - 1), min_size=1)))
    opened = open_records(data, [starts[at] for at in some], [ends[at] for at in some])
    assert meaning(opened) == meaning(open_one_by_one([records[at] for at in some]))


def test_records_of_a_stream_need_no_object_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a publisher of the library sends, with an attribute missing here and there, is not decoded one by one."""
    monkeypatch.setattr(opening, "open_one_by_one", None)
    records = [
        encode_record({"id": n, "price": n / 7, **({"note": f"n{n}"} if n % 3 else {}), "live": n % 2 == 0}, b"body")
        for n in range(-200, 200)
    ]
    opened = open_records(*placed(records))
    assert sorted(opened.attributes) == ["id", "live", "note", "price"]
    assert opened.attributes["id"].words.tolist() == list(range(-200, 200))


def test_too_many_names_at_once_are_told() -> None:
    records = [encode_record({f"a{n}": n}, b"") for n in range(4)]
    with pytest.raises(opening.TooWide):
        open_records(*placed(records), values_max=6)
    assert open_records(*placed(records[:2]), values_max=6).count == 2
