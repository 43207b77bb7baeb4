"""Outcome: decided once."""

from __future__ import annotations

import pytest

from headgate.protocol.client import Outcome
from headgate.protocol.errors import Refused


def test_the_first_decision_counts() -> None:
    outcome = Outcome()
    outcome.settle(5)
    outcome.settle(error=Refused(100, "late"))
    assert outcome.result() == 5


def test_an_error_is_raised() -> None:
    outcome = Outcome(3)
    outcome.settle(error=Refused(100, "no"))
    with pytest.raises(Refused, match="no"):
        outcome.result()


def test_what_is_open_has_no_result() -> None:
    with pytest.raises(AssertionError):
        Outcome().result()
