"""`headgate streams`: the streams in use, and what each is filtered on."""

from __future__ import annotations

import argparse

from ..exits import DONE
from ..server import add_server_arguments, all_of
from ..tables import print_json, print_table

__all__ = ["add_arguments", "run"]

_COLUMNS = ("stream", "events", "deliveries", "subscriptions", "publishers", "schema", "attributes")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `streams`."""
    add_server_arguments(parser)
    parser.add_argument("--json", action="store_true", help="one line of JSON")


def run(arguments: argparse.Namespace) -> int:
    """Ask and print."""
    answer = all_of(arguments, "streams", "stream")
    if arguments.json:
        print_json(answer)
    else:
        print_table((*_COLUMNS[:-1], "filtered on"), ([row.get(column) for column in _COLUMNS] for row in answer))
    return DONE
