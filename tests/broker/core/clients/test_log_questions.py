"""Questions about logs and producers: which logs there are, where a time is, which ids a producer wrote."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.broker.core.inputs import Opened
from headgate.broker.core.limits import ASKS_PER_SESSION_MAX, Limits
from headgate.broker.core.log_state import LogState
from headgate.protocol.client import catalogue
from headgate.protocol.data import LogName, Row, encode_column, encode_row
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Answer, Ask, Error, Mode
from tests.support.builders import make_publish
from tests.support.log_cluster import LogCluster
from tests.support.log_disk import EPOCH
from tests.support.log_world import LogWorld, stamped


def filled(count: int = 3) -> tuple[LogWorld, int]:
    world = LogWorld(prompt=True)
    link = world.connect()
    for number in range(1, count + 1):
        world.now += 1.0
        world.say(link, make_publish(number, mode=Mode.STORED))
    return world, link


def told(cluster: LogCluster) -> dict[str, Any]:
    """What each broker answers."""
    return {name: cluster.ask(cluster.connect(name), "logs") for name in ("b0", "b1")}


def test_logs_are_listed_own_ones_and_copies() -> None:
    world, link = filled()
    copy = LogState(LogName("ann", 7, 2, "quotes"), 5, 9, 100, 1, 2)
    world.feed(Opened(EPOCH, [copy]))
    ann, own = world.ask(link, "logs")
    assert ann == {
        "broker": "ann",
        "epoch": 7,
        "kind": "subscriptions",
        "stream": "quotes",
        "first": 5,
        "next": 9,
        "own": False,
        "open": False,
        "bytes": 100,
        "first_time": 1,
        "last_time": 2,
    }
    assert (own["broker"], own["kind"], own["first"], own["next"], own["own"]) == ("broker-1", "events", 0, 3, True)
    assert own["open"], "it is written to"
    assert (own["first_time"], own["last_time"]) == (1_001_000_000, 1_003_000_000)
    assert world.ask(link, "logs", kind="events") == [own]
    assert world.ask(link, "logs", kind="deliveries") == world.ask(link, "logs", stream="other") == []
    assert world.ask(link, "logs", stream="quotes", after=1) == [own]
    world.feed(Opened(EPOCH + 1))
    assert not world.ask(link, "logs", kind="events")[0]["open"], "another one is, from now on"


def test_who_was_given_an_older_disk_does_not_hide_what_others_have_of_its_log() -> None:
    cluster = LogCluster(2)
    backup = cluster.old_backup()
    assert [info.holders for info in catalogue(told(cluster))] == [("b0", "b1")]
    cluster.kill("b0")
    cluster.run(0.5)
    cluster.disks["b0"] = backup
    cluster.start("b0", ["b1"], life=2)
    cluster.store(cluster.connect("b0"), "c")
    cluster.run(3.0)
    former, now = catalogue(told(cluster))
    assert (former.holders, former.next) == (("b1", "b0"), 2)
    assert (now.holders, now.next) == (("b0", "b1"), 1)


def test_the_list_is_bounded() -> None:
    world = LogWorld(limits=Limits(answer_rows=2))
    world.feed(Opened(EPOCH, [LogState(LogName("ann", epoch, 0, "q"), 0, 1, 1, 1, 1) for epoch in range(3)]))
    link = world.connect()
    listed = [[one["epoch"] for one in world.ask(link, "logs", after=after)] for after in (0, 2)]
    assert listed == [[0, 1], [2]]


def test_who_asks_more_than_he_waits_for_is_refused_and_keeps_nobody_from_publishing() -> None:
    cluster = LogCluster(2)
    client = cluster.connect("b0")
    cluster.ask(client, "producer.open", producer="p", epoch=1)
    cluster.slow["b1"] = None
    client.send(stamped(1, 0, "on one disk"))
    asker = cluster.connect("b0")
    cluster.run(0.1)
    asker.send(*[Ask(number, "logs", {}) for number in range(ASKS_PER_SESSION_MAX + 2)])
    refused = [(error.reference, error.code) for error in asker.of(Error)]
    assert refused == [(ASKS_PER_SESSION_MAX, ErrorCode.LIMIT), (ASKS_PER_SESSION_MAX + 1, ErrorCode.LIMIT)]
    del cluster.slow["b1"]
    cluster.answer("b1")
    cluster.run(0.1)
    assert [answer.request for answer in asker.of(Answer)] == list(range(ASKS_PER_SESSION_MAX))
    asker.take()
    asker.send(*[Ask(number, "logs", {}) for number in range(ASKS_PER_SESSION_MAX)])
    assert asker.of(Error) == []


def test_the_position_of_a_time_is_the_first_at_or_after_it() -> None:
    world, link = filled()
    name = {"broker": "broker-1", "epoch": EPOCH, "kind": "events", "stream": "quotes"}
    times = (0, 1_001_000_000, 1_001_000_001, 1_003_000_000, 1_004_000_000)
    assert [world.ask(link, "log.at", **name, time=time)["position"] for time in times] == [0, 0, 1, 2, 3]


@pytest.mark.parametrize(
    ("verb", "arguments", "code"),
    [
        ("logs", {"kind": "event"}, ErrorCode.BAD_REQUEST),
        ("logs", {"kind": []}, ErrorCode.BAD_REQUEST),
        ("logs", {"kind": {}}, ErrorCode.BAD_REQUEST),
        ("logs", {"stream": 5}, ErrorCode.BAD_REQUEST),
        ("logs", {"after": -1}, ErrorCode.BAD_REQUEST),
        ("log.at", {"time": "now"}, ErrorCode.BAD_REQUEST),
        ("log.at", {"time": 5}, ErrorCode.NOT_FOUND),
        ("log.at", {"time": 5, "broker": "x", "epoch": 1, "kind": "events", "stream": "s"}, ErrorCode.NOT_FOUND),
        ("log.at", {"time": 5, "broker": "x", "epoch": 1, "kind": [], "stream": "s"}, ErrorCode.NOT_FOUND),
        ("producer.ids", {}, ErrorCode.BAD_REQUEST),
        ("producer.ids", {"producer": "p", "after": -1}, ErrorCode.BAD_REQUEST),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(verb: str, arguments: dict[str, Any], code: ErrorCode) -> None:
    world, link = filled()
    assert world.ask(link, verb, **arguments).code == code


def test_ids_that_cannot_be_read_are_not_taken_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    world, link = filled()
    monkeypatch.setattr(world.node.log, "find_ids", lambda producer, after, then: then(None, world.now))
    assert world.ask(link, "producer.ids", producer="p").code == ErrorCode.NOT_FOUND


def test_the_ids_of_a_producer_are_told_in_its_own_order() -> None:
    world = LogWorld(prompt=True)
    link = world.connect()
    world.ask(link, "producer.open", producer="p", epoch=1)
    for sequence, number, names in ((1, 0, ["a", "b"]), (2, 2, ["c"])):
        world.say(link, stamped(sequence, number, *names, ids=encode_column(names)))
    assert world.ask(link, "producer.ids", producer="p") == {"first": 0, "ids": ["a", "b", "c"], "next": None}
    assert world.ask(link, "producer.ids", producer="p", after=1) == {"first": 1, "ids": ["b", "c"], "next": None}
    assert world.ask(link, "producer.ids", producer="q", after=0) == {"first": 0, "ids": [], "next": None}


def test_ids_come_in_pages_that_a_client_can_read_however_small_the_rows() -> None:
    world = LogWorld(prompt=True)
    link = world.connect()
    world.ask(link, "producer.open", producer="p", epoch=1)
    every = [str(number) for number in range(9000)]
    for sequence, number in enumerate(range(0, 9000, 3000)):
        names = every[number : number + 3000]
        world.say(link, stamped(sequence + 1, number, *names, ids=encode_column(names)))
    first = world.ask(link, "producer.ids", producer="p")
    assert (first["first"], first["ids"], first["next"]) == (0, every[:6000], 6000)
    assert world.ask(link, "producer.ids", producer="p", after=6000) == {
        "first": 6000,
        "ids": every[6000:],
        "next": None,
    }


def test_ids_say_where_they_begin_and_end_before_a_hole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that has a part of a producer's rows tells of that part, and never passes it off for all."""
    world, link = filled()
    rows = [
        encode_row(Row(0, 2, 0, "o", 1, b"", "q", b"", {}, False, b"", "p", 1, number, b"", encode_column(["x", "y"])))
        for number in (4, 6, 10)
    ]
    monkeypatch.setattr(world.node.log, "find_ids", lambda producer, after, then: then((rows, None), world.now))
    answer = world.ask(link, "producer.ids", producer="p", after=1)
    assert answer == {"first": 4, "ids": ["x", "y", "x", "y"], "next": 8}
    assert world.ask(link, "producer.ids", producer="p", after=5)["ids"] == ["y", "x", "y"]
