"""Every class of error keeps its fields and makes a text that says what happened."""

from __future__ import annotations

import pytest

from headgate.protocol import errors
from headgate.protocol.errors import (
    CannotConnect,
    ConnectionLost,
    ErrorCode,
    Fenced,
    HeadgateError,
    LocalError,
    OutOfSequence,
    ProtocolViolation,
    Refused,
    UnknownOutcome,
)


@pytest.mark.parametrize(
    ("error", "text", "fields"),
    [
        (LocalError("too large"), "too large", {}),
        (ProtocolViolation("odd"), "odd", {"text": "odd", "code": ErrorCode.PROTOCOL}),
        (ProtocolViolation("late", ErrorCode.TIMEOUT), "late", {"code": ErrorCode.TIMEOUT}),
        (Refused(100, "no such column"), "no such column", {"code": 100, "text": "no such column"}),
        (
            Fenced("job", 2, "epoch 3"),
            "producer 'job', epoch 2, was replaced by a newer one: epoch 3",
            {"producer": "job", "epoch": 2, "code": ErrorCode.FENCED},
        ),
        (
            OutOfSequence("job", 7, "5 comes next"),
            "producer 'job' is out of sequence at 7: 5 comes next",
            {"producer": "job", "number": 7, "code": ErrorCode.OUT_OF_SEQUENCE},
        ),
        (CannotConnect("h:1", "refused"), "cannot connect to h:1: refused", {"address": "h:1", "reason": "refused"}),
        (ConnectionLost("reset"), "connection lost: reset", {"reason": "reset"}),
        (UnknownOutcome(3, "reset"), "the outcome of 3 event(s) is unknown: reset", {"events": 3, "reason": "reset"}),
    ],
)
def test_an_error_has_its_text_and_its_fields(error: HeadgateError, text: str, fields: dict[str, object]) -> None:
    assert str(error) == text
    assert {name: getattr(error, name) for name in fields} == fields


def test_one_tree_holds_every_error() -> None:
    classes = [getattr(errors, name) for name in errors.__all__]
    exceptions = [kind for kind in classes if issubclass(kind, Exception)]
    assert len(exceptions) == 9
    assert all(issubclass(kind, HeadgateError) for kind in exceptions)


def test_the_blame_is_told_apart() -> None:
    assert not issubclass(LocalError, ProtocolViolation)
    assert not issubclass(ProtocolViolation, LocalError)


def test_codes_never_change_their_meaning() -> None:
    assert {code.name: code.value for code in ErrorCode} == {
        "GOODBYE": 0,
        "PROTOCOL": 1,
        "VERSION": 2,
        "UNAUTHORISED": 3,
        "TOO_LARGE": 4,
        "TIMEOUT": 5,
        "SLOW_CONSUMER": 6,
        "SHUTTING_DOWN": 7,
        "TOO_MANY": 8,
        "REPLACED": 9,
        "MISMATCH": 10,
        "OTHER_CLUSTER": 11,
        "BAD_CONDITION": 100,
        "BAD_PATTERN": 101,
        "BAD_TOPIC": 102,
        "BAD_BATCH": 103,
        "BAD_REQUEST": 104,
        "LIMIT": 105,
        "UNSUPPORTED": 106,
        "NOT_FOUND": 107,
        "DUPLICATE": 108,
        "SEQUENCE_GAP": 109,
        "UNAVAILABLE": 110,
        "FENCED": 111,
        "NOT_STORED": 112,
        "OUT_OF_SEQUENCE": 113,
    }
