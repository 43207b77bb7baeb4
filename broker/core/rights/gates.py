"""Gates: which events of a batch a user may not publish, or may not be given, looked at one by one.

A topic that no condition has a say in is decided once and remembered. Attributes are read from the records, whatever
match columns the publisher sent: those are its word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from headgate.matching import Compiled, compile_condition
from headgate.matching.tree import Not
from headgate.protocol.data import Batch, Scalar
from headgate.protocol.errors import ProtocolViolation

from ..limits import RIGHTS_TOPICS_MAX
from .roles import Grant

__all__ = ["Gate"]

_Verdict: TypeAlias = bool | tuple[tuple[Compiled, ...] | None, tuple[Compiled, ...]]
"""Of a topic: allowed, not allowed, or conditions of which one has to be true (None: none), and those that all do."""


class Gate:
    """Lets through what some grant allows and no denial forbids."""

    def __init__(self, grants: Sequence[Grant], denials: Sequence[Grant]) -> None:
        self._grants = [(one.pattern, None if one.where is None else compile_condition(one.where)) for one in grants]
        # Not: a denial whose condition is UNKNOWN counts.
        self._denials = [
            (one.pattern, None if one.where is None else compile_condition(Not(one.where))) for one in denials
        ]
        self._topics: dict[str, _Verdict] = {}

    def shut(self, batch: Batch) -> list[int]:
        """The rows that are not let through, in order. What cannot be read is not."""
        topics = batch.topic_list()
        verdicts = [self._verdict(topic) for topic in topics]
        if all(verdict is True for verdict in verdicts):
            return []
        if len(verdicts) == 1:
            if (shut := _shut_at_one(verdicts[0], batch)) is not None:
                return shut
            verdicts *= batch.count
        columns: dict[str, Sequence[Scalar]] = {}
        return [row for row, verdict in enumerate(verdicts) if not _passes(verdict, batch, columns, row)]

    def opens(self, topic: str) -> bool:
        """Whether it lets everything at that topic through."""
        return self._verdict(topic) is True

    def _verdict(self, topic: str) -> _Verdict:
        verdict = self._topics.get(topic)
        if verdict is None:
            if len(self._topics) >= RIGHTS_TOPICS_MAX:
                self._topics.clear()
            verdict = self._topics[topic] = self._decide(topic)
        return verdict

    def _decide(self, topic: str) -> _Verdict:
        allowing = [where for pattern, where in self._grants if pattern.matches(topic)]
        denying = [where for pattern, where in self._denials if pattern.matches(topic)]
        if not allowing or None in denying:
            return False
        sparing = tuple(where for where in denying if where is not None)
        needed = None if None in allowing else tuple(where for where in allowing if where is not None)
        return True if needed is None and not sparing else (needed, sparing)


def _shut_at_one(verdict: _Verdict, batch: Batch) -> list[int] | None:
    """The same where all events have one topic: each condition is asked of all of them. None: some cannot be read."""
    if isinstance(verdict, bool):
        return None
    needed, sparing = verdict
    try:
        parts = (
            [list(map(any, zip(*(_truths(one, batch) for one in needed), strict=True)))] if needed is not None else []
        )
        parts += [_truths(one, batch) for one in sparing]
    except ProtocolViolation:
        return None
    return [row for row, passes in enumerate(map(all, zip(*parts, strict=True))) if not passes]


def _truths(condition: Compiled, batch: Batch) -> list[bool]:
    columns = [batch.derived(name) for name in condition.attributes]
    return list(map(condition.test, *columns)) if columns else [condition.test()] * batch.count


def _passes(verdict: _Verdict, batch: Batch, columns: dict[str, Sequence[Scalar]], row: int) -> bool:
    if isinstance(verdict, bool):
        return verdict
    needed, sparing = verdict
    try:
        allowed = needed is None or any(_test(one, batch, columns, row) for one in needed)
        return allowed and all(_test(one, batch, columns, row) for one in sparing)
    except ProtocolViolation:
        return False


def _test(condition: Compiled, batch: Batch, columns: dict[str, Sequence[Scalar]], row: int) -> bool:
    for name in condition.attributes:
        if name not in columns:
            columns[name] = batch.derived(name)
    return condition.test(*[columns[name][row] for name in condition.attributes])
