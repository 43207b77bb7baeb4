"""Which broker a verb talks to: `--server`, else HEADGATE_SERVER, else `server` in the TOML file, else the default.
And for how long it waits until that one answers: `--wait`, HEADGATE_WAIT, `wait`, else not at all. A name in the
environment that looks like one of these and is none is an error: the verb would go to another broker without a word.

An address may be a list with commas. The brokers are tried as written, so that `status` answers for the first one
that lives; who comes back after a loss finds another one.
"""

from __future__ import annotations

import argparse
import asyncio
import difflib
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from headgate.protocol.addresses import split_addresses
from headgate.protocol.security import Tls, Who

from .exits import UsageError
from .limits import WAIT_SECONDS_MAX
from .patience import Patience, unanswered, unconnected

if TYPE_CHECKING:
    from headgate.protocol.aio import Client

__all__ = [
    "SERVER_DEFAULT",
    "add_server_arguments",
    "all_of",
    "answer_of",
    "connect_client",
    "converse",
    "credentials",
    "hand_down",
    "pages_of",
    "read_password",
    "server_address",
    "tls_files",
    "until_answered",
    "wait_seconds",
]

Answer = TypeVar("Answer")

SERVER_DEFAULT = "127.0.0.1:7400"

_TLS = {
    "tls_ca": "speak TLS with brokers whose certificates this authority signed",
    "tls_cert": "a certificate to show to a broker that asks for one",
    "tls_key": "its key",
}

_OF_BROKERS = ("HEADGATE_USERS", "HEADGATE_ROLES", "HEADGATE_CLUSTER")
"""Settings of a broker that look like ours."""

_VARIABLES = (
    *("HEADGATE_SERVER", "HEADGATE_WAIT", "HEADGATE_CONFIG", "HEADGATE_USER", "HEADGATE_PASSWORD", "HEADGATE_TOKEN"),
    *(f"HEADGATE_{name.upper()}" for name in _TLS),
    *_OF_BROKERS,
)

_LIKENESS_MIN = 0.87
"""How alike a misspelt variable and one of ours are; no setting of a broker, and no HEADGATE_SERVER_PORT of Kubernetes,
comes so near."""


def add_server_arguments(parser: argparse.ArgumentParser) -> None:
    """`--server`, `--wait`, who the user is, and `--config`, before the verb or after it; the later one counts."""
    parser.add_argument(
        "--server",
        metavar="H:P[,H:P...]",
        default=argparse.SUPPRESS,
        help=f"the broker to talk to, or several, of which one will do (HEADGATE_SERVER; default {SERVER_DEFAULT})",
    )
    parser.add_argument(
        "--wait",
        metavar="SECONDS",
        default=argparse.SUPPRESS,
        help="wait so long until a broker answers, then do it (HEADGATE_WAIT; default 0: fail at once with code 3)",
    )
    for name, text in _TLS.items():
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, metavar="FILE", default=argparse.SUPPRESS, help=f"{text} (HEADGATE_{name.upper()})")
    parser.add_argument("--user", metavar="NAME", default=argparse.SUPPRESS, help="who you are (HEADGATE_USER)")
    parser.add_argument(
        "--password-file",
        metavar="FILE",
        default=argparse.SUPPRESS,
        help="the first line of this file is your password (or HEADGATE_PASSWORD has it); - reads standard input",
    )
    parser.add_argument(
        "--token",
        metavar="TOKEN",
        default=argparse.SUPPRESS,
        help="says who you are; others on this machine can read it here, so rather set HEADGATE_TOKEN",
    )
    parser.add_argument(
        "--config", metavar="FILE", default=argparse.SUPPRESS, help="a TOML file of settings (HEADGATE_CONFIG)"
    )


def server_address(arguments: argparse.Namespace) -> str:
    """Where to connect, one address or several. Raises UsageError for a bad file, LocalError for a bad address."""
    _check_environment()
    address = getattr(arguments, "server", None) or os.environ.get("HEADGATE_SERVER")
    if not address:
        address, file = _from_file(arguments, "server")
        if address is not None and not isinstance(address, str):
            raise UsageError(f'{file}: `server` is an address in quotes, like server = "{SERVER_DEFAULT}"')
    address = address or SERVER_DEFAULT
    split_addresses(address)
    return address


def tls_files(arguments: argparse.Namespace) -> Tls:
    """What to trust and to show, of flags and the environment. Raises LocalError."""
    return Tls.of(*(getattr(arguments, name, None) or os.environ.get(f"HEADGATE_{name.upper()}") for name in _TLS))


def credentials(arguments: argparse.Namespace) -> Who:
    """Who the user of the command is, as `connect` takes it: what a flag says counts before the environment.

    Raises UsageError.
    """
    token, user = (getattr(arguments, name, None) for name in ("token", "user"))
    file = getattr(arguments, "password_file", None)
    if token and (user or file):
        raise UsageError("--token says who you are: leave --user and --password-file out")
    if not user and not file and (token := token or os.environ.get("HEADGATE_TOKEN")):
        return Who(token=token)
    user = user or os.environ.get("HEADGATE_USER")
    password = read_password(file) if file else os.environ.get("HEADGATE_PASSWORD", "")
    if not user and not password:
        return Who()
    if not user:
        raise UsageError("whose password is that? say --user NAME, or HEADGATE_USER")
    if not password:
        raise UsageError(f"{user} has a password: say --password-file FILE, or HEADGATE_PASSWORD")
    return Who(user, password)


