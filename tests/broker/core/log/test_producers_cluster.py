"""Producers in a cluster: who moves to another broker goes on there, whoever else is in an older epoch is shut out."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Answer, Ask, Control, Error, Puback
from tests.support.log_cluster import LogCluster
from tests.support.log_disk import EPOCH, Disk
from tests.support.log_world import stamped
from tests.support.node_cluster import Client


def opened(cluster: LogCluster, broker: str, epoch: int = 1) -> tuple[Client, Any]:
    client = cluster.connect(broker)
    return client, cluster.ask(client, "producer.open", producer="p", epoch=epoch)


def codes(client: Client) -> list[int]:
    return [error.code for error in client.of(Error)]


def test_whoever_moves_goes_on_at_the_other_broker_and_is_not_open_at_the_first_any_more() -> None:
    cluster = LogCluster(3)
    first, _ = opened(cluster, "b0")
    first.send(stamped(1, 0, "a", "b", digest=b"ab"))
    cluster.run(0.1)
    second, answer = opened(cluster, "b1")
    assert answer == {"next": 2, "digest": b"ab", "epoch": 1}
    second.send(stamped(1, 0, "a", "b"), stamped(2, 2, "c"))
    first.send(stamped(2, 2, "late"))
    cluster.run(0.1)
    assert codes(second) == []
    assert codes(first) == [ErrorCode.NOT_FOUND]
    assert [(row.number, row.count) for row in cluster.rows("b1", "b1")] == [(2, 1)]


def test_a_newer_epoch_anywhere_shuts_out_the_older_everywhere() -> None:
    cluster = LogCluster(3)
    first, _ = opened(cluster, "b0")
    first.send(stamped(1, 0))
    cluster.run(0.1)
    _, answer = opened(cluster, "b1", epoch=2)
    assert answer["next"] == 1
    first.send(stamped(2, 1))
    cluster.run(0.1)
    assert codes(first) == [ErrorCode.FENCED]
    assert opened(cluster, "b2", epoch=1)[1].code == ErrorCode.FENCED
    assert cluster.disks["b0"].producers["p"].epoch == 2


def test_what_was_on_its_way_is_waited_for() -> None:
    cluster = LogCluster(3)
    first, _ = opened(cluster, "b0")
    cluster.slow["b0"] = None
    first.send(stamped(1, 0, "a", "b"))
    second = cluster.connect("b1")
    second.send(Ask(7, "producer.open", {"producer": "p", "epoch": 1}))
    cluster.run(0.5)
    assert second.got == []
    cluster.slow.clear()
    cluster.answer("b0")
    cluster.run(0.5)
    assert [answer.value["next"] for answer in second.got] == [2]  # type: ignore[attr-defined]


def test_the_copies_know_a_producer_whose_broker_is_gone() -> None:
    cluster = LogCluster(3)
    first, _ = opened(cluster, "b0")
    first.send(stamped(1, 0, "a", "b"), stamped(2, 2, "c", digest=b"c"))
    cluster.run(0.1)
    assert [one.sequence for one in first.of(Puback)] == [2]
    cluster.kill("b0")
    for broker in ("b1", "b2"):
        assert opened(cluster, broker)[1] == {"next": 3, "digest": b"c", "epoch": 1}


def test_a_broker_that_dies_before_it_answers_is_not_waited_for() -> None:
    cluster = LogCluster(3)
    cluster.hold("b1", "b0", "b2")
    client = cluster.connect("b0")
    client.send(Ask(7, "producer.open", {"producer": "p", "epoch": 1}))
    cluster.run(0.5)
    assert client.got == []
    cluster.kill("b1")
    cluster.run(0.5)
    assert len(client.got) == 1


def test_a_broker_whose_disk_lost_something_lets_the_others_say_how_far_a_producer_has_come() -> None:
    cluster = LogCluster(3)
    first, _ = opened(cluster, "b0")
    first.send(stamped(1, 0, "a", "b"))
    cluster.run(0.1)
    cluster.hold("b0", "b1", "b2")
    first.send(stamped(2, 2, "on one disk alone"))
    cluster.run(0.1)
    cluster.kill("b0")
    cluster._held.clear()  # what was on its way is lost with it
    (lost,) = cluster.disks["b0"].logs[cluster.name("b0")].rows[1:]
    cluster.disks["b0"].logs[cluster.name("b0")].rows.remove(lost)
    cluster.disks["b0"].logs[cluster.name("b0")].next = 2
    cluster.disks["b0"].damage = ["the newest row is damaged"]
    cluster.start("b0", ["b1"], life=2)
    cluster.run(3.0)
    again, answer = opened(cluster, "b0")
    assert answer["next"] == 2
    again.send(stamped(1, 2, "on one disk alone"))
    cluster.run(0.1)
    assert codes(again) == []


def test_who_cannot_reach_enough_brokers_does_not_know_and_says_so() -> None:
    cluster = LogCluster(3)
    first, _ = opened(cluster, "b0")
    first.send(stamped(1, 0))
    cluster.run(0.1)
    cluster.hold("b2", "b0", "b1")
    for other in ("b0", "b1"):
        cluster.cut("b2", other)
        cluster.cut(other, "b2")
    cluster.run(1.0)
    assert opened(cluster, "b2")[1].code == ErrorCode.UNAVAILABLE
    assert opened(cluster, "b1")[1]["next"] == 1, "two of three are enough, with two copies"


def test_who_is_started_again_remembers_whom_it_knew() -> None:
    cluster = LogCluster(3)
    for name in ("b1", "b2", "b0"):
        cluster.kill(name)
    cluster.start("b0", [], life=2)
    cluster.run(5.0)
    assert opened(cluster, "b0")[1].code == ErrorCode.UNAVAILABLE
    cluster.run(30.0)
    assert opened(cluster, "b0")[1]["next"] == 0, "after a while who was never seen again counts as gone"


def empty_handed(cluster: LogCluster, name: str, *seen: str) -> None:
    """It comes back with a new disk, and meets these alone."""
    cluster.kill(name)
    cluster.disks[name] = Disk(name, EPOCH + 50)
    cluster.hold(name, *[other for other in cluster.hosts if other not in seen])
    cluster.start(name, [other for other in cluster.hosts if other != name], life=2)
    cluster.run(3.0)


def test_an_empty_disk_does_not_say_that_there_was_nothing() -> None:
    cluster = LogCluster(2)
    first, _ = opened(cluster, "b0")
    first.send(stamped(1, 0, "a", "b"))
    cluster.run(0.1)
    empty_handed(cluster, "b1")
    assert opened(cluster, "b1")[1].code == ErrorCode.UNAVAILABLE
    cluster.release()
    cluster.run(3.0)
    assert opened(cluster, "b1")[1]["next"] == 2


def test_an_empty_disk_is_one_of_those_that_are_missing_until_everybody_was_heard() -> None:
    cluster = LogCluster(3)
    first, _ = opened(cluster, "b0")
    first.send(stamped(1, 0, "a", "b"))
    cluster.run(0.1)
    (follower,) = [name for name in cluster.holders("b0") if name != "b0"]
    (other,) = {"b0", "b1", "b2"} - {"b0", follower}
    empty_handed(cluster, follower, other)
    assert opened(cluster, follower)[1].code == ErrorCode.UNAVAILABLE, "the one that has it was not heard"
    cluster.release()
    cluster.run(3.0)
    assert opened(cluster, follower)[1]["next"] == 2


def test_an_empty_disk_knows_nothing_before_it_has_its_copies_again() -> None:
    cluster = LogCluster(3)
    first, _ = opened(cluster, "b0")
    first.send(stamped(1, 0, "a", "b"))
    cluster.run(0.1)
    (follower,) = [name for name in cluster.holders("b0") if name != "b0"]
    (other,) = {"b0", "b1", "b2"} - {"b0", follower}
    cluster.kill(follower)
    cluster.disks[follower] = Disk(follower, EPOCH + 50)
    cluster.slow[follower] = None
    cluster.start(follower, ["b0", other], life=2)
    cluster.run(3.0)
    cluster.kill("b0")
    cluster.run(0.1)
    assert opened(cluster, other)[1].code == ErrorCode.UNAVAILABLE, "nobody who is there has it"
    cluster.start("b0", [other], life=2)
    cluster.slow.clear()
    cluster.answer(follower)
    cluster.run(6.0)
    cluster.kill("b0")
    cluster.run(0.1)
    assert opened(cluster, other)[1]["next"] == 2


def test_a_disk_that_others_have_more_of_does_not_know_who_is_new() -> None:
    cluster = LogCluster(2)
    first, _ = opened(cluster, "b0")
    backup = cluster.disks["b0"].copy()
    backup.producers.clear()
    first.send(stamped(1, 0, "a", "b"))
    cluster.run(0.1)
    cluster.kill("b0")
    cluster.disks["b0"] = backup
    cluster.start("b0", ["b1"], life=2)
    cluster.run(3.0)
    cluster.kill("b1")
    cluster.run(0.1)
    assert opened(cluster, "b0")[1].code == ErrorCode.UNAVAILABLE


def test_a_newcomer_that_has_met_one_broker_alone_does_not_say_that_there_was_nothing() -> None:
    cluster = LogCluster(2)
    first, _ = opened(cluster, "b0")
    first.send(stamped(1, 0, "a", "b"))
    cluster.run(0.1)
    cluster.start("b2", ["b0"])
    cluster.hold("b1", "b2")
    cluster.until(lambda: cluster.linked("b2", "b0"))
    cluster.run(0.01)
    cluster.cut("b2", "b0")
    cluster.hold("b0", "b2")
    client = cluster.connect("b2")
    client.send(Ask(7, "producer.open", {"producer": "p", "epoch": 1}))
    cluster.run(0.5)
    assert [answer.value["next"] for answer in client.of(Answer)] == []


def test_when_everybody_has_answered_there_is_nobody_more_to_hear() -> None:
    cluster = LogCluster(2)
    for node in cluster.nodes:
        node.producers.doubt()
    assert opened(cluster, "b0")[1]["next"] == 0


def test_what_a_full_disk_did_not_keep_leaves_a_doubtful_producer_as_doubtful_as_it_was() -> None:
    cluster = LogCluster(2)
    first, _ = opened(cluster, "b0")
    first.send(stamped(1, 0, "a", "b"))
    cluster.run(0.1)
    node = cluster.node("b0")
    node.producers.doubt()
    node.producers._producers["p"].kept = None  # so that it has to be kept anew
    cluster.full["b0"] = None
    assert opened(cluster, "b0")[1].code == ErrorCode.NOT_STORED
    assert node.producers._producers["p"].doubtful


def test_copies_that_wait_for_a_slow_disk_are_waited_for() -> None:
    cluster = LogCluster(3)
    first, _ = opened(cluster, "b0")
    first.send(stamped(1, 0))
    cluster.run(0.1)
    (follower,) = [name for name in cluster.holders("b0") if name != "b0"]
    (other,) = {"b0", "b1", "b2"} - {"b0", follower}
    cluster.slow[follower] = None
    first.send(stamped(2, 1))
    cluster.run(0.1)
    cluster.kill("b0")
    second = cluster.connect(other)
    second.send(Ask(7, "producer.open", {"producer": "p", "epoch": 1}))
    cluster.run(0.5)
    assert second.got == []
    cluster.slow.clear()
    cluster.answer(follower)
    cluster.run(0.5)
    assert [answer.value["next"] for answer in second.got] == [2]  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", [20, 21])
@pytest.mark.parametrize(
    "body", [[], [1, "", 1], [1, "p", -1], [1, 2, 3, 4], [1, True, -2, b"", 4], [1, True, 2, b"x" * 65, 4]]
)
def test_a_word_that_makes_no_sense_ends_the_link(kind: int, body: list[Any]) -> None:
    cluster = LogCluster(2)
    assert any(isinstance(one, Error) for one in cluster.tell("b0", "b1", Control(kind, body)))
