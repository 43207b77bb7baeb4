"""Which figures of a paper are met: one line each, the paper's words beside ours."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rich.table import Table

__all__ = ["Figure", "figures"]


@dataclass(frozen=True, slots=True)
class Figure:
    """What the paper shows, whether the run has shown it too, and in a line what was found, or why it is not so."""

    number: str
    paper: str
    is_met: bool
    found: str = ""


def figures(title: str, shown: Iterable[Figure]) -> Table:
    """They as a table."""
    table = Table("figure", "the paper", "here", title=title, title_justify="left")
    for one in shown:
        said = "met" if one.is_met else "not met"
        table.add_row(one.number, one.paper, f"{said}: {one.found}" if one.found else said)
    return table
