"""Long IN lists in a cluster: one item at the topic's place, matched there by a look-up, and bounded together."""

from __future__ import annotations

import pytest

from headgate.broker.core.kv.limits import ITEM_BYTES_MAX, PAGE_BYTES_MAX
from headgate.broker.core.kv.messages import item_bytes
from headgate.broker.core.limits import REFRESH_SECONDS, Limits
from headgate.matching.limits import CONDITION_BYTES_MAX, IN_BYTES_MAX
from headgate.protocol.errors import ErrorCode
from headgate.protocol.limits import CONDITION_LENGTH_MAX, PAGE_LENGTH_MAX
from headgate.protocol.messages import Error, Suback, Unsubscribe
from tests.broker.core.placement.test_registry import delivered
from tests.support.builders import make_subscribe
from tests.support.node_cluster import NodeCluster
from tests.support.node_world import NodeWorld


def watch(values: int, first: int = 0) -> str:
    return f"x IN ({', '.join(repr(f'{number:012}') for number in range(first, first + values))})"


@pytest.mark.slow
def test_a_list_of_ten_thousand_is_one_item_at_owner_and_siblings() -> None:
    cluster = NodeCluster(5, check_every=1000)
    subscriber, publisher = cluster.connect("b1"), cluster.connect("b2")
    subscriber.subscribe(1, "quotes", watch(10_000))
    cluster.until(lambda: bool(subscriber.of(Suback)), 1.0)
    held = [item for node in cluster.nodes for item in node.cluster.kv.items.table.values() if item.name[0] == "sub"]
    assert {item.name for item in held} == {held[0].name} and 3 <= len(held) <= 4
    assert 150_000 < item_bytes(held[0]) < ITEM_BYTES_MAX
    assert delivered(cluster, publisher, subscriber, x=f"{9_999:012}") == [(1, "event")]
    assert delivered(cluster, publisher, subscriber, x=f"{10_000:012}") == []
    for node in cluster.nodes:
        stream = node.streams.by_name.get("quotes")
        for identity in node.registry.anchored.dimension_of if stream is not None else ():
            assert stream is not None and "x is one of 10000 -> match" in stream.index.explain(identity)[0]
        node.registry.validate()


@pytest.mark.slow
def test_the_longest_condition_is_taken_and_fits_every_frame() -> None:
    assert CONDITION_BYTES_MAX + IN_BYTES_MAX < CONDITION_LENGTH_MAX < ITEM_BYTES_MAX
    assert PAGE_BYTES_MAX + ITEM_BYTES_MAX + 64 * 1024 < PAGE_LENGTH_MAX
    cluster = NodeCluster(3, check_every=1000)
    client = cluster.connect("b1")
    names = ", ".join(f"'{'Δ' * 24}{number:05}'" for number in range(9_000))
    client.subscribe(1, "quotes", f"x IN ({names})")
    assert len(names.encode()) > IN_BYTES_MAX * 0.95
    cluster.until(lambda: bool(client.of(Suback)), 1.0)
    cluster.run(REFRESH_SECONDS + 5.0)
    assert not client.of(Error)
    assert all(len(node.registry.anchored.dimension_of) == 1 for node in cluster.nodes)


def test_what_a_broker_has_for_long_lists_is_bounded_and_given_back() -> None:
    world = NodeWorld(limits=Limits(long_conditions_bytes=10_000))
    link = world.connect()
    assert isinstance(world.say(link, make_subscribe(1, "quotes", watch(700)))[-1], Suback)
    (refused,) = world.say(link, make_subscribe(2, "quotes", watch(700, first=1)))
    assert isinstance(refused, Error) and refused.code is ErrorCode.LIMIT and "10000 bytes" in refused.text
    assert isinstance(world.say(link, make_subscribe(3, "quotes", watch(10)))[-1], Suback)
    world.node.registry.validate()
    world.say(link, Unsubscribe(9, 1))
    assert world.node.registry.long_bytes == 0
    assert isinstance(world.say(link, make_subscribe(4, "quotes", watch(700, first=1)))[-1], Suback)
