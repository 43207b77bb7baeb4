"""Retry: growing pauses within a budget."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.protocol.client import Retry, reason_of
from headgate.protocol.errors import ConnectionLost, ProtocolViolation
from headgate.protocol.limits import RETRY_DELAY_SECONDS_MAX, RETRY_DELAY_SECONDS_MIN


def test_pauses_double_up_to_the_longest() -> None:
    retry = Retry(1000.0, lambda: 1.0)
    retry.lost(0.0)
    delays = [retry.next_delay(0.0) for _ in range(8)]
    assert delays == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]


@given(st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=20), st.floats(0, 100))
def test_pauses_stay_within_bounds_and_budget(jitters: list[float], budget: float) -> None:
    draws = iter(jitters)
    retry = Retry(budget, lambda: next(draws))
    now = 5.0
    retry.lost(now)
    for _ in jitters:
        delay = retry.next_delay(now)
        if delay is None:
            assert now >= 5.0 + budget - 1e-9
            return
        assert min(RETRY_DELAY_SECONDS_MIN / 2, 5.0 + budget - now) <= delay <= RETRY_DELAY_SECONDS_MAX
        now += delay


def test_the_budget_ends() -> None:
    retry = Retry(1.0, lambda: 0.0)
    retry.lost(10.0)
    assert retry.next_delay(10.99) is not None
    assert retry.next_delay(11.0) is None
    assert Retry(0.0, lambda: 0.0).next_delay(0.0) is None


def test_a_short_connection_does_not_renew_the_budget_and_a_long_one_does() -> None:
    retry = Retry(1.0, lambda: 0.0)
    retry.lost(0.0)
    retry.connected(0.5)
    retry.lost(0.6)
    assert retry.next_delay(1.1) is None
    retry.connected(1.2)
    retry.lost(1.2 + RETRY_DELAY_SECONDS_MAX)
    assert retry.next_delay(1.2 + RETRY_DELAY_SECONDS_MAX) == RETRY_DELAY_SECONDS_MIN / 2


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ConnectionRefusedError(111, "x"), "connection refused (is a broker running there?)"),
        (ProtocolViolation("too old"), "too old"),
        (ConnectionLost("gone"), "gone"),
        (OSError("odd"), "odd"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_reasons_are_words(error: Exception, text: str) -> None:
    assert reason_of(error) == text
