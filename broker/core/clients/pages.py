"""Pages: a long answer is given in parts that each fit a frame; the client asks on behind the last row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..limits import ANSWER_LENGTH_MAX, DEFAULT_LIMITS

__all__ = ["page_of"]


def page_of(rows: Iterable[dict[str, Any]], rows_max: int = DEFAULT_LIMITS.answer_rows) -> list[dict[str, Any]]:
    """As many of the rows as one ANSWER may have, at least the first."""
    page: list[dict[str, Any]] = []
    length = 0
    for row in rows:
        length += len(repr(row))
        if page and (length > ANSWER_LENGTH_MAX or len(page) >= rows_max):
            break
        page.append(row)
    return page
