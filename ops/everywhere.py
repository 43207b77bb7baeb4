"""Questions to every broker of the cluster over one connection: the answer of each, and which are missing.

The broker that is connected to names the others (`ring`) and asks them on (`at`). One that is down, or does not answer
in time, is missing: the others' answers are shown all the same, and a note on standard error names it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from headgate.protocol.errors import ErrorCode, Refused

from .server import converse, pages_of

__all__ = ["Everywhere", "add_broker_argument", "ask_everywhere", "rows_everywhere"]

_NO_ANSWER = (ErrorCode.UNAVAILABLE, ErrorCode.NOT_FOUND, ErrorCode.LIMIT)


@dataclass(slots=True)
class Everywhere:
    """`ring` is what the one that was connected to sees; answers are by name, in the order of names."""

    ring: dict[str, Any]
    answers: dict[str, Any] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def broker(self) -> str:
        """The name of the broker that is connected to."""
        return str(self.ring["broker"])

    def tell_missing(self, verb: str) -> None:
        """Print a line on standard error for each broker that did not answer."""
        for broker, reason in self.missing.items():
            print(f"headgate {verb}: {broker} is missing: {reason}", file=sys.stderr, flush=True)


def add_broker_argument(parser: argparse.ArgumentParser) -> None:
    """Add the argument `--broker NAME`."""
    parser.add_argument("--broker", metavar="NAME", help="ask this broker alone, and not every broker of the cluster")


async def ask_everywhere(
    client: Any, question: Callable[[dict[str, Any]], Awaitable[Any]], only: str | None = None
) -> Everywhere:
    """Put a question to every broker, or to one alone; the question is given the argument that names the broker.

    The one that is connected to is named as well: when the connection is lost meanwhile, another one answers for it.

    Raises Refused when a single broker is wanted and does not answer, and for a question that is refused as such.
    """
    try:
        ring = await client.ask("ring")
    except Refused as error:
        if error.code != ErrorCode.FORBIDDEN:
            raise
        ring = await client.ask("brokers")  # what is no operator's affair alone may still be asked of all
    told = Everywhere(ring)
    if only is not None:
        told.answers[only] = await question({"at": only})
        return told
    names = sorted(str(row["name"]) for row in ring["brokers"] if row["state"] != "down")

    async def ask(name: str) -> Any:
        try:
            return await question({"at": name})
        except Refused as error:
            if name == told.broker or error.code not in _NO_ANSWER:
                raise
            return error

    for name, answer in zip(names, await asyncio.gather(*map(ask, names)), strict=True):
        if isinstance(answer, Refused):
            told.missing[name] = answer.text
        else:
            told.answers[name] = answer
    away = [row for row in (*ring["brokers"], *ring.get("away", ())) if row.get("state", "down") == "down"]
    for row in away:
        told.missing.setdefault(str(row["name"] or row["address"]), f"{told.broker} cannot reach it")
    return told


def rows_everywhere(arguments: argparse.Namespace, verb: str, key: str, **details: Any) -> list[dict[str, Any]]:
    """Every row of every broker, each with the broker's name before its members. Names on stderr who is missing."""

    async def talk(client: Any) -> Everywhere:
        return await ask_everywhere(client, lambda at: pages_of(client, verb, key, **at, **details), arguments.broker)

    told = converse(arguments, talk)
    told.tell_missing(arguments.verb)
    return [{"broker": broker, **row} for broker, rows in told.answers.items() for row in rows]
