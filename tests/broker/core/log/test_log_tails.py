"""Tails: of a batch that two brokers have, one row is taken back when they meet again, and nobody has read it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from headgate.broker.core.effects import TrimLog
from headgate.broker.core.limits import RETENTION_PAUSE_SECONDS, STORE_SECONDS_MAX, VOUCH_SECONDS_MAX, Limits
from headgate.broker.core.log.messages import AskProducer
from headgate.protocol.data import LogKind, LogName
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Answer, Error, LogChunk, Puback, ReadLog
from tests.support.log_cluster import LogCluster
from tests.support.log_disk import EPOCH, _Rows
from tests.support.log_world import stamped
from tests.support.node_cluster import Client

PAIR = ("b0", "b1")


def opened(cluster: LogCluster, broker: str, producer: str = "p") -> tuple[Client, Any]:
    client = cluster.connect(broker)
    return client, cluster.ask(client, "producer.open", producer=producer, epoch=1)


def torn(brokers: int = 2, **more: Any) -> tuple[LogCluster, Client]:
    """b0 has two batches of `p` that no other disk has, and nobody can reach it any more; its publisher is left."""
    cluster = LogCluster(brokers, **more)
    client, _ = opened(cluster, "b0")
    client.send(stamped(1, 0, "safe"))
    cluster.run(0.1)
    apart(cluster, "b0")
    client.send(stamped(2, 1, "x", "y"), stamped(3, 3, "z"))
    cluster.run(0.1)
    return cluster, client


def apart(cluster: LogCluster, name: str) -> None:
    """Cut off from all others, until `release`."""
    others = [one for one in cluster.hosts if one != name]
    cluster.hold(name, *others)
    for other in others:
        cluster.cut(name, other)
        cluster.cut(other, name)
    cluster.run(0.1)


def moved(cluster: LogCluster, broker: str = "b1", upto: int = 3) -> Client:
    """Their publisher sends them again to another broker."""
    client, answer = opened(cluster, broker)
    assert answer["next"] == 1
    client.send(*[stamped(1, 1, "x", "y"), stamped(2, 3, "z")][: upto - 1])
    cluster.run(0.1)
    return client


def meet(cluster: LogCluster) -> None:
    cluster.release()
    cluster.run(VOUCH_SECONDS_MAX + 3.0)


def numbers(cluster: LogCluster, follower: str, owner: str, epoch: int = EPOCH) -> list[tuple[str, int]]:
    return [(row.producer, row.number) for row in cluster.rows(follower, owner, epoch=epoch)]


def new_epoch(cluster: LogCluster, broker: str) -> int:
    return cluster.node(broker).log.epoch


@pytest.mark.parametrize("brokers", [2, 3])
@pytest.mark.parametrize("restarts", [True, False])
def test_what_was_sent_again_elsewhere_is_taken_back_when_brokers_meet(brokers: int, restarts: bool) -> None:
    cluster, _ = torn(brokers)
    client = moved(cluster)
    if restarts:
        cluster.kill("b0")
        cluster.start("b0", ["b1"], life=2)
    meet(cluster)
    assert numbers(cluster, "b0", "b0") == [("p", 0)]
    assert len(cluster.disks["b0"].aside) == 2, "nothing is thrown away"
    assert new_epoch(cluster, "b0") > EPOCH
    assert [number for _, number in numbers(cluster, "b1", "b1")] == [1, 3]
    assert client.of(Puback)
    assert any(note.event == "log rows taken back" for note in cluster.hosts["b0"].notes)
    assert [answer["next"] for _, answer in [opened(cluster, "b0")]] == [4]


def test_what_others_sent_meanwhile_goes_on_under_the_new_epoch_and_is_answered_in_the_end() -> None:
    cluster, _ = torn()
    other = opened_apart(cluster)
    moved(cluster)
    meet(cluster)
    epoch = new_epoch(cluster, "b0")
    assert numbers(cluster, "b0", "b0", epoch) == [("q", 0)] == numbers(cluster, "b1", "b0", epoch)
    assert [error.code for error in other.of(Error)] == [ErrorCode.NOT_STORED]
    other.take()
    other.send(stamped(2, 0, "q0", producer="q"))
    cluster.run(0.1)
    assert (other.of(Error), bool(other.of(Puback))) == ([], True), "it is there: to send it again makes it safe"
    assert numbers(cluster, "b0", "b0", epoch) == [("q", 0)]


def opened_apart(cluster: LogCluster) -> Client:
    """A publisher that was open at b0 before it was cut off; it publishes one batch now."""
    node = cluster.node("b0")
    client = cluster.connect("b0")
    known = node.producers._producer("q")
    known.is_open, known.epoch = True, 1
    client.send(stamped(1, 0, "q0", producer="q"))
    cluster.run(0.1)
    return client


def test_the_first_link_that_is_back_is_not_the_only_one_that_is_asked() -> None:
    cluster, _ = torn(4)
    moved(cluster)
    (follower,) = [name for name in cluster.holders("b1") if name != "b1"]
    (ignorant,) = {"b1", "b2", "b3"} - {"b1", follower}
    cluster.kill("b1")
    cluster.release()
    cluster.hold("b0", follower)
    cluster.until(lambda: cluster.linked("b0", ignorant))
    cluster.run(1.0)
    assert cluster.holders("b0", 1) == ["b0"]
    cluster.release()
    cluster.run(VOUCH_SECONDS_MAX + 3.0)
    assert numbers(cluster, "b0", "b0") == [("p", 0)]
    assert [number for _, number in numbers(cluster, follower, "b1")] == [1, 3]


def test_a_backup_from_before_they_met_does_not_bring_back_what_went_on_under_a_new_epoch() -> None:
    cluster, _ = torn()
    opened_apart(cluster)
    backup = cluster.disks["b0"].copy()
    moved(cluster)
    meet(cluster)
    epoch = new_epoch(cluster, "b0")
    assert numbers(cluster, "b1", "b0", epoch) == [("q", 0)]
    cluster.kill("b0")
    cluster.disks["b0"] = backup
    cluster.start("b0", ["b1"], life=2)
    meet(cluster)
    assert numbers(cluster, "b0", "b0") == [("p", 0)]
    assert numbers(cluster, "b0", "b0", new_epoch(cluster, "b0")) == [], "it is read from the copy of b1"
    assert numbers(cluster, "b1", "b0", epoch) == [("q", 0)]
    assert opened(cluster, "b0", "q")[1]["next"] == 1


def test_what_nobody_has_sent_again_stays_and_is_copied() -> None:
    cluster, client = torn()
    meet(cluster)
    assert numbers(cluster, "b1", "b0") == [("p", 0), ("p", 1), ("p", 3)]
    assert new_epoch(cluster, "b0") == EPOCH
    assert [error.code for error in client.of(Error)] == []
    assert max(one.sequence for one in client.of(Puback)) == 3


def test_what_stands_behind_a_row_that_is_taken_back_goes_with_it_if_the_same_producer_sent_it() -> None:
    cluster, _ = torn()
    client = moved(cluster, upto=2)
    meet(cluster)
    assert numbers(cluster, "b0", "b0") == [("p", 0)]
    client.take()
    client.send(stamped(2, 3, "z"))
    cluster.run(0.1)
    assert [error.code for error in client.of(Error)] == [ErrorCode.NOT_FOUND], "it was closed: it has to ask again"
    client, answer = opened(cluster, "b1")
    assert answer["next"] == 3
    client.send(stamped(1, 3, "z"))
    cluster.run(0.1)
    assert [number for _, number in numbers(cluster, "b1", "b1")] == [1, 3]


def test_it_is_not_read_before_it_is_known_to_stay() -> None:
    cluster, _ = torn()
    reader = cluster.connect("b0")
    reader.send(ReadLog(5, "b0", EPOCH, int(LogKind.EVENTS), "quotes", 0, 0, "", ""))
    reader.send(ReadLog(6, "b0", EPOCH, int(LogKind.EVENTS), "quotes", 1, 0, "", ""))
    cluster.run(0.1)
    (chunk,) = reader.of(LogChunk)
    assert (chunk.request, chunk.next, len(chunk.rows)) == (5, 1, 1)
    meet(cluster)
    (_, chunk) = reader.of(LogChunk)
    assert (chunk.request, chunk.next) == (6, 4)


def test_whoever_waits_for_rows_that_are_not_safe_in_time_is_told_so() -> None:
    cluster, _ = torn()
    reader = cluster.connect("b0")
    reader.send(ReadLog(6, "b0", EPOCH, int(LogKind.EVENTS), "quotes", 1, 0, "", ""))
    cluster.run(6.0)
    assert [error.code for error in reader.of(Error)] == [ErrorCode.NOT_STORED]


def test_the_list_of_logs_waits_until_what_there_is_can_be_read() -> None:
    cluster, _ = torn()
    asker = cluster.connect("b0")
    cluster.release()
    answer = cluster.ask(asker, "logs", stream="quotes", kind="events")
    assert [(one["next"], one["own"]) for one in answer if one["own"]] == [(4, True)]
    assert cluster.node("b0").log.logs[LogName("b0", EPOCH, 0, "quotes")].readable == 4
    assert asker.of(Answer)


def test_a_full_disk_is_asked_again_until_it_takes_it_back() -> None:
    cluster, _ = torn()
    moved(cluster)
    cluster.full["b0"] = None
    meet(cluster)
    assert len(numbers(cluster, "b0", "b0")) == 3
    cluster.full.clear()
    cluster.run(3.0)
    assert numbers(cluster, "b0", "b0") == [("p", 0)]
    assert cluster.node("b0").log.recovered


@pytest.mark.parametrize("trimmed", [0, 3, 4])
def test_what_is_taken_back_later_may_be_let_go_of_meanwhile(trimmed: int) -> None:
    """By retention, or, when this was asked for before anybody doubted it, by the disk."""
    cluster, _ = torn(schema={"durability": "stored", "retention_seconds": 6})
    moved(cluster)
    cluster.full["b0"] = None
    meet(cluster)
    held, disk = cluster.node("b0").log.logs[cluster.name("b0")], cluster.disks["b0"]
    cluster.run(2 * RETENTION_PAUSE_SECONDS)
    assert (held.first, held.next, len(disk.rows(held.name))) == (1, 4, 2), "only what is safe is let go of"
    if trimmed:
        disk.ask([TrimLog(held.name, trimmed)])
        cluster.answer("b0")
    cluster.full.clear()
    cluster.run(3.0)
    at = max(1, trimmed)
    assert (held.first, held.next, held.bytes, disk.rows(held.name)) == (at, at, 0, [])
    assert cluster.node("b0").log.recovered and (new_epoch(cluster, "b0") > EPOCH) == (trimmed < 4)
    cluster.node("b0").validate()


def test_a_tail_that_is_too_long_is_not_looked_into() -> None:
    cluster, _ = torn(limits=Limits(tail_bytes=1))
    moved(cluster)
    meet(cluster)
    assert len(numbers(cluster, "b0", "b0")) == 3


@pytest.fixture
def calls_in_calls() -> Iterator[int]:
    """How many there may be, which is less than usual."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(300)
    yield 300
    sys.setrecursionlimit(before)


