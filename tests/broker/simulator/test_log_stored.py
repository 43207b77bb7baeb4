"""P1: PUBACK of a stored batch when enough disks have it; and the checker sees it come too early."""

from __future__ import annotations

import pytest

from headgate.broker.core import Node, NodeConfig
from headgate.broker.core.effects import Effect, Send
from headgate.broker.core.inputs import Received
from headgate.broker.simulator.checkers import OnEnoughDisks
from headgate.broker.simulator.engine import Host, Violation, World
from headgate.protocol.messages import Answer, Error, Hello, Mode, Puback, Publish, Scope
from tests.support.builders import quote_batch
from tests.support.log_stage import LogStage


class Bench:
    """A checker that sees a broker with one client, whose broker says what the test wants."""

    def __init__(self) -> None:
        self.stage = LogStage()
        self.checker = self.stage.checker(OnEnoughDisks)
        self.host = Host(World(1), NodeConfig("broker-1", 1), ())
        self.host.node.log.needed = 1
        self.host.feed(Received(1, [Hello(name="p")]))

    def publish(self, sequence: int, *names: str, mode: Mode = Mode.STORED) -> None:
        message = Publish(sequence, mode, quote_batch(bodies=names))
        self.checker.step(self.host, Received(1, [message]), [])

    def comes_back(self) -> None:
        """The same session, over another connection: which one published last is what the checker keeps."""
        self.checker._links.clear()
        self.checker._refused.clear()

    def say(self, *messages: object) -> None:
        effects: list[Effect] = [Send(1, message) for message in messages]  # type: ignore[arg-type]
        self.checker.step(self.host, Received(2, []), effects)


def test_two_disks_are_enough_and_one_is_not() -> None:
    bench = Bench()
    bench.publish(1, "a")
    bench.publish(2, "b")
    bench.stage.write(0, 0, "a")
    bench.stage.write(1, 0, "a")
    bench.stage.write(0, 1, "b")
    bench.say(Puback(1))
    assert bench.checker.checked == 1
    with pytest.raises(Violation, match="acknowledged b, and 1 of 2 disks"):
        bench.say(Puback(2))


def test_a_broker_that_never_had_company_promised_one_disk() -> None:
    bench = Bench()
    bench.host.node.log.needed = 0
    bench.publish(1, "a")
    bench.stage.write(0, 0, "a")
    bench.say(Puback(1))
    assert bench.checker.checked == 1
    assert isinstance(bench.host.node, Node)


def test_what_was_refused_or_is_not_to_be_stored_needs_no_disk() -> None:
    bench = Bench()
    bench.publish(1, "a")
    bench.publish(2, "b", mode=Mode.ACCEPTED)
    bench.say(Error(112, Scope.PUBLISH, 1, "full"), Puback(2))
    assert bench.checker.checked == 0


def test_what_a_producer_is_told_when_it_opens_is_an_acknowledgement_too() -> None:
    bench = Bench()
    bench.stage.write(0, 0, "p:0")
    bench.say(Answer(1, {"next": 0, "digest": b"", "epoch": 1}))
    with pytest.raises(Violation, match="acknowledged p:0"):
        bench.say(Answer(1, {"next": 1, "digest": b"", "epoch": 1}))


def test_what_was_refused_on_this_connection_may_come_again_before_that_was_heard() -> None:
    bench = Bench()
    bench.publish(1, "a")
    bench.say(Error(112, Scope.PUBLISH, 1, "late"))
    bench.publish(1, "a")
    bench.say(Puback(1))
    bench.comes_back()
    bench.publish(1, "a")
    with pytest.raises(Violation, match="acknowledged a"):
        bench.say(Puback(1))


def test_what_is_not_sent_again_over_a_new_connection_was_given_up() -> None:
    bench = Bench()
    bench.publish(1, "a")
    bench.publish(2, "b")
    bench.comes_back()
    bench.stage.write(0, 0, "b")
    bench.stage.write(1, 0, "b")
    bench.publish(2, "b")
    bench.say(Puback(2))
    assert bench.checker.checked == 1
