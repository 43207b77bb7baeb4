"""`headgate ring`: which brokers there are. This version has one, which owns the whole ring."""

from __future__ import annotations

import argparse

from ..exits import DONE
from ..server import add_server_arguments, answer_of
from ..tables import print_json

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `ring`."""
    add_server_arguments(parser)
    parser.add_argument("--json", action="store_true", help="one line of JSON")


def run(arguments: argparse.Namespace) -> int:
    """Ask the broker who it is: it is the ring."""
    status = answer_of(arguments, "status")
    if arguments.json:
        print_json({"brokers": [{"broker": status["broker"], "origin": status["origin"], "share": 1.0}]})
    else:
        print(f"one broker, {status['broker']}: it owns the whole ring (rings of several come with a later version)")
    return DONE
