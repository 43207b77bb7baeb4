"""Claims: what a disk has of a producer in others' logs, what that closes, and words that make no sense."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.broker.core.limits import CLOCKS_APART_SECONDS, Limits
from headgate.broker.core.log.reconcile import Owner, Span
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Answer, Ask, Control, Error
from tests.support.log_cluster import LogCluster
from tests.support.log_disk import EPOCH
from tests.support.log_world import stamped
from tests.support.node_cluster import Client

CLAIM, CLAIMED = 26, 27


def opened(cluster: LogCluster, broker: str, producer: str = "p") -> tuple[Client, Any]:
    client = cluster.connect(broker)
    return client, cluster.ask(client, "producer.open", producer=producer, epoch=1)


def filled() -> tuple[LogCluster, Client]:
    """The producer `p` has published 0 to 4 at b1, and b0 has copies."""
    cluster = LogCluster(2)
    client, _ = opened(cluster, "b1")
    client.send(stamped(1, 0, "a", "b"), stamped(2, 2, "c"), stamped(3, 3, "d", "e"))
    cluster.run(0.1)
    return cluster, client


def claim(
    cluster: LogCluster,
    *wanted: list[Any],
    since: int = 0,
    stream: str = "quotes",
    to: str = "b1",
    owner: str = "",
    epochs: tuple[int, ...] = (),
) -> list[Any]:
    """What that broker answers to the other one."""
    before = len(cluster.said)
    owner = owner or ("b0" if to == "b1" else "b1")
    cluster.tell("b0" if to == "b1" else "b1", to, Control(CLAIM, [9, owner, list(epochs), stream, since, wanted]))
    cluster.run(0.05)
    said = [one for source, _, one in cluster.said[before:] if source == to and isinstance(one, Control)]
    *pieces, last = [one.body for one in said if one.kind == CLAIMED]
    assert [one[:2] for one in (*pieces, last)] == [[9, False]] * len(pieces) + [[9, True]]
    return [span for one in (*pieces, last) for span in one[3]]


def test_pieces_that_go_on_are_told_as_one() -> None:
    cluster, _ = filled()
    ((producer, start, end, _, doubted),) = claim(cluster, ["p", 1, 99], ["q", 0, 5])
    assert (producer, start, end, doubted) == ("p", 0, 5, False)


def test_producers_that_take_turns_are_told_of_in_a_span_each() -> None:
    cluster = LogCluster(2)
    client, _ = opened(cluster, "b1")
    cluster.ask(client, "producer.open", producer="q", epoch=1)
    for number in range(20):
        client.send(*[stamped(2 * number + turn, number, producer="pq"[turn - 1]) for turn in (1, 2)])
    cluster.run(0.1)
    assert [one[:3] for one in claim(cluster, ["p", 5, 99], ["q", 0, 99])] == [["q", 0, 20], ["p", 5, 20]]


def test_however_much_there_is_all_of_it_is_told() -> None:
    cluster, heard = LogCluster(2, limits=Limits(claim_spans=2)), list[list[Span]]()
    told = [Span("p", number, number + 1, 5, False, "b7") for number in range(10, 17, 2)]
    for much in (0, 1, 2, 3, 4):
        cluster.node("b1").claims.remember("quotes", told[:much])
        assert [one[1] for one in claim(cluster, ["p", 0, 99])] == [10, 12, 14, 16][:much]
    (info,) = cluster.node("b0").cluster.linked()
    cluster.node("b0").claims.ask(
        info, Owner("b0"), "quotes", 0, {"p": (0, 99)}, lambda spans, now: heard.append(spans), cluster.now
    )
    cluster.node("b0").effects.clear()
    body = [[["p", 3]], *[[one.producer, one.start, one.end, 5, False] for one in told]]
    cluster.tell("b1", "b0", Control(CLAIMED, [1, False, body[0], body[1:3]]))
    assert heard == []
    cluster.tell("b1", "b0", Control(CLAIMED, [1, True, [], body[3:]]))
    ((*spans,),) = heard
    assert [one.start for one in spans] == [10, 12, 14, 16]


def test_an_answer_without_end_ends_the_link() -> None:
    cluster, heard = LogCluster(2, limits=Limits(claim_answer_spans=3)), list[list[Span]]()
    node = cluster.node("b0")
    (info,) = node.cluster.linked()
    node.claims.ask(info, Owner("b0"), "quotes", 0, {"p": (0, 9)}, lambda spans, now: heard.append(spans), cluster.now)
    node.effects.clear()
    word = Control(CLAIMED, [1, False, [], [["p", number, number + 1, 5, False] for number in (0, 1)]])
    assert cluster.tell("b1", "b0", word) == []
    assert any(isinstance(one, Error) for one in cluster.tell("b1", "b0", word))


def test_what_was_not_asked_for_is_not_told() -> None:
    cluster, _ = filled()
    assert [one[1:3] for one in claim(cluster, ["p", 2, 3])] == [[2, 3]]
    assert claim(cluster, ["p", 5, 9]) == []
    assert claim(cluster, ["p", 0, 9], stream="others") == []
    late = int(cluster.now * 1e6 + 1e12 + 3 * CLOCKS_APART_SECONDS * 1e6)
    assert claim(cluster, ["p", 0, 9], since=late) == []


def test_copies_of_the_logs_of_whoever_asks_say_nothing() -> None:
    cluster, _ = filled()
    assert claim(cluster, ["p", 0, 9], to="b0") == [], "b1 asks about its own rows"
    assert claim(cluster, ["p", 0, 9], to="b0", epochs=(EPOCH,)) == []
    assert claim(cluster, ["p", 0, 9], to="b0", epochs=(EPOCH + 1, EPOCH + 2)) == [], "nor older ones than it names"


def test_copies_of_a_log_that_its_owner_does_not_know_any_more_count_like_others() -> None:
    cluster, _ = filled()
    assert [one[1:3] for one in claim(cluster, ["p", 0, 9], to="b0", epochs=(EPOCH - 5, EPOCH + 7))] == [[0, 5]]


def test_a_producer_that_is_asked_about_has_to_be_opened_again() -> None:
    cluster, client = filled()
    client.take()
    claim(cluster, ["p", 9, 10])
    client.send(stamped(4, 5, "f"))
    assert [error.code for error in client.of(Error)] == [ErrorCode.NOT_FOUND]


def test_an_opening_that_has_begun_is_given_up() -> None:
    cluster, _ = filled()
    client = cluster.connect("b1")
    cluster.hold("b1", "b0")
    client.send(Ask(7, "producer.open", {"producer": "p", "epoch": 1}))
    cluster.tell("b0", "b1", Control(CLAIM, [1, "b7", [], "quotes", 0, [["p", 5, 6]]]))
    assert [error.code for error in client.of(Error)] == [ErrorCode.UNAVAILABLE]


def test_a_producer_stays_open_where_all_of_it_was_known_when_it_was_opened() -> None:
    cluster, _ = filled()
    client, answer = opened(cluster, "b1")
    assert answer["next"] == 5
    assert claim(cluster, ["p", 0, 5], owner="b7") == [], "and nothing is looked for"
    client.send(stamped(1, 5, "f"))
    cluster.run(0.1)
    assert client.of(Error) == []
    assert [one[1:3] for one in claim(cluster, ["p", 5, 6], owner="b7")] == [[5, 6]]
    client.send(stamped(2, 6, "g"))
    assert [error.code for error in client.of(Error)] == [ErrorCode.NOT_FOUND]


def test_an_opening_that_waits_for_the_owner_himself_goes_on() -> None:
    cluster, _ = filled()
    client = cluster.connect("b1")
    cluster.hold("b1", "b0")
    client.send(Ask(7, "producer.open", {"producer": "p", "epoch": 1}))
    cluster.tell("b0", "b1", Control(CLAIM, [1, "b0", [], "quotes", 0, [["p", 5, 6]]]))
    assert client.of(Error) == []
    cluster.release()
    cluster.run(0.1)
    assert len(client.of(Answer)) == 1


def test_what_another_one_told_is_told_on() -> None:
    cluster, _ = filled()
    cluster.node("b1").claims.remember("quotes", [Span("p", 7, 9, 5, False, "b7"), Span("p", 9, 10, 5, False, "b0")])
    assert [one[1:3] for one in claim(cluster, ["p", 6, 10])] == [[7, 9]], "b0 knows what it has itself"


def test_who_asked_hears_nothing_when_the_link_ends() -> None:
    cluster, _ = filled()
    heard: list[list[Span]] = []
    node = cluster.node("b0")
    (info,) = node.cluster.linked()
    cluster.hold("b0", "b1")
    node.claims.ask(info, Owner("b0"), "quotes", 0, {"p": (0, 1)}, lambda spans, now: heard.append(spans), cluster.now)
    node.claims.link_down(info, cluster.now)
    node.claims.link_down(info, cluster.now)
    assert heard == [[]]
    node.effects.clear()


@pytest.mark.parametrize("kind", [CLAIM, CLAIMED])
@pytest.mark.parametrize(
    "body",
    [
        [],
        ["x"],
        [1, 2, 3],
        [1, "b0", [], "q", -1, []],
        [1, "b0", [], "q", 0, 5],
        [1, "b0", [], "q", 0, [["p", 3, 3]]],
        [1, "b0", [], "q", 0, [["", 0, 1]]],
        [1, "b0", 5, "q", 0, []],
        [1, "b0", ["5"], "q", 0, []],
        [1, "b0", [6, 5], "q", 0, []],
        [1, "b0", [-1], "q", 0, []],
        [1, True, [["p", -1]], []],
        [1, True, [], [["p", 5, 5, 1, False]]],
    ],
)
def test_words_that_make_no_sense_end_the_link(kind: int, body: list[Any]) -> None:
    cluster = LogCluster(2)
    assert any(isinstance(one, Error) for one in cluster.tell("b0", "b1", Control(kind, body)))
