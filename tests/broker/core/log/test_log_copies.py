"""Copies of logs: who has what when PUBACK goes out, catching up, who takes a follower's place, and longer copies."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.broker.core.effects import TrimLog
from headgate.broker.core.limits import COPY_FULL_SECONDS_MAX, STORE_SECONDS_MAX, VOUCH_SECONDS_MAX, Limits
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Control, Copy, Error, LogChunk, Mode, ReadLog
from tests.support.log_cluster import LogCluster
from tests.support.log_disk import EPOCH
from tests.support.node_cluster import Client


def codes(messages: list[Any]) -> list[int]:
    return [message.code for message in messages if isinstance(message, Error)]


def followers(cluster: LogCluster, owner: str) -> list[str]:
    return [name for name in cluster.holders(owner) if name != owner]


def test_puback_waits_for_a_second_disk() -> None:
    cluster = LogCluster(3)
    client = cluster.connect("b0")
    cluster.store(client, "a", "b")
    cluster.run(0.0012)
    assert len(cluster.rows("b0", "b0")) == 1
    assert cluster.acknowledged(client) == 0, "one disk is not enough"
    cluster.run(0.02)
    assert cluster.acknowledged(client) == 1
    (follower,) = followers(cluster, "b0")
    assert (
        cluster.disks[follower].logs[cluster.name("b0")].rows[0].row
        == cluster.disks["b0"].logs[cluster.name("b0")].rows[0].row
    ), "byte for byte"


def test_what_is_delivered_waits_for_a_siblings_disk() -> None:
    cluster = LogCluster(3)
    subscriber, client = cluster.connect("b1"), cluster.connect("b0")
    subscriber.subscribe(1)
    cluster.run(1.0)
    (first, *_) = [info.name for info in cluster.node("b0").leader._wanted(cluster.now)]
    cluster.slow[first] = None
    cluster.store(client, "a")
    cluster.run(0.1)
    assert (subscriber.bodies, cluster.acknowledged(client)) == ([], 0)
    cluster.slow.clear()
    cluster.answer(first)
    cluster.run(0.1)
    assert (subscriber.bodies, cluster.acknowledged(client)) == ([(1, "a")], 1)


def test_a_broker_that_never_had_company_needs_nobody() -> None:
    cluster = LogCluster()
    cluster.start("alone", [])
    cluster.run(10.0)
    client = cluster.connect("alone")
    cluster.store(client, "a")
    cluster.run(0.01)
    assert cluster.acknowledged(client) == 1


def test_one_that_had_company_refuses_when_there_is_none() -> None:
    cluster = LogCluster(2)
    client = cluster.connect("b0")
    cluster.store(client, "a")
    cluster.run(0.1)
    cluster.kill("b1")
    cluster.run(1.0)
    client.take()
    cluster.store(client, "b")
    cluster.run(STORE_SECONDS_MAX + 0.1)
    assert codes(client.got) == [ErrorCode.NOT_STORED]
    assert cluster.acknowledged(client) == 2
    cluster.store(client, "c", mode=Mode.ACCEPTED)
    assert cluster.acknowledged(client) == 3, "who asks for no disk goes on"


def test_another_broker_takes_the_place_of_a_follower_that_is_gone_and_catches_up_first() -> None:
    cluster = LogCluster(3)
    client = cluster.connect("b0")
    for number in range(20):
        cluster.store(client, str(number), "x")
    cluster.run(0.5)
    (follower,) = followers(cluster, "b0")
    cluster.kill(follower)
    cluster.store(client, "last")
    cluster.run(4.0)
    assert codes(client.got) == []
    assert cluster.acknowledged(client) == 21
    (other,) = [name for name in followers(cluster, "b0") if name != follower]
    assert cluster.rows(other, "b0") == cluster.rows("b0", "b0")
    assert len(cluster.rows(follower, "b0")) == 20


def test_a_follower_that_was_away_goes_on_where_its_copy_ends() -> None:
    cluster = LogCluster(2)
    client = cluster.connect("b0")
    cluster.store(client, "a")
    cluster.run(0.1)
    cluster.kill("b1")
    cluster.store(client, "b", mode=Mode.ACCEPTED)
    cluster.run(1.0)
    before = len(cluster.said)
    cluster.start("b1", ["b0"], life=2)
    cluster.run(3.0)
    assert cluster.rows("b1", "b0") == cluster.rows("b0", "b0")
    copied = [message for source, _, message in cluster.said[before:] if isinstance(message, Copy) and source == "b0"]
    assert len(copied) == 1, "what it had was not sent again"


def trim(cluster: LogCluster, owner: str, below: int) -> None:
    """The owner of a log lets go of the rows before that position."""
    node = cluster.node(owner)
    node.log.trim(cluster.name(owner), below)
    for effect in node.effects[:]:
        cluster._carry_out(cluster.hosts[owner], effect)
    node.effects.clear()
    cluster.run(0.1)


def owner_that_is_ahead() -> tuple[LogCluster, Client]:
    """b1, which is down, has `a` of the log of b0, and not `b`, `c` and `d`."""
    cluster = LogCluster(2)
    client = cluster.connect("b0")
    cluster.store(client, "a")
    cluster.run(0.1)
    cluster.kill("b1")
    node = cluster.node("b0")
    cluster.until(lambda: not node.cluster.linked(), 20.0)
    for body in "bcd":
        cluster.store(client, body, mode=Mode.ACCEPTED)
    cluster.run(0.1)
    return cluster, client


def owner_without_what_a_copy_ends_at() -> tuple[LogCluster, Client]:
    """And the log of b0 begins at its position 3 by now."""
    cluster, client = owner_that_is_ahead()
    trim(cluster, "b0", 3)
    return cluster, client


def test_a_copy_skips_what_its_owner_has_no_more() -> None:
    cluster, client = owner_without_what_a_copy_ends_at()
    cluster.start("b1", ["b0"], life=2)
    cluster.run(3.0)
    assert [row.first for row in cluster.rows("b1", "b0")] == [3]
    held = cluster.node("b1").log.logs[cluster.name("b0")]
    assert (held.first, held.next) == (3, 4)
    cluster.store(client, "e")
    cluster.run(0.1)
    assert cluster.acknowledged(client) == 5
    assert [row.first for row in cluster.rows("b1", "b0")] == [3, 4], "a copy that begins where ours does is not longer"
    assert cluster.node("b0").log.epoch == EPOCH


def test_a_copy_skips_what_its_owner_lets_go_of_before_it_is_sent() -> None:
    cluster, client = owner_that_is_ahead()
    cluster.start("b1", ["b0"], life=2)
    cluster.until(lambda: bool(cluster.node("b0").cluster.linked()))
    cluster.hold("b1", "b0")
    cluster.run(0.1)
    trim(cluster, "b0", 3)
    cluster.release()
    cluster.run(3.0)
    assert [row.first for row in cluster.rows("b1", "b0")] == [3]
    cluster.store(client, "e")
    cluster.run(0.1)
    assert cluster.acknowledged(client) == 5


def test_a_copy_whose_disk_has_no_room_to_let_go_of_what_it_has_gets_no_hole() -> None:
    cluster, client = owner_without_what_a_copy_ends_at()
    cluster.slow["b1"] = None
    cluster.start("b1", ["b0"], life=2)
    cluster.run(1.0)
    disk = cluster.disks["b1"]
    assert any(isinstance(effect, TrimLog) for effect in disk.asked)
    disk.asked = [effect for effect in disk.asked if not isinstance(effect, TrimLog)]
    cluster.slow.clear()
    cluster.answer("b1")
    assert [row.first for row in cluster.rows("b1", "b0")] == [0], "the disk let go of nothing"
    cluster.run(3.0)
    assert [row.first for row in cluster.rows("b1", "b0")] == [3]
    cluster.store(client, "e")
    cluster.run(0.1)
    assert cluster.acknowledged(client) == 5


def test_a_follower_whose_disk_is_full_is_asked_again_until_it_is_not() -> None:
    cluster = LogCluster(2)
    client = cluster.connect("b0")
    cluster.full["b1"] = None
    for body in "abc":
        cluster.store(client, body)
    cluster.run(2.0)
    assert cluster.acknowledged(client) == 0
    cluster.full.clear()
    cluster.run(1.5)
    assert cluster.acknowledged(client) == 3
    assert cluster.rows("b1", "b0") == cluster.rows("b0", "b0")


def test_only_a_window_is_on_its_way_to_a_slow_follower_and_the_rest_is_read_from_disk() -> None:
    cluster = LogCluster(2, limits=Limits(copy_window_bytes=2_000, copy_chunk_bytes=1_000))
    client = cluster.connect("b0")
    cluster.slow["b1"] = None
    for number in range(30):
        cluster.store(client, f"{number}" * 100)
    cluster.run(0.1)
    sent = [message for *_, message in cluster.said if isinstance(message, Copy)]
    assert 0 < sum(len(message.row) for message in sent) < 2_500
    assert cluster.node("b0").leader.behind() == 30
    cluster.slow.clear()
    cluster.answer("b1")
    cluster.run(4.0)
    assert cluster.rows("b1", "b0") == cluster.rows("b0", "b0")
    assert cluster.acknowledged(client) == 30
    assert cluster.node("b0").leader.behind() == 0


def test_a_follower_that_says_nothing_is_asked_anew_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = LogCluster(2)
    client = cluster.connect("b0")
    cluster.store(client, "a")
    cluster.run(0.1)
    copied = cluster.node("b1").follower.settle
    monkeypatch.setattr(cluster.node("b1").follower, "settle", lambda now: None)
    cluster.store(client, "b")
    cluster.run(1.0)
    monkeypatch.setattr(cluster.node("b1").follower, "settle", copied)
    cluster.node("b1").follower.to_tell.clear()
    assert cluster.acknowledged(client) == 1
    cluster.run(4.0)
    assert cluster.acknowledged(client) == 2


def test_a_copy_is_read_like_the_log_itself_when_its_owner_is_gone() -> None:
    cluster = LogCluster(3)
    client = cluster.connect("b0")
    cluster.store(client, "a", "b")
    cluster.run(0.1)
    (follower,) = followers(cluster, "b0")
    cluster.kill("b0")
    reader = cluster.connect(follower)
    (listed,) = cluster.ask(reader, "logs", kind="events")
    assert (listed["broker"], listed["own"], listed["next"]) == ("b0", False, 2)
    reader.take()
    reader.send(ReadLog(1, "b0", EPOCH, 0, "quotes", 0))
    cluster.run(0.1)
    (chunk,) = reader.of(LogChunk)
    assert (len(chunk.rows), chunk.end) == (1, 2)


# --- a broker that comes back -----------------------------------------------------------------------------------------


def restarted(cluster: LogCluster, name: str, **config: Any) -> None:
    cluster.kill(name)
    cluster.run(0.5)
    cluster.start(name, list(cluster.hosts)[:1], life=2, **config)


def test_a_broker_that_comes_back_writes_on_as_soon_as_a_follower_vouches() -> None:
    cluster = LogCluster(2)
    client = cluster.connect("b0")
    cluster.store(client, "a")
    cluster.run(0.1)
    restarted(cluster, "b0")
    assert not cluster.node("b0").log.recovered
    client = cluster.connect("b0")
    cluster.store(client, "b")
    cluster.store(client, "c", mode=Mode.ACCEPTED)
    assert cluster.acknowledged(client) == 0, "not before it has a place"
    cluster.run(2.0)
    assert cluster.node("b0").log.recovered
    assert cluster.acknowledged(client) == 2
    assert [row.first for row in cluster.rows("b0", "b0")] == [0, 1, 2]
    assert cluster.rows("b1", "b0") == cluster.rows("b0", "b0")


def test_when_nobody_vouches_it_goes_on_after_a_while() -> None:
    cluster = LogCluster(2)
    client = cluster.connect("b0")
    cluster.store(client, "a")
    cluster.run(0.1)
    cluster.kill("b1")
    cluster.kill("b0")
    cluster.start("b0", ["b1"], life=2)
    client = cluster.connect("b0")
    cluster.store(client, "b", mode=Mode.ACCEPTED)
    cluster.run(VOUCH_SECONDS_MAX - 0.1)
    assert not cluster.node("b0").log.recovered
    cluster.run(0.2)
    assert [row.first for row in cluster.rows("b0", "b0")] == [0, 1]


def test_a_log_that_is_older_than_its_copy_is_closed_and_another_epoch_begins() -> None:
    cluster = LogCluster(2)
    backup = cluster.old_backup()
    cluster.kill("b0")
    cluster.run(0.5)
    cluster.disks["b0"] = backup
    host = cluster.start("b0", ["b1"], life=2)
    client = cluster.connect("b0")
    cluster.store(client, "c")
    cluster.run(3.0)
    epoch = host.node.log.epoch
    assert epoch > EPOCH
    assert [note.event for note in host.notes if note.alarming] == ["log is older than its copy"]
    assert cluster.acknowledged(client) == 1
    assert len(cluster.rows("b0", "b0")) == 1
    assert len(cluster.rows("b1", "b0")) == 2, "nothing of what was acknowledged is gone"
    assert len(cluster.rows("b0", "b0", epoch=epoch)) == 1
    assert cluster.rows("b1", "b0", epoch=epoch) == cluster.rows("b0", "b0", epoch=epoch)


def test_a_copy_that_turns_up_late_and_is_longer_ends_the_epoch_too() -> None:
    cluster = LogCluster(2)
    backup = cluster.old_backup()
    cluster.kill("b1")
    cluster.kill("b0")
    cluster.disks["b0"] = backup
    cluster.start("b0", ["b1"], life=2)
    client = cluster.connect("b0")
    for body in "cdef":
        cluster.store(client, body, mode=Mode.ACCEPTED)
    cluster.run(VOUCH_SECONDS_MAX + 1.0)
    assert len(cluster.rows("b0", "b0")) == 5
    cluster.start("b1", ["b0"], life=2)
    cluster.run(3.0)
    assert cluster.node("b0").log.epoch > EPOCH
    assert len(cluster.rows("b1", "b0")) == 2, "nothing was put behind what the other writer wrote"


# --- what makes no sense ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        [],
        ["b0", 1, 0, "quotes", 0],
        ["b0", 1, 9, "quotes", 0, 1],
        ["b0", 1, 0, "quotes", 2, 1],
        ["b0", -1, 0, "q", 0, 1],
    ],
)
@pytest.mark.parametrize("kind", [17, 18, 19])
def test_a_word_that_makes_no_sense_ends_the_link(body: list[Any], kind: int) -> None:
    cluster = LogCluster(2)
    answers = cluster.tell("b0", "b1", Control(kind, body))
    assert any(isinstance(one, Error) for one in answers)


def test_more_confirmed_than_was_sent_ends_the_link() -> None:
    cluster = LogCluster(2)
    client = cluster.connect("b0")
    cluster.store(client, "a")
    cluster.run(0.1)
    answers = cluster.tell("b1", "b0", Control(17, ["b0", EPOCH, 0, "quotes", 0, 5]))
    assert any(isinstance(one, Error) and "Copied" in one.text for one in answers)


def test_what_damage_keeps_from_being_copied_ends_the_epoch() -> None:
    cluster = LogCluster(3)
    client = cluster.connect("b0")
    for body in "abc":
        cluster.store(client, body)
    cluster.run(0.1)
    node = cluster.node("b0")
    held = node.log.logs[cluster.name("b0")]
    node.leader._cannot_copy(held, "row 1 is damaged", cluster.now)
    assert node.log.epoch > EPOCH
    node.effects.clear()
    cluster.store(client, "d")
    cluster.run(1.0)
    assert cluster.acknowledged(client) == 4


def test_the_next_broker_takes_the_place_of_a_follower_whose_disk_is_full() -> None:
    cluster = LogCluster(3)
    client = cluster.connect("b0")
    for number in range(20):
        cluster.store(client, str(number), "x")
    cluster.run(0.5)
    (follower,) = followers(cluster, "b0")
    cluster.full[follower] = None
    cluster.store(client, "more")
    cluster.run(0.2)
    assert cluster.acknowledged(client) == 21 and codes(client.got) == []
    (other,) = [name for name in followers(cluster, "b0") if name != follower]
    assert cluster.rows(other, "b0") == cluster.rows("b0", "b0")
    for number in range(40):  # it is tried again and again, a row at a time, and nobody waits for that
        cluster.store(client, f"again {number}")
        cluster.run(0.5)
        assert cluster.acknowledged(client) == 22 + number
    assert codes(client.got) == [] and len(cluster.rows(follower, "b0")) == 20
    cluster.full.clear()
    cluster.run(COPY_FULL_SECONDS_MAX + 1.0)
    assert cluster.rows(follower, "b0") == cluster.rows("b0", "b0"), "it has room again, and all that it missed"
    assert [info.name for info in cluster.node("b0").leader._wanted(cluster.now)] == [follower]


def test_a_follower_whose_disk_is_full_is_tried_again_where_there_is_no_other() -> None:
    cluster = LogCluster(2)
    client = cluster.connect("b0")
    cluster.store(client, "a")
    cluster.run(0.5)
    cluster.full["b1"] = None
    cluster.store(client, "b", "c")
    cluster.run(STORE_SECONDS_MAX + 0.5)
    (refused,) = {message.text for message in client.got if isinstance(message, Error)}
    assert "no room on the disk of b1" in refused
    cluster.full.clear()
    cluster.run(COPY_FULL_SECONDS_MAX)
    assert cluster.rows("b1", "b0") == cluster.rows("b0", "b0")
    client.take()
    cluster.store(client, "d")
    cluster.run(0.1)
    assert codes(client.got) == []


def test_what_is_sent_to_a_follower_that_was_full_is_one_row_until_it_is_stored() -> None:
    cluster = LogCluster(2)
    client = cluster.connect("b0")
    cluster.store(client, "a")
    cluster.run(0.5)
    cluster.full["b1"] = None
    for number in range(9):
        cluster.store(client, str(number))
        cluster.run(0.01)
    before = len(cluster.said)
    cluster.run(2 * COPY_FULL_SECONDS_MAX)
    tried = [one for source, _, one in cluster.said[before:] if source == "b0" and isinstance(one, Copy)]
    assert 2 <= len(tried) <= 5 and len({one.row for one in tried}) == 1
