"""`headgate subs`: every subscription in force, with its client and what it lost."""

from __future__ import annotations

import argparse

from ..exits import DONE
from ..server import add_server_arguments, all_of
from ..tables import print_json, print_table

__all__ = ["add_arguments", "run"]

_COLUMNS = ("id", "client", "pattern", "exact", "condition", "connected", "dropped")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `subs`."""
    add_server_arguments(parser)
    parser.add_argument("--json", action="store_true", help="one line of JSON")


def run(arguments: argparse.Namespace) -> int:
    """Ask, page by page, and print."""
    answer = all_of(arguments, "subs", "id")
    if arguments.json:
        print_json(answer)
    else:
        print_table(_COLUMNS, ([row.get(column) for column in _COLUMNS] for row in answer))
    return DONE