def test_any_number_of_logs_is_settled_without_a_call_in_a_call(calls_in_calls: int) -> None:
    cluster, _ = torn()
    disk, many = cluster.disks["b0"], calls_in_calls
    row = disk.logs[cluster.name("b0")].rows[1]
    for number in range(many):
        name = LogName("b0", EPOCH, int(LogKind.EVENTS), f"stream{number}")
        disk.logs[name] = _Rows([replace(row, log=name)], row.first, row.first + row.count)
    cluster.kill("b0")
    cluster.kill("b1")
    cluster.start("b0", ["b1"], life=2)
    cluster.until(lambda: cluster.node("b0").log.recovered, 9.0)
    assert len(cluster.node("b0").log.own_logs()) > many


@pytest.mark.parametrize("silent", ["b1", "b2"])
def test_a_broker_that_is_linked_and_says_nothing_is_given_up_in_bounded_time(silent: str) -> None:
    """With three brokers two answers are enough, whichever they are; what it was asked it never hears of."""
    cluster, _ = torn(3)
    moved(cluster)
    cluster.node(silent).cluster.table_of_controls[AskProducer] = lambda info, asked, now: None
    cluster.release()
    cluster.until(lambda: cluster.linked("b0", "b1") and cluster.linked("b0", "b2"))
    cluster.run(2 * STORE_SECONDS_MAX + 1.0)  # the first to be linked may be asked alone
    assert numbers(cluster, "b0", "b0") == [("p", 0)]


