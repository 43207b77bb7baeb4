"""JSON as this command writes it: one line, every letter as it is.

Only what ends a line for some reader, moves a terminal's cursor, turns the direction of what follows or is no character
at all is escaped: C1 controls, line and paragraph separators, marks of direction, halves of surrogate pairs.
"""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["harmless", "json_text"]

_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")

_encode = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode


def json_text(value: Any) -> str:
    """A value as one line. Raises ValueError for NaN and infinities, which JSON does not have.

    >>> json_text({"city": "Αθήνα", "end": "\x85"})
    '{"city":"Αθήνα","end":"\\\\u0085"}'
    """
    return harmless(_encode(value))


def harmless(text: str) -> str:
    """A JSON text with what is unsafe escaped; it means the same."""
    # Nothing that is unsafe is printable; to know that costs half of looking for it.
    return text if text.isascii() or text.isprintable() else _UNSAFE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
