"""Which broker a verb talks to: `--server`, else HEADGATE_SERVER, else `server` in the TOML file, else the default.

Each may be a list with commas. The brokers are tried as written, so that `status` answers for the first one that
lives; who comes back after a loss finds another one.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from headgate.protocol.addresses import split_addresses

from .exits import UsageError

if TYPE_CHECKING:
    from headgate.protocol.aio.client import Client

__all__ = [
    "SERVER_DEFAULT",
    "add_server_arguments",
    "all_of",
    "answer_of",
    "connect_client",
    "converse",
    "server_address",
]

Answer = TypeVar("Answer")

SERVER_DEFAULT = "127.0.0.1:7400"


def add_server_arguments(parser: argparse.ArgumentParser) -> None:
    """`--server` and `--config`. Both may stand before the verb or after it; the later one counts."""
    parser.add_argument(
        "--server",
        metavar="H:P[,H:P...]",
        default=argparse.SUPPRESS,
        help=f"the broker to talk to, or several, of which one will do (HEADGATE_SERVER; default {SERVER_DEFAULT})",
    )
    parser.add_argument(
        "--config", metavar="FILE", default=argparse.SUPPRESS, help="a TOML file of settings (HEADGATE_CONFIG)"
    )


def server_address(arguments: argparse.Namespace) -> str:
    """Where to connect, one address or several. Raises UsageError for a bad file, LocalError for a bad address."""
    address = getattr(arguments, "server", None) or os.environ.get("HEADGATE_SERVER")
    if not address:
        file = getattr(arguments, "config", None) or os.environ.get("HEADGATE_CONFIG")
        address = (_from_file(Path(file)) if file else None) or SERVER_DEFAULT
    split_addresses(address)
    return address


def converse(arguments: argparse.Namespace, talk: Callable[[Any], Awaitable[Answer]]) -> Answer:
    """Connect, let `talk` use the client, close. Raises HeadgateError and UsageError."""
    return asyncio.run(_converse(arguments, talk))


def answer_of(arguments: argparse.Namespace, verb: str, **details: Any) -> Any:
    """What the broker answers to one question."""
    return converse(arguments, lambda client: client.ask(verb, **details))


def all_of(arguments: argparse.Namespace, verb: str, key: str) -> list[dict[str, Any]]:
    """Every row of an answer that comes in pages: each page is asked for after the last row's key."""

    async def pages(client: Any) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        page = await client.ask(verb)
        while page and (not rows or page[-1][key] > rows[-1][key]):
            rows += page
            page = await client.ask(verb, after=rows[-1][key])
        return rows

    return converse(arguments, pages)


async def _converse(arguments: argparse.Namespace, talk: Callable[[Any], Awaitable[Answer]]) -> Answer:
    async with await connect_client(arguments) as client:
        return await talk(client)


async def connect_client(arguments: argparse.Namespace) -> Client:
    """A client of the broker that the arguments name; it carries the verb's name. Raises CannotConnect."""
    from headgate.protocol.aio import client
    from headgate.protocol.limits import RETRY_SECONDS_ENDING

    name = f"headgate {arguments.verb}"
    return await client.connect(server_address(arguments), name=name, shuffle=False, retry_seconds=RETRY_SECONDS_ENDING)


def _from_file(file: Path) -> str | None:
    import tomllib

    try:
        with file.open("rb") as stream:
            server = tomllib.load(stream).get("server")
    except OSError as error:
        raise UsageError(f"cannot read the configuration {file}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} is not TOML: {error}") from error
    if server is not None and not isinstance(server, str):
        raise UsageError(f'{file}: `server` is an address in quotes, like server = "{SERVER_DEFAULT}"')
    return server
