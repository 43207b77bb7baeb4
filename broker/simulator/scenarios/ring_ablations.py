"""Ablations of the ring: one safeguard of the protocol replaced by what was published before, from outside.

Each patches one fresh machine; the product knows no such switch. The tests say what each must do to a
campaign: break the invariant, keep the ring from ever becoming ideal, or (no padding) nothing at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headgate.broker.core.membership import Chord, Joining, Member, Ring, SuccessorList

__all__ = ["RING_ABLATIONS", "ablate_ring"]


class _RepeatsLast(Ring):
    """A list that lost its head is filled up by repeating its last entry."""

    def _without_head(self) -> SuccessorList:
        return (*self.successors[1:], self.successors[-1])

    def validate(self) -> None:
        """Anything goes."""


class _NoPadding(Ring):
    """A list that lost its head stays short until the next stabilization."""

    def _without_head(self) -> SuccessorList:
        return self.successors[1:]

    def _drop_head(self, now: float) -> None:
        if len(self.successors) == 1:
            self.lost = "orphaned"
        else:
            super()._drop_head(now)

    def _adopt(self, head: Member, successors: SuccessorList) -> bool:
        self.successors = (head, *successors)[: self.identity.config.list_length]
        return True

    def validate(self) -> None:
        """Lists may be short."""


class _Unchecked(Ring):
    """A new successor is adopted on hearsay, without asking it."""

    def _consider(self, candidate: Member, now: float) -> None:
        self.successors = (candidate, *self.successors[:-1])
        self.steps_done += 1
        if not candidate.artificial:
            self._notify_head(now)

    def _notify_head(self, now: float) -> None:
        if not self.successors[0].artificial:
            super()._notify_head(now)


class _Silent(Ring):
    """After a dead new successor the head is not notified."""

    def _candidate_is_dead(self, now: float) -> None:
        self._settle(now)


class _NeverBusy(Ring):
    """Questions are answered in the middle of a step."""

    def busy(self) -> bool:
        """Never."""
        return False


class _Round(Ring):
    """A list that reaches round to its owner is taken for a list."""

    def _reaches_round(self, head: Member, successors: SuccessorList) -> bool:
        return False

    def stabilize(self, now: float) -> None:
        """Who is its own successor has nobody to ask."""
        if self.successors[0] != self.identity.me:
            super().stabilize(now)
        else:
            self.lost = "alone"

    def validate(self) -> None:
        """Anything goes."""


class _OneSuccessor(Joining):
    """A newcomer learns one successor, and makes the rest of its list up."""

    def _list(self, member: Member, successors: SuccessorList) -> SuccessorList:
        head = successors[0]
        return (head, *(Member(head.identifier, head.incarnation, step) for step in range(1, len(successors))))


_RINGS: dict[str, type[Ring]] = {
    "busy": _NeverBusy,
    "notify": _Silent,
    "padding": _NoPadding,
    "repeat-last": _RepeatsLast,
    "round": _Round,
    "unchecked": _Unchecked,
}

RING_ABLATIONS = ("busy", "notify", "one-successor", "padding", "repeat-last", "round", "unchecked")


def ablate_ring(name: str) -> Callable[[Chord], None]:
    """What to do to each fresh machine; an empty name changes nothing. Raises KeyError."""
    if name and name not in RING_ABLATIONS:
        raise KeyError(name)

    def harm(machine: Chord) -> None:
        if name == "one-successor":
            _wrap(machine, "_begin_joining", _OneSuccessor)
        elif name:
            _wrap(machine, "_make_ring", _RINGS[name])

    return harm


def _wrap(machine: Chord, maker: str, kind: type[Any]) -> None:
    """Let this machine make its parts of another kind."""
    assert hasattr(machine, maker), f"Chord.{maker} is gone: the ablation would do nothing"
    setattr(machine, maker, kind)