def test_of_a_producer_that_writes_to_two_streams_the_first_number_is_in_either() -> None:
    cluster = LogCluster(3)
    for node in cluster.nodes:
        node.streams.declare("other", {"durability": "stored"})
    client, _ = opened(cluster, "b0")
    (follower,) = [host for host in ("b1", "b2") if cluster.node("b0").leader._wanted(cluster.now)[0].name == host]
    cluster.slow[follower] = None
    first = stamped(1, 0, "other")
    first.batch.topics = "other/x"
    client.send(first, stamped(2, 1, "quotes"))
    cluster.run(0.1)
    reconciler, held = cluster.node("b0").reconciler, cluster.node("b0").log.logs[cluster.name("b0")]
    reconciler.doubt(held, lambda now: None, cluster.now)
    cluster.run(0.1)
    cluster.slow.clear()
    cluster.answer(follower)
    cluster.run(1.0)
    fence = cluster.node("b0").producers.fence_of("p")
    assert (fence.promised.generation, fence.starts) == (2, ((0, 2, "b0", EPOCH),))


def test_while_too_few_answer_it_is_asked_again_and_what_stays_undecided_is_not_copied() -> None:
    cluster, _ = torn(2)
    moved(cluster)
    cluster.node("b0").producers._producers["p"].doubtful = True
    controls = cluster.node("b1").cluster.table_of_controls
    answers, controls[AskProducer] = controls[AskProducer], lambda info, asked, now: None
    meet(cluster)
    cluster.run(STORE_SECONDS_MAX)
    assert len(numbers(cluster, "b0", "b0")) == 3 and numbers(cluster, "b1", "b0") == [("p", 0)]
    controls[AskProducer] = answers
    cluster.run(2 * STORE_SECONDS_MAX)
    assert numbers(cluster, "b0", "b0") == [("p", 0)]


def test_rows_without_a_stamp_wait_for_no_broker_that_is_gone() -> None:
    cluster = LogCluster(3)
    client = cluster.connect("b0")
    cluster.store(client, "a")
    cluster.run(0.1)
    (follower,) = [name for name in cluster.holders("b0") if name != "b0"]
    (other,) = {"b1", "b2"} - {follower}
    cluster.kill(other)
    cluster.run(60.0)
    assert cluster.node("b0").cluster.unreached(), "it may come back"
    apart(cluster, "b0")
    cluster.store(client, "b")
    cluster.run(0.1)
    cluster.release()
    cluster.until(lambda: cluster.linked("b0", follower))
    cluster.run(VOUCH_SECONDS_MAX / 2)
    assert cluster.acknowledged(client) == 2
