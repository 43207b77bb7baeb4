"""`headgate dead`: the events that a durable subscription has given up, and how to hand them out again."""

from __future__ import annotations

import argparse
import base64
import sys
import time
from typing import Any

from headgate.protocol.data import Batch, LogKind, LogName, decode_record
from headgate.protocol.errors import ErrorCode, Refused

from ..everywhere import add_broker_argument, rows_everywhere
from ..exits import DONE, REFUSED, UsageError
from ..server import add_server_arguments, answer_of, converse
from ..tables import plain, print_json, print_map, print_table

__all__ = ["add_arguments", "run"]

_COLUMNS = ("id", "stream", "delivered", "reason")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `dead`."""
    add_server_arguments(parser)
    actions = parser.add_subparsers(dest="action", metavar="list|show|replay", required=True)
    text = "which events were given up, how often they were tried, and why"
    everything = actions.add_parser("list", help=text, allow_abbrev=False)
    text = "the durable subscription; all of them when none is named"
    everything.add_argument("name", metavar="NAME", nargs="?", help=text)
    add_broker_argument(everything)
    show = actions.add_parser("show", help="the same with the events themselves, from the logs", allow_abbrev=False)
    replay = actions.add_parser("replay", help="hand them out again, flagged as redelivered", allow_abbrev=False)
    for one in (show, replay):
        one.add_argument("name", metavar="NAME", help="the durable subscription")
        text = "this event, by its place as `dead list` shows it; may be given again"
        one.add_argument("--id", metavar="ID", action="append", default=[], help=text)
    replay.add_argument("--all", action="store_true", help="all of them")
    for one in actions.choices.values():
        one.add_argument("--json", action="store_true", help="one line of JSON")
        add_server_arguments(one)


def run(arguments: argparse.Namespace) -> int:
    """List, show or replay."""
    if arguments.action == "replay":
        return _replay(arguments)
    if arguments.action == "show":
        return _show(arguments)
    return _list(arguments)


def _list(arguments: argparse.Namespace) -> int:
    columns: tuple[str, ...] = _COLUMNS
    if arguments.name is not None:
        rows = [_row(row) for row in answer_of(arguments, "dead", name=arguments.name)]
    else:
        rows, columns = _of_all(arguments), ("name", *_COLUMNS)
    if arguments.json:
        print_json(rows)
    else:
        print_table(("given up", *columns), ([_clock(row), *(row.get(name) for name in columns)] for row in rows))
    return DONE


def _of_all(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """The dead letters of every durable subscription that has any, each with its name first."""
    names = sorted({str(row["name"]) for row in rows_everywhere(arguments, "durables", "name") if row.get("dead")})

    async def talk(client: Any) -> list[dict[str, Any]]:
        return [{"name": name, **_row(row)} for name in names for row in await client.ask("dead", name=name)]

    return converse(arguments, talk) if names else []


def _replay(arguments: argparse.Namespace) -> int:
    if bool(arguments.id) == arguments.all:
        raise UsageError("say which events: --id ID, as `dead list` shows it, or --all")
    which = {"all": True} if arguments.all else {"places": arguments.id}
    answer = answer_of(arguments, "dead_replay", name=arguments.name, **which)
    if arguments.json:
        print_json(answer)
    else:
        print(f"{answer['replayed']} events are handed out again", file=sys.stderr)
    return DONE


def _show(arguments: argparse.Namespace) -> int:
    async def talk(client: Any) -> list[dict[str, Any]]:
        rows = [_row(row) for row in await client.ask("dead", name=arguments.name)]
        wanted = [row for row in rows if not arguments.id or row["id"] in arguments.id]
        return [row | await _event_at(client, row["stream"], row["id"]) for row in wanted]

    rows = converse(arguments, talk)
    missing = set(arguments.id) - {row["id"] for row in rows}
    for one in sorted(missing):
        print(f"headgate dead: {plain(arguments.name)} did not give up {plain(one)}", file=sys.stderr)
    if arguments.json:
        print_json(rows)
    else:
        for place, row in enumerate(rows):
            if place:
                print()
            print_map(row | {"time": _clock(row)})
    return REFUSED if missing else DONE


async def _event_at(client: Any, stream: str, place: str) -> dict[str, Any]:
    """What stands at a place in a log: topic, attributes and body; nothing where no broker has it any more."""
    partition, _, position = place.rpartition(":")
    broker, _, epoch = partition.rpartition("@")
    at = int(position)
    try:
        chunk = await client.read_log(LogName(broker, int(epoch), LogKind.EVENTS, stream), at, 1)
    except Refused as error:
        if error.code != ErrorCode.NOT_FOUND:
            raise
        return {}
    for row in chunk.rows:
        if row.first <= at < row.first + row.count:
            batch, index = Batch(row.topics, row.count, row.lengths, row.records), at - row.first
            topics = batch.topic_list()
            attributes, body, _ = decode_record(batch.pieces()[index])
            return {"topic": topics[index] if len(topics) > 1 else topics[0], "attrs": attributes, **_body(body)}
    return {}


def _body(body: bytes) -> dict[str, str]:
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(body).decode()}


def _row(row: dict[str, Any]) -> dict[str, Any]:
    """A row with its place as the first of its members, by the name that people use for it."""
    return {"id": row["place"], **{name: value for name, value in row.items() if name != "place"}}


def _clock(row: dict[str, Any]) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row["time"] / 1e6))
