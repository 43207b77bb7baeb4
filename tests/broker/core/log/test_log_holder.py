"""The holder: rows where a copy ends and nowhere else, of their owner alone, and what a full disk did not take."""

from __future__ import annotations

import pytest

from headgate.broker.core.limits import POSITIONS_MAX, Limits
from headgate.protocol.data import LogKind, LogName, Row, encode_row
from headgate.protocol.errors import ErrorCode, ProtocolViolation
from headgate.protocol.messages import Control, Copy, Error
from tests.support.log_cluster import LogCluster
from tests.support.log_disk import EPOCH

OFFER, HELD = 19, 22


def row(first: int, count: int = 1, producer: str = "", number: int = 0) -> bytes:
    return encode_row(Row(first, count, 5, "o", 0, b"", "quotes", b"", {}, False, b"", producer, 1, number, b"d"))


def copy(
    first: int,
    count: int = 1,
    owner: str = "b0",
    safe: int = 0,
    opening: tuple[int, int] = (0, 0),
    epoch: int = EPOCH,
    **fields: object,
) -> Copy:
    """`opening`: its generation, and from which number on events are of it."""
    data = row(first, count, **fields)  # type: ignore[arg-type]
    return Copy(owner, epoch, int(LogKind.EVENTS), "quotes", data, safe, *opening)


def ask(generation: int, epoch: int = EPOCH, renews: bool = False, producer: str = "p", of: int = 1) -> Control:
    """Another broker opens a producer for its log of that epoch."""
    return Control(20, [7, producer, of, generation, epoch, renews])


def offer(first: int, end: int, owner: str = "b0") -> Control:
    return Control(OFFER, [owner, EPOCH, int(LogKind.EVENTS), "quotes", first, end])


def words(cluster: LogCluster, kind: int) -> list[list[object]]:
    """First and next of what b1 said of copies, in words of that kind."""
    said = [one for source, _, one in cluster.said if source == "b1" and isinstance(one, Control)]
    return [list(one.body[4:]) for one in said if one.kind == kind]


def firsts(cluster: LogCluster) -> list[int]:
    return [one.first for one in cluster.rows("b1", "b0")]


def test_an_offer_is_answered_with_where_to_go_on() -> None:
    cluster = LogCluster(2)
    cluster.tell("b0", "b1", offer(0, 9))
    cluster.tell("b0", "b1", copy(0, 3))
    cluster.run(0.01)
    cluster.tell("b0", "b1", offer(0, 9))
    assert words(cluster, 18) == [[0, 0], [0, 3]]
    assert words(cluster, 17) == [[0, 3]]


def test_an_owner_that_begins_later_makes_the_copy_begin_there() -> None:
    cluster = LogCluster(2)
    cluster.tell("b0", "b1", offer(0, 9))
    cluster.tell("b0", "b1", copy(0, 3))
    cluster.run(0.01)
    cluster.tell("b0", "b1", offer(7, 9))
    assert words(cluster, 18)[-1] == [0, 0], "not before its disk has let go of what it had"
    cluster.run(0.01)
    cluster.tell("b0", "b1", offer(7, 9))
    cluster.tell("b0", "b1", copy(7, 2))
    cluster.run(0.01)
    assert words(cluster, 18)[-1] == [7, 7]
    assert firsts(cluster) == [7]
    assert cluster.node("b1").log.logs[LogName("b0", EPOCH, 0, "quotes")].next == 9


def test_a_row_that_does_not_fit_is_passed_over() -> None:
    cluster = LogCluster(2)
    cluster.tell("b0", "b1", copy(0))
    assert cluster.rows("b1", "b0") == [], "nothing was offered"
    cluster.tell("b0", "b1", offer(0, 9))
    for first in (0, 2, 1, 1, 2):
        cluster.tell("b0", "b1", copy(first))
    cluster.run(0.01)
    assert firsts(cluster) == [0, 1, 2]


def test_an_offer_while_rows_are_on_their_way_to_the_disk_is_left_for_later() -> None:
    cluster = LogCluster(2)
    cluster.tell("b0", "b1", offer(0, 9))
    cluster.slow["b1"] = None
    cluster.tell("b0", "b1", copy(0))
    assert cluster.tell("b0", "b1", offer(0, 9)) == []


