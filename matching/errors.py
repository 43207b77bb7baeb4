"""The errors of the matching package: what was wrong, where, and what to write instead.

    MatchingError
        ConditionError      the text of a condition is refused
        TopicError          the topic of an event is refused
            PatternError    the pattern of a subscription is refused

All of them blame the text that came in; none of them is raised while events are matched.
"""

from __future__ import annotations

from headgate.matching.limits import EXCERPT_CHARACTERS_MAX

__all__ = ["ConditionError", "MatchingError", "PatternError", "TopicError"]


class MatchingError(ValueError):
    """Something a client wrote cannot be used; the text says why and what to write instead."""


class ConditionError(MatchingError):
    """A condition is refused: `column` counts characters from 1, `expected` is in words a user knows."""

    def __init__(self, text: str, column: int, problem: str, expected: str) -> None:
        super().__init__(text, column, problem, expected)
        self.text = text
        self.column = column
        self.problem = problem
        self.expected = expected

    def __str__(self) -> str:
        head = f"condition, column {self.column}: {self.problem}"
        if self.expected:
            head += f"; expected {self.expected}"
        excerpt, caret = _excerpt(self.text, self.column)
        return f"{head}\n  {excerpt}\n  {' ' * caret}^"


class TopicError(MatchingError):
    """A topic is refused: `topic` is what was given, `problem` what is wrong, `advice` what to do about it."""

    noun = "topic"

    def __init__(self, topic: str, problem: str, advice: str) -> None:
        super().__init__(topic, problem, advice)
        self.topic = topic
        self.problem = problem
        self.advice = advice

    def __str__(self) -> str:
        shown = ascii(self.topic) if not self.topic.isprintable() else repr(self.topic)
        if len(shown) > EXCERPT_CHARACTERS_MAX:
            shown = shown[: EXCERPT_CHARACTERS_MAX - 4] + "..." + shown[0]
        return f"{self.noun} {shown}: {self.problem}; {self.advice}"


class PatternError(TopicError):
    """A topic pattern is refused."""

    noun = "pattern"


def _excerpt(text: str, column: int) -> tuple[str, int]:
    """The part of the text around a column that fits one line, and where in it the caret stands."""
    place = min(column - 1, len(text))
    start = max(0, place - EXCERPT_CHARACTERS_MAX // 2)
    end = start + EXCERPT_CHARACTERS_MAX
    shown = "".join(c if c.isprintable() else " " for c in text[start:end])
    lead = "..." if start else ""
    tail = "..." if end < len(text) else ""
    return lead + shown + tail, place - start + len(lead)
