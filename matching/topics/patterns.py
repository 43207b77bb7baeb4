"""Topics and topic patterns: `quotes/NYSE/OTE`, `quotes/*/OTE`.

A topic is levels joined by `/`. The first level is the stream. A pattern is a topic in which any level but the first
may be `*`, which stands for exactly one level. A pattern matches the topics at and below it (the implicit trailing
wildcard of the paper on hierarchical streaming, HIER II-A), unless it is exact.

Levels are compared by code point, without folding case or normalising Unicode.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headgate.matching.errors import PatternError, TopicError
from headgate.matching.limits import TOPIC_BYTES_MAX, TOPIC_LEVELS_MAX

__all__ = ["WILDCARD", "Pattern", "check_topic", "parse_pattern"]

WILDCARD: Final = "*"

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")

# What people who know MQTT or NATS write, and what to write here.
_FOREIGN: Final = {
    "#": "leave it out: a pattern also matches everything below it",
    "+": "write * for one whole level",
    ">": "leave it out: a pattern also matches everything below it",
}


@dataclass(frozen=True, slots=True)
class Pattern:
    """A parsed pattern; `exact` turns off the implicit trailing wildcard."""

    levels: tuple[str, ...]
    exact: bool = False

    @property
    def stream(self) -> str:
        """The first level, which is always named."""
        return self.levels[0]

    @property
    def literal_prefix(self) -> str:
        """The longest leading part without a wildcard, as a topic."""
        levels = self.levels
        end = levels.index(WILDCARD) if WILDCARD in levels else len(levels)
        return "/".join(levels[:end])

    def matches(self, topic: str) -> bool:
        """The plain meaning: does this pattern cover that topic?"""
        return self.covers(topic.split("/"))

    def covers(self, levels: Sequence[str]) -> bool:
        """The same for a topic already cut into levels."""
        if len(levels) < len(self.levels) or (self.exact and len(levels) != len(self.levels)):
            return False
        return all(want in (WILDCARD, have) for want, have in zip(self.levels, levels, strict=False))

    def __str__(self) -> str:
        return "/".join(self.levels)


def check_topic(text: str) -> tuple[str, ...]:
    """The levels of an event's topic, or TopicError."""
    levels = _split(text, TopicError)
    if WILDCARD in levels:
        raise TopicError(text, "an event has one topic, so no level may be *", "name the level")
    return levels


def parse_pattern(text: str, exact: bool = False) -> Pattern:
    """The pattern of a subscription, or PatternError."""
    levels = _split(text, PatternError)
    for level in levels:
        advice = _FOREIGN.get(level)
        if advice is not None:
            raise PatternError(text, f"{level} is not a wildcard here", advice)
        if WILDCARD in level and level != WILDCARD:
            problem = f"* stands for a whole level and cannot be a part of {level!r}"
            raise PatternError(text, problem, "write * alone, and use LIKE on an attribute for parts")
    if levels[0] == WILDCARD:
        raise PatternError(text, "the first level is the stream and cannot be *", "subscribe to each stream by name")
    return Pattern(levels, exact)


def _split(text: str, error: type[TopicError]) -> tuple[str, ...]:
    """What topics and patterns have in common: size, levels, characters."""
    if not text:
        raise error(text, "it is empty", "name at least the stream, such as quotes")
    if len(text) > TOPIC_BYTES_MAX:  # before encoding: a text of a megabyte is not worth a second copy
        raise error(text[: TOPIC_BYTES_MAX // 8], f"it is longer than {TOPIC_BYTES_MAX} bytes", "shorten it")
    if _SURROGATE.search(text):
        raise error(text, "it holds half of a surrogate pair, which is not a character", "send valid UTF-8")
    if len(text.encode()) > TOPIC_BYTES_MAX:
        raise error(text, f"it is longer than {TOPIC_BYTES_MAX} bytes of UTF-8", "shorten it")
    if _CONTROL.search(text):
        raise error(text, "it holds a control character", "use printable characters only")
    levels = tuple(text.split("/"))
    if len(levels) > TOPIC_LEVELS_MAX:
        raise error(text, f"it has {len(levels)} levels, more than {TOPIC_LEVELS_MAX}", "use fewer levels")
    if not all(levels):
        place = "begins with /" if not levels[0] else "ends with /" if not levels[-1] else "has an empty level (//)"
        raise error(text, f"it {place}", "name every level")
    return levels
