"""Lines in, lines out: every form of a body, every bad line, and what comes out goes in again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.ops.attributes import parse_value
from headgate.ops.exits import UsageError
from headgate.ops.jsonlines import event_text, parse_line
from headgate.protocol.data import LogShift
from headgate.protocol.data.records import encode_record
from tests.ops.fakes import event


def line(**members: Any) -> str:
    return json.dumps(members)


def test_a_line_with_everything() -> None:
    found = parse_line(line(topic="a/b", attrs={"n": 1, "deep": {"x": True}}, body="é", content_type="text/csv"))
    assert (found.topic, found.attributes) == ("a/b", {"n": 1, "deep.x": True})
    assert (found.body, found.content_type) == ("é".encode(), "text/csv")


@pytest.mark.parametrize(
    ("member", "body", "content_type"),
    [
        ({}, b"", ""),
        ({"body": "hello"}, b"hello", "text/plain"),
        ({"body": ""}, b"", ""),
        ({"body": "hello", "content_type": ""}, b"hello", ""),
        ({"body": "{}", "content_type": "application/json"}, b"{}", "application/json"),
        ({"body_base64": "/wA="}, b"\xff\x00", ""),
        ({"xml": "<a/>"}, b"<a/>", "application/xml"),
        ({"json": [1, None]}, b"[1,null]", "application/json"),
    ],
)
def test_each_form_of_a_body(member: dict[str, Any], body: bytes, content_type: str) -> None:
    found = parse_line(line(topic="a", **member))
    assert (found.body, found.content_type) == (body, content_type)


def test_a_json_body_gives_dotted_attributes_and_explicit_ones_win() -> None:
    found = parse_line(
        line(topic="a", json={"order": {"price": 8.5, "id": 1}, "tags": [1]}, attrs={"body.order.id": 2})
    )
    assert found.attributes == {"body.order.price": 8.5, "body.order.id": 2}
    assert json.loads(found.body) == {"order": {"price": 8.5, "id": 1}, "tags": [1]}


def test_topic_and_attributes_of_the_command_stand_in() -> None:
    found = parse_line(line(attrs={"a": 1}), "quotes/X", {"a": 0, "b": 2})
    assert (found.topic, found.attributes) == ("quotes/X", {"a": 1, "b": 2})
    assert parse_line(line(topic="other"), "quotes/X").topic == "other"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{", "not JSON"),
        (b"\xff", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[1]", "one JSON object"),
        ('"text"', "one JSON object"),
        (line(attrs={}), "has a topic"),
        (line(topic=""), "has a topic"),
        (line(topic=3), "has a topic"),
        (line(topic="a", attrs=[1]), '"attrs" is an object'),
        (line(topic="a", attributes={}), "unknown key 'attributes'"),
        (line(topic="a", body={"x": 1}), 'goes into "json"'),
        (line(topic="a", body="x", xml="<a/>"), "one body"),
        (line(topic="a", body_base64="?"), "not base64"),
        (line(topic="a", body_base64="é"), "not base64"),
        (line(topic="a", body="\ud800"), "not valid Unicode"),
        (line(topic="a", content_type=1), '"content_type" is a string'),
        (line(topic="a", attrs={"n": 1, "tags": ["x"]}), "attribute 'tags' is a list"),
        (line(topic="a", attrs={"deep": {"er": {"tags": []}}}), "attribute 'deep.er.tags' is a list"),
        (line(topic="a", attrs={"x": "NaN"}, floats="x"), '"floats" is a list of names'),
        (line(topic="a", attrs={"x": "NaN"}, floats=[1]), '"floats" is a list of names'),
        (line(topic="a", attrs={"x": "nan"}, floats=["x"]), "attribute 'x' is none of \"NaN\""),
        (line(topic="a", attrs={"x": 1.5}, floats=["x"]), "attribute 'x' is none of"),
        (line(topic="a", floats=["x"]), "attribute 'x' is none of"),
        ('{"topic": "a", "json": {"x": 1e999}}', "NaN or an infinity"),
        (line(topic="a", json={"": 1}), "at least one character"),
    ],
)
def test_a_bad_line_says_what_is_wrong(text: str | bytes, word: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_line(text)
    assert word in str(caught.value)


def test_a_delivery_has_the_keys_of_the_contract_in_order() -> None:
    members = json.loads(event_text(event(3, body=b"hi")))
    assert list(members) == ["id", "time", "topic", "attrs", "body", "subscription"]
    assert members["id"] == "ab-1.3"
    assert (members["time"], members["body"], members["subscription"]) == (1_700_000_000.5, "hi", 1)


def test_what_was_read_from_a_log_says_where() -> None:
    one = event()
    assert "position" not in json.loads(event_text(one))
    one.log = LogShift("ann@5", 7 - one.sequence)
    assert json.loads(event_text(one))["position"] == "ann@5:7"
    assert parse_line(event_text(one)).topic == one.topic, "what sub prints, pub takes"


def test_an_integer_beyond_64_bits_is_the_nearest_float_and_stays_as_it_is_in_the_document() -> None:
    line = parse_line(
        '{"topic": "q", "attrs": {"a": 9223372036854775808}, "json": {"n": 1, "big": 12345678901234567890}}'
    )
    assert line.attributes == {"a": 2.0**63, "body.n": 1, "body.big": 12345678901234567890.0}
    assert [type(value) for value in line.attributes.values()] == [int, float, float]
    assert b"12345678901234567890" in line.body
    assert parse_value("a", "9223372036854775808") == line.attributes["a"], "as --attr has it"
    for key in ("attrs", "json"):
        with pytest.raises(UsageError, match=f'"{key}": attribute .* is beyond what a float holds: write a string'):
            parse_line('{"topic": "q", "' + key + '": {"n": ' + "1" * 400 + "}}")


def test_a_body_that_is_no_text_is_base64() -> None:
    members = json.loads(event_text(event(body=b"\xff", content_type="")))
    assert members["body_base64"] == "/w=="
    assert "content_type" not in members
    assert "body" not in members


@pytest.mark.parametrize(
    ("body", "content_type", "told"),
    [
        (b"", "", None),
        (b"x", "text/plain", None),
        (b"\xff", "", None),
        (b"x", "", ""),
        (b"", "text/plain", "text/plain"),
        (b"{}", "application/json", "application/json"),
        (b"\xff", "image/png", "image/png"),
    ],
)
def test_the_content_type_is_told_where_the_body_does_not_say_it(
    body: bytes, content_type: str, told: str | None
) -> None:
    assert json.loads(event_text(event(body=body, content_type=content_type))).get("content_type") == told


def test_what_json_cannot_write_is_a_string_and_named() -> None:
    values = {"a": float("nan"), "b": float("inf"), "c": float("-inf"), "d": 1.5, "e": None, "f": "NaN"}
    text = event_text(event(attributes=values))
    members = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert members["attrs"] == {"a": "NaN", "b": "Infinity", "c": "-Infinity", "d": 1.5, "e": None, "f": "NaN"}
    assert members["floats"] == ["a", "b", "c"]
    assert encode_record(parse_line(text).attributes, b"") == encode_record(values, b"")
    assert "floats" not in json.loads(event_text(event(attributes={"f": "NaN"})))


def test_letters_are_printed_as_they_are_and_what_harms_a_terminal_is_not() -> None:
    text = event_text(event(topic="πόλη/Αθήνα", attributes={"ü": "日本　😀"}, body="\x85\u2028\u202e".encode()))
    assert '"topic":"πόλη/Αθήνα","attrs":{"ü":"日本　😀"},"body":"\\u0085\\u2028\\u202e"' in text
    body = parse_line('{"topic": "a", "json": {"city": "\\u0391", "half": "\\ud800"}}').body
    assert body == '{"city":"Α","half":"\\ud800"}'.encode(), "a document is what was meant, in UTF-8"


characters = st.characters(exclude_categories=["Cs"])
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats().map(lambda value: value if value == value else float("nan")),  # JSON names one NaN of many
    st.text(characters),
    st.sampled_from(["NaN", "Infinity", "-Infinity"]),
)
names = st.text(characters, min_size=1, max_size=64)  # at most 256 bytes
bodies = st.one_of(st.just(b""), st.binary(), st.text(characters).map(str.encode))
content_types = st.one_of(st.sampled_from(["", "text/plain", "application/json"]), st.text(characters))


@given(st.dictionaries(names, scalars), bodies, content_types)
def test_what_comes_out_goes_in_again_as_the_same_event(
    attributes: dict[str, Any], body: bytes, content_type: str
) -> None:
    text = event_text(event(attributes=attributes, body=body, content_type=content_type))
    assert text.splitlines() == [text]
    found = parse_line(text.encode())
    assert (found.topic, found.body, found.content_type) == ("quotes/NYSE/OTE", body, content_type)
    # Packed, because NaN equals nothing, and 1 equals 1.0 and True.
    assert encode_record(found.attributes, b"") == encode_record(attributes, b"")


@given(st.binary())
def test_any_bytes_are_a_line_or_a_usage_error(text: bytes) -> None:
    try:
        assert parse_line(text).topic
    except UsageError as error:
        assert str(error)
