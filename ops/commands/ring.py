"""`headgate ring`: which brokers there are, drawn as the ring they share.

A row is a broker. Its bar lies where its arc lies between 0 and 2^64, so that the bars of all rows together are the
ring; the arc runs from the identifier of the broker before it, which does not belong to it, to its own, which does.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from ..exits import DONE
from ..limits import RING_BAR_CELLS
from ..server import add_server_arguments, answer_of
from ..tables import plain, print_json, print_table

__all__ = ["add_arguments", "bar_of", "run", "summary_of"]

_COLUMNS = ("", "broker", "ring", "share", "arc", "state", "life", "copies at", "subscriptions", "clients", "peers")
_RING = 1 << 64
_HEX_SHOWN = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `ring`."""
    add_server_arguments(parser)
    parser.add_argument("--json", action="store_true", help="one line of JSON")


def run(arguments: argparse.Namespace) -> int:
    """Ask one broker what it sees, and draw that."""
    answer = answer_of(arguments, "ring")
    if arguments.json:
        print_json(answer)
        return DONE
    brokers = sorted(answer["brokers"], key=lambda broker: str(broker["identifier"]))
    print(plain(summary_of(answer)))
    for refusal in answer.get("refused", ()):
        print(plain(f"not let in by {refusal['address']}: {refusal['reason']}"))
    print()
    print_table(_COLUMNS, [_row(broker, answer["broker"]) for broker in brokers])
    print()
    if versions := {str(one["name"]): str(one["users_and_roles"]) for one in brokers if "users_and_roles" in one}:
        print(plain(_versions_in_words(versions)))
    print(plain(_footnote(answer)))
    return DONE


def summary_of(answer: dict[str, Any]) -> str:
    """The first line: the number of brokers, mesh or ring, and whether it is settled."""
    brokers: Sequence[dict[str, Any]] = answer["brokers"]
    away = [str(broker["name"] or broker["address"]) for broker in answer.get("away", ())]
    if len(brokers) == 1:
        if answer.get("refused") and not answer["settled"]:
            return f"{answer['broker']} is not let into its cluster: it takes no events, and asks again"
        alone = f"one broker, {answer['broker']}: it owns the whole ring"
        return f"{alone}; {', '.join(away)} cannot be reached" if away else alone
    down = [str(broker["name"]) for broker in brokers if broker["state"] == "down"]
    down = list(dict.fromkeys([*down, *away]))
    there = [broker for broker in brokers if str(broker["name"]) not in down]
    form = "a mesh, in which each knows all" if answer["role"] == "mesh" else "a ring"
    named = f"the cluster {answer['cluster']}, " if "cluster" in answer else ""
    health = "settled" if answer["settled"] else "not settled: keys are on their way to their brokers"
    missing = f", {', '.join(down)} down" if down else ""
    copies = min(answer["replicas"], len(there) - 1)
    kept = f"each key has its owner and {copies} {'copy' if copies == 1 else 'copies'} beside it"
    return f"{len(brokers)} brokers form {named}{form}{missing}; {health}; {kept}"


def bar_of(after: int, identifier: int, cells: int = RING_BAR_CELLS) -> str:
    """An arc as a bar in its place: at least one cell, `·` where it is not."""
    length = (identifier - after) % _RING or _RING
    first = (after + 1) % _RING
    bar = []
    for cell in range(cells):
        # The arc covers a cell whose middle lies in it; a short one covers the cell in which it begins.
        middle = (2 * cell + 1) * _RING // (2 * cells)
        within = (middle - first) % _RING < length
        bar.append("█" if within or cell == first * cells // _RING else "·")
    return "".join(bar)


def _row(broker: dict[str, Any], asked: str) -> list[Any]:
    after, identifier = (int(str(broker[end]), 16) for end in ("after", "identifier"))
    return [
        "→" if broker["name"] == asked else "",
        broker["name"],
        bar_of(after, identifier),
        f"{broker['share']:.1%}",
        f"{_short(broker['after'])} .. {_short(broker['identifier'])}",
        broker["state"],
        broker["life"],
        broker["replicas"],
        broker["subscriptions"],
        broker["client_address"],
        broker["address"],
    ]


def _versions_in_words(versions: dict[str, str]) -> str:
    """By which users and roles each broker lets clients in."""
    if len(set(versions.values())) == 1:
        return f"users and roles: version {next(iter(versions.values()))} at all of them"
    each = ", ".join(f"{version or 'none, or not heard'} at {name}" for name, version in versions.items())
    return f"users and roles differ, and must be the same everywhere: {each}"


def _short(digits: str) -> str:
    return f"{digits[:_HEX_SHOWN]}…"


def _footnote(answer: dict[str, Any]) -> str:
    return (
        f"→ {answer['broker']} was asked: it holds {answer['items']} items, "
        f"and matches events itself for {answer['scope']:.1%} of the keys"
    )
