"""Durable subscriptions when links break, answers are late, and two want something at once."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.broker.core.config import broker_id
from headgate.broker.core.durable import DurableState, Place, decode_state, encode_state, join_runs, keeping
from headgate.broker.core.durable.keeping import key_of
from headgate.broker.core.durable.messages import Attach, Attached, Fed, HandOut, KeepState, StateKept
from headgate.broker.core.inputs import Governed, LinkDown, LinkPaused, LinkResumed, WallClock
from headgate.broker.core.keyspace import distance
from headgate.broker.core.limits import Limits
from headgate.broker.core.messages import CONTROLS
from headgate.broker.core.rights import Member, Policy, read_roles
from headgate.protocol.errors import ErrorCode, ProtocolViolation
from headgate.protocol.messages import (
    Ack,
    Acked,
    AckVerb,
    Answer,
    Ask,
    Control,
    Ended,
    Error,
    Handed,
    Suback,
    Subscribe,
    Unsuback,
    Unsubscribe,
)
from tests.support.log_cluster import LogCluster
from tests.support.log_disk import Disk
from tests.support.node_cluster import Host

from .test_durables import ack_all, bodies, price, subscribe


def name_at(cluster: LogCluster, broker: str) -> str:
    """A name of which this broker is the coordinator."""
    some = next(iter(cluster.hosts))
    return next(
        f"orders{n}" for n in range(999) if cluster.node(some).durables.coordinator_name(f"orders{n}") == broker
    )


def break_unseen(cluster: LogCluster, one: str, other: str) -> None:
    """The first hears that their link is gone, and comes back before the other hears it."""
    for end in [end for end in cluster._ends.values() if (end.host.name, end.other.host.name) == (one, other)]:
        end.open = end.other.open = False
        cluster._ends.pop(end.link)
        cluster.feed(end.host, LinkDown(end.link, "cut"))
    cluster.run(5.0)
    assert cluster.linked(one, other) and cluster.linked(other, one)


def test_a_broker_whose_link_was_replaced_is_asked_anew() -> None:
    cluster = LogCluster(3)
    subscriber, publisher = cluster.connect("b1"), cluster.connect("b2")
    assert isinstance(subscribe(cluster, subscriber, name_at(cluster, "b1")), Suback)
    break_unseen(cluster, "b2", "b1")
    cluster.store(publisher, "a")
    cluster.until(lambda: bodies(subscriber) == ["a"], 5.0)


def test_clients_behind_a_link_that_was_replaced_take_part_no_more() -> None:
    cluster = LogCluster(3)
    name = name_at(cluster, "b1")
    ghost, other = cluster.connect("b2"), cluster.connect("b0")
    assert isinstance(subscribe(cluster, ghost, name), Suback)
    break_unseen(cluster, "b2", "b1")
    assert ghost.of(Ended)
    assert isinstance(subscribe(cluster, other, name), Suback)


def test_unsubscribe_while_attaching() -> None:
    cluster = LogCluster(3)
    name = name_at(cluster, "b1")
    one = cluster.connect("b0")
    cluster.node("b1").durables.keeping.is_ready = False
    one.send(Subscribe(5, 1, "quotes", "", {"durable": name}))
    cluster.run(0.05)
    one.take()
    one.send(Unsubscribe(6, 1))
    cluster.run(0.5)
    assert one.of(Unsuback) and not one.of(Error)
    cluster.node("b1").durables.keeping.is_ready = True
    cluster.run(2.0)
    assert not one.of(Suback)


def test_two_changes_at_once_both_hold() -> None:
    cluster = LogCluster(3)
    name = name_at(cluster, "b1")
    one, other = cluster.connect("b0"), cluster.connect("b0")
    assert isinstance(subscribe(cluster, one, name), Suback)
    other.send(Ask(1, "durable_set", {"name": name, "where": "price > 8", "from": "now"}))
    other.send(Ask(2, "durable_set", {"name": name, "max_deliver": 7}))
    cluster.until(lambda: len(other.of(Answer) + other.of(Error)) == 2)
    row = cluster.ask(one, "durable", name=name)
    assert (row["condition"], row["max_deliver"], row["version"]) == ("`price` > 8", 7, 3)


def fill(cluster: LogCluster, count: int) -> None:
    """The first broker keeps so many small states."""
    kept = cluster.node("b0").durables.keeping._kept
    for number in range(count):
        state = DurableState(f"{number}", stream="q", pattern="q", removed=True, generation=1)
        kept[state.name] = keeping._Kept(1, encode_state(state), 0)


def test_many_small_states_are_collected() -> None:
    cluster = LogCluster(2)
    fill(cluster, 20_000)
    cluster.start("b2")
    cluster.run(15.0)
    assert all(node.durables.keeping.is_ready for node in cluster.nodes)


def test_collecting_may_take_longer_than_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "COLLECT_PAGE_BYTES", 1)
    cluster = LogCluster(2)
    fill(cluster, 4_000)
    cluster.start("b2")
    cluster.run(15.0)
    assert all(node.durables.keeping.is_ready for node in cluster.nodes)


def control(message: Any) -> Control:
    """As it travels."""
    return Control(*CONTROLS.write(message))


def state_of(cluster: LogCluster, broker: str, name: str, generation: int, created: int) -> DurableState:
    """A state as that broker writes it."""
    return DurableState(
        name,
        stream="quotes",
        pattern="quotes",
        generation=generation,
        created=created,
        coordinator=cluster.node(broker).cluster.me,
    )


def broken_links(cluster: LogCluster) -> int:
    """How many links between brokers ended so far."""
    return sum(note.event == "broker link ended" for host in cluster.hosts.values() for note in host.notes)


def test_another_coordinator_writes_while_a_subscription_begins() -> None:
    cluster = LogCluster(3)
    name = name_at(cluster, "b1")
    one = cluster.connect("b1")
    cluster.hold("b1", "b2")
    one.send(Subscribe(5, 1, "quotes", "", {"durable": name}))
    cluster.run(1.9985)  # b2 is waited for no longer while this is being taken over
    theirs = state_of(cluster, "b0", name, 7, 5)
    cluster.tell("b0", "b1", control(KeepState(name, 7, 99, encode_state(theirs))))
    cluster.until(lambda: bool(one.of(Suback)))
    kept = decode_state(cluster.disks["b1"].durables[name])
    assert (kept.generation, kept.created) == (8, 5)


def test_a_fence_that_is_asked_for_again_is_answered_as_before() -> None:
    cluster = LogCluster(3)
    old, new = (state_of(cluster, "b0", "x", generation, 9) for generation in (1, 2))
    cluster.tell("b0", "b1", control(KeepState("x", 1, 1, encode_state(old))))
    cluster.run(0.5)
    cluster.said.clear()
    for _ in range(2):
        cluster.tell("b0", "b1", control(KeepState("x", 2, 50, encode_state(new))))
        cluster.run(0.5)
    said = [CONTROLS.read(what.kind, list(what.body)) for _, _, what in cluster.said if isinstance(what, Control)]
    assert [one.state for one in said if isinstance(one, StateKept)] == [encode_state(old)] * 2


def test_a_newcomer_that_nobody_has_fenced_does_not_count_alone() -> None:
    """b1 coordinates, and can reach b3 alone, which has just come: the others may have another coordinator by now."""
    cluster = LogCluster(3)
    ids = sorted(map(broker_id, ("b0", "b1", "b2", "b3")))
    names = (f"orders{n}" for n in range(999))
    name = next(one for one in names if min(ids, key=lambda id: distance(key_of(one), id)) == broker_id("b1"))
    one, publisher = cluster.connect("b1"), cluster.connect("b1")
    assert isinstance(subscribe(cluster, one, name), Suback)
    cluster.store(publisher, "a")
    cluster.until(lambda: bool(one.of(Handed)))
    first = one.of(Handed)[0].first
    for other in ("b0", "b2"):
        cluster.hold(other, "b1", "b3")
        cluster.cut("b1", other)
        cluster.cut(other, "b1")
    cluster.start("b3", ["b1"])
    cluster.until(lambda: cluster.linked("b1", "b3"))
    one.send(Ack(9, 1, AckVerb.ACK, [0, first]))
    cluster.run(4.0)
    assert cluster.node("b1").durables.coordinator_name(name) == "b1"
    assert not one.of(Acked)
    cluster.release()
    cluster.until(lambda: bool(one.of(Acked) or one.of(Ended)))


def test_a_coordinator_that_was_cut_off_lets_nobody_in() -> None:
    """It does not know whether another coordinates by now, one that removed the subscription."""
    cluster = LogCluster(3)
    name = name_at(cluster, "b1")
    one, other = cluster.connect("b1"), cluster.connect("b1")
    assert isinstance(subscribe(cluster, one, name, sharing="shared"), Suback)
    cluster.hold("b0", "b1")
    cluster.hold("b2", "b1")
    other.send(Subscribe(5, 1, "quotes", "", {"durable": name}))
    cluster.run(1.0)
    assert not other.take()
    cluster.release()
    cluster.until(lambda: bool(other.of(Suback)))


def test_who_comes_while_a_subscription_is_fenced_waits_until_it_is_written() -> None:
    """The answers to the fence are old: another broker took over since, and removed it."""
    cluster = LogCluster(3)
    name = name_at(cluster, "b1")
    one = cluster.connect("b0")
    assert isinstance(subscribe(cluster, one, name), Suback)
    cluster.kill("b1")
    cluster.run(6.0)
    cluster.disconnect(one)
    cluster.run(1.0)
    cluster.start("b1", ["b0"], life=2)
    keeping = cluster.node("b1").durables.keeping
    while not keeping.is_writing(name):
        cluster.run(0.0005)
    cluster.run(0.0012)  # it is with the others, whose answers are on their way
    for other in ("b0", "b2"):
        cluster.hold(other, "b1")
    cluster.run(0.02)
    for end in [end for end in list(cluster._ends.values()) if end.other.host.name == "b1"]:
        if end.host.name in ("b0", "b2"):
            cluster._ends.pop(end.link)
            end.open = False
            cluster.feed(end.host, LinkDown(end.link, "cut"))
    cluster.run(6.0)
    assert cluster.ask(cluster.connect("b0"), "durable_rm", name=name) == {"removed": name}
    late = cluster.connect("b1")
    late.send(Subscribe(5, 1, "quotes", "", {"durable": name}))
    cluster.run(0.05)
    cluster.release()
    cluster.run(0.02)
    assert not late.of(Suback)


def test_a_disk_that_is_slow_does_not_get_an_older_generation_behind_a_newer_one() -> None:
    cluster = LogCluster(3)
    name = name_at(cluster, "b1")
    one = cluster.connect("b1")
    assert isinstance(subscribe(cluster, one, name), Suback)
    cluster.slow["b1"] = None
    one.send(Ask(77, "durable_rm", {"name": name}))
    cluster.run(0.3)
    cluster.tell("b0", "b1", control(KeepState(name, 9, 99, encode_state(state_of(cluster, "b0", name, 9, 9)))))
    cluster.run(2.5)  # a write that takes long is tried again
    for _ in range(3):
        cluster.answer("b1")
    assert decode_state(cluster.disks["b1"].durables[name]).generation >= 9


@pytest.mark.parametrize("verb", ["from", "seek"])
def test_a_place_behind_all_logs_is_refused(verb: str) -> None:
    cluster = LogCluster(3)
    name = name_at(cluster, "b1")
    one, publisher = cluster.connect("b0"), cluster.connect("b0")
    cluster.store(publisher, "a")
    cluster.run(0.5)
    begin = {"from": "9999999999999999"} if verb == "from" else {}
    answer = subscribe(cluster, one, name, **begin)
    if verb == "seek":
        answer = cluster.ask(publisher, "durable_seek", name=name, to="9999999999999999")
    assert isinstance(answer, Error) and "positions go up to" in answer.text
    cluster.run(3.0)
    assert not broken_links(cluster)


def test_an_acknowledgement_with_holes_is_answered_within_bounds() -> None:
    cluster = LogCluster(2)
    one, publisher = cluster.connect("b0"), cluster.connect("b0")
    assert isinstance(subscribe(cluster, one, name_at(cluster, "b1"), window=65536, max_unacked=65536), Suback)
    for _ in range(10):
        cluster.store(publisher, *["x"] * 1000)
        cluster.run(0.2)
    first = one.of(Handed)[0].first
    for begin in (0, 5000):
        even = range(first + begin, first + begin + 5000, 2)
        one.send(Ack(7, 1, AckVerb.ACK, [number for at in even for number in (at, at)]))
    cluster.run(1.0)
    one.take()
    one.send(Ack(8, 1, AckVerb.ACK, [1, 2**53]))
    cluster.until(lambda: bool(one.of(Acked)))
    assert one.of(Acked)[0].stale[:4] == [1, first, first + 2, first + 2]
    assert not broken_links(cluster)


@pytest.mark.parametrize(
    "message",
    [
        Attach(1, "", "c", "quotes", "", {"from": 5}),
        Attach(1, "", "c", "quotes", "", {"from": "²"}),
        Attach(1, "", "c", "quotes", "", {"window": "much"}),
        Attach(1, "x\0", "c", "quotes", "", {}),
    ],
)
def test_an_odd_wish_from_another_broker_is_refused(message: Attach) -> None:
    cluster = LogCluster(1)
    cluster.start("b1")
    cluster.run(8.0)
    message.name = message.name or name_at(cluster, "b1")
    cluster.node("b1").durables.keeping.is_ready = True
    (answer,) = [
        CONTROLS.read(said.kind, list(said.body))
        for said in cluster.tell("b0", "b1", control(message))
        if isinstance(said, Control)
    ]
    assert isinstance(answer, Attached) and answer.code == ErrorCode.BAD_REQUEST


@pytest.mark.parametrize(
    "message",
    [
        Fed(1, Place("b0", 1000), 0, 4, 5, join_runs([(4, 9)]), b"", 0),
        Fed(1, Place("b0", 1000), 0, 3, 2, b"", b"", 0),
        Fed(1, Place("b0", 1000), 0, 0, 9, b"", b"1", 0),
        HandOut(1, 1, b"", "quotes", Place("b0", 1000), b""),
        HandOut(1, 1, b"\1\0\0\0", "quotes", Place("b0", 1000), join_runs([(0, 2)])),
    ],
)
def test_odd_positions_from_another_broker_end_the_link(message: Any) -> None:
    with pytest.raises(ProtocolViolation):
        CONTROLS.read(*CONTROLS.write(message))


def test_what_is_not_sent_in_time_is_not_sent_twice() -> None:
    cluster = LogCluster(1)
    one, publisher = cluster.connect("b0"), cluster.connect("b0")
    assert isinstance(subscribe(cluster, one, ack_wait=0.2), Suback)
    cluster.feed(cluster.hosts["b0"], LinkPaused(one.link))
    cluster.store(publisher, "a", "b")
    cluster.run(60.0)
    cluster.feed(cluster.hosts["b0"], LinkResumed(one.link))
    cluster.run(0.1)
    assert len(bodies(one)) <= 4


@pytest.mark.parametrize("attached", [True, False])
def test_what_a_broker_lost_with_its_disk_is_handed_out_from_the_copy(attached: bool) -> None:
    cluster = LogCluster(3)
    publisher, one = cluster.connect("b0"), cluster.connect("b1")
    name = name_at(cluster, "b1")
    if attached:
        assert isinstance(subscribe(cluster, one, name), Suback)
        cluster.disconnect(one)
    cluster.store(publisher, "a", "b")
    cluster.run(0.5)
    cluster.kill("b0")
    cluster.disks["b0"] = Disk("b0", 2_000)
    cluster.start("b0", ["b1"], life=2)
    cluster.run(10.0)
    one, publisher = cluster.connect("b1"), cluster.connect("b0")
    assert isinstance(subscribe(cluster, one, name, **({} if attached else {"from": "start"})), Suback)
    cluster.store(publisher, "c")
    cluster.until(lambda: sorted(bodies(one)) == ["a", "b", "c"], 10.0)


class _Mixed(LogCluster):
    """Broker b2 has no disk."""

    def begin_life(self, host: Host) -> None:
        if host.name == "b2":
            self.feed(host, WallClock(1e6))
            host.node.streams.declare("quotes", self.schema)
        else:
            super().begin_life(host)


def test_a_broker_without_a_disk_does_not_slow_acknowledgements() -> None:
    cluster = _Mixed(3)
    one, publisher = cluster.connect("b0"), cluster.connect("b0")
    keys = {f"n{number}": key_of(f"n{number}") for number in range(99)}
    coordinator, mute = broker_id("b1"), broker_id("b2")
    name = next(
        name
        for name, key in keys.items()
        if distance(key, coordinator) < distance(key, mute) < distance(key, broker_id("b0"))
    )
    assert isinstance(subscribe(cluster, one, name), Suback)
    took: list[float] = []
    for body in "abcd":
        cluster.store(publisher, body)
        cluster.until(lambda: bool(one.of(Handed)), 5.0)
        begun = cluster.now
        ack_all(cluster, one)
        took.append(cluster.now - begun)
        one.take()
    assert max(took[2:]) < 0.1


def test_a_session_has_a_bound_of_durable_subscriptions() -> None:
    cluster = LogCluster(1, limits=Limits(subscriptions_per_session=2))
    one = cluster.connect("b0")
    one.send(*[Subscribe(number, number, "quotes", "", {"durable": f"d{number}"}) for number in (1, 2, 3)])
    cluster.until(lambda: len(one.of(Suback)) == 2)
    assert [error.code for error in one.of(Error)] == [ErrorCode.LIMIT]


def test_what_a_copy_has_not_any_more_comes_from_the_broker_that_wrote_it() -> None:
    cluster = LogCluster(3)
    publisher = cluster.connect("b0")
    for body in "abcd":
        cluster.store(publisher, body)
        cluster.run(0.1)
    (home,) = [name for name in cluster.holders("b0") if name != "b0"]
    cluster.node(home).log.trim(cluster.name("b0"), 2)
    cluster.run(1.0)
    one = cluster.connect(home)
    assert isinstance(subscribe(cluster, one, **{"from": "start"}), Suback)
    cluster.until(lambda: bodies(one) == ["a", "b", "c", "d"], 5.0)


def test_who_coordinates_a_subscription_lets_clients_in_while_too_few_brokers_are_there_for_others() -> None:
    cluster = LogCluster(3, log_copies=1)
    name = name_at(cluster, "b1")
    one, publisher = cluster.connect("b0"), cluster.connect("b0")
    assert isinstance(subscribe(cluster, one, name), Suback)
    cluster.kill("b2")
    cluster.run(5.0)
    cluster.disconnect(one)
    again = cluster.connect("b0")
    assert isinstance(subscribe(cluster, again, name), Suback)
    cluster.store(publisher, "a")
    cluster.until(lambda: bodies(again) == ["a"], 5.0)


def test_now_is_behind_all_that_a_copy_has_when_the_broker_that_wrote_it_is_away() -> None:
    cluster = LogCluster(3)
    name = name_at(cluster, "b1")
    subscriber, publisher, operator = cluster.connect("b1"), cluster.connect("b2"), cluster.connect("b0")
    assert isinstance(subscribe(cluster, subscriber, name, where="price > 8"), Suback)
    cluster.store(publisher, "a", "b")
    cluster.run(2.0)
    log = cluster.name("b2")
    copies = [node.log.logs[log] for node in cluster.nodes if log in node.log.logs and not node.log.logs[log].own]
    cluster.kill("b2")
    cluster.run(5.0)
    for copy in copies:
        copy.safe -= 1  # it has not heard yet that the last one was acknowledged
    cluster.ask(operator, "durable_set", name=name, where="price < 8", **{"from": "now"})
    state = cluster.node("b1").durables.keeping.state_of(name)
    assert state is not None and [one.ends for one in state.sections] == [{Place("b2", log.epoch): 2}]


@pytest.mark.parametrize("verb", ["durable_set", "durable_seek"])
def test_now_is_not_known_while_too_few_brokers_say_where_their_logs_end(verb: str) -> None:
    cluster = LogCluster(3, log_copies=1)
    name = name_at(cluster, "b1")
    subscriber, operator = cluster.connect("b1"), cluster.connect("b0")
    assert isinstance(subscribe(cluster, subscriber, name), Suback)
    cluster.kill("b2")
    cluster.run(5.0)
    wish = {"where": "price > 8", "from": "now"} if verb == "durable_set" else {"to": "now"}
    refused = cluster.ask(operator, verb, name=name, **wish)
    assert isinstance(refused, Error) and refused.code == ErrorCode.UNAVAILABLE and "too few" in refused.text


def _policy(version: str, where: str = "") -> Policy:
    """Two users whose roles are called as they are: a trader, who may read what matches, and an operator."""
    grant = {"pattern": "quotes", **({"where": where} if where else {})}
    trader = {"publish": [{"pattern": "quotes"}], "subscribe": [grant], "durable": ["*"]}
    roles = {"trader": trader, "op": {"admin": True}}
    members = {name: Member((name,), frozenset({"pw"})) for name in roles}
    return Policy(members, read_roles({"roles": roles}), version)


def test_a_former_condition_that_is_too_long_with_the_rights_of_now_holds_nothing_up() -> None:
    cluster = LogCluster(1)
    cluster.feed(cluster.hosts["b0"], Governed(_policy("1")))
    one, publisher = cluster.connect("b0", "trader"), cluster.connect("b0", "trader")
    wide = "price > 8 OR symbol = '" + "x" * 3900 + "'"
    assert isinstance(subscribe(cluster, one, where=wide), Suback)
    price(cluster, publisher, "a", 9.0)
    cluster.until(lambda: bodies(one) == ["a"])
    cluster.ask(publisher, "durable_set", name="orders", where="price > 7", **{"from": "ack"})
    cluster.feed(cluster.hosts["b0"], Governed(_policy("2", "price > 0 OR symbol = '" + "y" * 400 + "'")))
    cluster.run(1.0)
    answer = cluster.ask(publisher, "durable_set", name="orders", where="price > 6", **{"from": "ack"})
    assert not isinstance(answer, Error)
    price(cluster, publisher, "b", 9.0)
    cluster.until(lambda: bodies(one)[-1] == "b", 5.0)
