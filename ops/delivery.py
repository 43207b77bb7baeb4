"""How a durable subscription hands out events, as flags: of `sub` when it makes one, of `durable set` when it changes
one.
"""

from __future__ import annotations

import argparse
from typing import Any

from .exits import UsageError

__all__ = ["add_delivery_arguments", "add_sharing_argument", "delivery_settings"]

_SHARING = ("exclusive", "failover", "shared")


def add_sharing_argument(parser: argparse.ArgumentParser) -> None:
    """Add `--sharing`, which a durable subscription has for its life."""
    parser.add_argument(
        "--sharing",
        metavar="exclusive|failover|shared|key:ATTRIBUTE",
        help="who gets an event: the one client (exclusive, unless said), the first of several, any, or the one "
        "that has the other events of that value",
    )


def add_delivery_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of what may change; what is not given stays as it is, or as brokers have it."""
    parser.add_argument(
        "--ack-wait", metavar="S", type=float, help="hand out again what is not acknowledged in so many seconds (30)"
    )
    parser.add_argument(
        "--max-deliver", metavar="N", type=int, help="give up what was handed out so often (0: never); see `dead`"
    )
    parser.add_argument(
        "--backoff",
        metavar="S,S,...",
        help="pauses before an event is handed out again; the last one holds for all more",
    )
    parser.add_argument(
        "--max-unacked", metavar="N", type=int, help="events that one client has at a time and did not settle (1000)"
    )
    parser.add_argument("--dead-letter", metavar="TOPIC", help="publish what is given up to this topic as well")


def delivery_settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """The settings that were given. Raises UsageError for what is none."""
    settings: dict[str, Any] = {}
    if (sharing := getattr(arguments, "sharing", None)) is not None:
        if sharing not in _SHARING and not (sharing.startswith("key:") and sharing != "key:"):
            raise UsageError(f"--sharing {sharing}: one of {', '.join(_SHARING)}, or key:ATTRIBUTE")
        settings["sharing"] = sharing
    if (ack_wait := arguments.ack_wait) is not None:
        if not ack_wait > 0:
            raise UsageError("--ack-wait is a number of seconds above 0")
        settings["ack_wait"] = ack_wait
    for name, least in (("max_deliver", 0), ("max_unacked", 1)):
        value = getattr(arguments, name)
        if value is not None:
            if value < least:
                raise UsageError(f"--{name.replace('_', '-')} is at least {least}")
            settings[name] = value
    if arguments.backoff is not None:
        settings["backoff"] = _pauses(arguments.backoff)
    if arguments.dead_letter is not None:
        settings["dead_letter"] = arguments.dead_letter
    return settings


def _pauses(text: str) -> list[float]:
    try:
        pauses = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        pauses = [-1.0]
    if not all(pause >= 0 for pause in pauses):
        raise UsageError(f"--backoff {text}: numbers of seconds with commas between, as in 1,5,30")
    return pauses
