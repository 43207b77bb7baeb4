"""`headgate demo`: brokers, a quote feed and subscribers, live; one broker is killed; and then the proof."""

from __future__ import annotations

import argparse

from ..demo import BROKERS_DEFAULT, BROKERS_MAX, RATE_DEFAULT, SECONDS_DEFAULT
from ..exits import UsageError

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `demo`."""
    parser.add_argument(
        "--seconds", type=float, default=SECONDS_DEFAULT, help="how long the feed runs (default %(default)g)"
    )
    parser.add_argument(
        "--brokers", type=int, default=BROKERS_DEFAULT, help="processes that form one cluster (default %(default)s)"
    )
    parser.add_argument("--no-kill", action="store_true", help="let all of them live; one alone is never killed")
    parser.add_argument(
        "--secure", action="store_true", help="TLS, two users and a role with a condition; without Spark's audit"
    )
    parser.add_argument("--no-audit", action="store_true", help="end without Spark's audit, also where Spark can run")
    parser.add_argument("--rate", type=int, default=RATE_DEFAULT, help="events a second (default %(default)s)")
    parser.add_argument("--seed", type=int, default=7, help="of the random walk (default %(default)s)")
    parser.add_argument("--plain", action="store_true", help="lines instead of a live table")
    parser.add_argument("--json", action="store_true", help="the verdict as one line of JSON")


def run(arguments: argparse.Namespace) -> int:
    """Run it; 0 when every subscriber got exactly what it asked for."""
    if not arguments.seconds > 0 or arguments.rate < 1:
        raise UsageError("--seconds and --rate are above 0")
    if not 1 <= arguments.brokers <= BROKERS_MAX:
        raise UsageError(f"--brokers is 1 to {BROKERS_MAX}")
    from ..demo import Plot, play

    kill, audit, secure = not arguments.no_kill, not (arguments.no_audit or arguments.secure), arguments.secure
    scale = arguments.seconds, arguments.rate, arguments.seed, arguments.brokers
    plot = Plot(*scale, kill, audit, secure=secure, durable=True)
    return play(plot, arguments.plain, arguments.json)
