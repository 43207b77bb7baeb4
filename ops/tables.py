"""Answers for people: tables, and maps as two columns. Texts of clients are shown as they are, never as markup, and
numbers as programs read them: whatever is on standard output may be pasted into the next command.

Where NO_COLOR is set to anything, nothing of ours is coloured or bold.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

from .jsontext import harmless

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["WIDTH_ELSEWHERE", "brief", "console_for", "plain", "print_json", "print_map", "print_table", "table_of"]

WIDTH_ELSEWHERE = 200
"""Width in columns where the output is no terminal."""

_BRIEF = 300


def print_json(value: Any, indent: int | None = None) -> None:
    """One line of JSON, or with an indent several. Letters are as they are, where standard output can say them."""
    separators = (",", ":" if indent is None else ": ")
    text = harmless(json.dumps(value, ensure_ascii=False, separators=separators, indent=indent))
    try:
        print(text)
    except UnicodeEncodeError:
        print(json.dumps(value, separators=separators, indent=indent))


def console_for(file: IO[str] | None, width_elsewhere: int) -> Console:
    """A console on a file or on standard output; where that is no terminal, so wide."""
    from rich.console import Console

    console = Console(
        file=file, highlight=False, markup=False, color_system=None if os.environ.get("NO_COLOR") else "auto"
    )
    if not console.is_terminal:
        console.width = width_elsewhere
    return console


def table_of(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    """A table; numbers to the right."""
    from rich.table import Table
    from rich.text import Text

    rows = [list(row) for row in rows]
    # rich leaves bold in place: whoever says NO_COLOR, or pastes into a file, wants no escape at all.
    table = Table(box=None, pad_edge=False, header_style="" if os.environ.get("NO_COLOR") else "bold")
    for place, column in enumerate(columns):
        numeric = bool(rows) and all(_is_number(row[place]) for row in rows)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(plain(value)) for value in row))
    return table


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table on standard output."""
    # Cut to the eighty columns that a pipe is taken for, a table would be of no use to grep.
    console_for(None, WIDTH_ELSEWHERE).print(table_of(columns, rows))


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
        return f"{value:.3f}".rstrip("0").rstrip(".")
    if isinstance(value, list | tuple):
        return ", ".join(map(plain, value)) or "-"
    if isinstance(value, dict):
        return ", ".join(f"{name} {plain(member)}" for name, member in value.items()) or "-"
    text = str(value)
    return text if text.isprintable() else "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
