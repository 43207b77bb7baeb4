"""The blocking driver of tasks: it moves connections on until what they wait for has come, or there is no more time.

A call that has no time left still reads once what has come, so that calls without any come to an end as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from ..client import Close, Connect, Dial, Pause, Settled, Task, Work
from ..errors import HeadgateError

if TYPE_CHECKING:
    from .client import BlockingClient
    from .link import Link

__all__ = ["advance", "drive", "run"]

Result = TypeVar("Result")


def drive(task: Task[Result], deadline: float | None = None) -> bool:
    """Go on with a task to its end, or to that time of the clock; tells which. It may be driven again."""
    while (wanted := task.begin()) is not None:
        if not advance(task, deadline) and not isinstance(wanted, Pause):
            return False
    return True


def advance(task: Task[Any], deadline: float | None = None) -> bool:
    """Wait for what it waits for now, to that time at most; tells whether that has come. A pause may be cut short.

    What fails is told to the work. What is raised in the caller's thread while it waits, by a signal's handler or a
    hook, is the caller's: the task waits on where it was, and may be driven again.
    """
    wanted = task.begin()
    value = None
    if isinstance(wanted, Pause):
        link = cast("Link", wanted.link)
        until = wanted.until if deadline is None else min(wanted.until, deadline)
        link.pause(max(0.0, until - link.clock()))
        if link.clock() < wanted.until:
            return False
    try:
        if isinstance(wanted, Settled):
            client, outcome = cast("BlockingClient", wanted.client), wanted.outcome
            left = None if deadline is None else max(0.0, deadline - client.clock())
            if not client.wait(lambda: outcome.settled, left):
                if left is None:
                    client.check_usable()  # nobody will settle it
                return False
        elif isinstance(wanted, Connect):
            cast("Link", wanted.link).connect(wanted.attempt)
        elif isinstance(wanted, Dial):
            client = cast("BlockingClient", wanted.client)
            with client.dialling:
                if wanted.name not in wanted.others:
                    wanted.others[wanted.name] = client.another(wanted.address)
                value = wanted.others[wanted.name]
        elif isinstance(wanted, Close):
            cast("BlockingClient", wanted.client).close()
    except (OSError, HeadgateError) as error:
        if task.begin() is wanted:
            task.fail(error)
    else:
        if task.begin() is wanted:  # else a hook went on with it while this waited
            task.give(value)
    return True


def run(work: Work[Result]) -> Result:
    """See work through to its end, whatever time it takes."""
    task = Task(work)
    try:
        drive(task)
        return task.result
    finally:
        task.close()
