"""Why something is not stored: the words name how many disks it takes, who is missing and who does not answer."""

from __future__ import annotations

from headgate.broker.core.keyspace import hash_identifier
from headgate.broker.core.limits import STORE_SECONDS_MAX
from headgate.broker.core.log import shortage
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Error
from tests.support.log_cluster import LogCluster
from tests.support.log_world import stamped
from tests.support.node_cluster import address_of


def words(cluster: LogCluster, name: str, copies: int, *silent: str) -> str:
    node = cluster.hosts[name].node
    node.log.needed = copies - 1
    return shortage(node.cluster, node.log, {hash_identifier(one) for one in silent})


def test_who_has_company_needs_it_and_misses_nobody() -> None:
    cluster = LogCluster(3)
    cluster.run(1.0)
    assert words(cluster, "b0", 2) == "stored means on 2 disks"
    assert words(cluster, "b0", 1) == "stored means on this broker's disk"
    assert words(cluster, "b0", 3, "b0", "b2", "b1") == "stored means on 3 disks; no answer from b1, b2"


def test_who_is_missing_is_named_for_as_long_as_it_is_missing() -> None:
    cluster = LogCluster(3)
    cluster.run(1.0)
    addresses = {name: address_of(name) for name in ("b1", "b2")}
    cluster.kill("b1")
    cluster.run(1.0)
    assert words(cluster, "b0", 2, "b1") == f"stored means on 2 disks; b1 at {addresses['b1']} cannot be reached"
    cluster.kill("b2")
    cluster.run(100.0)
    told = words(cluster, "b0", 2)
    assert told.endswith("cannot be reached") and all(address in told for address in addresses.values())


def test_not_more_are_named_than_can_be_read() -> None:
    cluster = LogCluster()
    cluster.start("b0", [])
    cluster.hosts["b0"].node.cluster.address_book.remember([f"h:{number}" for number in range(9)])
    assert words(cluster, "b0", 2) == "stored means on 2 disks; h:0, h:1, h:2, h:3 and 5 more cannot be reached"


def test_whoever_opens_a_producer_without_followers_hears_it_at_once() -> None:
    cluster = LogCluster(3)
    client = cluster.connect("b0")
    cluster.kill("b1")
    cluster.kill("b2")
    cluster.run(1.0)
    begun = cluster.now
    refused = cluster.ask(client, "producer.open", producer="p", epoch=1)
    assert isinstance(refused, Error) and refused.code == ErrorCode.UNAVAILABLE
    assert "stored means on 2 disks; b1 at " in refused.text and "start what is missing" in refused.text
    assert cluster.now - begun < 1.0


def test_who_opens_again_what_cannot_be_safe_does_not_wait_for_it() -> None:
    cluster = LogCluster(2)
    client = cluster.connect("b0")
    assert cluster.ask(client, "producer.open", producer="p", epoch=1) == {"next": 0, "digest": b"", "epoch": 1}
    cluster.kill("b1")
    cluster.run(1.0)
    client.send(stamped(1, 0, "a"))
    cluster.run(40.0)
    begun = cluster.now
    refused = cluster.ask(client, "producer.open", producer="p", epoch=1)
    assert isinstance(refused, Error) and refused.code == ErrorCode.UNAVAILABLE
    assert "is not safe yet (stored means on 2 disks; " in refused.text
    assert cluster.now - begun < 1.0
    cluster.start("b1", life=2)
    cluster.run(5.0)
    answer = cluster.ask(client, "producer.open", producer="p", epoch=1)
    assert answer["next"] == 1, "it was in the log, and now it is safe"


def test_who_waits_for_disks_hears_it_at_the_end() -> None:
    cluster = LogCluster(2)
    client = cluster.connect("b0")
    cluster.store(client, "a")
    cluster.run(0.1)
    cluster.kill("b1")
    cluster.store(client, "b")
    cluster.run(STORE_SECONDS_MAX + 1.0)
    (refused,) = client.of(Error)
    assert (refused.code, refused.reference) == (ErrorCode.NOT_STORED, 2)
    assert "stored means on 2 disks; b1 at " in refused.text and "cannot be reached" in refused.text
