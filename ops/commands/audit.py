"""`headgate audit`: says what it will do, and that it cannot yet."""

from __future__ import annotations

import argparse
import sys

from ..exits import REFUSED
from ..server import add_server_arguments

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `audit`: so far those of every verb."""
    add_server_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Say so."""
    print(
        "headgate audit: comes with a later version: it recomputes from the brokers' logs what should have been "
        "delivered, and this version keeps no log yet. `headgate demo` checks its own deliveries.",
        file=sys.stderr,
    )
    return REFUSED
