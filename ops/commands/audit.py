"""`headgate audit`: recomputes from the brokers' logs what should have been delivered, with Spark in local mode."""

from __future__ import annotations

import argparse

from ..server import add_server_arguments, hand_down, until_answered

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `audit`."""
    from ..jobs import audit

    add_server_arguments(parser)
    audit.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Audit; 0 when every subscriber got exactly what it asked for."""
    from ..jobs import run_audit

    hand_down(arguments)
    return run_audit(arguments, until_answered(arguments))
