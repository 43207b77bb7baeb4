"""matching/limits.py: the bounds hang together."""

from __future__ import annotations

import sys

from headgate.matching import limits


def test_every_public_bound_is_a_positive_number_except_the_least_integer() -> None:
    for name in limits.__all__:
        value = getattr(limits, name)
        assert isinstance(value, int)
        assert (value < 0) == (name == "INTEGER_MIN")


def test_a_tree_of_the_greatest_depth_is_far_from_pythons_limits() -> None:
    assert sys.getrecursionlimit() > limits.CONDITION_DEPTH_MAX * 8


def test_canonical_text_has_room_for_every_legal_condition() -> None:
    longest_term = 2 * (limits.ATTRIBUTE_NAME_BYTES_MAX + 2) - limits.ATTRIBUTE_NAME_BYTES_MAX
    assert limits.CONDITION_TERMS_MAX * longest_term + 8 * limits.CONDITION_BYTES_MAX <= limits.CANONICAL_BYTES_MAX
