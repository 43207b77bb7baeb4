"""More brokers than have links to one another: links that one side wants stay, and whoever events wait for is dialled.

The bound of the mesh is made small here, and idle links end soon, so that twelve brokers are what hundreds would be.
"""

from __future__ import annotations

from typing import Any

import pytest

from headgate.broker.core.limits import Limits
from headgate.ops.bench.papers.node_ring import NodeRing
from headgate.protocol.messages import Answer, Ask, Gap, Suback
from tests.support.builders import deliveries_of, make_publish, make_subscribe, quote_batch
from tests.support.peer_events import forward
from tests.support.peer_net import PeerNet

BROKERS = 12
SCHEMA: dict[str, Any] = {
    "attributes": {
        "symbol": {"type": "string"},
        "price": {"type": "float", "min": 0, "max": 20, "precision": 0.01},
    }
}

IDLE_SECONDS = Limits().idle_link_seconds


@pytest.fixture
def wide() -> NodeRing:
    """A ring of twelve in which nobody knows everybody."""
    ring = NodeRing(BROKERS, seed=2, limits=Limits(mesh_brokers=3, idle_link_seconds=2.0))
    ring.run(8.0)
    assert min(len(node.cluster.linked()) for node in ring.nodes) < BROKERS - 3
    assert not any(node.cluster.table.mesh for node in ring.nodes)
    return ring


@pytest.mark.parametrize("placement", ["anchored", "counting"])
def test_everybody_is_served_wherever_it_is(wide: NodeRing, placement: str) -> None:
    clients = [wide.connect(place) for place in range(BROKERS)]
    clients[0].say(Ask(1, "schema.put", {"stream": "quotes", "schema": {**SCHEMA, "placement": placement}}))
    wide.run(0.5)
    assert any(isinstance(message, Answer) for message in clients[0].take())
    for place, client in enumerate(clients):
        client.say(make_subscribe(1, "quotes", f"symbol = 'S{place % 3}' AND price < 5"))
    wide.run(0.5)
    assert all(any(isinstance(message, Suback) for message in client.take()) for client in clients)
    wide.run(10.0)  # links that were dialled for that are idle by now
    for place, client in enumerate(clients):
        client.say(make_publish(1, quote_batch(bodies=[f"{place}"], symbol=[f"S{place % 3}"], price=[1.0])))
    wide.run(3.0)
    for place, client in enumerate(clients):
        got = client.take()
        wanted = [(1, f"{other}") for other in range(place % 3, BROKERS, 3)]
        assert sorted(deliveries_of(got), key=lambda one: int(one[1])) == wanted
        assert not any(isinstance(message, Gap) for message in got)


def test_a_route_is_not_lost_because_the_other_side_does_not_want_its_link(wide: NodeRing) -> None:
    for _ in range(20):
        wide.run(1.0)
        for node in wide.nodes:
            linked = {info.identifier for info in node.cluster.linked()}
            assert linked.issuperset(node.cluster.table.successors), "whom a broker needs it has a link to"


def test_a_link_that_only_the_dialler_wants_stays() -> None:
    net = PeerNet()
    ann, bob = net.add("ann"), net.add("bob")
    ann.keep("bob:1")
    net.run(0.5)
    bob.send("ann", forward())
    net.run(3 * IDLE_SECONDS)
    assert ann.linked() == ["bob"] and len(ann.dials) == 1
    ann.keep()
    net.run(IDLE_SECONDS + 1.0)
    assert ann.linked() == [] == bob.linked()


def test_addresses_of_homes_are_bounded() -> None:
    homes = NodeRing(1, seed=1, limits=Limits(homes=2)).nodes[0].cluster
    for number in (1, 2, 1, 3):
        homes.home_at(number, 1, f"b{number}:7401")
    assert list(homes._homes) == [(1, 1), (3, 1)]
