"""Answers for people: tables, and maps as two columns. Texts of clients are shown as they are, never as markup."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["brief", "plain", "print_json", "print_map", "print_table"]

_WIDTH_ELSEWHERE = 200
_BRIEF = 300


def print_json(value: Any) -> None:
    """One line of JSON."""
    print(json.dumps(value, separators=(",", ":")))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table; numbers to the right."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = [list(row) for row in rows]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place, column in enumerate(columns):
        numeric = bool(rows) and all(_is_number(row[place]) for row in rows)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(plain(value)) for value in row))
    console = Console(highlight=False)
    if not console.is_terminal:
        # Cut to the eighty columns that a pipe is taken for, a table would be of no use to grep.
        console.width = _WIDTH_ELSEWHERE
    console.print(table)


def print_map(members: Mapping[str, Any]) -> None:
    """A map as names and values."""
    width = max(map(len, members), default=0)
    for name, value in members.items():
        print(f"{name:<{width}}  {plain(value)}")


def brief(text: str) -> str:
    """A text that may be a book, a list of thousands of values, as so much of it as a person reads."""
    return text if len(text) <= _BRIEF else f"{text[: _BRIEF - 60]}… ({len(text)} characters; --json prints all)"


def plain(value: Any) -> str:
    """A value as text that does nothing to a terminal."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.3f}".rstrip("0").rstrip(".")
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(map(plain, value)) or "-"
    if isinstance(value, dict):
        return ", ".join(f"{name} {plain(member)}" for name, member in value.items()) or "-"
    text = str(value)
    return text if text.isprintable() else "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
