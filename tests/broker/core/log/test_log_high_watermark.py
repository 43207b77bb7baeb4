"""Delivery at the high watermark: nobody hears of what k disks do not have, and all of it comes in the log's order."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.broker.core.inputs import Drain, Opened
from headgate.broker.core.limits import CHECKPOINT_SECONDS, VOUCH_SECONDS_MAX, Limits
from headgate.broker.core.log_state import LogState
from headgate.broker.core.safeguards import SAFEGUARDS, Safeguard
from headgate.protocol.data import LogKind, LogName
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Deliver, Error, LogChunk, Mode, ReadLog
from tests.broker.core.log.test_log_tails import apart, meet, moved, new_epoch, opened, torn
from tests.support.builders import make_publish, quote_batch
from tests.support.log_cluster import LogCluster
from tests.support.log_disk import EPOCH
from tests.support.log_world import LogWorld, stamped
from tests.support.node_cluster import Client

LOG = LogName("b0", EPOCH, int(LogKind.EVENTS), "quotes")


def listening(cluster: LogCluster, broker: str) -> Client:
    client = cluster.connect(broker)
    client.subscribe(1)
    cluster.run(1.0)
    return client


def ids(client: Client) -> list[tuple[str, int]]:
    portions = [message.portion for message in client.of(Deliver)]
    return [(one.origin, one.base + row) for one in portions for row in one.rows()]


def chunk(cluster: LogCluster, reader: Client, position: int = 0) -> Any:
    """What there is to be read, or the ERROR."""
    reader.take()
    reader.send(ReadLog(9, *LOG, position, 0, "", ""))
    cluster.until(lambda: bool(reader.of(LogChunk) or reader.of(Error)), 10.0)
    return [*reader.of(LogChunk), *reader.of(Error)][0]


@pytest.mark.parametrize("mode", [Mode.ACCEPTED, Mode.STORED])
def test_nothing_is_delivered_or_read_before_enough_disks_have_it_whatever_its_mode(mode: Mode) -> None:
    cluster = LogCluster(2)
    here, there, client = listening(cluster, "b0"), listening(cluster, "b1"), cluster.connect("b0")
    cluster.slow["b1"] = None
    for body in ("a", "b", "c"):
        cluster.store(client, body, mode=mode)
    cluster.run(0.1)
    assert here.bodies == there.bodies == []
    assert cluster.node("b0").log.logs[LOG].readable == 0 < cluster.node("b0").log.logs[LOG].next
    assert cluster.node("b0").log.pending_bytes > 0
    cluster.slow.clear()
    cluster.answer("b1")
    cluster.run(0.1)
    assert here.bodies == there.bodies == [(1, "a"), (1, "b"), (1, "c")]
    assert cluster.node("b0").log.pending_bytes == 0


def test_without_the_safeguard_our_own_disk_is_enough() -> None:
    cluster = LogCluster(2, safeguards=SAFEGUARDS - {Safeguard.DELIVER_AT_HIGH_WATERMARK})
    subscriber, client = listening(cluster, "b0"), cluster.connect("b0")
    cluster.slow["b1"] = None
    cluster.store(client, "a")
    cluster.run(0.1)
    assert subscriber.bodies == [(1, "a")]


def test_a_broker_without_company_delivers_what_its_own_disk_has() -> None:
    world = LogWorld()
    subscriber, link = world.subscriber(("quotes", "")), world.connect()
    world.say(link, make_publish(1, quote_batch(bodies=["a"]), Mode.ACCEPTED))
    assert world.delivered(subscriber) == []
    world.sync()
    assert world.delivered(subscriber) == [(1, "a")]


def test_what_a_full_disk_did_not_take_is_never_delivered() -> None:
    cluster = LogCluster(2)
    subscriber, client = listening(cluster, "b1"), cluster.connect("b0")
    cluster.full["b0"] = None
    cluster.store(client, "lost", mode=Mode.ACCEPTED)
    cluster.run(0.1)
    cluster.full.clear()
    cluster.store(client, "kept", mode=Mode.ACCEPTED)
    cluster.run(0.1)
    assert subscriber.bodies == [(1, "kept")]
    assert cluster.node("b0").log.pending_bytes == 0


def test_what_is_taken_back_was_never_delivered_and_is_heard_once() -> None:
    cluster, _ = torn()
    here, there = listening(cluster, "b0"), listening(cluster, "b1")
    moved(cluster)
    meet(cluster)
    cluster.run(1.0)
    for subscriber in (here, there):
        bodies = [body for _, body in subscriber.bodies]
        assert sorted(bodies) == sorted(set(bodies)), "none under two ids"
    assert [body for _, body in there.bodies] == ["x", "y", "z"]
    assert cluster.node("b0").log.pending_bytes == 0


def test_what_others_sent_behind_it_is_delivered_in_its_turn_under_the_same_id() -> None:
    cluster = LogCluster(2)
    client, _ = opened(cluster, "b0")
    other, _ = opened(cluster, "b0", "q")
    subscriber = listening(cluster, "b0")
    client.send(stamped(1, 0, "safe"))
    cluster.run(0.1)
    apart(cluster, "b0")
    client.send(stamped(2, 1, "x", "y"))
    other.send(stamped(1, 0, "q0", "q1", producer="q"))
    client.send(stamped(3, 3, "z"))
    other.send(stamped(2, 2, "q2", producer="q"))
    cluster.run(0.1)
    assert [body for _, body in subscriber.bodies] == ["safe"]
    numbers = [(row.origin, row.base) for row in cluster.rows("b0", "b0") if row.producer == "q"]
    moved(cluster)
    meet(cluster)
    heard = [(body, where) for (_, body), where in zip(subscriber.bodies, ids(subscriber), strict=True)]
    own = [(body, where) for body, where in heard if where[0] == numbers[0][0]]
    assert [body for body, _ in own] == ["safe", "q0", "q1", "q2"]
    assert [where for _, where in own[1:]] == [numbers[0], (numbers[0][0], numbers[0][1] + 1), numbers[1]]
    rows = cluster.rows("b0", "b0", epoch=new_epoch(cluster, "b0"))
    assert [(row.origin, row.base) for row in rows] == numbers
    assert cluster.node("b0").log.pending_bytes == 0


def test_a_sibling_that_stays_away_makes_it_refuse_what_is_accepted_as_well() -> None:
    cluster = LogCluster(2, limits=Limits(log_pending_bytes=5_000))
    subscriber, client = listening(cluster, "b0"), cluster.connect("b0")
    apart(cluster, "b0")
    for number in range(20):
        cluster.store(client, f"{number}", mode=Mode.ACCEPTED)
        cluster.run(0.01)
    errors = client.of(Error)
    taken = 20 - len(errors)
    assert {error.code for error in errors} == {ErrorCode.NOT_STORED}
    assert 0 < taken < 20 and "or of its siblings, is behind" in errors[0].text
    assert cluster.node("b0").log.pending_bytes < 6_000
    meet(cluster)
    assert [body for _, body in subscriber.bodies] == [str(number) for number in range(taken)]
    client.take()
    cluster.store(client, "again", mode=Mode.ACCEPTED)
    cluster.run(0.1)
    assert subscriber.bodies[-1] == (1, "again")
    assert not client.of(Error)


def test_who_comes_back_alone_lets_its_own_safe_rows_be_read_and_no_others() -> None:
    cluster = LogCluster(2)
    client = cluster.connect("b0")
    cluster.store(client, "a", "b")
    cluster.run(CHECKPOINT_SECONDS + 0.1)
    apart(cluster, "b0")
    cluster.store(client, "c")
    cluster.run(CHECKPOINT_SECONDS + 0.1)
    cluster.kill("b1")
    cluster.kill("b0")
    cluster.start("b0", ["b1"], life=2)
    cluster.run(VOUCH_SECONDS_MAX + 1.0)
    subscriber, reader = listening(cluster, "b0"), cluster.connect("b0")
    assert chunk(cluster, reader).next == 2
    assert chunk(cluster, reader, 2).code == ErrorCode.NOT_STORED
    cluster.release()
    cluster.start("b1", ["b0"], life=2)
    cluster.run(VOUCH_SECONDS_MAX + 3.0)
    assert chunk(cluster, reader, 2).next == 3
    assert subscriber.bodies == [], "of a former life nothing is delivered: it is read"


def test_the_high_watermark_is_written_down_once_in_a_while_and_when_the_broker_leaves() -> None:
    world = LogWorld(prompt=True)
    link = world.connect()
    for number in (1, 2, 3):
        world.say(link, make_publish(number))
    kept = world.disk.logs[world.name()]
    assert kept.safe == 0
    world.wake_at(world.now + CHECKPOINT_SECONDS)
    assert kept.safe == 3
    world.say(link, make_publish(4))
    world.feed(Drain())
    assert kept.safe == 4


def test_it_is_never_ahead_of_what_the_disk_has() -> None:
    world = LogWorld()
    name = LogName("broker-1", EPOCH, int(LogKind.EVENTS), "quotes")
    world.feed(Opened(EPOCH, [LogState(name, 0, 4, 40, 1, 2, safe=9)]))
    assert world.node.log.logs[name].readable == 4


def test_what_damage_keeps_from_being_copied_does_not_wait_for_ever() -> None:
    cluster = LogCluster(2)
    subscriber, client = listening(cluster, "b0"), cluster.connect("b0")
    cluster.store(client, "a")
    cluster.run(0.1)
    apart(cluster, "b0")
    for body in ("b", "c", "d"):
        cluster.store(client, body, mode=Mode.ACCEPTED)
    cluster.run(0.1)
    cluster.disks["b0"].unreadable[LOG] = 2
    meet(cluster)
    cluster.store(client, "e", mode=Mode.ACCEPTED)
    cluster.run(0.1)
    assert [body for _, body in subscriber.bodies] == ["a", "b", "e"]
    assert cluster.node("b0").log.pending_bytes == 0
    (note,) = [note for note in cluster.hosts["b0"].notes if note.event == "rows not delivered"]
    assert (note.alarming, note.facts["from"], note.facts["rows"]) == (True, 2, 2)


@pytest.mark.parametrize("mode", [Mode.ACCEPTED, Mode.STORED])
def test_what_an_old_backup_went_on_with_does_not_wait_for_ever_when_a_longer_copy_turns_up(mode: Mode) -> None:
    cluster = LogCluster(2)
    backup = cluster.old_backup()
    cluster.kill("b1")
    cluster.kill("b0")
    cluster.disks["b0"] = backup
    cluster.start("b0", ["b1"], life=2)
    cluster.run(VOUCH_SECONDS_MAX + 0.1)
    subscriber, client = listening(cluster, "b0"), cluster.connect("b0")
    cluster.store(client, "c", mode=mode)
    cluster.run(0.1)
    cluster.slow["b0"] = None
    cluster.store(client, "d", mode=mode)
    cluster.start("b1", ["b0"], life=2)
    cluster.run(1.0)
    cluster.slow.clear()
    cluster.answer("b0")
    cluster.run(1.0)
    cluster.store(client, "e", mode=mode)
    cluster.run(2.0)
    assert [body for _, body in subscriber.bodies] == ["e"]
    assert cluster.node("b0").log.pending_bytes == 0
    errors = [error.code for error in client.of(Error)]
    assert errors == ([] if mode == Mode.ACCEPTED else [ErrorCode.NOT_STORED] * 2)
    assert cluster.acknowledged(client) == 3


def test_a_follower_shows_a_row_when_its_leader_has_said_that_k_disks_have_it() -> None:
    cluster = LogCluster(3, log_copies=3)
    client = cluster.connect("b0")
    cluster.slow["b2"] = None
    cluster.store(client, "a")
    cluster.run(0.5)
    held = cluster.node("b1").log.logs[LOG]
    assert (held.next, held.readable) == (1, 0), "it is on two disks of three, and may yet be taken back"
    cluster.slow.clear()
    cluster.answer("b2")
    cluster.run(0.5)
    assert [cluster.node(name).log.logs[LOG].readable for name in ("b0", "b1", "b2")] == [1, 1, 1]


def test_what_a_follower_may_show_it_may_show_after_a_restart_without_its_leader() -> None:
    cluster = LogCluster(3, log_copies=3)
    client = cluster.connect("b0")
    cluster.store(client, "a")
    cluster.run(CHECKPOINT_SECONDS + 1.0)
    cluster.slow["b2"] = None
    cluster.store(client, "b")
    cluster.run(0.5)
    for name in ("b0", "b1"):
        cluster.kill(name)
    cluster.start("b1", ["b2"], life=2)
    held = cluster.node("b1").log.logs[LOG]
    assert (held.next, held.readable) == (2, 1)


def test_with_two_disks_a_copy_is_the_second_one_and_needs_no_word() -> None:
    cluster = LogCluster(3)
    client = cluster.connect("b0")
    cluster.store(client, "a")
    cluster.run(0.1)
    (follower,) = [name for name in ("b1", "b2") if LOG in cluster.node(name).log.logs]
    assert cluster.node(follower).log.logs[LOG].readable == 1
