"""Arguments that both commands of the simulator check alike."""

from __future__ import annotations

import argparse
from collections.abc import Callable

__all__ = ["within"]


def within(low: int, high: int) -> Callable[[str], int]:
    """The type of an argument that is a whole number in this range."""

    def number(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"a number from {low} to {high}, not {text}")
        return value

    return number
