"""`headgate durable`: the durable subscriptions of the cluster, how much waits for each, and how to change them."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from headgate.protocol.client import parse_start
from headgate.protocol.errors import LocalError

from ..conditions import read_condition
from ..delivery import add_delivery_arguments, delivery_settings
from ..everywhere import add_broker_argument, rows_everywhere
from ..exits import DONE, UsageError
from ..server import add_server_arguments, answer_of
from ..tables import brief, plain, print_json, print_map, print_table

__all__ = ["add_arguments", "run"]

_COLUMNS = {
    "name": "name",
    "pattern": "pattern",
    "condition": "condition",
    "sharing": "sharing",
    "clients": "clients",
    "waiting": "waiting",
    "unacked": "unacked",
    "redelivered": "redelivered",
    "oldest_seconds": "oldest s",
    "dead": "dead",
    "coordinator": "kept by",
    "position": "position",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `durable`."""
    add_server_arguments(parser)
    actions = parser.add_subparsers(dest="action", metavar="list|show|set|seek|rm", required=True)
    everything = actions.add_parser("list", help="all of them, and how much waits for each", allow_abbrev=False)
    add_broker_argument(everything)
    show = actions.add_parser("show", help="all that is known of one", allow_abbrev=False)
    change = actions.add_parser(
        "set",
        help="change its condition or its delivery while it runs: what waits and still matches stays",
        allow_abbrev=False,
    )
    seek = actions.add_parser("seek", help="go on from another place", allow_abbrev=False)
    remove = actions.add_parser("rm", help="remove it, with all that waits for it", allow_abbrev=False)
    for one in (show, change, seek, remove):
        one.add_argument("name", metavar="NAME")
    change.add_argument("--where", metavar="SQL", help="its condition from now on, '' for none; @FILE reads it")
    text = "with --where: hand out what the new condition adds from the oldest event on that is not acknowledged "
    text += "(ack, unless said), or what comes from now on (now); behind that event, what was acknowledged under a "
    text += "condition before the last one, and not matched by that, comes again and is flagged"
    change.add_argument("--from", metavar="ack|now", dest="start", choices=("ack", "now"), help=text)
    add_delivery_arguments(change)
    text = "the start of its logs, now, or positions as in ann@1763492000:120, with commas between"
    seek.add_argument("to", metavar="start|now|POSITION", help=text)
    for one in actions.choices.values():
        one.add_argument("--json", action="store_true", help="one line of JSON")
        add_server_arguments(one)


def run(arguments: argparse.Namespace) -> int:
    """List, show, set, seek or remove."""
    if arguments.action == "list":
        _list(arguments)
    elif arguments.action == "show":
        row = answer_of(arguments, "durable", name=arguments.name)
        if arguments.json:
            print_json(row)
        else:
            print_map(row)
    elif arguments.action == "set":
        _set(arguments)
    elif arguments.action == "seek":
        _check_place(arguments.to)
        row = answer_of(arguments, "durable_seek", name=arguments.name, to=arguments.to)
        _print_done(arguments, row, f"{_called(arguments)} goes on from {plain(row.get('position', arguments.to))}")
    else:
        row = answer_of(arguments, "durable_rm", name=arguments.name)
        _print_done(arguments, row, f"{_called(arguments)} is removed; what waited for it is in the logs alone")
    return DONE


def _list(arguments: argparse.Namespace) -> None:
    # One that moves meanwhile may be told of by two brokers.
    rows = {str(row["name"]): row for row in rows_everywhere(arguments, "durables", "name")}
    ordered = [rows[name] for name in sorted(rows)]
    if arguments.json:
        print_json(ordered)
    else:
        short = (row | {"condition": brief(row["condition"])} for row in ordered)
        print_table(tuple(_COLUMNS.values()), ([row.get(column) for column in _COLUMNS] for row in short))


def _set(arguments: argparse.Namespace) -> None:
    details = delivery_settings(arguments)
    if arguments.where is not None:
        details["where"] = read_condition(arguments.where)
    if arguments.start is not None:
        if arguments.where is None:
            raise UsageError("--from says where a new condition begins: give --where with it, or use `durable seek`")
        details["from"] = arguments.start
    if not details:
        raise UsageError(f"durable set {arguments.name}: say what is to change, as in --where 'price > 8.5'")
    row = answer_of(arguments, "durable_set", name=arguments.name, **details)
    changed = ", ".join("condition" if name == "where" else name for name in details if name != "from")
    _print_done(arguments, row, f"{_called(arguments)} has changed: {changed}")


def _check_place(text: str) -> None:
    try:
        if isinstance(parse_start(text), str) or all("@" in name for name in parse_start(text)):  # type: ignore[union-attr]
            return
    except LocalError:
        pass
    raise UsageError(f"{text}: a place is start, now, or positions as in ann@1763492000:120, with commas between")


def _called(arguments: argparse.Namespace) -> str:
    return f"durable subscription {plain(arguments.name)}"


def _print_done(arguments: argparse.Namespace, row: Any, text: str) -> None:
    if arguments.json:
        print_json(row)
    else:
        print(text, file=sys.stderr)
