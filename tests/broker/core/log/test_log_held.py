"""A held log: what is safe stays safe, and what may be taken back is not read before it is."""

from __future__ import annotations

import pytest

from headgate.broker.core.log import HeldLog
from headgate.broker.core.log_state import LogState
from headgate.protocol.data import LogKind, LogName


def log(kind: LogKind = LogKind.EVENTS, own: bool = True) -> HeldLog:
    return HeldLog(LogName("ann", 1, int(kind), "quotes"), own)


def grown(held: HeldLog, *stamps: bool) -> HeldLog:
    """One event a row."""
    for stamped in stamps:
        held.grew(held.next, 1, 10, 5 + held.next, stamped)
    return held


def test_a_row_with_a_stamp_is_not_read_before_it_is_safe_and_nothing_behind_it_either() -> None:
    held = grown(log(), False, True, False, True)
    assert (held.next, held.readable) == (4, 1)
    held.became_safe(2)
    assert held.readable == 3
    held.became_safe(4)
    assert held.readable == 4
    assert (held.bytes, held.first_time, held.last_time) == (40, 5, 8)


def test_what_was_safe_once_stays_so() -> None:
    held = grown(log(), True)
    held.became_safe(1)
    held.became_safe(0)
    assert (held.safe, held.readable) == (1, 1)


@pytest.mark.parametrize("held", [log(LogKind.DELIVERIES), log(LogKind.SUBSCRIPTIONS), log(own=False)])
def test_what_is_never_taken_back_is_read_as_it_comes(held: HeldLog) -> None:
    assert grown(held, True, True).readable == 2


def test_what_an_earlier_life_left_is_read_as_far_as_it_is_known_to_be_safe() -> None:
    held = log()
    held.is_now(LogState(held.name, 3, 9, 60, 1, 2))
    held.unknown = 9
    assert (held.assigned, held.safe, held.readable) == (9, 3, 3), "what is gone cannot be taken back"
    held.became_safe(5)
    assert held.readable == 5
    held.became_safe(9)
    assert grown(held, False).readable == 10


def test_it_ends_where_it_is_cut() -> None:
    held = grown(log(), False, True, False, True)
    held.ended_at(1, 30)
    assert (held.next, held.assigned, held.bytes, held.readable) == (1, 1, 10, 1)
    held.ended_at(0, 10)
    assert (held.first_time, held.last_time, held.readable) == (0, 0, 0)


def test_what_was_let_go_of_before_it_is_cut_is_not_given_back() -> None:
    held = grown(log(), True, True, True)
    held.is_now(LogState(held.name, 2, 3, 10, 7, 7))
    held.ended_at(1, 20)
    assert (held.first, held.next, held.assigned, held.bytes, held.first_time) == (2, 2, 2, 0, 0)
