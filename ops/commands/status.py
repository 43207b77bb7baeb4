"""`headgate status`: what the broker holds now and has done since it started."""

from __future__ import annotations

import argparse

from ..exits import DONE
from ..server import add_server_arguments, answer_of
from ..tables import print_json, print_map

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `status`."""
    add_server_arguments(parser)
    parser.add_argument("--json", action="store_true", help="one line of JSON")


def run(arguments: argparse.Namespace) -> int:
    """Ask and print."""
    answer = answer_of(arguments, "status")
    if arguments.json:
        print_json(answer)
    else:
        print_map({name.replace("_", " "): value for name, value in answer.items()})
    return DONE
