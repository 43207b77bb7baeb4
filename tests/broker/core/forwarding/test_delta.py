"""DELTA in a cluster: the static part rests at one key, the reference at home, and a broker's death costs nothing."""

from __future__ import annotations

from random import Random

import pytest

from headgate.broker.core.limits import WAITING_SECONDS_MAX
from headgate.protocol.messages import Deliver, Gap
from tests.support.builders import deliveries_of, quote_batch
from tests.support.node_cluster import Client, NodeCluster
from tests.support.stage import Stage


def prices(client: Client, topic: str, *values: float, **more: list[object]) -> None:
    client.publish(quote_batch(topic, [str(value) for value in values], price=list(values), **more))


def test_the_cluster_carries_the_static_part_and_home_decides() -> None:
    stage = Stage("symbol = 'OTE' AND DELTA(price) > 5", "DELTA(price) > 10 AND symbol = 'OTE'")
    symbols = {"symbol": ["OTE"] * 9}
    prices(stage.publisher, "quotes/a", 10, 16, 21, 25, 30, 25, 19, 13, 8, **symbols)
    stage.cluster.run(0.5)
    got = stage.subscriber.bodies
    assert [int(body) for number, body in got if number == 1] == [10, 16, 25, 19, 13]
    assert [int(body) for number, body in got if number == 2] == [10, 21, 8]
    brought = [what for _, to, what in stage.cluster.said if to == stage.home and isinstance(what, Deliver)]
    assert {tuple(numbers) for what in brought for numbers, _ in what.runs()} == {
        (carrier,) for carrier in stage.subscriber.host.node.subscribers.carriers
    }, "one number for both, wherever it is matched"


def test_a_gap_between_brokers_is_told_to_every_member() -> None:
    stage = Stage("symbol = 'OTE' AND DELTA(price) > 5", "DELTA(price) > 10 AND symbol = 'OTE'")
    (carrier,) = stage.subscriber.host.node.subscribers.carriers
    stage.cluster.tell(stage.owner, stage.home, Gap(carrier, 3, "slow consumer"))
    assert [(gap.subscription, gap.count) for gap in stage.subscriber.of(Gap)] == [(1, 3), (2, 3)]


def test_with_declared_bounds_it_still_rests_at_one_key() -> None:
    """`price < 10` alone would rest on an arc, at several brokers, from which events come in any order."""
    cluster = NodeCluster(1)
    node = cluster.node("b0")
    node.streams.declare("quotes", {"attributes": {"price": {"type": "float", "min": 0, "max": 100}}})
    client = cluster.connect("b0")
    client.subscribe(1, "quotes", "price < 10")
    client.subscribe(2, "quotes", "price < 10 AND DELTA(price) > 1")
    kinds = [mine.dimensions[0].kind for mine in node.registry._mine.values()]
    assert kinds == ["range", "topic"]


def test_a_counted_stream_anchors_it() -> None:
    cluster = NodeCluster(1)
    node = cluster.node("b0")
    node.streams.declare("quotes", {"attributes": {"symbol": {"type": "string"}}, "placement": "counting"})
    client = cluster.connect("b0")
    client.subscribe(1, "quotes", "symbol = 'a' AND DELTA(price) > 1")
    prices(client, "quotes/a", 1, 1, 3, symbol=["a", "a", "a"])
    cluster.run(0.5)
    assert client.bodies == [(1, "1"), (1, "3")]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_broker_dies_and_the_bound_holds(seed: int) -> None:
    """Owners and siblings of the key die one after the other; the subscriber's home is none of them. Publishers ask
    again what was not accepted, and after each death the subscriber is within 1 of what was published last."""
    random = Random(seed)
    cluster = NodeCluster(5, seed=seed, check_every=10)
    subscriber = cluster.connect("b0")
    subscriber.subscribe(1, "quotes", "DELTA(price) > 1")
    cluster.run(1.0)
    subscriber.take()
    last: dict[str, float] = {}
    has: dict[str, float] = {}
    publisher = cluster.connect("b1")
    price, extra, told = 100.0, 0, 0

    def settle() -> None:
        nonlocal extra, told
        cluster.run(0.2)
        for what in subscriber.take():
            told += isinstance(what, Gap)
            for _, body in deliveries_of([what]):
                value = float(body)
                extra += "quotes/a" in has and abs(value - has["quotes/a"]) <= 1
                has["quotes/a"] = value

    for dies in (None, "b4", "b3", "b2"):
        if dies is not None:
            cluster.kill(dies)
        for _ in range(30):
            price += random.uniform(-1.5, 1.5)
            prices(publisher, "quotes/a", round(price, 2))
            last["quotes/a"] = round(price, 2)
            cluster.run(0.01)
        cluster.run(WAITING_SECONDS_MAX + 1.0)
        prices(publisher, "quotes/a", last["quotes/a"])
        settle()
        assert abs(has["quotes/a"] - last["quotes/a"]) <= 1, f"after {dies}"
    assert extra == 0, "the reference is the home's, so nothing comes twice"
