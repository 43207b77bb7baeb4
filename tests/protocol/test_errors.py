"""Every class of error keeps its fields and makes a text that says what happened."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from headgate.protocol import errors
from headgate.protocol.errors import (
    CannotConnect,
    ConnectionLost,
    ErrorCode,
    EventsRefused,
    Fenced,
    HeadgateError,
    LocalError,
    OutOfSequence,
    ProtocolViolation,
    Refused,
    Unauthorised,
    UnknownOutcome,
)

ERRORS: list[tuple[HeadgateError, str, dict[str, object]]] = [
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
    (EventsRefused(114, (0, 2), "not yours"), "not yours", {"code": 114, "rows": (0, 2)}),
    (Unauthorised("h:1", "who?"), "cannot connect to h:1: who?", {"address": "h:1", "reason": "who?"}),
    (CannotConnect("h:1", "refused"), "cannot connect to h:1: refused", {"address": "h:1", "reason": "refused"}),
    (ConnectionLost("reset"), "connection lost: reset", {"reason": "reset"}),
    (UnknownOutcome(3, "reset"), "the outcome of 3 event(s) is unknown: reset", {"events": 3, "reason": "reset"}),
]


@pytest.mark.parametrize(("error", "text", "fields"), ERRORS)
def test_an_error_has_its_text_and_its_fields(error: HeadgateError, text: str, fields: dict[str, object]) -> None:
    assert str(error) == text
    assert {name: getattr(error, name) for name in fields} == fields


def twins() -> list[HeadgateError]:
    """One error of every class of the library."""
    spark = pytest.importorskip("headgate.protocol.spark.errors")
    return [*(error for error, _, _ in ERRORS), spark.MissingOption("topic", "name one"), spark.NoBroker("a:1", "gone")]


def pickled(error: HeadgateError) -> HeadgateError:
    again: HeadgateError = pickle.loads(pickle.dumps(error))
    return again


@pytest.mark.parametrize("through", [pickled, copy.copy, copy.deepcopy])
def test_an_error_survives_pickling_and_copying(through: Callable[[HeadgateError], HeadgateError]) -> None:
    for error in twins():
        error.add_note("while publishing")
        again = through(error)
        assert again is not error
        assert (type(again), str(again), again.args) == (type(error), str(error), error.args)
        assert again.__dict__ == error.__dict__
    assert {type(error) for error in twins()} >= set(subclasses(HeadgateError, "headgate.protocol.errors"))


def subclasses(kind: type, module: str) -> list[type]:
    below = [one for child in kind.__subclasses__() for one in (child, *subclasses(child, module))]
    return [one for one in below if one.__module__ == module]


def fail() -> None:
    raise CannotConnect("h:1", "refused")


@pytest.mark.slow
def test_an_error_comes_back_from_a_process_of_a_pool() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool, pytest.raises(CannotConnect) as caught:
        pool.submit(fail).result(60)
    assert (caught.value.address, caught.value.reason) == ("h:1", "refused")


def test_one_tree_holds_every_error() -> None:
    classes = [getattr(errors, name) for name in errors.__all__]
    exceptions = [kind for kind in classes if issubclass(kind, Exception)]
    assert len(exceptions) == 11
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
        "FORBIDDEN": 114,
    }
