"""Candidates: what counting says of our clients' subscriptions is looked at once more, and for the first time whole.

A candidate has its attributes in the right cells. Whether the topic fits the pattern, and whether all of the
condition is true (the rest of it, and a value between two multiples of the precision), its home finds out, for the rows
it is a candidate of: one evaluation, wherever the event was published. What was sent for nothing ends here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headgate.matching import Compiled, Pattern, Tree, compile_condition
from headgate.protocol.data import Batch

__all__ = ["Check", "true_of"]


@dataclass(frozen=True, slots=True)
class Check:
    """What a counted subscription asks for."""

    pattern: Pattern
    condition: Compiled
    is_checked: bool = True
    """A candidate is checked; else it is taken for a match."""

    @classmethod
    def of(cls, pattern: Pattern, condition: Tree, is_checked: bool = True) -> Check:
        """Of a subscription."""
        return cls(pattern, compile_condition(condition), is_checked)

    def holds(self, batch: Batch, row: int) -> bool:
        """Whether a row of a batch is what was asked for. Raises ProtocolViolation when the batch cannot be read."""
        if not self.is_checked:
            return True
        topics = batch.topic_list()
        if not self.pattern.matches(topics[0] if len(topics) == 1 else topics[row]):
            return False
        columns = [batch.column(name) for name in self.condition.attributes]
        return self.condition.test(*[None if column is None else column[row] for column in columns])


def true_of(checks: Mapping[int, Check], batch: Batch, row: int, numbers: Iterable[int]) -> tuple[int, ...]:
    """Those of our clients' subscriptions that want this row; who was matched elsewhere needs no check.

    Raises ProtocolViolation.
    """
    return tuple(one for one in numbers if one not in checks or checks[one].holds(batch, row))
