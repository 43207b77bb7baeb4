"""Waiting: two lines, each in order, counted together, bounded; what came back goes first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.delivery import Stream
from headgate.broker.core.forwarding.backlog import Task, Waiting
from headgate.broker.core.keyspace import Dimension, topic_dimension
from headgate.broker.core.limits import Limits
from headgate.protocol.data import make_batch

STREAM = Stream("quotes")


def task(body: str, wanted: bool = False, stream: Stream = STREAM) -> Task:
    batch = make_batch([f"{stream.name}/a"], {}, [body.encode()])
    rows: dict[Dimension, Sequence[int]] | None = {topic_dimension(1): [0]} if wanted else None
    return Task(stream, batch, "origin", 0, [0], 0, rows, 0, 0.0)


def test_two_lines_and_what_others_asked_first() -> None:
    waiting = Waiting()
    mine, theirs = task("mine"), task("theirs", wanted=True)
    assert not waiting
    waiting.add(mine)
    waiting.add(theirs)
    assert (len(waiting), waiting.events) == (2, 2)
    assert list(waiting) == [theirs, mine]
    assert [list(line) for line in waiting.lines] == [[theirs], [mine]]
    waiting.validate()


def test_what_was_taken_is_counted_no_more_until_it_is_put_back() -> None:
    waiting = Waiting()
    first, second = task("a"), task("b")
    waiting.add(first)
    waiting.add(second)
    assert waiting.take(waiting.own) is first
    assert waiting.events == 1
    waiting.validate()
    waiting.untake(waiting.own, first)
    assert list(waiting.own) == [first, second]
    waiting.validate()
    waiting.drop_last(second)
    assert list(waiting.own) == [first]
    waiting.validate()


def test_what_came_back_goes_before_what_others_asked_in_its_own_order() -> None:
    waiting = Waiting()
    asked, first, second = task("x", wanted=True), task("a", wanted=True), task("b", wanted=True)
    waiting.add(asked)
    waiting.put_first([first, second])
    assert list(waiting) == [first, second, asked]
    assert waiting.came_back("quotes")
    assert not waiting.came_back("orders")
    waiting.validate()


@pytest.mark.parametrize(("bound", "value"), [("waiting_events", 2), ("waiting_bytes", 10)])
def test_over_its_bounds(bound: str, value: int) -> None:
    waiting = Waiting(Limits(**{bound: value}))
    one = task("a")
    assert not waiting.over(one.batch)
    waiting.add(one)
    waiting.add(task("b"))
    assert waiting.over(one.batch)
    waiting.add(task("c", wanted=True))
    assert waiting.over()


def test_only_the_last_can_be_dropped_as_the_last() -> None:
    waiting = Waiting()
    first, last = task("first"), task("last")
    waiting.add(first)
    waiting.add(last)
    with pytest.raises(AssertionError):
        waiting.drop_last(first)


@given(st.lists(st.tuples(st.sampled_from(["add", "take", "untake", "back", "drop"]), st.booleans())))
def test_the_count_is_always_that_of_what_is_there(steps: list[tuple[str, bool]]) -> None:
    waiting = Waiting()
    taken: list[tuple[Any, Task]] = []
    for place, (step, wanted) in enumerate(steps):
        line = waiting.others if wanted else waiting.own
        if step == "add":
            waiting.add(task("x" * place, wanted))
        elif step == "take" and line:
            taken.append((line, waiting.take(line)))
        elif step == "untake" and taken:
            waiting.untake(*taken.pop())
        elif step == "back":
            waiting.put_first([task("x" * place, wanted=True), task("y", wanted=True)])
        elif step == "drop" and line:
            waiting.drop_last(line[-1])
        waiting.validate()
        assert (waiting.events, len(waiting)) == (len(waiting.own) + len(waiting.others),) * 2
