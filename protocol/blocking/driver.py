"""The blocking driver of tasks: it moves connections on until what they wait for has come, or there is no more time.

A call that has no time left still reads once what has come, so that calls without any come to an end as well.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar, cast

from ..client import Close, Settled, Task, Work

if TYPE_CHECKING:
    from .client import BlockingClient

__all__ = ["drive", "run"]

Result = TypeVar("Result")


def drive(task: Task[Result], deadline: float | None = None) -> bool:
    """Go on with a task to its end, or to that time of the monotonic clock; tells which. It may be driven again."""
    wanted = task.begin()
    while wanted is not None:
        client = cast("BlockingClient", wanted.client)
        if isinstance(wanted, Settled):
            outcome = wanted.outcome
            seconds = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not client.wait(lambda: outcome.settled, seconds):  # noqa: B023  # called before the next round
                return False
            wanted = task.give(None)
            continue
        other = None
        try:
            if isinstance(wanted, Close):
                client.close()
            else:
                other = client.another(wanted.address)
        except Exception as error:
            wanted = task.fail(error)
        else:
            wanted = task.give(other)
    return True


def run(work: Work[Result]) -> Result:
    """See work through to its end, whatever time it takes."""
    task = Task(work)
    try:
        drive(task)
        return task.result
    finally:
        task.close()
