"""PollSchedule: soon at first, then less so; when nobody is away, longer than a silence."""

from __future__ import annotations

from headgate.protocol.client import PollSchedule
from headgate.protocol.limits import REPLAY_LATE_SECONDS, REPLAY_POLL_SECONDS, REPLAY_POLL_SECONDS_MAX


def test_first_polls_for_brokers_that_are_away_are_soon_and_later_ones_are_not() -> None:
    looks = PollSchedule()
    pauses = [looks.pause(True, 0.0) for _ in range(100)]
    assert pauses[:4] == [0.5, 1.0, 2.0, 4.0] and set(pauses[4:]) == {REPLAY_POLL_SECONDS}


def test_a_look_that_takes_long_makes_the_pause_longer() -> None:
    looks = PollSchedule()
    assert looks.pause(True, 10.0) == 0.5 + 30.0
    assert looks.pause(True, 1e6) == REPLAY_POLL_SECONDS_MAX


def test_when_nobody_is_away_nothing_is_asked_and_they_begin_anew() -> None:
    looks = PollSchedule()
    looks.pause(True, 0.0)
    assert looks.pause(False, 50.0) == 2 * REPLAY_LATE_SECONDS
    assert looks.pause(True, 0.0) == 0.5
