"""The blocking driver: what fails is told to the work; what a signal or a hook does meanwhile is not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headgate.protocol.blocking.driver import advance, drive
from headgate.protocol.client import Connect, Pause, Task, Work


class Alarm(Exception):
    """What the application's signal handler raises."""


class FakeLink:
    """Time passes when it pauses; `alarms` are raised out of what it does next."""

    def __init__(self, *alarms: Exception) -> None:
        self.now = 0.0
        self.alarms = list(alarms)
        self.connected: list[Any] = []

    def clock(self) -> float:
        return self.now

    def _ring(self) -> None:
        if self.alarms:
            raise self.alarms.pop(0)

    def pause(self, seconds: float) -> None:
        self._ring()
        self.now += seconds

    def connect(self, attempt: Any) -> None:
        self._ring()
        self.connected.append(attempt)


def redialling(link: Any, attempts: int = 3) -> Work[int]:
    failed = 0
    for attempt in range(attempts):
        yield Pause(link, link.clock() + 1.0)
        try:
            yield Connect(link, SimpleNamespace(number=attempt))
        except OSError:
            failed += 1
        else:
            break
    return failed


@pytest.mark.parametrize("alarm", [Alarm(), TimeoutError()])
def test_what_is_raised_during_a_pause_is_the_callers_and_the_task_goes_on(alarm: Exception) -> None:
    link = FakeLink(alarm)
    task = Task(redialling(link))
    with pytest.raises(type(alarm)):
        advance(task)
    assert drive(task) and task.result == 0
    assert [attempt.number for attempt in link.connected] == [0]


def test_only_what_a_connection_can_fail_with_is_told_to_the_work() -> None:
    link = FakeLink()
    task = Task(redialling(link))
    assert advance(task)
    link.alarms = [Alarm()]
    with pytest.raises(Alarm):
        advance(task)
    link.alarms = [OSError("refused")]
    assert drive(task) and task.result == 1
    assert [attempt.number for attempt in link.connected] == [1]


def test_a_hook_that_goes_on_with_the_task_does_not_move_it_twice() -> None:
    link = FakeLink()
    task = Task(redialling(link))

    def connect(attempt: Any) -> None:
        link.connected.append(attempt)
        task.give(None)

    link.connect = connect  # type: ignore[method-assign]
    assert drive(task) and task.result == 0 and len(link.connected) == 1
