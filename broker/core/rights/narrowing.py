"""Narrowing: the pattern and the condition of what a user asks for and may have.

    asked     quotes            WHERE volume > 10
    right     quotes/*/OTE      WHERE desk = 'FX'
    narrowed  quotes/*/OTE      WHERE volume > 10 AND desk = 'FX'

Two patterns have at most one pattern in common, because a wildcard stands for a whole level. With one right that is the
narrowed pattern. Several rights whose patterns differ, and denials, become part of the condition, where `#level/1` is
the second level of the topic:

    rights    quotes/NYSE WHERE price < 10     or     quotes/LSE
    narrowed  quotes      WHERE `#level/1` = 'NYSE' AND price < 10 OR `#level/1` = 'LSE'

A denial is never UNKNOWN by its topic, and counts where its condition is UNKNOWN: NOT (UNKNOWN) is not true.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headgate.matching import MatchingError, Pattern, Tree, parse_condition, to_text
from headgate.matching.tree import Attribute, Compare, IsNull, Literal, Not, conjunction, disjunction
from headgate.protocol.data import LEVEL_COLUMNS
from headgate.protocol.errors import ErrorCode, Refused

from .roles import Grant

__all__ = ["Narrowed", "at_pattern", "common", "narrow"]

_WILDCARD = "*"


@dataclass(frozen=True, slots=True)
class Narrowed:
    """What lets through all that was asked for and is allowed, and nothing else."""

    pattern: Pattern
    condition: Tree | None

    @property
    def text(self) -> str:
        """The condition in its one form; empty for none."""
        return "" if self.condition is None else to_text(self.condition)


def common(one: Pattern, other: Pattern) -> Pattern | None:
    """The pattern of the topics that both match; None when there is none."""
    longer, shorter = (one, other) if len(one.levels) >= len(other.levels) else (other, one)
    if shorter.exact and len(longer.levels) > len(shorter.levels):
        return None
    levels = list(longer.levels)
    for place, level in enumerate(shorter.levels):
        if levels[place] == _WILDCARD:
            levels[place] = level
        elif level not in (_WILDCARD, levels[place]):
            return None
    return Pattern(tuple(levels), one.exact or other.exact)


def at_pattern(pattern: Pattern, within: Pattern) -> Tree | None:
    """Whether a topic, which is at `within`, is at a pattern that lies in it: never UNKNOWN. None: it always is."""
    parts: list[Tree] = []
    last = len(pattern.levels) - 1
    if last >= len(within.levels):
        parts.append(Not(IsNull(_level(last))))
    for place, level in enumerate(pattern.levels):
        if level != _WILDCARD and within.levels[place : place + 1] != (level,):
            parts.append(Compare("=", _level(place), Literal(level)))
    if pattern.exact and not within.exact:
        parts.append(IsNull(_level(last + 1)))
    return conjunction(parts) if parts else None


def _level(place: int) -> Attribute:
    return Attribute(f"{LEVEL_COLUMNS}{place}")


def narrow(asked: Pattern, condition: Tree | None, grants: Sequence[Grant], denials: Sequence[Grant]) -> Narrowed:
    """What of it these rights allow. Raises Refused when that is nothing, or more than one condition can say."""
    found = _widest((part, grant.where) for grant in grants if (part := common(asked, grant.pattern)) is not None)
    if not found:
        raise Refused(ErrorCode.FORBIDDEN, f"your rights do not let you read {str(asked)!r}")
    patterns = dict.fromkeys(pattern for pattern, _ in found)
    pattern = next(iter(patterns)) if len(patterns) == 1 else asked
    allowed = [_both(at_pattern(part, pattern), where) for part, where in found]
    parts: list[Tree] = [] if condition is None else [condition]
    wanted = [one for one in allowed if one is not None]
    if len(wanted) == len(allowed):  # one of them without any condition allows all
        parts.append(disjunction(wanted))
    for denial in denials:
        part = common(pattern, denial.pattern)
        if part is None:
            continue
        denied = _both(at_pattern(part, pattern), denial.where)
        if denied is None:
            raise Refused(ErrorCode.FORBIDDEN, f"your rights do not let you read {str(asked)!r}: it is denied to you")
        parts.append(Not(denied))
    if not parts:
        return Narrowed(pattern, None)
    narrowed = Narrowed(pattern, conjunction(parts))
    try:
        if len(parts) > 1 or condition is None:
            parse_condition(narrowed.text)
    except MatchingError as error:
        text = (
            "the condition is too long together with those of your rights: use several subscriptions, or a shorter one"
        )
        raise Refused(ErrorCode.LIMIT, text) from error
    return narrowed


def _widest(found: Iterable[tuple[Pattern, Tree | None]]) -> list[tuple[Pattern, Tree | None]]:
    """Without those that another one covers."""
    rows = list(dict.fromkeys(found))
    return [
        (pattern, where)
        for pattern, where in rows
        if not any(
            (other, none) != (pattern, where) and none is None and common(pattern, other) == pattern
            for other, none in rows
        )
    ]


def _both(topic: Tree | None, where: Tree | None) -> Tree | None:
    parts = [part for part in (topic, where) if part is not None]
    return conjunction(parts) if parts else None
