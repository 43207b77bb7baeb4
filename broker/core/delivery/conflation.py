"""Conflation: of what waits for a slow subscription, the newest event of each topic, or of each key, is enough.

An option of the subscription. When twice as much waits for a session as the last time, its outbox is gone through from
the newest to the oldest, and what has a newer event of the same topic behind it, for the same subscription, is taken
out and counted. So what waits is bounded by the number of topics, each step costs as much as was added since the last
one, and whoever wakes is up to date with every source at once. A key is the value of an attribute that the subscription
names; what has none, or cannot be read, gives way to nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headgate.protocol.data import Batch, Portion, Scalar
from headgate.protocol.errors import ProtocolViolation
from headgate.protocol.messages import Deliver

__all__ = ["conflated"]

Cut = Callable[[Portion, list[int]], Portion]


def conflated(waiting: deque[Deliver], numbers: Mapping[int, str], cut: Cut) -> tuple[deque[Deliver], list[Deliver]]:
    """What is left of messages in order, and what was taken out, when of these subscriptions the newest event of each
    topic is enough, or of each value of the attribute that stands beside the number."""
    seen: set[tuple[Any, ...]] = set()
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
    message: Deliver, numbers: Mapping[int, str], seen: set[tuple[Any, ...]]
) -> tuple[list[list[int]], list[list[int]]]:
    """For each row, whom it is for as the newest, and who has a newer one."""
    topics = message.portion.topics.split("\n")
    whose = [list(some) for some, count in message.runs() for _ in range(count)]
    kept: list[list[int]] = [[] for _ in whose]
    passed: list[list[int]] = [[] for _ in whose]
    keys: dict[str, Sequence[Scalar]] = {}
    for row in range(len(whose) - 1, -1, -1):
        topic = topics[row] if len(topics) > 1 else topics[0]
        for number in whose[row]:
            attribute = numbers.get(number)
            if attribute is None:
                kept[row].append(number)
                continue
            key: Scalar = topic
            if attribute:
                if attribute not in keys:
                    keys[attribute] = _column(message.portion, attribute)
                key = keys[attribute][row]
            if key is not None and (number, type(key) is bool, key) in seen:
                passed[row].append(number)
            else:
                seen.add((number, type(key) is bool, key))
                kept[row].append(number)
    return kept, passed


def _column(portion: Portion, attribute: str) -> Sequence[Scalar]:
    """The values of an attribute; NULL where they cannot be read."""
    batch = Batch(portion.topics, portion.count, portion.lengths, portion.records, complete=False)
    try:
        return batch.column(attribute) or (None,) * portion.count
    except ProtocolViolation:
        return (None,) * portion.count


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
