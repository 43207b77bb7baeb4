"""Outcomes are decided once; tasks go on where they were."""

from __future__ import annotations

import pytest

from headgate.protocol.client import Outcome, Settled, Task, Work
from headgate.protocol.errors import Refused


def test_the_first_decision_counts() -> None:
    outcome = Outcome()
    outcome.settle(5)
    outcome.settle(error=Refused(100, "late"))
    assert outcome.result() == 5


def test_an_error_is_raised() -> None:
    outcome = Outcome(3)
    outcome.settle(error=Refused(100, "no"))
    with pytest.raises(Refused, match="no"):
        outcome.result()


def test_what_is_open_has_no_result() -> None:
    with pytest.raises(AssertionError):
        Outcome().result()


def test_a_task_goes_from_one_thing_that_it_waits_for_to_the_next() -> None:
    one, other = Settled(None, Outcome()), Settled(None, Outcome())  # type: ignore[arg-type]

    def work() -> Work[str]:
        value = yield one
        try:
            yield other
        except Refused:
            return f"{value} and no more"
        return "never"

    task = Task(work())
    assert task.begin() is one and task.begin() is one, "begun once"
    assert task.give("this") is other
    assert task.fail(Refused(100, "no")) is None
    assert task.result == "this and no more" and task.begin() is None


def test_a_task_that_is_closed_ends_its_work() -> None:
    ended: list[str] = []

    def work() -> Work[None]:
        try:
            yield Settled(None, Outcome())  # type: ignore[arg-type]
        finally:
            ended.append("ended")

    task = Task(work())
    task.begin()
    task.close()
    assert ended == ["ended"] and task.begin() is None
