"""The producers of a job: listed from whoever knows the most, refused when too few can say, forgotten after a purge."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.broker.core.limits import PRODUCERS_LISTED_MAX, Limits
from headgate.protocol.errors import ErrorCode
from tests.support.log_cluster import LogCluster
from tests.support.log_world import LogWorld, stamped
from tests.support.node_cluster import Client


def published(cluster: LogCluster, broker: str, name: str, *bodies: str, digest: bytes = b"", epoch: int = 1) -> Client:
    """A producer that was opened there and has published a batch."""
    client = cluster.connect(broker)
    cluster.ask(client, "producer.open", producer=name, epoch=epoch)
    client.send(stamped(1, 0, *bodies, producer=name, epoch=epoch, digest=digest))
    cluster.run(0.1)
    return client


def listed(cluster: LogCluster, broker: str, **arguments: Any) -> Any:
    return cluster.ask(cluster.connect(broker), "producers", **arguments)


def test_a_job_is_told_whole_by_every_broker_whoever_has_its_rows() -> None:
    cluster = LogCluster(4)
    published(cluster, "b0", "quotes/nightly/0", "a", "b", digest=b"one")
    published(cluster, "b1", "quotes/nightly/1", "c", digest=b"two", epoch=7)
    published(cluster, "b2", "quotes/weekly/0", "d")
    wanted = [
        {"name": "quotes/nightly/0", "epoch": 1, "next": 2, "digest": b"one"},
        {"name": "quotes/nightly/1", "epoch": 7, "next": 1, "digest": b"two"},
    ]
    for broker in ("b0", "b1", "b2", "b3"):
        answer = listed(cluster, broker, job="quotes/nightly")
        assert (answer["producers"], answer["next"], answer["limit"]) == (wanted, None, Limits().producers)
    one = listed(cluster, "b3", job="quotes/nightly", begins=b"t")
    assert one["producers"] == wanted[1:]
    assert listed(cluster, "b3", job="quotes/nightly", unless=b"t")["producers"] == wanted[:1]
    assert listed(cluster, "b3", job="quotes/nightly", after="quotes/nightly/0")["producers"] == wanted[1:]
    assert listed(cluster, "b3", job="quotes")["producers"] == []


def test_too_few_brokers_cannot_say() -> None:
    cluster = LogCluster(3)
    published(cluster, "b0", "quotes/nightly/0", "a")
    cluster.kill("b0")
    cluster.run(3.0)
    assert len(listed(cluster, "b1", job="quotes/nightly")["producers"]) == 1, "one of k is missing"
    cluster.kill("b1")
    cluster.run(3.0)
    assert listed(cluster, "b2", job="quotes/nightly").code == ErrorCode.UNAVAILABLE


def test_pages_have_no_hole() -> None:
    world = LogWorld(prompt=True)
    link = world.connect()
    names = sorted(f"quotes/nightly/{number}" for number in range(PRODUCERS_LISTED_MAX + 5))
    for name in names:
        world.ask(link, "producer.open", producer=name, epoch=1)
    page = world.ask(link, "producers", job="quotes/nightly")
    rest = world.ask(link, "producers", job="quotes/nightly", after=page["next"])
    assert [row["name"] for row in page["producers"] + rest["producers"]] == names
    assert rest["next"] is None


def test_a_purged_stream_has_no_producers_any_more_on_any_broker_nor_after_a_restart() -> None:
    cluster = LogCluster(2)
    published(cluster, "b0", "quotes/nightly/0", "a", epoch=5)
    other = published(cluster, "b1", "orders/nightly/0", "b")
    assert cluster.ask(other, "producers.forget", stream="quotes") == {"stream": "quotes", "forgotten": 1}
    cluster.run(0.1)
    for broker in ("b0", "b1"):
        assert cluster.disks[broker].producers["quotes/nightly/0"].next == 0
    asked = cluster.ask(cluster.connect("b0"), "producer.open", producer="quotes/nightly/0", epoch=1)
    assert asked == {"next": 0, "digest": b"", "epoch": 1}
    assert cluster.ask(other, "producer.open", producer="orders/nightly/0", epoch=2)["next"] == 1


def test_a_purge_says_what_jobs_of_several_streams_may_lack() -> None:
    cluster = LogCluster(2)
    asker = published(cluster, "b0", "*/nightly/0", "a", epoch=5)
    published(cluster, "b0", "*/nightly/1", "b", epoch=7)
    for _ in range(2):  # another purge forgets what the first one left, and says it anew
        cluster.ask(asker, "producers.forget", stream="quotes")
    cluster.run(0.1)
    for broker, other in (("b0", "b1"), ("b1", "b0")):
        cluster.kill(broker)
        cluster.start(broker, [other], life=2)
        cluster.run(20.0)
        told = listed(cluster, broker, job="quotes/*")["producers"]
        assert told == [{"name": "quotes/*/purged", "epoch": 7, "next": 0, "digest": b""}]
        assert listed(cluster, broker, job="orders/*")["producers"] == []
        assert [row["next"] for row in listed(cluster, broker, job="*/nightly")["producers"]] == [1, 1]


def test_a_purge_beside_jobs_of_one_stream_leaves_nothing() -> None:
    cluster = LogCluster(2)
    asker = published(cluster, "b0", "quotes/nightly/0", "a")
    cluster.ask(asker, "producers.forget", stream="quotes")
    assert listed(cluster, "b1", job="quotes/*")["producers"] == []


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("producers", {}),
        ("producers", {"job": ""}),
        ("producers", {"job": "j", "after": 5}),
        ("producers", {"job": "j", "begins": "text"}),
        ("producers", {"job": "j" * 300}),
        ("producers.forget", {}),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(verb: str, arguments: dict[str, Any]) -> None:
    world = LogWorld(prompt=True)
    assert world.ask(world.connect(), verb, **arguments).code == ErrorCode.BAD_REQUEST
