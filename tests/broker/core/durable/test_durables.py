"""Durable subscriptions over brokers with disks: attached, handed out, acknowledged; over the death of clients and
brokers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headgate.broker.core.config import broker_id
from headgate.broker.core.durable import Cursor, DeadLetter, DurableState, Former, Place, Section
from headgate.broker.core.durable.amending import formers_of
from headgate.broker.core.durable.keeping import key_of
from headgate.broker.core.durable.limits import FORMERS_BYTES
from headgate.broker.core.effects import Effect, KeepDurable
from headgate.broker.core.inputs import Input
from headgate.broker.core.keyspace import distance
from headgate.protocol.data import decode_record
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import (
    Ack,
    Acked,
    AckVerb,
    Ended,
    Error,
    Gap,
    Handed,
    Interest,
    Mode,
    Suback,
    Subscribe,
)
from tests.support.builders import make_publish, quote_batch
from tests.support.log_cluster import LogCluster
from tests.support.node_cluster import Client, Host


def subscribe(cluster: LogCluster, client: Client, name: str = "orders", **options: Any) -> Any:
    """A durable subscription to all quotes; SUBACK, or the ERROR."""
    client.take()
    client.send(
        Subscribe(5, 1, options.pop("pattern", "quotes"), options.pop("where", ""), {"durable": name, **options})
    )
    cluster.until(lambda: bool(client.of(Suback) or client.of(Error)), 20.0)
    return [*client.of(Suback), *client.of(Error)][0]


def bodies(client: Client) -> list[str]:
    """What was handed to it, in order."""
    found: list[str] = []
    for handed in client.of(Handed):
        portion, at = handed.portion, 0
        for place in range(portion.count):
            length = int.from_bytes(portion.lengths[4 * place : 4 * place + 4], "little")
            found.append(decode_record(portion.records[at : at + length])[1].decode())
            at += length
    return found


def ack_all(cluster: LogCluster, client: Client) -> Acked:
    """Everything is acknowledged; the confirmation."""
    last = max(handed.first + handed.portion.count - 1 for handed in client.of(Handed))
    client.send(Ack(9, 1, AckVerb.ACK, [0, last]))
    cluster.until(lambda: bool(client.of(Acked)), 20.0)
    return client.of(Acked)[0]


def test_one_broker_hands_out_in_order_and_remembers_what_was_acknowledged() -> None:
    cluster = LogCluster(1)
    publisher, first = cluster.connect("b0"), cluster.connect("b0")
    assert isinstance(subscribe(cluster, first), Suback)
    cluster.store(publisher, "a", "b")
    cluster.store(publisher, "c")
    cluster.until(lambda: bodies(first) == ["a", "b", "c"], 5.0)
    assert ack_all(cluster, first).stale == []
    cluster.kill("b0")
    cluster.start("b0")
    cluster.run(1.0)
    again, publisher = cluster.connect("b0"), cluster.connect("b0")
    assert isinstance(subscribe(cluster, again), Suback)
    cluster.store(publisher, "d")
    cluster.until(lambda: bodies(again) == ["d"], 5.0)


def test_three_brokers_hand_out_what_was_stored_anywhere() -> None:
    cluster = LogCluster(3)
    clients = [cluster.connect(f"b{number}") for number in range(3)]
    assert isinstance(subscribe(cluster, clients[0]), Suback)
    for number, client in enumerate(clients):
        cluster.store(client, f"from {number}")
    cluster.until(lambda: sorted(bodies(clients[0])) == ["from 0", "from 1", "from 2"], 5.0)
    assert ack_all(cluster, clients[0]).stale == []


def test_a_subscription_outlives_its_coordinator() -> None:
    cluster = LogCluster(3)
    publisher, subscriber = cluster.connect("b0"), cluster.connect("b0")
    name = next(f"orders{number}" for number in range(99) if _coordinator(cluster, f"orders{number}") == "b1")
    assert isinstance(subscribe(cluster, subscriber, name), Suback)
    cluster.store(publisher, "a")
    cluster.until(lambda: bodies(subscriber) == ["a"], 5.0)
    assert ack_all(cluster, subscriber).stale == []
    subscriber.take()
    cluster.kill("b1")
    cluster.until(lambda: bool(subscriber.of(Ended)), 10.0)
    assert isinstance(subscribe(cluster, subscriber, name), Suback)
    cluster.store(publisher, "b")
    cluster.until(lambda: bodies(subscriber) == ["b"], 10.0)


def test_sharing_gives_each_event_to_one_client_and_failover_hands_on() -> None:
    cluster = LogCluster(3)
    publisher = cluster.connect("b0")
    ones = [cluster.connect(f"b{number}") for number in range(3)]
    for one in ones:
        assert isinstance(subscribe(cluster, one, "work", sharing="shared", window=2), Suback)
    for number in range(9):
        cluster.store(publisher, str(number))
    cluster.until(lambda: sum(len(bodies(one)) for one in ones) == 6, 5.0)
    for one in ones:
        assert len(bodies(one)) == 2
        ack_all(cluster, one)
    cluster.until(lambda: sum(len(bodies(one)) for one in ones) == 9, 5.0)
    assert sorted(body for one in ones for body in bodies(one)) == [str(number) for number in range(9)]
    first, second = cluster.connect("b1"), cluster.connect("b2")
    assert isinstance(subscribe(cluster, first, "hot", sharing="failover", **{"from": "start"}), Suback)
    assert isinstance(subscribe(cluster, second, "hot", sharing="failover"), Suback)
    cluster.until(lambda: len(bodies(first)) == 9, 5.0)
    assert not bodies(second)
    cluster.disconnect(first)
    cluster.until(lambda: len(bodies(second)) == 9, 5.0)
    assert all(handed.counts for handed in second.of(Handed))


def price(cluster: LogCluster, client: Client, body: str, value: float) -> None:
    """A quote of that price is stored."""
    client.sequence += 1
    client.send(make_publish(client.sequence, quote_batch(bodies=[body], price=[value]), Mode.STORED))
    cluster.run(0.05)


def drained(cluster: LogCluster, client: Client) -> list[str]:
    """All that is handed out while it is acknowledged."""
    seen: list[str] = []
    cluster.run(0.5)
    while client.of(Handed):
        seen += bodies(client)
        last = max(handed.first + handed.portion.count - 1 for handed in client.of(Handed))
        client.take()
        client.send(Ack(9, 1, AckVerb.ACK, [0, last]))
        cluster.run(0.5)
    return seen


@pytest.mark.parametrize(("start", "expected"), [("ack", ["1", "2", "3", "5"]), ("now", ["1", "5"])])
def test_a_new_condition_holds_from_the_place_that_was_chosen(start: str, expected: list[str]) -> None:
    cluster = LogCluster(3)
    publisher, subscriber, other = (cluster.connect(f"b{number}") for number in range(3))
    assert isinstance(subscribe(cluster, subscriber, "picky", where="price > 8", window=1), Suback)
    for body, value in (("1", 9.0), ("2", 7.0), ("3", 7.5), ("4", 9.0)):
        price(cluster, publisher, body, value)
    cluster.run(2.0)
    assert bodies(subscriber) == ["1"]
    row = cluster.ask(other, "durable_set", name="picky", where="price < 8", **{"from": start})
    assert row["condition"] == "`price` < 8"
    price(cluster, publisher, "5", 7.0)
    assert drained(cluster, subscriber) == expected
    row = cluster.ask(other, "durable", name="picky")
    assert (row["waiting"], row["unacked"], row["version"]) == (0, 0, 2)


@pytest.mark.slow
@pytest.mark.parametrize("since", ["ack", "now"])
def test_a_client_hears_what_is_asked_of_documents_and_again_when_that_is_changed(since: str) -> None:
    """Before it is handed anything by the new condition; brokers compare filters, which let some through."""
    cluster = LogCluster(3)
    publisher, subscriber, other = (cluster.connect(f"b{number}") for number in range(3))
    answer = subscribe(cluster, subscriber, "books", where="XPATH 'book[title]' AND XPATH '/bib'")
    assert [xpath for xpath, _ in answer.checks] == [
        "boolean(//*[local-name()='book'][*[local-name()='title']])",
        "boolean(/*[local-name()='bib'])",
    ]
    for condition, checks in (("price > 8 AND XPATH 'a'", 1), ("price > 9 AND XPATH 'a'", None), ("price > 9", 0)):
        subscriber.take()
        cluster.ask(other, "durable_set", name="books", where=condition, **{"from": since})
        price(cluster, publisher, condition, 9.5)
        cluster.until(lambda: bool(subscriber.of(Handed)), 5.0)
        told = [message for message in subscriber.got if isinstance(message, Suback | Handed)]
        assert [type(one) for one in told] == [Suback, Handed][checks is None :]
        if isinstance(told[0], Suback):
            assert (told[0].request, told[0].subscription, len(told[0].checks)) == (0, 1, checks)


@pytest.mark.slow
def test_a_client_looks_for_what_an_event_was_selected_by_before_the_end_of_a_section_and_behind_it() -> None:
    """Positions before the end of a section match its condition as well, so that a document has what both ask for."""
    cluster = LogCluster(3)
    publisher, subscriber, other = (cluster.connect(f"b{number}") for number in range(3))
    subscribe(cluster, subscriber, "books", where="XPATH 'a' AND price > 8", max_unacked=3)
    price(cluster, publisher, "1", 9.0)
    assert drained(cluster, subscriber) == ["1"]
    for body in "234567":
        price(cluster, publisher, body, 9.0)
    cluster.ask(other, "durable_set", name="books", where="XPATH 'b' AND price > 8", **{"from": "now"})
    price(cluster, publisher, "8", 9.0)
    cluster.ask(other, "durable_set", name="books", where="price > 8", **{"from": "now"})
    price(cluster, publisher, "9", 9.0)
    looks_for, found = "a", {}
    cluster.run(1.0)
    while subscriber.of(Handed):
        got = subscriber.take()
        for message in got:
            if isinstance(message, Suback):
                looks_for = "".join(sorted(xpath.split("'")[1] for xpath, _ in message.checks))
            elif isinstance(message, Handed):
                subscriber.got = [message]
                found.update(dict.fromkeys(bodies(subscriber), looks_for))
        last = max(one.first + one.portion.count - 1 for one in got if isinstance(one, Handed))
        subscriber.got = []
        subscriber.send(Ack(9, 1, AckVerb.ACK, [0, last]))
        cluster.run(1.0)
    assert found == {**dict.fromkeys("234", "a"), **dict.fromkeys("567", "ab"), "8": "b", "9": ""}


@pytest.mark.parametrize("since", ["ack", "now"])
@pytest.mark.parametrize("between", ["price < 8", "price > 9", "price > 9.2"])
@pytest.mark.parametrize("first_is_settled", [False, True])
def test_what_was_settled_does_not_come_again_whatever_the_condition_was_between(
    between: str, since: str, first_is_settled: bool
) -> None:
    """A cursor does not tell what was acknowledged from what no condition matched; former conditions do."""
    cluster = LogCluster(3)
    publisher, subscriber, other = (cluster.connect(f"b{number}") for number in range(3))
    assert isinstance(subscribe(cluster, subscriber, "picky", where="price > 8"), Suback)
    for body, value in (("one", 9.1), ("no", 3.0), ("two", 9.5)):
        price(cluster, publisher, body, value)
    cluster.until(lambda: bodies(subscriber) == ["one", "two"], 5.0)
    first = subscriber.of(Handed)[0].first
    subscriber.take()
    subscriber.send(Ack(1, 1, AckVerb.ACK, [first if first_is_settled else first + 1, first + 1]))
    cluster.run(1.0)
    for condition, start in ((between, since), ("price > 1", "ack"), ("price > 8", "ack"), ("price > 2", "ack")):
        cluster.ask(other, "durable_set", name="picky", where=condition, **{"from": start})
        cluster.run(1.0)
    # What was matched by none of them before is new, where something before it is owed.
    assert bodies(subscriber) == ([] if first_is_settled else ["no"])


def test_former_conditions_are_remembered_while_something_before_their_ends_is_owed_and_up_to_a_bound() -> None:
    ann, bob = Place("ann", 1), Place("bob", 7)
    old = Former("a = 1", (), {ann: 9, bob: 5})
    state = DurableState("x", condition="b = 1", former=(old,))
    assert formers_of(state) == ()
    state.cursors = {ann: Cursor(20, ((4, 6),)), bob: Cursor(30, ((5, 6),))}
    assert formers_of(state) == (Former("a = 1", (), {ann: 9}), Former("b = 1", (), {ann: 20, bob: 30}))
    many = tuple(old._replace(condition=f"a = {number}") for number in range(20))
    found = formers_of(replace(state, former=many))
    assert [one.condition for one in found] == [*(f"a = {number}" for number in range(13, 20)), "b = 1"]
    wide = tuple(old._replace(condition="\u4e2d" * (FORMERS_BYTES // 7)) for _ in range(4))
    assert len(formers_of(replace(state, former=wide))) == 3, "with the newest"
    passed = old._replace(condition="a" * FORMERS_BYTES, ends={ann: 4})
    assert len(formers_of(replace(state, former=(old, passed)))) == 2, "what is passed takes no room"
    state.cursors[bob] = Cursor(30)
    state.dead = (DeadLetter(bob, 2, 1, "bad", 9),)
    sections = (Section("c = 1", {ann: 3, bob: 3}), Section("d = 1", {ann: 4, bob: 2}))
    assert formers_of(replace(state, sections=sections))[-1] == Former(
        "b = 1", (Section("c = 1", {bob: 3}),), {ann: 20, bob: 30}
    )


def test_a_dead_letter_that_waits_again_brings_nothing_along_that_was_settled() -> None:
    cluster = LogCluster(1)
    publisher, subscriber = cluster.connect("b0"), cluster.connect("b0")
    assert isinstance(subscribe(cluster, subscriber, where="price > 8"), Suback)
    for body, value in (("poison", 9.0), ("two", 9.5), ("three", 9.6)):
        price(cluster, publisher, body, value)
    cluster.until(lambda: len(bodies(subscriber)) == 3, 5.0)
    first = subscriber.of(Handed)[0].first
    subscriber.take()
    subscriber.send(Ack(1, 1, AckVerb.TERM, [first, first], text="bad"))
    subscriber.send(Ack(2, 1, AckVerb.ACK, [first + 1, first + 2]))
    cluster.run(1.0)
    cluster.ask(publisher, "durable_set", name="orders", where="price > 20", **{"from": "ack"})
    assert cluster.ask(publisher, "dead_replay", name="orders", all=True) == {"replayed": 1}
    cluster.run(1.0)
    cluster.ask(publisher, "durable_set", name="orders", where="price > 8", **{"from": "ack"})
    cluster.run(1.0)
    assert bodies(subscriber) == ["poison"]


@pytest.mark.slow
def test_long_conditions_one_after_the_other_are_answered() -> None:
    cluster = LogCluster(1)
    one, publisher = cluster.connect("b0"), cluster.connect("b0")

    def wide(letter: str) -> str:
        return "symbol IN (" + ", ".join(f"'{letter * 60}{n:04}'" for n in range(900)) + ") OR price > 8"

    assert isinstance(subscribe(cluster, one, where="price > 8"), Suback)
    price(cluster, publisher, "a", 9.0)
    cluster.until(lambda: bodies(one) == ["a"], 5.0)
    for letter in "\u4e2d\u6587\u5b57":
        assert cluster.ask(publisher, "durable_set", name="orders", where=wide(letter), **{"from": "now"})


def test_nak_term_and_too_many_deliveries() -> None:
    cluster = LogCluster(1, schema={"durability": "stored"})
    cluster.hosts["b0"].node.streams.declare("dead", {"durability": "stored"})
    publisher, subscriber, listener = (cluster.connect("b0") for _ in range(3))
    listener.subscribe(1, "dead")
    options = {"max_deliver": 2, "dead_letter": "dead/orders", "ack_wait": 1.0}
    assert isinstance(subscribe(cluster, subscriber, **options), Suback)
    cluster.store(publisher, "a", "b", "c")
    cluster.until(lambda: bodies(subscriber) == ["a", "b", "c"], 5.0)
    first = subscriber.of(Handed)[0].first
    subscriber.take()
    subscriber.send(Ack(1, 1, AckVerb.TERM, [first, first], text="not for us"))
    subscriber.send(Ack(2, 1, AckVerb.NAK, [first + 1, first + 1], 0.0))
    cluster.until(lambda: bodies(subscriber) == ["b"], 0.5)
    assert [handed.count_list()[0] for handed in subscriber.of(Handed)] == [2]
    cluster.until(lambda: sorted(body for _, body in listener.bodies) == ["a", "b", "c"], 5.0)
    letters = cluster.ask(publisher, "dead", name="orders")
    assert (letters[0]["reason"], len(letters)) == ("not for us", 3)
    assert cluster.ask(publisher, "dead_replay", name="orders", all=True) == {"replayed": 3}
    cluster.until(lambda: sorted(bodies(subscriber))[:3] == ["a", "b", "b"], 5.0)


def test_seek_and_remove() -> None:
    cluster = LogCluster(3)
    publisher, subscriber, other = (cluster.connect(f"b{number}") for number in range(3))
    assert isinstance(subscribe(cluster, subscriber), Suback)
    cluster.store(publisher, "a", "b")
    assert drained(cluster, subscriber) == ["a", "b"]
    cluster.ask(other, "durable_seek", name="orders", to="start")
    assert drained(cluster, subscriber) == ["a", "b"]
    cluster.store(publisher, "c")
    assert drained(cluster, subscriber) == ["c"]
    place = cluster.ask(other, "durable", name="orders")["position"].rpartition(":")[0]
    cluster.ask(other, "durable_seek", name="orders", to=f"{place}:1")
    assert drained(cluster, subscriber) == ["b", "c"]
    assert cluster.ask(other, "durable_rm", name="orders") == {"removed": "orders"}
    cluster.until(lambda: bool(subscriber.of(Ended)), 5.0)
    assert cluster.ask(other, "durable", name="orders").code == ErrorCode.NOT_FOUND
    again = cluster.connect("b2")
    assert isinstance(subscribe(cluster, again), Suback)
    cluster.store(publisher, "d")
    cluster.until(lambda: bodies(again) == ["d"], 5.0)


def test_the_same_name_attaches_and_another_wish_is_refused() -> None:
    cluster = LogCluster(1)
    one, other = cluster.connect("b0"), cluster.connect("b0")
    assert isinstance(subscribe(cluster, one, where="price > 8"), Suback)
    refused = subscribe(cluster, other, where="price > 9")
    assert isinstance(refused, Error) and "headgate durable set" in refused.text
    refused = subscribe(cluster, other, where="price > 8")
    assert isinstance(refused, Error) and "takeover" in refused.text
    assert isinstance(subscribe(cluster, other, pattern="", takeover=True), Suback)
    cluster.until(lambda: bool(one.of(Ended)), 5.0)
    refused = subscribe(cluster, one, "unknown", pattern="")
    assert isinstance(refused, Error) and refused.code == ErrorCode.NOT_FOUND
    refused = subscribe(cluster, one, "unknown", pattern="memory")
    assert isinstance(refused, Error) and "stored" in refused.text


def test_retention_is_announced() -> None:
    cluster = LogCluster(1)
    publisher, subscriber = cluster.connect("b0"), cluster.connect("b0")
    assert isinstance(subscribe(cluster, subscriber, window=1), Suback)
    for body in "abcd":
        cluster.store(publisher, body)
        cluster.run(0.05)
    cluster.until(lambda: bodies(subscriber) == ["a"], 5.0)
    node = cluster.hosts["b0"].node
    node.log.trim(cluster.name("b0"), 3)
    cluster.run(3.0)
    ack_all(cluster, subscriber)
    cluster.until(lambda: bodies(subscriber) == ["a", "d"], 5.0)
    assert [gap.count for gap in subscriber.of(Gap)] == [2]


def test_what_retention_took_while_a_client_had_it_is_announced_when_it_would_come_again() -> None:
    cluster = LogCluster(1)
    publisher, subscriber = cluster.connect("b0"), cluster.connect("b0")
    assert isinstance(subscribe(cluster, subscriber), Suback)
    for body in "abcd":
        cluster.store(publisher, body)
        cluster.run(0.05)
    cluster.until(lambda: bodies(subscriber) == ["a", "b", "c", "d"], 5.0)
    cluster.hosts["b0"].node.log.trim(cluster.name("b0"), 3)
    cluster.run(3.0)
    first = subscriber.of(Handed)[0].first
    subscriber.take()
    subscriber.send(Ack(0, 1, AckVerb.NAK, [first, first + 3], 0.0))
    cluster.until(lambda: bodies(subscriber) == ["d"], 5.0)
    assert [gap.count for gap in subscriber.of(Gap)] == [3]


def test_who_goes_on_from_another_place_takes_the_condition_along() -> None:
    cluster = LogCluster(1)
    publisher, subscriber = cluster.connect("b0"), cluster.connect("b0")
    assert isinstance(subscribe(cluster, subscriber, where="price > 8"), Suback)
    price(cluster, publisher, "1", 9.0)
    price(cluster, publisher, "2", 7.0)
    assert drained(cluster, subscriber) == ["1"]
    cluster.ask(publisher, "durable_set", name="orders", where="price < 8", **{"from": "now"})
    assert drained(cluster, subscriber) == []
    cluster.ask(publisher, "durable_seek", name="orders", to="start")
    assert drained(cluster, subscriber) == ["2"]


def _coordinator(cluster: LogCluster, name: str) -> str:
    return cluster.hosts["b0"].node.durables.coordinator_name(name)


@pytest.mark.parametrize("delay", [0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0, 1.2])
def test_what_a_coordinator_confirmed_while_another_takes_over_is_not_handed_out_again(delay: float) -> None:
    cluster = LogCluster(2)
    publisher, subscriber = cluster.connect("b0"), cluster.connect("b0")
    owners = ["b0", "b1", "b2"]
    name = next(
        f"orders{number}"
        for number in range(999)
        if min(owners, key=lambda one: distance(key_of(f"orders{number}"), broker_id(one))) == "b2"
    )
    assert isinstance(subscribe(cluster, subscriber, name), Suback)
    cluster.store(publisher, "a", "b")
    cluster.until(lambda: bodies(subscriber) == ["a", "b"], 5.0)
    first = subscriber.of(Handed)[0].first
    cluster.start("b2")
    cluster.hosts["b2"].node.streams.declare("quotes", {"durability": "stored"})
    cluster.run(delay)
    if not subscriber.of(Ended):
        subscriber.send(Ack(9, 1, AckVerb.ACK, [first, first]))
    cluster.until(lambda: bool(subscriber.of(Ended)), 10.0)
    confirmed = [one.stale for one in subscriber.of(Acked)] == [[]]
    subscriber.take()
    assert isinstance(subscribe(cluster, subscriber, name), Suback)
    cluster.run(1.0)
    assert bodies(subscriber) == ["b"] if confirmed else bodies(subscriber) in (["a", "b"], ["b"])
    assert all(handed.counts for handed in subscriber.of(Handed))


def test_a_number_alone_is_a_place_where_there_is_one_log() -> None:
    cluster = LogCluster(2)
    publisher, other = cluster.connect("b0"), cluster.connect("b1")
    cluster.store(publisher, "a", "b", "c")
    cluster.run(0.2)
    one = cluster.connect("b0")
    assert isinstance(subscribe(cluster, one, **{"from": "1"}), Suback)
    assert drained(cluster, one) == ["b", "c"]
    cluster.ask(publisher, "durable_seek", name="orders", to="2")
    assert drained(cluster, one) == ["c"]
    cluster.store(other, "d")
    cluster.run(0.2)
    refused = subscribe(cluster, other, "more", **{"from": "1"})
    assert isinstance(refused, Error) and "2 logs" in refused.text


def test_logs_are_not_read_for_a_coordinator_whose_link_takes_nothing() -> None:
    cluster = LogCluster(2)
    publisher = cluster.connect("b0")
    cluster.store(publisher, *[f"event {number}" for number in range(10)])
    cluster.run(1.0)
    name = next(f"orders{number}" for number in range(99) if _coordinator(cluster, f"orders{number}") == "b1")
    (link,) = cluster.node("b0").cluster.linked()
    link.session.paused = True
    subscriber = cluster.connect("b1")
    assert isinstance(subscribe(cluster, subscriber, name, **{"from": "start"}), Suback)
    cluster.run(0.3)
    assert bodies(subscriber) == []
    link.session.paused = False
    cluster.until(lambda: len(bodies(subscriber)) == 10, 5.0)


def test_publishers_are_told_what_durable_subscriptions_are_filtered_on() -> None:
    cluster = LogCluster(3)
    publisher, subscriber = cluster.connect("b2"), cluster.connect("b0")
    cluster.store(publisher, "a")
    cluster.run(0.1)
    assert isinstance(subscribe(cluster, subscriber, where="price > 8", sharing="key:desk"), Suback)
    cluster.until(lambda: publisher.of(Interest)[-1:] == [Interest("quotes", ["desk", "price"])], 5.0)
    cluster.ask(subscriber, "durable_rm", name="orders")
    cluster.until(lambda: publisher.of(Interest)[-1:] == [Interest("quotes", [])], 5.0)


def test_a_client_that_wants_so_many_is_handed_no_more() -> None:
    cluster = LogCluster(1)
    publisher, one, other = (cluster.connect("b0") for _ in range(3))
    cluster.store(publisher, "a", "b", "c")
    cluster.run(0.1)
    assert isinstance(subscribe(cluster, one, window=2, limit=2, **{"from": "start"}), Suback)
    assert drained(cluster, one) == ["a", "b"]
    cluster.disconnect(one)
    assert isinstance(subscribe(cluster, other), Suback)
    cluster.run(0.5)
    assert bodies(other) == ["c"] and not any(handed.counts for handed in other.of(Handed))


def test_many_are_taken_over_in_steps_between_other_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.broker.core.durable.coordinator.TAKEN_AT_ONCE", 3)
    monkeypatch.setattr("headgate.broker.core.durable.coordinator.TAKEN_AT_LEAST", 1)
    hosts = "b0", "b1", "b2"
    cluster = LogCluster(3)
    client = cluster.connect("b0")
    count = 30
    for number in range(count):
        client.send(Subscribe(100 + number, 1 + number, "quotes", "", {"durable": f"orders{number}"}))
    cluster.until(lambda: len(client.of(Suback)) == count, 20.0)
    writes: list[int] = []
    real = cluster.feed

    def feed(host: Host, happened: Input) -> list[Effect]:
        effects = real(host, happened)
        writes.append(sum(isinstance(one, KeepDurable) for one in effects))
        return effects

    monkeypatch.setattr(cluster, "feed", feed)
    for host in hosts:
        cluster.kill(host)
    for host in hosts:
        cluster.start(host)
    cluster.until(lambda: sum(_taken(cluster, host) for host in hosts) == count, 20.0)
    assert sum(writes) >= 2 * count and max(writes) <= 4
    cluster.kill("b2")
    cluster.until(lambda: sum(_taken(cluster, host) for host in hosts[:2]) == count, 20.0)
    publisher, client = cluster.connect("b1"), cluster.connect("b0")
    for number in range(count):
        client.send(Subscribe(100 + number, 1 + number, "", "", {"durable": f"orders{number}"}))
    cluster.until(lambda: len(client.of(Suback)) == count, 20.0)
    cluster.store(publisher, "a")
    cluster.until(lambda: len(bodies(client)) == count, 5.0)


def _taken(cluster: LogCluster, host: str) -> int:
    """How many subscriptions a broker coordinates."""
    held = cluster.node(host).durables.coordinator.held.values()
    return sum(one.mailbox is not None for one in held)
