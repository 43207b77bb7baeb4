"""The bounds of counting fit the messages that they are to fit into."""

from __future__ import annotations

from headgate.broker.core.limits import WAITING_SECONDS_MAX
from headgate.broker.core.placement import counting_limits as limits
from headgate.protocol.limits import LIST_LENGTH_MAX


def test_keys_and_identities_fit_the_lists_of_a_message() -> None:
    assert limits.KEYS_PER_MESSAGE_MAX <= LIST_LENGTH_MAX
    assert 3 * limits.IDENTITIES_PER_MESSAGE_MAX <= LIST_LENGTH_MAX


def test_a_list_is_asked_for_often_before_it_is_given_up() -> None:
    assert 10 * limits.ASK_AGAIN_SECONDS < WAITING_SECONDS_MAX
