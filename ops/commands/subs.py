"""`headgate subs`: every subscription in force anywhere in the cluster, with its client and whether that keeps up."""

from __future__ import annotations

import argparse

from ..everywhere import add_broker_argument, rows_everywhere
from ..exits import DONE
from ..server import add_server_arguments
from ..tables import brief, print_json, print_table

__all__ = ["add_arguments", "run"]

_COLUMNS = {
    "broker": "broker",
    "id": "id",
    "client": "client",
    "address": "address",
    "pattern": "pattern",
    "exact": "exact",
    "condition": "condition",
    "pace": "pace",
    "waiting_events": "waiting",
    "dropped": "dropped",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `subs`."""
    add_server_arguments(parser)
    add_broker_argument(parser)
    parser.add_argument("--stream", metavar="NAME", help="subscriptions to this stream alone")
    parser.add_argument("--json", action="store_true", help="one line of JSON")


def run(arguments: argparse.Namespace) -> int:
    """Ask every broker, page by page, and print."""
    details = {} if arguments.stream is None else {"stream": arguments.stream}
    rows = rows_everywhere(arguments, "subs", "id", **details)
    if arguments.json:
        print_json(rows)
    else:
        short = (row | {"condition": brief(row["condition"])} for row in rows)
        print_table(tuple(_COLUMNS.values()), ([row.get(column) for column in _COLUMNS] for row in short))
    return DONE
