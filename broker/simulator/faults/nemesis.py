"""The nemesis: makes faults happen at rates drawn from the seed, until it is told to stop; then everything heals."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

from ..engine import World

__all__ = ["NEVER", "Nemesis", "kinds_of"]

NEVER = float("inf")
"""The mean time between faults of a kind that does not happen."""


def kinds_of(every: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """The type of an argument that names faults: `crash,pause` -> the kinds; `none` -> (), `all` -> all of them."""

    def read(text: str) -> tuple[str, ...]:
        kinds = tuple(every) if text == "all" else tuple(kind for kind in text.split(",") if kind and kind != "none")
        for kind in kinds:
            if kind not in every:
                raise ArgumentTypeError(f"no such fault: {kind}; there are {', '.join(every)}, all and none")
        return kinds

    return read


class Nemesis:
    """Strikes at random times; subclasses say with which faults."""

    def __init__(self, world: World, random: Random | None = None) -> None:
        self.random = world.random if random is None else random
        self.active = True
        self.done: Counter[str] = Counter()
        """Fault -> how often it happened, 0 for those that did not."""
        self._after = world.after

    def every(self, mean_seconds: float, kind: str, action: Callable[[], bool]) -> None:
        """Do this at random times with that mean interval; the action returns whether it could."""
        if mean_seconds == NEVER:
            return
        self.done[kind] += 0

        def strike() -> None:
            if self.active:
                self.done[kind] += self.may_strike() and action()
                self.every(mean_seconds, kind, action)

        self._after(self.random.expovariate(1.0 / mean_seconds), strike)

    def may_strike(self) -> bool:
        """Whether a fault may happen now."""
        return True

    def stop(self) -> None:
        """Stop the faults, and repair what they broke."""
        self.active = False
