"""`headgate top`: what goes in and out of each broker a second, who is slow, and the ring; again and again.

Rates are differences of the brokers' own counts between two looks, so the first line comes after the first interval. A
broker that was started in between has none.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from contextlib import ExitStack
from itertools import count
from typing import Any

from ..everywhere import Everywhere, add_broker_argument, ask_everywhere
from ..exits import DONE
from ..limits import TOP_SECONDS, TOP_SECONDS_MAX, TOP_SECONDS_MIN
from ..server import add_server_arguments, converse
from ..tables import WIDTH_ELSEWHERE, console_for, plain, print_json, table_of
from .ring import summary_of

__all__ = ["add_arguments", "run", "tick_of"]

_RATES = {"in_per_second": "events_received", "out_per_second": "events_delivered", "dropped_per_second": "drops"}
_SIZES = {
    "waiting_events": "outbox_events",
    "waiting_bytes": "outbox_bytes",
    "clients": "sessions",
    "subscriptions": "subscriptions",
    "log_bytes": "log_bytes",
}
_BROKERS = {
    "broker": "broker",
    "in_per_second": "in/s",
    "out_per_second": "out/s",
    "dropped_per_second": "dropped/s",
    "waiting_events": "waiting",
    "waiting_bytes": "bytes",
    "clients": "clients",
    "subscriptions": "subscriptions",
    "log_bytes": "log bytes",
    "settled": "settled",
}
_SLOW = {
    "broker": "broker",
    "client": "slow client",
    "address": "address",
    "subscriptions": "subscriptions",
    "pace": "pace",
    "waiting_events": "waiting",
    "waiting_bytes": "bytes",
    "dropped": "dropped",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `top`."""
    add_server_arguments(parser)
    add_broker_argument(parser)
    text = f"seconds between two looks ({TOP_SECONDS:g})"
    parser.add_argument("--interval", type=_seconds, default=TOP_SECONDS, metavar="SECONDS", help=text)
    parser.add_argument("--count", type=_count, metavar="N", help="end after so many looks, for scripts")
    parser.add_argument("--json", action="store_true", help="one line of JSON a look")


def run(arguments: argparse.Namespace) -> int:
    """Show the difference between two looks, again and again, until it is interrupted."""
    try:
        converse(arguments, lambda client: _watch(client, arguments))
    except KeyboardInterrupt:
        pass  # that is how it ends
    return DONE


async def _watch(client: Any, arguments: argparse.Namespace) -> None:
    console = console_for(None, WIDTH_ELSEWHERE)
    with ExitStack() as stack:
        live = None
        if console.is_terminal and not arguments.json:
            from rich.live import Live

            live = stack.enter_context(Live(console=console, auto_refresh=False, screen=arguments.count is None))
        before, began = await _look(client, arguments.broker), _clock()
        for _ in range(arguments.count) if arguments.count is not None else count():
            await _pause(arguments.interval)
            now, at = await _look(client, arguments.broker), _clock()
            tick = tick_of(before, now, at - began)
            before, began = now, at
            if arguments.json:
                print_json({"time": time.time(), **tick})
            elif live is not None:
                live.update(_picture(now, tick), refresh=True)
            else:
                console.print(_picture(now, tick))
                print()
            if live is None:
                sys.stdout.flush()


async def _look(client: Any, broker: str | None) -> Everywhere:
    async def both(at: dict[str, Any]) -> tuple[Any, Any]:
        return await client.ask("status", **at), await client.ask("slowest", **at)

    return await ask_everywhere(client, both, broker)


def tick_of(before: Everywhere, now: Everywhere, seconds: float) -> dict[str, Any]:
    """The rows that one look shows, compared with the look before."""
    brokers, slow = [], []
    for name, (status, slowest) in now.answers.items():
        earlier = before.answers.get(name, ({}, ()))[0]
        is_same_life = earlier.get("origin") == status["origin"]
        row: dict[str, Any] = {"broker": name}
        for rate, counter in _RATES.items():
            difference = _total(status[counter]) - _total(earlier[counter]) if is_same_life else None
            row[rate] = None if difference is None else round(difference / seconds, 1)
        row |= {size: status[counter] for size, counter in _SIZES.items()}
        brokers.append(row | {"settled": status["settled"], "uptime_seconds": status["uptime_seconds"]})
        slow += [{"broker": name, **one} for one in slowest]
    slow.sort(key=lambda one: (-one["waiting_bytes"], -one["dropped"]))
    totals = {name: sum(row[name] or 0 for row in brokers) for name in (*_RATES, *_SIZES)}
    return {
        "seconds": round(seconds, 3),
        "brokers": brokers,
        "total": totals,
        "slow": slow,
        "ring": {name: now.ring.get(name) for name in ("broker", "role", "settled")},
        "missing": [{"broker": broker, "reason": reason} for broker, reason in now.missing.items()],
    }


def _picture(now: Everywhere, tick: dict[str, Any]) -> Any:
    from rich.console import Group
    from rich.text import Text

    rows = list(tick["brokers"])
    if len(rows) > 1:
        rows.append({"broker": "all", **tick["total"], "settled": all(row["settled"] for row in rows)})
    parts: list[Any] = [
        Text(plain(f"{time.strftime('%H:%M:%S')}  {summary_of(now.ring)}")),
        Text(),
        table_of(tuple(_BROKERS.values()), ([row[name] for name in _BROKERS] for row in rows)),
    ]
    if tick["slow"]:
        rows = [[row[name] for name in _SLOW] for row in tick["slow"]]
        parts += [Text(), table_of(tuple(_SLOW.values()), rows)]
    parts += [Text(plain(f"{row['broker']} is missing: {row['reason']}")) for row in tick["missing"]]
    return Group(*parts)


def _total(value: Any) -> int:
    return sum(value.values()) if isinstance(value, dict) else int(value)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not TOP_SECONDS_MIN <= seconds <= TOP_SECONDS_MAX:
        raise argparse.ArgumentTypeError(f"an interval is {TOP_SECONDS_MIN:g} to {TOP_SECONDS_MAX:g} seconds")
    return seconds


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError("a count is 1 or more")
    return int(text)


_clock = time.monotonic
_pause = asyncio.sleep
