"""Inquiries: a client sees every broker through the one that it is connected to, and nobody waits for ever."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.broker.core.clients import inquiries
from headgate.broker.core.clients.inquiries import COORDINATED, INQUIRED
from headgate.broker.core.deferred import Deferred
from headgate.broker.core.limits import INQUIRY_SECONDS_MAX, Limits
from headgate.protocol.errors import ErrorCode
from headgate.protocol.limits import PAGE_LENGTH_MAX
from headgate.protocol.messages import Answer, Ask, Control, Error
from headgate.protocol.wire import decode, encode
from tests.support.node_cluster import Client, NodeCluster

INQUIRE, ANSWERED = 40, 41


@pytest.fixture(scope="module")
def cluster() -> NodeCluster:
    return NodeCluster(3)


def ask(client: Client, verb: str, **arguments: Any) -> Answer | Error:
    """The answer, once it has come."""
    client.take()
    client.send(Ask(1, verb, arguments))
    client.cluster.until(lambda: bool(client.of(Answer) or client.of(Error)), 10.0)
    (answer,) = client.take()
    assert isinstance(answer, Answer | Error)
    return answer


def value_of(answer: Answer | Error) -> Any:
    assert isinstance(answer, Answer), answer
    return answer.value


def test_every_broker_is_asked_through_one(cluster: NodeCluster) -> None:
    client = cluster.connect("b0")
    assert [value_of(ask(client, "status", at=f"b{number}"))["broker"] for number in range(3)] == ["b0", "b1", "b2"]
    assert value_of(ask(client, "ring", at="b2"))["broker"] == "b2"
    assert value_of(ask(client, "cubes", at="b1", stream="library", columns={})) == []
    for verb in INQUIRED - COORDINATED - {"status", "ring", "cubes"}:
        assert value_of(ask(client, verb, at="b1")) == []


def test_a_page_of_another_broker_is_its_own_page(cluster: NodeCluster) -> None:
    subscriber, client = cluster.connect("b1"), cluster.connect("b0")
    for number in range(1, 4):
        subscriber.subscribe(number, f"quotes/{number}")
    cluster.run(1.0)
    rows = value_of(ask(client, "subs", at="b1"))
    assert [row["pattern"] for row in rows] == ["quotes/1", "quotes/2", "quotes/3"]
    assert {row["client"] for row in rows} == {"client of b1"}
    assert value_of(ask(client, "subs", at="b1", after=rows[0]["id"])) == rows[1:]
    assert value_of(ask(client, "subs")) == []
    cluster.disconnect(subscriber)
    cluster.run(15.0)


def test_a_broker_that_nobody_knows_and_a_verb_that_changes_something(cluster: NodeCluster) -> None:
    client = cluster.connect("b0")
    error = ask(client, "subs", at="b7")
    assert isinstance(error, Error) and error.code == ErrorCode.NOT_FOUND and "headgate ring" in error.text
    assert isinstance(ask(client, "subs", at=7), Error)
    (answer,) = cluster.tell("b0", "b1", Control(INQUIRE, [9, "schema.rm", {"stream": "q"}]))
    assert isinstance(answer, Control) and list(answer.body)[:2] == [9, ErrorCode.BAD_REQUEST]


def test_what_another_broker_refuses_is_refused_in_its_words(cluster: NodeCluster) -> None:
    error = ask(cluster.connect("b0"), "subs", at="b1", after="x")
    assert isinstance(error, Error) and error.code == ErrorCode.BAD_REQUEST and "last subscription" in error.text


@pytest.mark.parametrize("body", [[], [1, 2], [1, 2, {}], ["1", "subs", {}], [1, "subs", []]], ids=str)
def test_an_inquiry_that_is_none_ends_the_link(body: list[Any]) -> None:
    cluster = NodeCluster(2)
    cluster.tell("b0", "b1", Control(INQUIRE, body))
    assert not cluster.linked("b1", "b0")


@pytest.mark.parametrize("body", [[], [1, 2], ["1", 0, []], [1, None, []]], ids=str)
def test_an_answer_that_is_none_ends_the_link(body: list[Any]) -> None:
    cluster = NodeCluster(2)
    cluster.tell("b0", "b1", Control(ANSWERED, body))
    assert not cluster.linked("b1", "b0")


def test_an_answer_that_nobody_waits_for_is_nothing() -> None:
    cluster = NodeCluster(2)
    cluster.tell("b0", "b1", Control(ANSWERED, [77, 0, []]))
    assert cluster.linked("b1", "b0")


def test_a_broker_that_dies_is_no_longer_waited_for() -> None:
    cluster = NodeCluster(3)
    client = cluster.connect("b0")
    cluster.hold("b0", "b1")
    client.send(Ask(1, "status", {"at": "b1"}))
    cluster.kill("b1")
    cluster.until(lambda: bool(client.of(Error)), 1.0)
    (error,) = client.of(Error)
    assert error.code == ErrorCode.UNAVAILABLE and "b1 did not answer" in error.text
    error_after = ask(client, "status", at="b1")
    assert isinstance(error_after, Error) and error_after.code == ErrorCode.UNAVAILABLE
    assert "b1 is down" in error_after.text


def test_a_broker_that_never_answers_is_given_up_and_not_asked_on_and_on(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = NodeCluster(2, limits=Limits(inquiries_per_broker=2))
    monkeypatch.setattr("headgate.broker.core.node.answer_of", lambda node, verb, arguments, now: Deferred())
    client = cluster.connect("b0")
    before = cluster.now
    for _ in range(2):
        error = ask(client, "status", at="b1")
        assert isinstance(error, Error) and error.code == ErrorCode.UNAVAILABLE and "no answer" in error.text
    assert cluster.now - before == pytest.approx(2 * INQUIRY_SECONDS_MAX, abs=0.1)
    error = ask(client, "status", at="b1")
    assert isinstance(error, Error) and error.code == ErrorCode.LIMIT
    (refused,) = cluster.tell("b0", "b1", Control(INQUIRE, [99, "status", {}]))
    assert isinstance(refused, Control) and list(refused.body)[1] == ErrorCode.LIMIT, "nor does it let itself be asked"
    cluster.cut("b0", "b1")
    cluster.run(2.0)
    assert cluster.linked("b0", "b1") and cluster.linked("b1", "b0")
    assert not cluster.node("b0").inquiries._open, "and a new link begins anew"


def test_an_answer_that_fits_no_message_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = NodeCluster(2)
    client = cluster.connect("b0")
    monkeypatch.setattr("headgate.broker.core.node.answer_of", lambda *_: [{"a": "x" * 2**20}])
    error = ask(client, "subs", at="b1")
    assert isinstance(error, Error) and error.code == ErrorCode.LIMIT and "ask that broker itself" in error.text


def test_the_longest_answer_fits_a_control() -> None:
    answer = [{"a": "𝄞" * (inquiries.INQUIRY_LENGTH_MAX // 4 - 4)}]
    assert len(repr(answer).encode()) <= inquiries.INQUIRY_LENGTH_MAX
    message = Control(ANSWERED, [2**60, 0, answer])
    assert len(encode(message)) < PAGE_LENGTH_MAX
    assert decode(encode(message)) == message, "and a text may fill it"
