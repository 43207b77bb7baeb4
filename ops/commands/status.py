"""`headgate status`: what each broker holds now and has done since it started."""

from __future__ import annotations

import argparse
from typing import Any

from ..everywhere import Everywhere, add_broker_argument, ask_everywhere
from ..exits import DONE
from ..server import add_server_arguments, converse
from ..tables import print_json, print_map, print_table

__all__ = ["add_arguments", "run"]

_COLUMNS = {
    "broker": "broker",
    "uptime_seconds": "seconds up",
    "settled": "settled",
    "brokers": "sees",
    "sessions": "clients",
    "streams": "streams",
    "subscriptions": "subscriptions",
    "events_received": "events in",
    "events_delivered": "out",
    "outbox_events": "waiting",
    "drops": "dropped",
    "log_bytes": "log bytes",
    "durable_subscriptions": "durable",
    "durable_waiting": "waiting for them",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `status`."""
    add_server_arguments(parser)
    add_broker_argument(parser)
    parser.add_argument(
        "--json",
        action="store_true",
        help="one line of JSON: all of the broker that was asked, of each as `cluster`, and who is `missing`",
    )


def run(arguments: argparse.Namespace) -> int:
    """Ask every broker, and print all of one, or a row for each of several."""

    async def talk(client: Any) -> Everywhere:
        return await ask_everywhere(client, lambda at: client.ask("status", **at), arguments.broker)

    told = converse(arguments, talk)
    told.tell_missing(arguments.verb)
    answers = list(told.answers.values())
    first = told.answers.get(told.broker, answers[0])
    if arguments.json:
        missing = [{"broker": broker, "reason": reason} for broker, reason in told.missing.items()]
        print_json({**first, "cluster": answers, "missing": missing})
    elif len(answers) == 1 and not told.missing:
        print_map({name.replace("_", " "): value for name, value in first.items()})
    else:
        print_table(tuple(_COLUMNS.values()), ([_cell(row, column) for column in _COLUMNS] for row in answers))
        print("\n`headgate status --broker NAME` shows all of one")
    return DONE


def _cell(row: dict[str, Any], column: str) -> Any:
    value = row.get(column)
    return sum(value.values()) if isinstance(value, dict) else value
