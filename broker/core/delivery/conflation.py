"""Conflation: of what waits for a slow subscription, the newest event of each topic is enough.

An option of the subscription. When twice as much waits for a session as the last time, its outbox is gone through from
the newest to the oldest, and what has a newer event of the same topic behind it, for the same subscription, is taken
out and counted. So what waits is bounded by the number of topics, each step costs as much as was added since the last
one, and whoever wakes is up to date with every source at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container
from typing import Any

from headgate.protocol.data import Portion
from headgate.protocol.messages import Deliver

__all__ = ["conflated"]

Cut = Callable[[Portion, list[int]], Portion]


def conflated(waiting: deque[Deliver], numbers: Container[int], cut: Cut) -> tuple[deque[Deliver], list[Deliver]]:
    """What is left of messages in order, and what was taken out, when of these subscriptions each topic's newest event
    is enough."""
    seen: set[tuple[int, str]] = set()
    left: deque[Deliver] = deque()
    gone: list[Deliver] = []
    for message in reversed(waiting):
        kept, passed = _sorted_out(message, numbers, seen)
        if not any(passed):
            left.appendleft(message)
            continue
        for rows, found in ((kept, left.appendleft), (passed, gone.append)):
            part = _with_routes(message.portion, rows, cut)
            if part is not None:
                found(part)
    return left, gone


def _sorted_out(
    message: Deliver, numbers: Container[int], seen: set[tuple[int, str]]
) -> tuple[list[list[int]], list[list[int]]]:
    """For each row, whom it is for as the newest, and who has a newer one."""
    topics = message.portion.topics.split("\n")
    whose = [list(some) for some, count in message.runs() for _ in range(count)]
    kept: list[list[int]] = [[] for _ in whose]
    passed: list[list[int]] = [[] for _ in whose]
    for row in range(len(whose) - 1, -1, -1):
        topic = topics[row] if len(topics) > 1 else topics[0]
        for number in whose[row]:
            if number not in numbers:
                kept[row].append(number)
            elif (number, topic) in seen:
                passed[row].append(number)
            else:
                seen.add((number, topic))
                kept[row].append(number)
    return kept, passed


def _with_routes(portion: Portion, whose: list[list[int]], cut: Cut) -> Deliver | None:
    """The rows that are for somebody, with their routes."""
    rows = [row for row, numbers in enumerate(whose) if numbers]
    if not rows:
        return None
    routes: list[Any] = []
    for row in rows:
        if routes and routes[-2] == whose[row]:
            routes[-1] += 1
        else:
            routes += (whose[row], 1)
    return Deliver(routes, cut(portion, rows))
