"""The quotes of `headgate demo` as JSON lines, at a steady rate, until nobody reads them: for a pipe into `pub`."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator

from headgate.ops.demo import QuoteFeed

__all__ = ["lines", "main"]

TICK_SECONDS = 0.1
"""Ten portions a second: even enough to look at, and each of them one write."""


def lines(feed: QuoteFeed, count: int) -> Iterator[str]:
    """The next quotes; an attribute that is not known is left out."""
    quotes = feed.take(count)
    for place, topic in enumerate(quotes.topics):
        attributes = {name: value for name, value in quotes.row(place).items() if value is not None}
        yield json.dumps({"topic": topic, "attrs": attributes, "body": quotes.bodies[place].decode()})


def main() -> int:
    """Write what is due, wait for the next tick."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=200, help="quotes a second (default 200)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same quotes (default 1)")
    parser.add_argument("--count", type=int, help="stop after so many (default: never)")
    arguments = parser.parse_args()
    feed, sent, start = QuoteFeed(arguments.seed), 0, time.monotonic()
    try:
        while arguments.count is None or sent < arguments.count:
            due = int((time.monotonic() - start) * arguments.rate) + 1
            if arguments.count is not None:
                due = min(due, arguments.count)
            for line in lines(feed, due - sent):
                print(line)
            sys.stdout.flush()
            sent = due
            time.sleep(TICK_SECONDS)
    except BrokenPipeError:
        # The reader has gone; the interpreter must not find that out again when it closes standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
