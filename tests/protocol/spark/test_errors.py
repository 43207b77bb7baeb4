"""Errors of the Spark source: a stable code first, the name of what is wrong, and what to do; they survive pickle."""

from __future__ import annotations

import pickle

import pytest

from headgate.protocol.errors import HeadgateError
from headgate.protocol.spark import errors
from headgate.protocol.spark.errors import ConnectorError

SAMPLES: list[tuple[ConnectorError, list[str]]] = [
    (errors.MissingOption("topic", "name it"), ["[HEADGATE_MISSING_OPTION]", "'topic'", "name it"]),
    (errors.UnknownOption("topik", ("topic", "filter")), ["[HEADGATE_UNKNOWN_OPTION]", "'topik'", "mean 'topic'?"]),
    (errors.BadOption("inflight", "0", "1 or more"), ["[HEADGATE_BAD_OPTION]", "'inflight'", "'0'", "1 or more"]),
    (errors.BadOffsets("startingOffsets", "x", "no JSON"), ["[HEADGATE_BAD_OFFSETS]", "'startingOffsets'", "earliest"]),
    (errors.UnsupportedMode("overwrite", "append"), ["[HEADGATE_UNSUPPORTED_MODE]", "overwrite", "append"]),
    (errors.UnsupportedType("price", "decimal(9,2)", "cast"), ["[HEADGATE_UNSUPPORTED_TYPE]", "'price'", "decimal"]),
    (errors.BadRow("topic", "is NULL"), ["[HEADGATE_BAD_ROW]", "'topic'", "is NULL"]),
    (errors.NoBroker("h:1", "refused"), ["[HEADGATE_CANNOT_CONNECT]", "headgate.bootstrap.servers", "'h:1'"]),
    (errors.RefusedByBroker(106, "memory"), ["[HEADGATE_REFUSED]", "106", "memory"]),
    (errors.DataLoss("ann@1", 3, 9), ["[HEADGATE_DATA_LOSS]", "ann@1", "3 to 8", "failOnDataLoss"]),
    (errors.LogsUnreachable(("ann", "bob")), ["[HEADGATE_LOGS_UNREACHABLE]", "ann, bob", "failOnDataLoss"]),
    (errors.NotKept("q", "events"), ["[HEADGATE_NOT_KEPT]", "'q'", "in memory", "schema put q"]),
    (
        errors.NondeterministicInput("job/0", 50, "differ"),
        ["[HEADGATE_NONDETERMINISTIC_INPUT]", "job/0", "50", "eventIdColumn"],
    ),
    (
        errors.OtherWrite("q/job", "written with ids", "another name"),
        ["[HEADGATE_OTHER_WRITE]", "q/job", "with ids", "published nothing", "another name"],
    ),
    (errors.IdsUnknown("q/job/0", "they are gone"), ["[HEADGATE_IDS_UNKNOWN]", "q/job/0", "gone", "published nothing"]),
    (errors.ProducerFenced("job/0", 7), ["[HEADGATE_PRODUCER_FENCED]", "job/0", "7", "producerId"]),
]


@pytest.mark.parametrize(("error", "words"), SAMPLES, ids=lambda value: type(value).__name__)
def test_the_text_says_code_name_and_cure(error: ConnectorError, words: list[str]) -> None:
    assert isinstance(error, HeadgateError)
    text = str(error)
    assert text.startswith(words[0])
    assert all(word in text for word in words)


@pytest.mark.parametrize("error", [error for error, _ in SAMPLES], ids=lambda error: type(error).__name__)
def test_an_error_survives_the_way_between_processes(error: ConnectorError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.__dict__ == error.__dict__


def test_every_class_is_sampled() -> None:
    classes = {getattr(errors, name) for name in errors.__all__} - {ConnectorError}
    assert classes == {type(error) for error, _ in SAMPLES}


def test_a_name_unlike_any_gets_no_guess() -> None:
    assert "did you mean" not in str(errors.UnknownOption("zzz", ("topic",)))