def test_the_owner_hears_once_what_a_full_disk_did_not_take() -> None:
    cluster = LogCluster(2)
    cluster.tell("b0", "b1", offer(0, 9))
    cluster.full["b1"] = None
    cluster.tell("b0", "b1", copy(0), copy(1))
    cluster.run(0.1)
    assert words(cluster, 18) == [[0, 0]]
    assert words(cluster, 32) == [[0, 0]]
    cluster.full.clear()
    cluster.tell("b0", "b1", offer(0, 9), copy(0))
    cluster.run(0.1)
    assert words(cluster, 18) == [[0, 0], [0, 0]]
    assert words(cluster, 17) == [[0, 1]]


def test_what_a_row_says_of_its_producer_is_known_here_too() -> None:
    cluster = LogCluster(2)
    cluster.tell("b0", "b1", offer(0, 9))
    cluster.tell("b0", "b1", ask(1))
    rows = [{"count": 3, "number": 10}, {"first": 3, "number": 2}]
    cluster.tell("b0", "b1", *[copy(**{"first": 0, "producer": "p", "opening": (1, 0)} | row) for row in rows])  # type: ignore[arg-type]
    cluster.run(0.01)
    state = cluster.disks["b1"].producers["p"]
    assert (state.epoch, state.next, state.digest) == (1, 13, b"d"), "an older row does not put it back"


def test_on_every_link_each_side_says_what_it_holds_of_the_other_ones_logs() -> None:
    cluster = LogCluster(2, limits=Limits(held_copies=2))
    assert [one.body for *_, one in cluster.said if isinstance(one, Control) and one.kind == HELD] == [[True, []]] * 2
    for stream in "abc":
        cluster.tell("b0", "b1", Control(OFFER, ["b0", EPOCH, 0, stream, 0, 9]))
    cluster.run(0.01)
    before = len(cluster.said)
    cluster.cut("b0", "b1")
    cluster.cut("b1", "b0")
    cluster.run(3.0)
    said = [(source, one) for source, _, one in cluster.said[before:] if isinstance(one, Control) and one.kind == HELD]
    assert [one.body for source, one in said if source == "b1"] == [
        [False, [[EPOCH, 0, "a", 0, 0], [EPOCH, 0, "b", 0, 0]]],
        [True, [[EPOCH, 0, "c", 0, 0]]],
    ]


@pytest.mark.parametrize(
    "body",
    [
        *([], [1], [True, 5], [True, [5]], [True, [[1, 2, 3]]], [1, []]),
        *([True, [[EPOCH, 9, "q", 0, 0]]], [True, [[EPOCH, 0, "q", 5, 4]]]),
        [True, [[EPOCH, 0, "q", 0, POSITIONS_MAX + 1]]],
    ],
)
def test_held_words_that_make_no_sense_end_the_link(body: list[object]) -> None:
    cluster = LogCluster(2)
    assert any(isinstance(one, Error) for one in cluster.tell("b0", "b1", Control(HELD, body)))


def test_positions_that_a_disk_cannot_keep_apart_end_the_link() -> None:
    for first in (POSITIONS_MAX + 1, 2**53):
        cluster = LogCluster(2)
        answers = cluster.tell("b0", "b1", offer(first, first))
        assert [one.code for one in answers if isinstance(one, Error)] == [ErrorCode.PROTOCOL]
        assert cluster.node("b1").log.logs == {}


def test_a_row_may_go_to_the_last_position_and_no_further() -> None:
    cluster = LogCluster(2)
    last = POSITIONS_MAX - 2
    cluster.tell("b0", "b1", offer(last, POSITIONS_MAX))
    answers = cluster.tell("b0", "b1", copy(last, 3))
    assert [one.code for one in answers if isinstance(one, Error)] == [ErrorCode.PROTOCOL]
    cluster.run(8.0)
    assert firsts(cluster) == []
    cluster.tell("b0", "b1", offer(last, POSITIONS_MAX), copy(last, 2))
    cluster.run(0.01)
    assert firsts(cluster) == [last]