def hand_down(arguments: argparse.Namespace) -> None:
    """Let Spark, its processes and what connects by itself know who this is: the environment says so from now on.

    Raises UsageError and LocalError.
    """
    who, tls = credentials(arguments), tls_files(arguments)
    said = {**who._asdict(), "tls_ca": tls.ca, "tls_cert": tls.cert, "tls_key": tls.key}
    os.environ.update({f"HEADGATE_{name.upper()}": value for name, value in said.items() if value})


def read_password(file: str) -> str:
    """The first line of a file, or of standard input. Raises UsageError."""
    try:
        text = sys.stdin.readline() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the password in {file}: {getattr(error, 'strerror', '') or error}") from error
    password = text.partition("\n")[0].rstrip("\r")
    if not password:
        raise UsageError(f"there is no password in {file}: its first line is empty")
    return password


def _check_environment() -> None:
    """A variable that nobody reads was meant for one of ours. Raises UsageError.

    One that goes on behind ours (HEADGATE_SERVER_A, HEADGATE_SERVER2) is somebody's own.
    """
    for name in sorted(os.environ):
        if name.startswith("HEADGATE_") and not name.startswith("HEADGATE_PEER_") and name not in _VARIABLES:
            likely = difflib.get_close_matches(name, _VARIABLES, 1, _LIKENESS_MIN)
            more = name.removeprefix(likely[0]) if likely else ""
            if likely and (more == name or more[0].isalpha()):
                raise UsageError(f"{name} is no setting: is {likely[0]} meant?")


def wait_seconds(arguments: argparse.Namespace) -> float:
    """How long to wait until a broker answers. Raises UsageError."""
    given, where = getattr(arguments, "wait", None), "--wait"
    if given is None and os.environ.get("HEADGATE_WAIT"):
        given, where = os.environ["HEADGATE_WAIT"], "HEADGATE_WAIT"
    if given is None:
        given, file = _from_file(arguments, "wait")
        where = f"{file}: wait"
    try:
        seconds = float(0.0 if given is None else given)
    except (TypeError, ValueError):
        seconds = -1.0
    if not 0 <= seconds <= WAIT_SECONDS_MAX:
        raise UsageError(f"{where} {given}: a number of seconds, from 0 to {WAIT_SECONDS_MAX:.0f}")
    return seconds


def converse(arguments: argparse.Namespace, talk: Callable[[Any], Awaitable[Answer]]) -> Answer:
    """Connect, let `talk` use the client, close. Raises HeadgateError and UsageError."""
    return asyncio.run(_converse(arguments, talk))


def answer_of(arguments: argparse.Namespace, verb: str, **details: Any) -> Any:
    """What the broker answers to one question."""
    return converse(arguments, lambda client: client.ask(verb, **details))


def all_of(arguments: argparse.Namespace, verb: str, key: str) -> list[dict[str, Any]]:
    """Every row of an answer that comes in pages."""
    return converse(arguments, lambda client: pages_of(client, verb, key))


async def pages_of(client: Any, verb: str, key: str, **details: Any) -> list[dict[str, Any]]:
    """Every row of an answer that comes in pages: each page is asked for after the last row's key."""
    rows: list[dict[str, Any]] = []
    page = await client.ask(verb, **details)
    while page and (not rows or page[-1][key] > rows[-1][key]):
        rows += page
        page = await client.ask(verb, **details, after=rows[-1][key])
    return rows


def until_answered(arguments: argparse.Namespace) -> str:
    """`server_address`, once a broker answers there, for those who connect by themselves. Raises CannotConnect."""

    async def nothing(client: Any) -> None:
        pass

    if wait_seconds(arguments):
        converse(arguments, nothing)
    return server_address(arguments)


async def _converse(arguments: argparse.Namespace, talk: Callable[[Any], Awaitable[Answer]]) -> Answer:
    async with await connect_client(arguments) as client:
        with unconnected(_verb(arguments), client), unanswered(_verb(arguments), client):
            return await talk(client)


async def connect_client(arguments: argparse.Namespace) -> Client:
    """A client of the broker that the arguments name; it has the verb's name, or `--name`. Raises CannotConnect."""
    from headgate.protocol.aio import client
    from headgate.protocol.limits import RETRY_SECONDS_ENDING

    address, seconds, verb = server_address(arguments), wait_seconds(arguments), _verb(arguments)
    tls, who = tls_files(arguments), credentials(arguments)
    with Patience(verb, lambda: f"no broker answers at {address}"):
        return await client.connect(
            address,
            name=getattr(arguments, "name", None) or f"headgate {verb}",
            shuffle=False,
            wait_seconds=seconds,
            retry_seconds=max(seconds, RETRY_SECONDS_ENDING),
            tls_ca=tls.ca,
            tls_cert=tls.cert,
            tls_key=tls.key,
            user=who.user,
            password=who.password,
            token=who.token,
        )


def _verb(arguments: argparse.Namespace) -> str:
    return getattr(arguments, "verb", "")


def _from_file(arguments: argparse.Namespace, key: str) -> tuple[Any, str | None]:
    """What the file of settings says under a key, None for nothing; and which file that is."""
    import tomllib

    file = getattr(arguments, "config", None) or os.environ.get("HEADGATE_CONFIG")
    if not file:
        return None, None
    try:
        with Path(file).open("rb") as stream:
            return tomllib.load(stream).get(key), file
    except OSError as error:
        raise UsageError(f"cannot read the configuration {file}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} is not TOML: {error}") from error
