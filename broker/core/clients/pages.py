"""Pages: a long answer is given in parts that each fit a frame; whoever wants more asks on behind the last row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..limits import ANSWER_LENGTH_MAX, ANSWER_ROWS_MAX

__all__ = ["page_of"]


def page_of(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """As many of the rows as one ANSWER may have, at least the first."""
    page: list[dict[str, Any]] = []
    length = 0
    for row in rows:
        length += len(repr(row))
        if page and (length > ANSWER_LENGTH_MAX or len(page) >= ANSWER_ROWS_MAX):
            break
        page.append(row)
    return page
