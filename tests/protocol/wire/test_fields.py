"""The kinds of fields: every message that is nothing but fields has its row, and a wrong field is named."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.protocol.errors import ProtocolViolation
from headgate.protocol.limits import CREDIT_MAX, LOG_CHUNK_ROWS_MAX
from headgate.protocol.messages import MESSAGE_TYPES, LogChunk, Ping, ReadLog, wire_name
from headgate.protocol.wire.codec import FIELDS, check_fields, is_attribute_name, is_counter, is_name

WRITTEN_OUT = {12, 14, 19, 23, 35}


def test_every_plain_message_has_its_kinds() -> None:
    assert set(FIELDS) == set(MESSAGE_TYPES) - WRITTEN_OUT
    for number, kinds in FIELDS.items():
        assert len(kinds) == len(MESSAGE_TYPES[number].__slots__)


@pytest.mark.parametrize(
    ("value", "right"),
    [(0, True), (CREDIT_MAX, True), (CREDIT_MAX + 1, False), (-1, False), (True, False), (1.0, False)],
)
def test_a_counter(value: Any, right: bool) -> None:
    assert is_counter(value) is right


@pytest.mark.parametrize(("value", "right"), [("", True), ("x" * 256, True), ("x" * 257, False), (b"x", False)])
def test_a_name(value: Any, right: bool) -> None:
    assert is_name(value) is right


@pytest.mark.parametrize(("name", "right"), [("", False), ("x" * 256, True), ("x" * 257, False), ("é" * 129, False)])
def test_an_attribute_name(name: str, right: bool) -> None:
    assert is_attribute_name(name) is right


CHUNK: list[Any] = [21, 1, 0, 2, 2, [b"row"]]
WRONG: list[Any] = [[1], ["row"], {}, b"row", [b"row", [b"row"]]]


@pytest.mark.parametrize("value", WRONG)
def test_a_chunk_that_does_not_fit_is_refused_by_name(value: Any) -> None:
    check_fields(21, wire_name(LogChunk), LogChunk, CHUNK)
    with pytest.raises(ProtocolViolation, match="LOG_CHUNK: rows is not"):
        check_fields(21, wire_name(LogChunk), LogChunk, [*CHUNK[:5], value])


def test_the_number_of_fields_is_told() -> None:
    with pytest.raises(ProtocolViolation, match="READ_LOG has 10 fields, not 1"):
        check_fields(20, wire_name(ReadLog), ReadLog, [20, 1])
    with pytest.raises(ProtocolViolation, match="PING has 1 fields, not 0"):
        check_fields(5, wire_name(Ping), Ping, [5])


def test_as_many_rows_as_a_chunk_may_have() -> None:
    check_fields(21, "LOG_CHUNK", LogChunk, [*CHUNK[:5], [b""] * LOG_CHUNK_ROWS_MAX])
