"""`headgate logs`: the logs of stored streams, which brokers have them, and their places, ready for `sub --from`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from typing import Any, TypeAlias

from headgate.protocol.client import LogInfo, catalogue, kind_word
from headgate.protocol.data import LogKind

from ..everywhere import Everywhere, add_broker_argument, ask_everywhere
from ..exits import DONE
from ..server import add_server_arguments, converse
from ..tables import plain, print_json, print_table

__all__ = ["add_arguments", "run"]

_COLUMNS = ("stream", "kind", "first", "next", "events", "bytes", "oldest", "newest", "held by")
_Held: TypeAlias = dict[tuple[str, int, str, str], dict[str, dict[str, Any]]]
_EVENTS = kind_word(LogKind.EVENTS)
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `logs`."""
    add_server_arguments(parser)
    add_broker_argument(parser)
    parser.add_argument("--stream", metavar="NAME", help="the logs of this stream alone")
    kinds = [kind_word(kind) for kind in LogKind]
    parser.add_argument(
        "--kind", choices=(*kinds, "all"), default=_EVENTS, help="what the logs are of (events; others are for audits)"
    )
    parser.add_argument("--json", action="store_true", help="one line of JSON")


def run(arguments: argparse.Namespace) -> int:
    """Ask every broker for the logs that it has, put them together, and print."""
    details = {} if arguments.stream is None else {"stream": arguments.stream}
    if arguments.kind != "all":
        details["kind"] = arguments.kind

    async def talk(client: Any) -> Everywhere:
        return await ask_everywhere(client, lambda at: _pages(client, at | details), arguments.broker)

    told = converse(arguments, talk)
    told.tell_missing(arguments.verb)
    logs = sorted(catalogue(told.answers), key=lambda log: (log.name.stream, log.name.kind, log.name))
    held = _by_log(told.answers)
    if arguments.json:
        print_json([_described(log, held) for log in logs])
        return DONE
    now = _wall_clock()
    print_table(_COLUMNS, ([*_cells(log, now), _holders(log, held)] for log in logs))
    for line in _whole(logs):
        print(plain(line))
    return DONE


async def _pages(client: Any, details: dict[str, Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    while page := await client.ask("logs", **details, after=len(rows)):
        rows += page
    return rows


def _cells(log: LogInfo, now: float) -> list[Any]:
    places = [f"{log.partition}:{position}" for position in (log.first, log.next)]
    ages = [_age(now - at / 1e6) if log.next > log.first else None for at in (log.first_time, log.last_time)]
    return [log.name.stream, kind_word(log.name.kind), *places, log.next - log.first, log.bytes, *ages]


def _holders(log: LogInfo, held: _Held) -> str:
    """The brokers that have the log; a copy with another end is shown with it."""
    ends = {broker: row["next"] for broker, row in _of(log, held).items()}
    return ", ".join(name if ends[name] == log.next else f"{name} (to {ends[name]})" for name in log.holders)


def _by_log(answers: dict[str, Any]) -> _Held:
    held: _Held = {}
    for broker, rows in answers.items():
        for row in rows:
            held.setdefault((row["broker"], row["epoch"], row["kind"], row["stream"]), {})[broker] = row
    return held


def _of(log: LogInfo, held: _Held) -> dict[str, dict[str, Any]]:
    name = log.name
    return held[name.broker, name.epoch, kind_word(name.kind), name.stream]


def _whole(logs: list[LogInfo]) -> Iterable[str]:
    """For each stream the places where all its logs end: who gives them to `sub --from` has only what is new."""
    ends: dict[str, list[str]] = {}
    for log in logs:
        if log.name.kind == LogKind.EVENTS:
            ends.setdefault(log.name.stream, []).append(f"{log.partition}:{log.next}")
    if ends:
        yield ""
    for stream, places in ends.items():
        yield f"behind all that is stored now: headgate sub {stream} --from {','.join(places)}"


def _described(log: LogInfo, held: _Held) -> dict[str, Any]:
    is_empty = log.next == log.first
    rows = _of(log, held)
    return {
        "stream": log.name.stream,
        "kind": kind_word(log.name.kind),
        "log": log.partition,
        "broker": log.name.broker,
        "epoch": log.name.epoch,
        "first": log.first,
        "next": log.next,
        "from": f"{log.partition}:{log.first}",
        "end": f"{log.partition}:{log.next}",
        "events": log.next - log.first,
        "bytes": log.bytes,
        "first_time": None if is_empty else log.first_time / 1e6,
        "last_time": None if is_empty else log.last_time / 1e6,
        "holders": [
            {"broker": name, **{key: rows[name][key] for key in ("first", "next", "bytes")}} for name in log.holders
        ],
    }


def _age(seconds: float) -> str:
    """An age in the largest unit that it fills."""
    for unit, size in _UNITS:
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return f"{max(0, int(seconds))} s ago"


_wall_clock = time.time
