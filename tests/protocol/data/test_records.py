"""Records there and back; what an event may not hold; nested maps made flat."""

from __future__ import annotations

import math
from collections import OrderedDict
from itertools import accumulate
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.protocol.data import decode_record, flatten
from headgate.protocol.data.records import attributes_at_once, encode_record
from headgate.protocol.errors import LocalError, ProtocolViolation
from headgate.protocol.limits import ATTRIBUTE_NAME_LENGTH_MAX, ATTRIBUTES_MAX, RECORD_LENGTH_MAX


@pytest.mark.parametrize("content_type", ["", "text/plain"])
@pytest.mark.parametrize("attributes", [{}, {"a": None, "b": True, "c": -(2**63), "d": 2**63 - 1, "e": 1.5, "f": "ü"}])
def test_a_record_comes_back(attributes: dict[str, Any], content_type: str) -> None:
    record = encode_record(attributes, b"body\x00", content_type)
    assert decode_record(record) == (attributes, b"body\x00", content_type)
    assert encode_record(OrderedDict(attributes), b"body\x00", content_type) == record


def test_the_bytes_of_a_record() -> None:
    assert encode_record(None, b"hi") == encode_record({}, b"hi") == bytes.fromhex("9280c4026869")
    assert encode_record({"a": 1}, b"") == bytes.fromhex("9281a16101c400")
    assert encode_record({"a": 1}, b"", "t") == bytes.fromhex("9381a16101c400a174")


def test_not_a_number_and_infinity_pass() -> None:
    attributes, _, _ = decode_record(encode_record({"a": math.nan, "b": -math.inf, "c": -0.0}, b""))
    assert repr(attributes) == "{'a': nan, 'b': -inf, 'c': -0.0}"


@pytest.mark.parametrize(
    "value",
    [[1], {"b": 1}, (1,), b"x", object(), 2**63, 2**64, -(2**63) - 1, "\udfff", msgpack.Timestamp(0)],
    ids=lambda value: type(value).__name__ + str(value)[:20].encode("ascii", "replace").decode(),
)
@pytest.mark.parametrize("content_type", ["", "t"])
def test_what_is_no_attribute_is_our_own_error(value: Any, content_type: str) -> None:
    with pytest.raises(LocalError):
        encode_record({"a": value}, b"", content_type)


@pytest.mark.parametrize("name", ["", 1, b"a", None, "\ud800"], ids=ascii)
def test_what_is_no_name_is_our_own_error(name: Any) -> None:
    with pytest.raises(LocalError):
        encode_record({name: 1}, b"")


def test_a_body_is_bytes() -> None:
    with pytest.raises(LocalError, match="encode it first"):
        encode_record(None, "text")  # type: ignore[arg-type]


@pytest.mark.parametrize("content_type", ["", "t"])
@pytest.mark.parametrize("attributes", [None, {"a": "x"}])
def test_the_limit_counts_the_whole_record(attributes: dict[str, Any] | None, content_type: str) -> None:
    head = len(encode_record(attributes, bytes(70_000), content_type)) - 70_000
    assert len(encode_record(attributes, bytes(RECORD_LENGTH_MAX - head), content_type)) == RECORD_LENGTH_MAX
    with pytest.raises(LocalError, match="store"):
        encode_record(attributes, bytes(RECORD_LENGTH_MAX - head + 1), content_type)


def test_the_number_of_attributes_is_limited() -> None:
    names = [f"a{number}" for number in range(ATTRIBUTES_MAX + 1)]
    assert len(decode_record(encode_record(dict.fromkeys(names[1:], 1), b""))[0]) == ATTRIBUTES_MAX
    with pytest.raises(LocalError, match="at most 1024"):
        encode_record(dict.fromkeys(names, 1), b"")


