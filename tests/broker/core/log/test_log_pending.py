"""What is pending: what it counts for, and who is told of its answer."""

from __future__ import annotations

import sys

from headgate.broker.core.log.log import PENDING_OVERHEAD_BYTES, Pending


def test_it_counts_for_its_bytes_and_what_is_around_them() -> None:
    assert Pending(1, None, row=b"12345").size == 5 + PENDING_OVERHEAD_BYTES


def test_whoever_comes_later_is_told_later() -> None:
    told: list[tuple[str, str]] = []
    pending = Pending(1, lambda reason, now: told.append(("first", reason)))
    pending.also(lambda reason, now: told.append(("second", reason)))
    pending.tell("full", 1.0)
    assert told == [("first", "full"), ("second", "full")]


def test_nobody_need_have_been_there_before() -> None:
    told: list[str] = []
    pending = Pending(1, None)
    pending.also(lambda reason, now: told.append(reason))
    pending.tell("", 1.0)
    assert told == [""]


def test_any_number_may_ask_to_be_told() -> None:
    told: list[str] = []
    pending, many = Pending(1, None), 2 * sys.getrecursionlimit()
    for _ in range(many):
        pending.also(lambda reason, now: told.append(reason))
    pending.tell("full", 1.0)
    assert told == ["full"] * many
