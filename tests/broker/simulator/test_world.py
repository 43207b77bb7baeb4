"""The world: order of time, ties in the order they were asked for, the Host's four steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from headgate.broker.core import NodeConfig
from headgate.broker.core.effects import Close, Effect, FindTime, Halt, Send, Store
from headgate.broker.core.inputs import Input, LinkDown, LinkPaused, LinkResumed, Received, Wake
from headgate.broker.simulator.engine import Host, World
from headgate.protocol.data import LogName
from headgate.protocol.messages import Ask, Hello, Welcome
from tests.support.builders import deliveries_of, make_publish, make_subscribe


class FakeLink:
    """What a Host does with a connection."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.closed = 0

    def broker_send(self, message: Any) -> None:
        """Keep it."""
        self.heard.append(message)

    def broker_close(self) -> None:
        """Count it."""
        self.closed += 1

    def host_stands_still(self, still: bool) -> None:
        """Not here."""

    def host_died(self) -> None:
        """Not here."""


class Steps:
    """A watcher that keeps everything."""

    def __init__(self) -> None:
        self.inputs: list[tuple[float, Input]] = []

    def __call__(self, host: Host, happened: Input, effects: Sequence[Effect]) -> None:
        """Keep it."""
        self.inputs.append((host.world.now, happened))


def host_with(links: int) -> tuple[Host, list[FakeLink], Steps]:
    steps = Steps()
    host = Host(World(1), NodeConfig("broker-1", 1), [steps])
    ends = [FakeLink() for _ in range(links)]
    for link, end in enumerate(ends, 1):
        host.links[link] = end
        host.feed(Received(link, [Hello(name="x")]))
    return host, ends, steps


def test_actions_happen_in_the_order_of_time_and_then_of_asking() -> None:
    world, seen = World(1), []
    for seconds, name in ((2.0, "c"), (1.0, "a"), (2.0, "d"), (1.0, "b")):
        world.after(seconds, lambda name=name: seen.append((world.now, name)))  # type: ignore[misc]
    while world.step():
        pass
    assert seen == [(1.0, "a"), (1.0, "b"), (2.0, "c"), (2.0, "d")]
    assert world.steps == 4


def test_a_stretch_of_time_has_what_is_due_in_it_and_ends_when_it_ends() -> None:
    world, seen = World(1), []
    world.after(1.0, lambda: world.after(1.0, lambda: seen.append("late")))
    world.after(3.1, lambda: seen.append("too late"))
    world.run_for(3.0)
    assert seen == ["late"]
    assert world.now == 3.0


def test_one_seed_gives_one_world() -> None:
    assert World(5).random.random() == World(5).random.random() != World(6).random.random()


def test_a_host_is_found_by_its_name_and_is_watched() -> None:
    host, _, steps = host_with(1)
    assert host.world.hosts == {"broker-1": host}
    assert [type(happened) for _, happened in steps.inputs] == [Received]


def test_effects_are_carried_out_and_dead_links_are_left_in_peace() -> None:
    host, (subscriber, publisher), _ = host_with(2)
    host.feed(Received(1, [make_subscribe(1)]))
    host.feed(Received(2, [make_publish(1)]))
    assert type(subscriber.heard[0]) is Welcome
    assert deliveries_of(subscriber.heard) == [(1, "1")]
    del host.links[1]
    host.feed(Received(2, [make_publish(2), make_publish(9)]))
    assert publisher.closed == 1
    host._carry_out[Close](Close(1))


def test_small_records_are_kept_and_forgotten() -> None:
    host, _, _ = host_with(1)
    host.feed(Received(1, [Ask(1, "schema.put", {"stream": "a", "schema": {}})]))
    assert host.records == {"schema/a": [1, {}]}  # with its version: the time in microseconds, at least 1
    host.feed(Received(1, [Ask(1, "schema.rm", {"stream": "a"})]))
    assert host.records == {"schema/a": [2, None]}  # a deletion is a word as well
    host._carry_out[Store](Store("never there", None))
    host._carry_out[Send](Send(77, Hello()))


def test_the_host_wakes_the_node_at_its_deadline_and_not_for_one_that_passed() -> None:
    host, _, steps = host_with(2)
    host.world.run_for(1.0)
    host.feed(LinkDown(1, "cut"))
    host.world.run_for(1.0)
    host.feed(LinkDown(2, "cut"))
    host.world.run_for(60.0)
    wakes = [now for now, happened in steps.inputs if isinstance(happened, Wake)]
    assert [wake for wake in wakes if wake != 10.0] == [11.0, 12.0]  # at 10 the store looks around
    assert host.node.statistics(host.world.now).sessions == 0


def test_a_host_wakes_a_node_that_has_more_to_send_in_its_next_turn() -> None:
    host, (subscriber, _), _ = host_with(2)
    host.feed(Received(1, [make_subscribe(1)]))
    host.feed(LinkPaused(1))
    for sequence in range(1, 4):
        host.feed(Received(2, [make_publish(sequence)]))
    host.node.subscribers.draining[host.node.subscribers.by_link[1].key] = host.node.subscribers.by_link[1]
    host.feed(LinkResumed(1))
    host.world.run_for(1.0)
    assert len(deliveries_of(subscriber.heard)) == 3


def test_what_the_log_is_asked_and_the_order_to_halt_go_to_whoever_can() -> None:
    host, _, _ = host_with(0)
    asked: list[object] = []
    question = FindTime(1, LogName("broker-1", 7, 0, "a"), 5)
    for effect in (question, Halt("the disk has failed")):
        host._carry_out[type(effect)](effect)
    host.ask_store = host.halt = asked.append
    for effect in (question, Halt("the disk has failed")):
        host._carry_out[type(effect)](effect)
    assert asked == [question, "the disk has failed"]


def test_time_goes_on_until_something_is_so_or_too_late() -> None:
    world, done = World(1, now=100.0), []
    world.at(103.0, lambda: done.append(world.now))
    world.at(90.0, lambda: done.append(world.now))  # what is over happens now
    world.run_until(lambda: len(done) == 1, 1.0)
    assert done == [100.0]
    with pytest.raises(AssertionError, match="not so within 2 s"):
        world.run_until(lambda: len(done) == 2, 2.0)
    world.run_until(lambda: len(done) == 2, 3.0)
    assert world.now == 103.0
