"""Candidates are looked at whole: topic and condition, on the rows they are candidates of."""

from __future__ import annotations

import pytest

from headgate.broker.core.placement import Check, true_of
from headgate.matching import parse_condition, parse_pattern
from headgate.protocol.data import Batch
from headgate.protocol.errors import ProtocolViolation
from tests.support.builders import quote_batch


def check(condition: str, pattern: str = "quotes") -> Check:
    return Check.of(parse_pattern(pattern), parse_condition(condition))


CHECKS = {1: check("price > 8.301"), 2: check("price > 8.301 AND name LIKE 'a%'"), 3: check("price > 0", "quotes/*/x")}


def test_who_is_true_of_a_row() -> None:
    topics = ["quotes/a/x", "quotes/a/y", "quotes/b/x"]
    batch = quote_batch(topics, ["one", "two", "three"], price=[8.302, 8.3, None], name=["b", "ab", "ab"])
    assert [true_of(CHECKS, batch, row, (1, 2, 3)) for row in range(3)] == [(1, 3), (), ()]


def test_whoever_needs_no_check_stays() -> None:
    batch = quote_batch("quotes/a/y", ["one"], price=[1])
    assert true_of(CHECKS, batch, 0, (9, 1, 3)) == (9,)
    assert true_of({}, batch, 0, (9, 1)) == (9, 1)


def test_one_topic_for_all_rows_and_columns_that_were_not_sent() -> None:
    batch = quote_batch("quotes/a/x", ["one", "two"], [], price=[9, 8], name=["a", "a"])
    assert not batch.columns
    assert [true_of(CHECKS, batch, row, (1, 2, 3)) for row in range(2)] == [(1, 2, 3), (3,)]


def test_a_column_that_nobody_has_is_null() -> None:
    batch = quote_batch("quotes/a/x", ["one"], price=[9])
    assert true_of(CHECKS, batch, 0, (2,)) == ()


def test_records_that_cannot_be_read_are_refused() -> None:
    batch = quote_batch("quotes", ["one"], [], price=[9])
    broken = Batch(batch.topics, 1, b"\x01\0\0\0", b"\xc1", {}, complete=False)
    with pytest.raises(ProtocolViolation):
        true_of(CHECKS, broken, 0, (1,))
