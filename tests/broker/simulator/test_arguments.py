"""Arguments: a number inside its range is taken, any other refused with the range in the text."""

from __future__ import annotations

import argparse

import pytest

from headgate.broker.simulator.arguments import within


@pytest.mark.parametrize("text", ["1", "3"])
def test_both_ends_are_inside(text: str) -> None:
    assert within(1, 3)(text) == int(text)


@pytest.mark.parametrize("text", ["0", "4", "-1"])
def test_what_is_outside_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=f"from 1 to 3, not {text}"):
        within(1, 3)(text)
