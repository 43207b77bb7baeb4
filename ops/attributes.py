"""Attributes as people type them: `price=8.45 live=true note="42"`.

Values are typed as JSON types them: true, false, null and numbers are what they look like; everything else is a
string. An integer beyond 64 bits is the nearest float, as it is in JSON lines. Double quotes make a string of what
would otherwise be a number or a word: `code="007"`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from headgate.protocol.data import Scalar

from .exits import UsageError

__all__ = ["parse_attributes", "parse_value"]

_INTEGER = re.compile(r"-?(?:0|[1-9]\d*)", re.ASCII)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_WORDS: dict[str, Scalar] = {"true": True, "false": False, "null": None}
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


def parse_attributes(words: Iterable[str]) -> dict[str, Scalar]:
    """Parse `k=v` words into attributes; of a name given twice the last counts. Raises UsageError."""
    attributes: dict[str, Scalar] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise UsageError(f"--attr {word}: write name=value, like --attr price=8.45")
        attributes[name] = parse_value(name, text)
    return attributes


def parse_value(name: str, text: str) -> Scalar:
    """Parse the value of an attribute. Raises UsageError for a number that no attribute can hold."""
    if len(text) >= 2 and text[0] == text[-1] == '"':
        return text[1:-1]
    if text in _WORDS:
        return _WORDS[text]
    # Python refuses to read integers of thousands of digits; twenty are too many already.
    if _INTEGER.fullmatch(text) and len(text) <= 20 and _INT64_MIN <= int(text) <= _INT64_MAX:
        return int(text)
    if _NUMBER.fullmatch(text):
        value = float(text)
        if math.isinf(value):
            raise UsageError(
                f"--attr {name}: {text[:24]} is beyond what a float holds: write {name}='\"…\"' for a string"
            )
        return value
    return text
