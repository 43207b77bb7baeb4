"""The audit's patience is longer than whatever a broker may wait for."""

from __future__ import annotations

from headgate.broker.core import limits as core
from headgate.ops.jobs import audit_limits as limits


def test_a_session_that_ended_had_lost_its_connection_within_the_margin() -> None:
    assert limits.SESSION_SECONDS > core.SESSION_GRACE_SECONDS


def test_what_waits_for_the_disk_and_for_a_key_is_not_called_wrong() -> None:
    assert limits.OUTSIDE_SECONDS >= core.STORE_SECONDS_MAX + core.WAITING_SECONDS_MAX


def test_a_death_is_an_excuse_as_long_as_others_may_wait_for_the_dead() -> None:
    assert limits.CRASH_SECONDS > core.WAITING_SECONDS_MAX


def test_deliveries_are_in_the_log_before_they_count_as_lost() -> None:
    assert limits.SETTLE_SECONDS > core.STORE_SECONDS_MAX + core.AUDIT_SECONDS
    assert core.AUDIT_SECONDS < limits.BOUNDARY_SECONDS
