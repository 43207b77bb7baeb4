"""DELTA in durable subscriptions: what moved is handed to the client, and the rest is settled at its home.

The promise (`matching/SPEC.md`, 8.10) is of what one client was handed since it took part: after each event that
matches the rest of the condition, the value that was handed to it last is within the band.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.durable.messages import Compare, Settle
from headgate.matching import Delta, deltas, parse_condition
from headgate.matching.dynamic import DumbReferences
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Ack, AckVerb, Ended, Error, Handed, Mode, Suback
from tests.broker.core.durable.test_durables import bodies, drained, subscribe
from tests.broker.core.durable.test_handing import Home, store
from tests.support.builders import make_publish, quote_batch
from tests.support.log_cluster import LogCluster
from tests.support.node_cluster import Client

STREAM = (10, 16, 21, 25, 30, 25, 19, 13, 8)
MOVED = ["10", "16", "25", "19", "13"]


def prices(cluster: LogCluster, client: Client, values: Sequence[Any], topic: str = "quotes/a") -> None:
    """One stored batch, of which each body is its price."""
    client.sequence += 1
    batch = quote_batch(topic, [str(one) for one in values], price=list(values))
    client.send(make_publish(client.sequence, batch, Mode.STORED))
    cluster.run(0.2)


@pytest.mark.parametrize("brokers", [1, 3])
def test_what_moved_is_handed_out_and_the_rest_is_settled(brokers: int) -> None:
    cluster = LogCluster(brokers)
    publisher, subscriber = cluster.connect("b0"), cluster.connect(f"b{brokers - 1}")
    assert isinstance(subscribe(cluster, subscriber, where="price > 0 AND DELTA(price) > 5"), Suback)
    prices(cluster, publisher, STREAM)
    prices(cluster, publisher, [8, 8.5, None, "x", -100])
    cluster.until(lambda: bodies(subscriber) == MOVED, 5.0)
    row = cluster.ask(publisher, "durable", name="orders")
    assert (row["waiting"], row["unacked"]) == (0, 5), "4 of 9 and 2 of 2 that match the rest are settled"
    assert drained(cluster, subscriber) == MOVED
    row = cluster.ask(publisher, "durable", name="orders")
    assert (row["waiting"], row["unacked"]) == (0, 0)
    statistics = cluster.hosts[f"b{brokers - 1}"].node.statistics(cluster.now)
    assert (statistics.delta_delivered, statistics.delta_suppressed, statistics.delta_references) == (5, 6, 1)


def test_the_next_client_begins_without_a_reference() -> None:
    cluster = LogCluster(3)
    publisher, first, second = (cluster.connect(f"b{number}") for number in range(3))
    options: dict[str, Any] = {"where": "DELTA(price) > 5", "sharing": "failover"}
    assert isinstance(subscribe(cluster, first, **options), Suback)
    prices(cluster, publisher, [10, 12, 16])
    assert drained(cluster, first) == ["10", "16"]
    cluster.disconnect(first)
    cluster.run(1.0)
    prices(cluster, publisher, [17, 18, 23])
    assert isinstance(subscribe(cluster, second, **options), Suback)
    assert drained(cluster, second) == ["17", "23"]


def test_what_a_client_refused_comes_again_though_it_has_not_moved() -> None:
    cluster = LogCluster(1)
    publisher, subscriber = cluster.connect("b0"), cluster.connect("b0")
    assert isinstance(subscribe(cluster, subscriber, where="DELTA(price) > 5"), Suback)
    prices(cluster, publisher, [10, 12, 16])
    cluster.until(lambda: bodies(subscriber) == ["10", "16"], 5.0)
    first = subscriber.of(Handed)[0].first
    subscriber.take()
    subscriber.send(Ack(0, 1, AckVerb.NAK, [first, first], 0.0))
    cluster.until(lambda: bodies(subscriber) == ["10"], 5.0)
    assert list(subscriber.of(Handed)[0].count_list()) == [2]
    subscriber.take()
    prices(cluster, publisher, [15, 16])
    cluster.until(lambda: bodies(subscriber) == ["16"], 5.0)


def test_another_condition_begins_anew() -> None:
    cluster = LogCluster(1)
    publisher, subscriber = cluster.connect("b0"), cluster.connect("b0")
    assert isinstance(subscribe(cluster, subscriber, where="DELTA(price) > 5"), Suback)
    prices(cluster, publisher, [10, 12])
    assert drained(cluster, subscriber) == ["10"]
    cluster.ask(publisher, "durable_set", name="orders", where="RISE(price) > 1", **{"from": "now"})
    prices(cluster, publisher, [12, 13, 11, 13.5, 14])
    assert drained(cluster, subscriber) == ["12", "13.5"]
    cluster.ask(publisher, "durable_set", name="orders", where="price > 12", **{"from": "now"})
    prices(cluster, publisher, [13, 13, 12])
    assert drained(cluster, subscriber) == ["13", "13"]
    cluster.ask(publisher, "durable_seek", name="orders", to="start")
    assert drained(cluster, subscriber) == ["13", "13.5", "14", "13", "13"]
    cluster.ask(publisher, "durable_set", name="orders", where="DELTA(price) > 1", **{"from": "ack"})
    cluster.ask(publisher, "durable_seek", name="orders", to="start")
    assert drained(cluster, subscriber) == ["10", "12", "13.5", "12"]


def test_clients_that_share_have_nothing_to_compare_with() -> None:
    cluster = LogCluster(1)
    subscriber = cluster.connect("b0")
    refused = subscribe(cluster, subscriber, where="DELTA(price) > 5", sharing="shared")
    assert (
        isinstance(refused, Error) and refused.code == ErrorCode.UNSUPPORTED and "exclusive or failover" in refused.text
    )
    assert isinstance(subscribe(cluster, subscriber, where="price > 5", sharing="shared"), Suback)
    refused = cluster.ask(cluster.connect("b0"), "durable_set", name="orders", where="FALL(price) > 1 PERCENT")
    assert refused.code == ErrorCode.UNSUPPORTED and not subscriber.of(Ended)


def test_a_comparison_that_is_not_understood_keeps_nothing_back() -> None:
    home = Home()
    home.handing.compare(Compare(home.number, "quotes", "SIDEWAYS(price) > 1"))
    home.handing.compare(Compare(7, "quotes", "DELTA(price) > 1"))
    store(home.world, [1, 1])
    home.hand_out(1, [(0, 2)])
    assert [body for _, _, body in home.events] == ["1", "1"]


@given(
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["ack", "nak", ""])), max_size=40),
    st.sampled_from(["DELTA(price) > 5", "RISE(price) >= 5", "FALL(price) > 5", "DELTA(price) > 20 PERCENT"]),
)
def test_after_each_event_what_was_handed_last_is_within_the_band(steps: list[tuple[int, str]], asked: str) -> None:
    """Whatever is refused or not answered: that comes again, and is what the client has then."""
    home = Home()
    home.handing.compare(Compare(home.number, "quotes", asked))
    (delta,) = deltas(parse_condition(asked))
    number, owed = 1, list[int]()
    has: int | None = None
    for position, (value, answer) in enumerate(steps):
        store(home.world, [value])
        home.hand_out(number, [(position, position + 1)])
        if len(home.events) and home.events[-1][0] == number:
            has = value
            if answer == "ack":
                home.ack(number, number)
            else:
                owed.append(position)
        else:
            assert not _moved(delta, has, value)
            assert home.told[-1] == Settle(home.number, 0, AckVerb.ACK, (number, number), None, "")
        number += 1
        if answer == "nak" and owed:
            again = owed[0]
            home.hand_out(number, [(again, again + 1)], counts=[2])
            assert home.events[-1][:2] == (number, 2), "it was not settled, so it comes again"
            has = steps[again][0]
            number += 1
    assert home.handing.moved + home.handing.suppressed == number - 1


def _moved(delta: Delta, has: int | None, value: int) -> bool:
    twin = DumbReferences([None])
    twin.add(1, [delta])
    if has is not None:
        twin.fire("t", [has], 0.0)
    return bool(twin.fire("t", [value], 0.0))
