"""The bounds of the keyed store fit what they are to fit into."""

from __future__ import annotations

from headgate.broker.core.kv import limits
from headgate.protocol import limits as wire


def test_a_page_and_its_last_item_fit_a_message() -> None:
    assert limits.PAGE_BYTES_MAX + limits.ITEM_BYTES_MAX <= wire.PAGE_LENGTH_MAX - 64 * 1024
    assert limits.PAGE_BYTES_MAX < wire.FRAME_LENGTH_MAX


def test_the_number_of_a_put_names_life_and_put_in_64_bits() -> None:
    assert limits.LIVES_MAX * limits.TICKETS_MAX == 2**64


def test_whoever_is_asked_four_times_a_lease_remembers_a_lease_of_questions() -> None:
    assert limits.NUMBERS_REMEMBERED_MAX > 4