@pytest.mark.parametrize(
    "record",
    [
        "",
        "c1",
        "c0",
        "90",
        "9180",
        "9480c400a0a0",
        "9280a0",  # the body a string
        "9290c400",  # the attributes a list
        "9380c400c400",  # the content type a bin
        "9281a16190c400",  # a list for a value
        "9281a16180c400",
        "9281a161c400c400",  # a bin for a value
        "9281a161cfffffffffffffffffc400",
        "9281a161c70005c400",  # an extension
        "9281a161d6ff00000000c400",
        "92810101c400",  # a number for a name
        "9281c4016101c400",  # a bin for a name
        "9281a1ff01c400",  # invalid UTF-8
        "9280c40000",  # something after it
        "92de010180",
        "92dfffffffffc400",
        "9280c6ffffffff",
    ],
)
def test_what_is_no_record_is_a_violation(record: str) -> None:
    with pytest.raises(ProtocolViolation):
        decode_record(bytes.fromhex(record))


def test_a_truncated_record_is_a_violation_at_every_offset() -> None:
    record = encode_record({"a": 1, "b": "text", "c": 1.5}, b"body", "text/plain")
    for end in range(len(record)):
        with pytest.raises(ProtocolViolation):
            decode_record(record[:end])


def test_a_name_used_twice_has_its_last_value() -> None:
    assert decode_record(bytes.fromhex("9282a16101a16102c400"))[0] == {"a": 2}


def test_nested_maps_become_dotted_names() -> None:
    nested = {"order": {"price": 8.5, "by": {"name": "ann"}, "lines": [1]}, "live": True}
    assert flatten(nested) == {"order.price": 8.5, "order.by.name": "ann", "live": True}
    assert flatten(nested, "body.")["body.live"] is True


def test_integers_beyond_64_bits_are_floats_where_text_is_flattened() -> None:
    flat = flatten({"a": 2**63, "b": -(2**63), "c": {"d": -(2**63) - 1}}, lenient=True)
    assert flat == {"a": 2.0**63, "b": -(2**63), "c.d": -(2.0**63)}
    assert [type(value) for value in flat.values()] == [float, int, float]
    with pytest.raises(LocalError, match="write a string"):
        flatten({"a": 10**400}, lenient=True)


def test_depth_takes_no_stack() -> None:
    nested: dict[str, Any] = {"a": 1}
    for _ in range(100):
        nested = {"a": nested}
    assert flatten(nested) == {".".join("a" * 101): 1}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"": 1}, "at least one character"),
        ({1: 1}, "a string"),
        ({"é" * (ATTRIBUTE_NAME_LENGTH_MAX // 2 + 1): 1}, "at most 256 bytes"),
        ({"a": 2**63}, "64 bits"),
        ({"a": b"x"}, "bytes"),
        ({"a": [1]}, "'a' is a list"),
        ({"a": ()}, "'a' is a tuple"),
        (dict.fromkeys(map(str, range(ATTRIBUTES_MAX + 1)), 1), "at most 1024 attributes"),
    ],
)
def test_what_cannot_be_flattened_is_our_own_error(value: dict[Any, Any], text: str) -> None:
    with pytest.raises(LocalError, match=text):
        flatten(value)


_ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=3)
    | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2) | st.binary(max_size=2), inner, max_size=3)
    ),
    max_leaves=6,
)
_GOOD = st.tuples(
    st.dictionaries(
        st.text(max_size=3), st.none() | st.integers(-9, 2**63 - 1) | st.floats() | st.text(max_size=3), max_size=3
    ),
    st.binary(max_size=9),
).map(list) | st.tuples(st.just({}), st.binary(max_size=2), st.text(max_size=3)).map(list)


@given(st.data())
def test_attributes_that_are_read_at_once_are_those_of_each_record(data: st.DataObject) -> None:
    said = data.draw(st.lists(_GOOD, max_size=5)) + data.draw(st.lists(_ANY | _GOOD, max_size=2))
    pieces = [msgpack.packb(one) for one in data.draw(st.permutations(said))]
    if pieces and data.draw(st.booleans()):  # lengths that are not those of the records
        records, cuts = b"".join(pieces), data.draw(st.lists(st.integers(0, len(b"".join(pieces))), max_size=4))
        ends = sorted([*cuts, len(records)])
        pieces = [records[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
    ends = list(accumulate(map(len, pieces)))
    try:
        expected: Any = [decode_record(piece)[0] for piece in pieces]
    except ProtocolViolation:
        expected = None
    found = attributes_at_once(b"".join(pieces), ends) if pieces else []
    assert repr(found) == repr(expected)  # NaN is not itself
