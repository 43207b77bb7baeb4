"""Ablations of the log: one safeguard of a Node, or of its disk's thread, switched off. Each must make a seed fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headgate.broker.core import Node
from headgate.broker.core.log import CannotCopy, HeldLog
from headgate.protocol.messages import Stamp

from ..engine import LogHost

__all__ = ["DISK_ABLATIONS", "LOG_ABLATIONS", "ablate_disk", "ablate_log"]


def _no_sync(node: Node) -> None:
    """A batch is acknowledged before any disk has it."""
    _replace(node.log, "safe_end", lambda held: held.assigned)


def _no_copies(node: Node) -> None:
    """Our own disk is enough."""
    _replace(node.log, "safe_end", lambda held: held.next)


def _no_epoch_check(node: Node) -> None:
    """Who comes back asks nobody, and does not mind that a copy is longer than its log."""
    _replace(node.copies, "begin", lambda now: None)
    _replace(node.copies, "_copy_is_longer", lambda name, info, end, now: None)


def _no_dedupe(node: Node) -> None:
    """What comes again is new."""
    judge = node.producers.judge

    def judge_leniently(stamp: Stamp, count: int) -> Sequence[tuple[HeldLog, int]] | None:
        known = node.producers._producers.get(stamp.producer)
        if known is not None and known.is_open and stamp.number < known.next:
            return None
        return judge(stamp, count)

    _replace(node.producers, "judge", judge_leniently)


def _no_rollback(node: Node) -> None:
    """What a full disk did not take counts as published."""
    stored = node.producers.stored
    _replace(node.producers, "stored", lambda state, reason: None if reason else stored(state, reason))


def _no_waiting_for_the_safe(node: Node) -> None:
    """Who opens a producer is told of batches that are on their way."""
    _replace(node.producers, "_needs", lambda producer: [])


def _no_taking_back(node: Node) -> None:
    """Who meets others again asks nobody about rows that are on his disk alone."""
    _replace(node.tails, "settle", lambda done, now, patient=True: done(now))


def _no_promises(node: Node) -> None:
    """What comes here as a copy is taken, whatever was said to whoever opened its producer."""
    _replace(node.producers.promises, "contested", lambda row, owner: None)


def _no_other_sibling(node: Node) -> None:
    """A sibling whose disk is full is offered the same rows again, and no other broker is asked."""
    node.cluster.table_of_controls[CannotCopy] = node.copies._from


def _replace(part: object, name: str, function: Callable[..., Any]) -> None:
    assert hasattr(part, name), f"{type(part).__name__}.{name} is gone: the ablation would do nothing"
    setattr(part, name, function)


LOG_ABLATIONS: dict[str, Callable[[Node], None]] = {
    "copies": _no_copies,
    "dedupe": _no_dedupe,
    "epoch": _no_epoch_check,
    "promises": _no_promises,
    "rollback": _no_rollback,
    "room": _no_other_sibling,
    "safe": _no_waiting_for_the_safe,
    "sync": _no_sync,
    "tails": _no_taking_back,
}
"""Name -> what it does to a fresh Node."""


def _no_word_from_the_node(log: LogHost) -> None:
    """After a full disk it writes on at once, also what the Node asked for before it had heard of it."""
    log.hasty = True


DISK_ABLATIONS: dict[str, Callable[[LogHost], None]] = {"heard": _no_word_from_the_node}
"""The same of the thread that has the disk."""


def ablate_log(node: Node, name: str) -> None:
    """Switch a safeguard off; an empty name changes nothing. Raises KeyError."""
    if name and name not in DISK_ABLATIONS:
        LOG_ABLATIONS[name](node)


def ablate_disk(log: LogHost, name: str) -> None:
    """The same for the thread that has the disk."""
    if name in DISK_ABLATIONS:
        DISK_ABLATIONS[name](log)
