"""Real brokers as one cluster: they find each other, outlive one another, and measure up."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

import headgate
from headgate.ops.bench.cluster import cluster as cluster_bench
from headgate.ops.bench.cluster.failover import failover
from headgate.ops.bench.kit import fleet
from headgate.ops.bench.kit.brokers import ring_of
from headgate.ops.bench.limits import FAILOVER_SECONDS_MAX

pytestmark = pytest.mark.slow


async def lives_at(address: str) -> dict[str, int]:
    """The life of each broker, as this one sees them."""
    seen = await ring_of(address)
    assert seen is not None
    return {one["name"]: one["life"] for one in seen["brokers"]}


async def test_brokers_are_killed_stopped_and_started_and_are_one_cluster_again(tmp_path: Path) -> None:
    async with fleet(3, tmp_path) as cluster:
        victim, stopped, witness = cluster.members
        before = await lives_at(witness.address)
        victim.kill()
        assert not victim.alive
        await cluster.settled()
        stopped.stop()
        await cluster.settled()
        seen = await ring_of(witness.address)
        assert seen is not None and sum(one["state"] == "up" for one in seen["brokers"]) == 1
        stopped.wake()
        victim.start()
        await victim.listening()
        await cluster.settled()
        after = await lives_at(victim.address)
        assert after.pop("b0") > before.pop("b0")
        assert after == before
        assert [line for member in cluster.members for line in member.faults()] == []
    assert not any(member.alive for member in cluster.members)


@pytest.mark.parametrize("brokers", [3, 5])
async def test_a_subscription_at_each_broker_hears_what_is_published_at_each(tmp_path: Path, brokers: int) -> None:
    async with fleet(brokers, tmp_path) as cluster:
        clients = [await headgate.connect(address) for address in cluster.addresses]
        try:
            subscriptions = [await client.subscribe("quotes", where="symbol = 'OTE'") for client in clients]
            for place, client in enumerate(clients):
                await client.publish("quotes/a", {"symbol": "IBM", "n": place})
                await client.publish("quotes/a", {"symbol": "OTE", "n": place})
            for subscription in subscriptions:
                heard = [(await anext(subscription)).attributes["n"] for _ in clients]
                assert sorted(map(int, map(str, heard))) == list(range(brokers))
        finally:
            for client in clients:
                await client.close()


async def test_everything_works_again_soon_after_a_kill(tmp_path: Path) -> None:
    (times,) = await failover(3, 1)
    assert 0 < times.link_down <= times.declared_dead < times.total <= FAILOVER_SECONDS_MAX


def test_the_cost_of_clustering_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    cluster_bench.add_arguments(parser)
    assert cluster_bench.run(parser.parse_args(["--brokers", "3", "--rounds", "1", "--seconds", "0.3"])) == 0
    out = capsys.readouterr().out
    assert "the cost of clustering" in out and "whose keys: split and relay" in out
