"""`headgate dead`: the events that a durable subscription has given up, and how to hand them out again."""

from __future__ import annotations

import argparse
import base64
import sys
import time
from typing import Any

from ..exits import DONE, REFUSED, UsageError
from ..server import add_server_arguments, answer_of
from ..tables import plain, print_json, print_map, print_table

__all__ = ["add_arguments", "run"]

_COLUMNS = ("id", "topic", "delivered", "reason")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dead`."""
    add_server_arguments(parser)
    actions = parser.add_subparsers(dest="action", metavar="list|show|replay", required=True)
    actions.add_parser(
        "list", help="which events were given up, how often they were tried, and why", allow_abbrev=False
    )
    show = actions.add_parser("show", help="the same with the events themselves", allow_abbrev=False)
    replay = actions.add_parser("replay", help="hand them out again, as if for the first time", allow_abbrev=False)
    for one in actions.choices.values():
        one.add_argument("name", metavar="NAME", help="the durable subscription")
    for one in (show, replay):
        one.add_argument("--id", metavar="ID", action="append", default=[], help="this event; may be given again")
    replay.add_argument("--all", action="store_true", help="all of them")
    for one in actions.choices.values():
        one.add_argument("--json", action="store_true", help="one line of JSON")
        add_server_arguments(one)


def run(arguments: argparse.Namespace) -> int:
    """List, show or replay."""
    if arguments.action == "replay":
        return _replay(arguments)
    rows = answer_of(arguments, "dead", name=arguments.name)
    if arguments.action == "show":
        missing = set(arguments.id) - {row["id"] for row in rows}
        rows = [row for row in rows if not arguments.id or row["id"] in arguments.id]
        for one in sorted(missing):
            print(f"headgate dead: {plain(arguments.name)} did not give up {plain(one)}", file=sys.stderr)
        _print_events([_readable(row) for row in rows], arguments.json)
        return REFUSED if missing else DONE
    kept = ({name: value for name, value in row.items() if name not in ("body", "attributes")} for row in rows)
    if arguments.json:
        print_json(list(kept))
    else:
        print_table(("given up", *_COLUMNS), ([_clock(row), *(row.get(name) for name in _COLUMNS)] for row in kept))
    return DONE


def _replay(arguments: argparse.Namespace) -> int:
    if bool(arguments.id) == arguments.all:
        raise UsageError("say which events: --id ID, as `dead list` shows it, or --all")
    which = {"all": True} if arguments.all else {"ids": arguments.id}
    answer = answer_of(arguments, "dead_replay", name=arguments.name, **which)
    if arguments.json:
        print_json(answer)
    else:
        print(f"{answer['replayed']} events are handed out again", file=sys.stderr)
    return DONE


def _print_events(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(rows)
        return
    for place, row in enumerate(rows):
        if place:
            print()
        print_map(row | {"time": _clock(row)})


def _readable(row: dict[str, Any]) -> dict[str, Any]:
    """A row whose body JSON can write."""
    body = row.get("body")
    if not isinstance(body, bytes):
        return row
    try:
        return row | {"body": body.decode()}
    except UnicodeDecodeError:
        rest = {name: value for name, value in row.items() if name != "body"}
        return rest | {"body_base64": base64.b64encode(body).decode()}


def _clock(row: dict[str, Any]) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row["time"] / 1e6))
