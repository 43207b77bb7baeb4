"""`headgate streams`: the streams in use anywhere in the cluster, and what each is filtered on."""

from __future__ import annotations

import argparse

from ..everywhere import add_broker_argument, rows_everywhere
from ..exits import DONE
from ..server import add_server_arguments
from ..tables import print_json, print_table

__all__ = ["add_arguments", "run"]

_COLUMNS = ("stream", "broker", "events", "deliveries", "subscriptions", "publishers", "schema", "attributes")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `streams`."""
    add_server_arguments(parser)
    add_broker_argument(parser)
    parser.add_argument("--stream", metavar="NAME", help="this stream alone")
    parser.add_argument("--json", action="store_true", help="one line of JSON")


def run(arguments: argparse.Namespace) -> int:
    """Ask every broker, and print a row for each of its streams, since each broker counts for itself."""
    details = {} if arguments.stream is None else {"stream": arguments.stream}
    rows = rows_everywhere(arguments, "streams", "stream", **details)
    rows.sort(key=lambda row: (row["stream"], row["broker"]))
    if arguments.json:
        print_json(rows)
    else:
        print_table((*_COLUMNS[:-1], "filtered on"), ([row.get(column) for column in _COLUMNS] for row in rows))
    return DONE
