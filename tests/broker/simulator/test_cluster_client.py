"""A client of a cluster goes on with another broker when its own is gone."""

from __future__ import annotations

from headgate.broker.simulator.engine import ClusterWorld
from headgate.broker.simulator.workloads import STREAMS, ClusterClient, ClusterHistory, Traits, Workload
from tests.broker.simulator.test_cluster_world import new_world


def new_client(world: ClusterWorld) -> ClusterClient:
    client = ClusterClient("c", world, ClusterHistory(), [], Workload(world.random), Traits())
    client.dial()
    world.run_for(2.0)
    return client


def test_it_connects_to_one_that_runs() -> None:
    world = new_world(3)
    for name in ("broker-1", "broker-3"):
        world.servers[name].crash()
    client = new_client(world)
    assert client.open and client._host is world.servers["broker-2"].host


def test_it_goes_elsewhere_when_its_broker_dies() -> None:
    world = new_world(3)
    client = new_client(world)
    first = client._host
    assert first is not None
    world.servers[first.node.config.name].crash()
    world.run_for(20.0)
    assert client.open and client._host is not first


def test_it_waits_while_nobody_is_there() -> None:
    world = new_world(1)
    world.servers["broker-1"].crash()
    client = new_client(world)
    assert client.connection is None
    world.servers["broker-1"].start()
    world.run_for(2.0)
    assert client.open


def test_streams_that_are_to_be_counted_are_declared_before_anything_else() -> None:
    world = new_world(1)
    client = ClusterClient("c", world, ClusterHistory(), [], Workload(world.random), Traits(), "counting")
    client.dial()
    world.run_for(2.0)
    for _ in STREAMS:
        client.act()
    world.run_for(0.5)
    streams = world.nodes()[0].streams
    assert all(streams.settings_of(name).placement == "counting" for name in STREAMS)
    assert all("symbol" in schema["attributes"] for schema in streams.schemas.values())
    client.declare("quotes")
    world.run_for(0.5)
    assert streams.settings_of("quotes").placement == "counting", "a later declaration says so again"
