"""`headgate tree`: the way of an event with a document from vertex to vertex and broker to broker."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ..exits import DONE
from ..jsonlines import parse_line
from ..server import add_server_arguments, converse
from ..tables import print_json
from ..walks import Visit, Walk, walks_of

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `tree`."""
    add_server_arguments(parser)
    parser.add_argument("stream", metavar="STREAM", help="the stream, the first level of its topics")
    text = 'the event, like {"xml": "<bib><book/></bib>"} or {"json": {"bib": {"book": 1}}}; - reads it'
    parser.add_argument("--event", metavar="JSON", required=True, help=text)
    parser.add_argument("--json", action="store_true", help="one line of JSON")


def run(arguments: argparse.Namespace) -> int:
    """Ask every broker, and draw."""
    line = parse_line(sys.stdin.read() if arguments.event == "-" else arguments.event, arguments.stream)

    async def talk(client: Any) -> Any:
        return await walks_of(client, arguments.stream, line)

    walks, told = converse(arguments, talk)
    told.tell_missing(arguments.verb)
    if arguments.json:
        print_json([_row(walk) for walk in walks])
        return DONE
    if not walks:
        text = "none has XPATH, or each asks an attribute for one value as well"
        print(f"no subscription to {arguments.stream} rests on a cube: {text}")
    for walk in walks:
        print("\n".join(lines_of(walk)))
    return DONE


def lines_of(walk: Walk) -> list[str]:
    """The walk, drawn."""
    if walk.root is None:
        return [f"{walk.cube}: the event has no document, and goes nowhere"]
    local, remote = walk.edges()
    lines = [f"{walk.cube}: {local + remote} edges, {remote} of them to another broker"]
    _draw(walk, walk.root, "", "", lines)
    return lines


def _draw(walk: Walk, visit: Visit, first: str, rest: str, lines: list[str]) -> None:
    cleared = "" if visit.cleared is None else f"-{visit.cleared} "
    resting = "nobody rests here" if not visit.rest else f"{visit.rest} rest here"
    lines.append(f"{first}{cleared}{walk.name(visit.vertex)} on {visit.broker}, {resting}{_pruned(visit)}")
    for place, one in enumerate(visit.onward):
        last = place == len(visit.onward) - 1
        _draw(walk, one, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "), lines)


def _pruned(visit: Visit) -> str:
    if not visit.pruned:
        return ""
    some = ", ".join(f"-{bit} ({filters} {'filter' if filters == 1 else 'filters'})" for bit, filters in visit.pruned)
    return f"; not on over {some}"


def _row(walk: Walk) -> dict[str, Any]:
    visits = [] if walk.root is None else [visit for _, visit in walk.root.walk()]
    local, remote = walk.edges()
    return {
        "cube": walk.cube,
        "edges_local": local,
        "edges_remote": remote,
        "visits": [
            {
                "vertex": walk.name(visit.vertex),
                "broker": visit.broker,
                "cleared": visit.cleared,
                "rest": visit.rest,
                "onward": [one.cleared for one in visit.onward],
                "pruned": [bit for bit, _ in visit.pruned],
            }
            for visit in visits
        ],
    }
