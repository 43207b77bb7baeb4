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
    one.position = "ann@5:7"
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
    members = json.loads(event_text(event(body=b"\xff")))
    assert members["body_base64"] == "/w=="
    assert "body" not in members


def test_what_json_cannot_write_is_a_string() -> None:
    values = {"a": float("nan"), "b": float("inf"), "c": float("-inf"), "d": 1.5, "e": None}
    text = event_text(event(attributes=values))
    assert json.loads(text)["attrs"] == {"a": "NaN", "b": "Infinity", "c": "-Infinity", "d": 1.5, "e": None}
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"])),
)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(st.dictionaries(names, scalars), st.binary())
def test_what_comes_out_goes_in_again_on_one_line(attributes: dict[str, Any], body: bytes) -> None:
    text = event_text(event(attributes=attributes, body=body))
    assert text.splitlines() == [text]
    found = parse_line(text)
    assert (found.topic, found.attributes, found.body) == ("quotes/NYSE/OTE", attributes, body)


@given(st.binary())
def test_any_bytes_are_a_line_or_a_usage_error(text: bytes) -> None:
    try:
        assert parse_line(text).topic
    except UsageError as error:
        assert str(error)
