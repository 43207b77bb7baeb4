"""Vocabulary: what may be a topic, attributes, a body, a mode."""

from __future__ import annotations

from array import array
from typing import Any

import numpy
import pytest

from headgate.protocol.client import Vocabulary, body_bytes, check_names, mode_number, subscribe_options
from headgate.protocol.errors import LocalError


@pytest.mark.parametrize(("topic", "stream"), [("a", "a"), ("a/b", "a"), ("é/+/#", "é"), ("a" * 1024, "a" * 1024)])
def test_topics(topic: str, stream: str) -> None:
    words = Vocabulary()
    assert [words.stream_of(topic) for _ in range(2)] == [stream, stream]


@pytest.mark.parametrize(
    "topic",
    [
        "",
        "/",
        "a/",
        "/a",
        "a//b",
        "*",
        "a/*/b",
        "a\nb",
        "a\x00",
        "a\x7f",
        "a" * 1025,
        "é" * 513,
        "/".join("a" * 33),
        "\ud800",
        5,
    ],
)
def test_no_topics(topic: Any) -> None:
    words = Vocabulary()
    for _ in range(2):
        with pytest.raises(LocalError):
            words.stream_of(topic)


def test_the_memory_is_bounded() -> None:
    words = Vocabulary(topics_max=3, shapes_max=3)
    for number in range(10):
        assert words.stream_of(f"a/{number}") == "a"
        assert words.checked({f"x{number}": 1})
        assert len(words._streams) <= 3
        assert len(words._shapes) <= 3


def test_attributes_are_copied_and_flattened() -> None:
    given = {"a": {"b": {"c": 1}, "list": [1]}, "d": None}
    assert Vocabulary().checked(given) == {"a.b.c": 1, "d": None}
    flat = {"x": 1, "y": "s"}
    copy = Vocabulary().checked(flat)
    assert copy == flat and copy is not flat


@pytest.mark.parametrize(
    "attributes",
    [
        {"": 1},
        {5: 1},
        {"x" * 257: 1},
        {"é" * 129: 1},
        {str(n): n for n in range(1025)},
        {"x": b"bytes"},
        {"x": {"y": 1j}},
    ],
)
def test_no_attributes(attributes: Any) -> None:
    with pytest.raises(LocalError):
        Vocabulary().checked(attributes)


def test_columns_keep_typed_arrays_and_unpack_others() -> None:
    doubles = array("d", [1.5, 2.5])
    columns: dict[str, Any] = {
        "d": doubles,
        "f": array("f", [1.5, 2.5]),
        "n": numpy.array([1, 2]),
        "r": range(2),
        "l": [None, "x"],
    }
    checked = Vocabulary().checked_columns(columns, 2)
    assert checked["d"] is doubles
    assert checked == {"d": doubles, "f": [1.5, 2.5], "n": [1, 2], "r": [0, 1], "l": [None, "x"]}
    assert all(type(value) is int for value in checked["n"])
    with pytest.raises(LocalError, match="2 bodies"):
        Vocabulary().checked_columns({"x": [1]}, 2)


def test_bodies() -> None:
    assert body_bytes("é", "") == ("é".encode(), "text/plain")
    assert body_bytes("{}", "application/json") == (b"{}", "application/json")
    assert body_bytes(bytearray(b"x"), "") == (b"x", "")
    assert body_bytes(memoryview(b"x"), "t") == (b"x", "t")
    for body in ("\ud800", 5, None):
        with pytest.raises(LocalError):
            body_bytes(body, "")  # type: ignore[arg-type]  # that is what is tested


def test_modes() -> None:
    assert [mode_number(mode) for mode in ("fire", "accepted", "stored", 0, 1, 2)] == [0, 1, 2, 0, 1, 2]
    for mode in ("Fire", 3, -1, ""):
        with pytest.raises(LocalError):
            mode_number(mode)


def test_names_have_at_most_256_bytes() -> None:
    check_names(("x" * 256,))
    with pytest.raises(LocalError):
        check_names(("x" * 257,))


def test_only_options_that_were_set_are_said() -> None:
    assert subscribe_options(False, False) == {}
    assert subscribe_options(True, True) == {"exact": True, "ordered": True}
