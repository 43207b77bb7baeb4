"""A Node endures: faults of its own parts, ends that come while it drains, and what came before it knew its cluster."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from headgate.broker.core import Node, NodeConfig
from headgate.broker.core.effects import Dial, Send
from headgate.broker.core.inputs import DialFailed, Drain, Input, Loaded, Opened, Reachable, Received, Wake, WallClock
from headgate.broker.core.keyspace import RING_SIZE
from headgate.broker.core.kv import Added, Item, Tell
from headgate.broker.core.kv.limits import KvLimits
from headgate.broker.core.kv.messages import TellAll
from headgate.broker.core.limits import Limits
from headgate.protocol.data import Batch, join_u32
from headgate.protocol.messages import Answer, Ask, Credit, Error, Hello, Puback, Publish, Subscribe
from tests.support.keyed_parts import item


def node(**config: Any) -> Node:
    made = Node(NodeConfig("a", 1, **config), Random(1), 0.0)
    for happened in (Opened(1), WallClock(0.0), Loaded({}), Reachable("10.0.0.1:1", "10.0.0.1:2")):
        made.handle(happened, 0.0)
    return made


def batch(size: int = 4) -> Batch:
    return Batch("q", 1, join_u32([size]), b"x" * size, {}, True)


def test_a_part_that_fails_leaves_no_other_part_asleep() -> None:
    made = node()

    def fail(now: float) -> None:
        raise ZeroDivisionError

    made._woken["grace"] = fail
    made.timers.at("grace", 4.999)
    with pytest.raises(ZeroDivisionError):
        made.handle(Wake(), 5.1)
    for key in ("grace", "retention", "roster"):
        assert made.timers.when(key) <= 5.1 + 60, f"{key} is never woken again"


def test_what_the_store_says_is_carried_out_once_also_when_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    made = node()
    cluster, carried = made.cluster, list[str]()

    def carry(effect: Any, now: float) -> None:
        carried.append(type(effect).__name__)
        if isinstance(effect, Tell):
            raise ZeroDivisionError

    monkeypatch.setattr(cluster, "_carry_out_store", carry)
    cluster.kv.effects += [Added(item(1, 5)), Tell(12345, None)]
    with pytest.raises(ZeroDivisionError):
        made.handle(Wake(), 1.0)
    made.handle(Wake(), 2.0)
    assert carried == ["Added", "Tell"]


def test_a_broker_leaves_although_a_slow_subscriber_was_sent_away_while_it_was_drained() -> None:
    made = node(outbox_bytes=20_000, slow_consumer="disconnect", limits=Limits(drain_step_bytes=1000))
    made.handle(Received(1, [Hello(name="sub", credit=1), Subscribe(1, 1, "q", "", {})]), 0.1)
    made.handle(Received(2, [Hello(name="pub")]), 0.1)
    for sequence in range(1, 6):
        made.handle(Received(2, [Publish(sequence, 1, batch(1000))]), 0.2)
    session = made.subscribers.by_link[1]
    made.handle(Received(1, [Credit(1000, session.sent)]), 0.3)
    assert made.subscribers.draining
    for sequence in range(6, 40):
        made.handle(Received(2, [Publish(sequence, 1, batch(1000))]), 0.3)
        if session.closing:
            break
    assert session.closing and not made.subscribers.draining
    made.validate()
    made.handle(Drain(), 0.4)
    made.validate()


def waited(*messages: Any) -> list[Any]:
    """What a broker without a place in its cluster answers in the end to what one read brought."""
    made = node(seeds=("10.9.9.9:1",))
    to_come: list[Input] = [Received(7, [Hello(name="c"), *messages])]
    answers, now = list[Any](), 0.1
    while now < 10.0:
        for happened in (*to_come, Wake()):
            to_come = to_come[1:]
            for effect in made.handle(happened, now):
                if isinstance(effect, Dial):
                    to_come.append(DialFailed(effect.address))
                elif isinstance(effect, Send) and isinstance(effect.message, Answer | Error | Puback):
                    answers.append(effect.message)
            made.validate()
        now = min(now + 0.05, max(now + 0.001, made.next_deadline()))
    return [made, *answers]


def test_of_two_changes_of_a_schema_that_waited_both_hold() -> None:
    changes = [{"attributes": {name: {"type": "float"}}} for name in ("price", "size")]
    asks = [Ask(number, "schema.put", {"stream": "q", "schema": one}) for number, one in enumerate(changes, 1)]
    made, *answers = waited(*asks)
    assert [type(one) for one in answers] == [Answer, Answer]
    assert set(made.streams.schemas["q"]["attributes"]) == {"price", "size"}


def test_a_batch_that_waited_behind_a_setting_is_taken_under_it() -> None:
    made, *answers = waited(
        Ask(1, "schema.put", {"stream": "q", "schema": {"durability": "stored"}}), Publish(1, 2, batch())
    )
    assert not any(isinstance(one, Error) for one in answers)
    assert made.log.logs, "it is in the log"


def test_what_a_broadcast_did_not_copy_is_remembered_up_to_a_bound() -> None:
    made = node(kv=KvLimits(broadcast_names=3))
    kv = made.cluster.kv
    kv.peer_up(2, 0.0)
    for number in range(10):
        told = Item(("use", 2, 5, f"s{number}"), 0, RING_SIZE - 1, 1, [[], [], "x"])
        kv.handle(2, TellAll(number, [told]), 1.0)
        kv.handle(2, TellAll(number, [told._replace(version=2, value=None)]), 1.0)
        made.handle(Wake(), 1.0)
    assert len(kv.broadcasts.uncopied) <= 3


def test_the_mark_of_a_purge_is_never_longer_than_the_name_of_a_producer() -> None:
    made = node()
    made.producers._producer("*/nightly/0").epoch = 3
    for length in (200, 256):
        made.producers.forget("s" * length, 1.0)
    names = [producer.name for producer in made.producers._producers.values()]
    assert "s" * 200 + "/*/purged" in names and max(map(len, names)) <= 256
