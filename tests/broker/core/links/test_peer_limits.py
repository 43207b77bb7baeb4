"""The bounds of the links between brokers fit one another."""

from __future__ import annotations

from headgate.broker.core.limits import Limits
from headgate.broker.core.links import limits
from headgate.protocol.limits import HANDSHAKE_SECONDS_MAX, PEER_HEARTBEAT_SECONDS


def test_a_broken_link_is_dialled_several_times_before_its_events_are_given_up() -> None:
    assert limits.LOSS_SECONDS_MAX > 2 * limits.REDIAL_SECONDS_MAX > 2 * limits.REDIAL_SECONDS_MIN > 0


def test_a_broker_is_remembered_longer_than_anything_of_it_is_under_way() -> None:
    assert limits.FORGET_SECONDS > 2 * limits.LOSS_SECONDS_MAX
    assert limits.FORGET_SECONDS > 2 * limits.HALF_OPEN_SECONDS_MAX


def test_what_was_done_is_told_long_before_a_heartbeat_is_missed() -> None:
    assert limits.ACKNOWLEDGE_SECONDS < PEER_HEARTBEAT_SECONDS / 2


def test_a_letter_that_waits_may_outlive_a_redial_and_no_more() -> None:
    assert limits.REDIAL_SECONDS_MIN < limits.PENDING_SECONDS_MAX <= limits.REDIAL_SECONDS_MAX
    assert limits.HALF_OPEN_SECONDS_MAX <= HANDSHAKE_SECONDS_MAX < Limits().idle_link_seconds