def test_only_its_owner_has_a_log_copied() -> None:
    cluster = LogCluster(3)
    for message in (copy(0, owner="b2"), offer(0, 1, owner="b2")):
        answers = cluster.tell("b0", "b1", message)
        assert any(isinstance(one, Error) and "its own logs" in one.text for one in answers)
        cluster.run(8.0)


def test_bytes_that_are_no_row_end_the_link() -> None:
    cluster = LogCluster(2)
    message = copy(0)
    message.row = b"\xc1"
    assert any(isinstance(one, Error) for one in cluster.tell("b0", "b1", message))


def test_a_broker_without_a_disk_holds_nothing() -> None:
    cluster = LogCluster(2)
    cluster.node("b1").log.available = False
    assert cluster.tell("b0", "b1", offer(0, 1)) == []
    info = cluster.node("b1").cluster.linked()[0]
    with pytest.raises(ProtocolViolation):
        cluster.node("b1").follower.copy(info, copy(0, owner="x"), cluster.now)


FENCED = 28


@pytest.mark.parametrize(
    ("opening", "epoch", "taken"),
    [((5, 0), EPOCH, True), ((4, 0), EPOCH, False), ((6, 0), EPOCH, False), ((0, 0), EPOCH, False), ((5, 0), 7, False)],
)
def test_a_row_of_another_opening_than_the_one_that_is_held_to_is_refused(
    opening: tuple[int, int], epoch: int, taken: bool
) -> None:
    cluster = LogCluster(2)
    cluster.tell("b0", "b1", ask(5))
    cluster.tell("b0", "b1", Control(OFFER, ["b0", epoch, int(LogKind.EVENTS), "quotes", 0, 9]))
    cluster.tell("b0", "b1", copy(0, producer="p", opening=opening, epoch=epoch))
    cluster.run(0.01)
    assert [one.first for one in cluster.rows("b1", "b0", epoch=epoch)] == [0] * taken
    assert words(cluster, FENCED) == [[0, 0]] * (not taken)


def test_a_row_that_enough_disks_have_is_taken_whoever_has_opened_its_producer_since() -> None:
    cluster = LogCluster(2)
    cluster.tell("b0", "b1", offer(0, 9))
    cluster.tell("b0", "b1", copy(0, 3, producer="p", safe=3), copy(3, 1, producer="p", number=3, safe=3))
    cluster.run(0.01)
    assert firsts(cluster) == [0]
    assert words(cluster, FENCED) == [[0, 3]]


def test_a_disk_that_has_lost_something_refuses_rows_until_it_is_asked_again() -> None:
    cluster = LogCluster(2)
    cluster.tell("b0", "b1", ask(5), offer(0, 9))
    cluster.node("b1").producers.doubt()
    cluster.tell("b0", "b1", copy(0, producer="p", opening=(5, 0)))
    cluster.run(0.01)
    assert words(cluster, FENCED) == [[0, 0]]
    cluster.tell("b0", "b1", ask(6), copy(0, producer="p", opening=(6, 0)))
    cluster.run(0.01)
    assert firsts(cluster) == [0]


def test_who_asks_with_an_old_generation_is_told_the_newest_and_nothing_changes() -> None:
    cluster = LogCluster(2)
    cluster.tell("b0", "b1", ask(5))
    cluster.run(0.01)
    cluster.tell("b0", "b1", ask(4))
    cluster.run(0.01)
    told = [
        one.body for source, _, one in cluster.said if source == "b1" and isinstance(one, Control) and one.kind == 21
    ]
    assert [one[5] for one in told] == [0, 0], "of one log's openings the newest holds, and is held to by the older"
    assert cluster.node("b1").producers.fence_of("p").promised == (5, "b0", EPOCH)


def test_a_follower_keeps_over_restarts_what_it_holds_to_and_the_starts_it_was_told() -> None:
    cluster = LogCluster(2)
    cluster.tell("b0", "b1", ask(5), offer(0, 9), copy(0, 2, producer="p", number=4, opening=(5, 4)))
    cluster.run(0.01)
    before = cluster.node("b1").producers.fence_of("p")
    assert (before.promised, before.starts) == ((5, "b0", EPOCH), ((4, 5, "b0", EPOCH),))
    cluster.kill("b1")
    cluster.start("b1", ["b0"], life=2)
    assert cluster.node("b1").producers.fence_of("p") == before
