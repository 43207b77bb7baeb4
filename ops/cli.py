"""The command `headgate`: finds the verb, runs it, and turns every error into one line and an exit code.

Exit codes: 0 done, 1 the broker refused (the reason is on stderr), 2 usage, 3 cannot connect, 4 done but for bad lines
(`pub --skip-bad`).
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import os
import re
import sys
from collections.abc import Collection, Sequence
from typing import Any

from headgate.protocol.errors import HeadgateError

from .exits import DONE, INTERRUPTED, USAGE, UsageError, exit_code
from .server import add_server_arguments

__all__ = ["VERBS", "build_parser", "main"]

VERBS: dict[str, tuple[str, str]] = {
    "serve": ("serve", "run a broker until it is told to stop"),
    "pub": ("pub", "publish an event, or many from JSON lines"),
    "sub": ("sub", "subscribe, and print what is delivered"),
    "schema": ("schema", "say what attributes a stream has"),
    "status": ("status", "what each broker holds and has done"),
    "ring": ("ring", "which brokers there are, drawn as their ring"),
    "streams": ("streams", "the streams in use, and those that have a schema"),
    "durable": ("durable", "durable subscriptions: how much waits for each, and how to change them"),
    "dead": ("dead", "events that a durable subscription has given up, and handing them out again"),
    "subs": ("subs", "the subscriptions in force, their clients, and who is slow"),
    "logs": ("logs", "the logs of stored streams: which brokers have them, and their places"),
    "top": ("top", "rates, slow clients and the ring, live"),
    "producers": ("producers", "how far the producers of a job have come"),
    "explain": ("explain", "why a subscription would, or would not, get an event"),
    "tree": ("tree", "the way of a document's event on the cube, from broker to broker"),
    "demo": ("demo", "three brokers, a quote feed and subscribers, live; one broker is killed, and all is checked"),
    "bench": ("bench", "measure this broker, and its peers beside it"),
    "simulate": ("simulate", "run the broker in virtual time from one seed, and check it"),
    "audit": ("audit", "recompute from the logs what should have been delivered"),
    "cert": ("cert", "make an authority and certificates for the brokers of a cluster"),
    "user": ("user", "who may speak to the brokers: add, remove and list users, change passwords"),
    "token": ("token", "make, list and revoke tokens, which stand for a user"),
    "role": ("role", "check a file of roles, and say what each may do"),
    "completion": ("completion", "print a script that completes this command in a shell"),
}
"""Verb -> its module in `ops.commands`, and what it does."""

_AGO = re.compile(r"-\d")

PASSES_ON = frozenset({"simulate"})
"""Verbs whose arguments another program of ours reads."""


def build_parser(wanted: Collection[str] = tuple(VERBS)) -> argparse.ArgumentParser:
    """The parser of the whole command. Only the verbs in `wanted` get their arguments: others cost no import."""
    parser = argparse.ArgumentParser(
        prog="headgate",
        description="Content-based publish/subscribe: say what happened, or say what you want to hear about.",
        epilog="`headgate VERB --help` explains a verb. "
        "Exit codes: 0 done, 1 refused, 2 usage, 3 cannot connect, 4 bad lines were skipped.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"headgate {_version()}")
    add_server_arguments(parser)
    subparsers = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb, (module, text) in VERBS.items():
        passes_on = verb in PASSES_ON
        subparser = subparsers.add_parser(
            verb, help=text, description=text[0].upper() + text[1:] + ".", add_help=not passes_on, allow_abbrev=False
        )
        if verb in wanted and not passes_on:
            _command(module).add_arguments(subparser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; the exit code. Usage errors leave by SystemExit(2), as argparse does."""
    words = _glued(sys.argv[1:] if argv is None else argv)
    try:
        parser = build_parser([verb for verb in VERBS if verb in words])
    except ModuleNotFoundError as error:
        return _not_installed(error)
    arguments, others = parser.parse_known_args(words)
    if others and arguments.verb not in PASSES_ON:
        parser.error(f"{arguments.verb} does not take {' '.join(others)}: see headgate {arguments.verb} --help")
    arguments.others = others
    try:
        code = int(_command(VERBS[arguments.verb][0]).run(arguments))
        if sys.stdout is not None:  # None when the shell has closed it
            sys.stdout.flush()
        return code
    except (HeadgateError, UsageError) as error:
        print(f"headgate {arguments.verb}: {error}", file=sys.stderr)
        return exit_code(error)
    except BrokenPipeError:
        # Whoever read our output has enough. Nothing may be written to it at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except OSError as error:
        print(f"headgate {arguments.verb}: {error.strerror or error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED
    except ModuleNotFoundError as error:
        return _not_installed(error)


def _not_installed(error: ModuleNotFoundError) -> int:
    """The client library is there alone, without what the command needs besides."""
    print(f"headgate: the package {error.name} is not installed: pip install 'headgate[broker]'", file=sys.stderr)
    return USAGE


def _glued(words: Sequence[str]) -> list[str]:
    """The words of a command line, with `--from -10m` as one: argparse takes what begins with a dash for a flag."""
    glued: list[str] = []
    for word in words:
        if glued and glued[-1] == "--from" and _AGO.match(word):
            glued[-1] = f"--from={word}"
        else:
            glued.append(word)
    return glued


def _version() -> str:
    try:
        return importlib.metadata.version("headgate")
    except importlib.metadata.PackageNotFoundError:
        return "(from its sources)"


def _command(module: str) -> Any:
    return importlib.import_module(f"headgate.ops.commands.{module}")


if __name__ == "__main__":
    sys.exit(main())
