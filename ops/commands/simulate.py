"""`headgate simulate`: the simulator, with its own arguments."""

from __future__ import annotations

import argparse

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    """Hand everything after the verb to the simulator."""
    from headgate.broker.simulator import main

    return int(main(arguments.others, prog="headgate simulate"))
