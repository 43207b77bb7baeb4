"""A held log: what is safe stays safe, and what may be taken back is not read before it is."""

from __future__ import annotations

import pytest

from headgate.broker.core.log import HeldLog
from headgate.broker.core.log_state import LogState
from headgate.protocol.data import LogKind, LogName


def log(kind: LogKind = LogKind.EVENTS, own: bool = True) -> HeldLog:
    return HeldLog(LogName("ann", 1, int(kind), "quotes"), own)


def grown(held: HeldLog, rows: int) -> HeldLog:
    """One event a row."""
    for _ in range(rows):
        held.grew(held.next, 1, 10, 5 + held.next)
    return held


def test_a_row_is_not_read_before_it_is_safe() -> None:
    held = grown(log(), 4)
    assert (held.next, held.readable) == (4, 0)
    held.became_safe(2)
    assert held.readable == 2
    held.became_safe(4)
    assert held.readable == 4
    assert (held.bytes, held.first_time, held.last_time) == (40, 5, 8)


def test_what_was_safe_once_stays_so() -> None:
    held = grown(log(), 1)
    held.became_safe(1)
    held.became_safe(0)
    assert (held.safe, held.readable) == (1, 1)


@pytest.mark.parametrize("held", [log(LogKind.DELIVERIES), log(LogKind.SUBSCRIPTIONS), log(own=False)])
def test_what_is_never_taken_back_is_read_as_it_comes(held: HeldLog) -> None:
    assert grown(held, 2).readable == 2


def test_what_an_earlier_life_left_is_read_as_far_as_it_is_known_to_be_safe() -> None:
    held = log()
    held.is_now(LogState(held.name, 3, 9, 60, 1, 2))
    assert (held.assigned, held.safe, held.readable) == (9, 3, 3), "what is gone cannot be taken back"
    held.became_safe(9)
    assert grown(held, 1).readable == 9


def test_an_earlier_life_says_up_to_where_it_was_safe() -> None:
    held = log()
    held.is_now(LogState(held.name, 3, 9, 60, 1, 2, safe=7))
    assert (held.readable, held.kept) == (7, 7)


def test_it_ends_where_it_is_cut() -> None:
    held = grown(log(), 4)
    held.became_safe(1)
    held.ended_at(1, 30)
    assert (held.next, held.assigned, held.bytes, held.readable) == (1, 1, 10, 1)
    held.ended_at(0, 10)
    assert (held.first_time, held.last_time, held.readable) == (0, 0, 0)


def test_what_was_let_go_of_before_it_is_cut_is_not_given_back() -> None:
    held = grown(log(), 3)
    held.is_now(LogState(held.name, 2, 3, 10, 7, 7))
    held.ended_at(1, 20)
    assert (held.first, held.next, held.assigned, held.bytes, held.first_time) == (2, 2, 2, 0, 0)
