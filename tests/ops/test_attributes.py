"""Attributes typed at a prompt become what they look like, and quotes make strings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.ops.attributes import parse_attributes, parse_value
from headgate.ops.exits import UsageError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("True", "True"),
        ("8", 8),
        ("-8", -8),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", 2.0**63),
        ("-9223372036854775809", -(2.0**63)),
        ("8.5", 8.5),
        ("-1e3", -1000.0),
        ("007", "007"),
        ("+5", "+5"),
        ("nan", "nan"),
        ("inf", "inf"),
        ("1_000", "1_000"),
        ("٣", "٣"),
        ("", ""),
        ('"8"', "8"),
        ('"true"', "true"),
        ('""', ""),
        ('"', '"'),
        ("a=b", "a=b"),
        ("8 ", "8 "),
    ],
)
def test_values(text: str, value: object) -> None:
    parsed = parse_value("x", text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize("text", ["1" * 5000, "1e999"])
def test_numbers_that_no_attribute_can_hold_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"--attr x: .* is beyond"):
        parse_value("x", text)


def test_the_last_of_a_name_counts_and_equals_may_be_in_a_value() -> None:
    assert parse_attributes(["a=1", "b=x=y", "a=2"]) == {"a": 2, "b": "x=y"}


@pytest.mark.parametrize("word", ["a", "=1", ""])
def test_a_word_that_is_no_attribute_is_refused(word: str) -> None:
    with pytest.raises(UsageError, match="write name=value"):
        parse_attributes([word])


@given(st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False)))
def test_what_json_writes_is_read_back(value: object) -> None:
    import json

    text = json.dumps(value)
    if "Infinity" not in text:
        assert parse_value("x", text) == value


@given(st.text())
def test_quotes_make_a_string_of_anything(text: str) -> None:
    assert parse_value("x", f'"{text}"') == text
