"""Survey: one question tells which logs there are in the cluster, who has them, and who could not be asked."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.broker.core.clients.messages import Inquire
from headgate.broker.core.inputs import Opened
from headgate.broker.core.limits import LOGS_PAGE_MIN, Limits
from headgate.broker.core.log_state import LogState
from headgate.protocol.data import LogName
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Answer, Ask, Error
from tests.support.log_cluster import LogCluster
from tests.support.log_disk import EPOCH
from tests.support.log_world import LogWorld


def holders(answer: dict[str, Any]) -> dict[str, list[str]]:
    """Who has each log."""
    found: dict[str, list[str]] = {}
    for row in answer["logs"]:
        found.setdefault(row["broker"], []).append(row["holder"])
    return found


def test_any_broker_tells_of_all_logs_and_who_has_them() -> None:
    cluster = LogCluster(3)
    for name in ("b0", "b2"):
        cluster.store(cluster.connect(name), name)
    cluster.run(1.0)
    answers = [cluster.ask(cluster.connect(name), "survey", stream="quotes") for name in ("b0", "b1", "b2")]
    assert answers[0] == answers[1] == answers[2]
    (answer, *_) = answers
    found = holders(answer)
    assert set(found) == {"b0", "b2"} and all(len(names) == 2 and name in names for name, names in found.items())
    assert answer["total"] == 4 and {row["next"] for row in answer["logs"]} == {1}
    assert (answer["stored"], answer["copies"], answer["away"]) == (True, 2, [])
    assert set(answer["brokers"]) == {"b0", "b1", "b2"} and all(answer["brokers"].values())
    other = cluster.ask(cluster.connect("b1"), "survey", stream="memory")
    assert (other["logs"], other["total"], other["stored"]) == ([], 0, False)


def test_who_did_not_answer_is_away() -> None:
    cluster = LogCluster(3)
    cluster.store(cluster.connect("b2"), "a")
    cluster.run(1.0)
    client = cluster.connect("b0")
    cluster.kill("b2")
    cluster.run(5.0)
    answer = cluster.ask(client, "survey", stream="quotes")
    assert answer["away"] == ["b2"] and "b2" not in answer["brokers"]
    assert holders(answer)["b2"] != ["b2"], "a copy is told of"


def test_who_dies_while_it_is_asked_holds_nobody_up() -> None:
    cluster = LogCluster(3)
    client = cluster.connect("b0")
    client.send(Ask(1, "survey", {"stream": "quotes"}))
    cluster.kill("b2")
    cluster.run(8.0)
    (answer,) = client.of(Answer)
    assert answer.value["away"] == ["b2"]


def test_those_who_ask_at_a_time_share_a_round() -> None:
    cluster = LogCluster(2)
    clients = [cluster.connect("b0") for _ in range(50)]
    node, asked = cluster.node("b0"), []
    tell = node.cluster.tell

    def count(info: Any, message: Any, now: float) -> None:
        asked.append(message)
        tell(info, message, now)

    node.cluster.tell = count  # type: ignore[method-assign]
    for client in clients:
        client.send(Ask(1, "survey", {"stream": "quotes"}))
    cluster.run(2.0)
    assert all(len(client.of(Answer)) == 1 for client in clients)
    assert sum(isinstance(message, Inquire) for message in asked) == 2, "the first, and all who came meanwhile"


def test_a_long_list_comes_in_pages_from_each_and_to_the_client() -> None:
    world = LogWorld(limits=Limits(answer_rows=LOGS_PAGE_MIN))
    count = 2 * LOGS_PAGE_MIN + 3
    world.feed(Opened(EPOCH, [LogState(LogName("ann", epoch, 0, "q"), 0, 1, 1, 1, 1) for epoch in range(count)]))
    link, rows = world.connect(), list[Any]()
    while True:
        answer = world.ask(link, "survey", stream="q", after=len(rows))
        assert answer["total"] == count and len(answer["logs"]) <= LOGS_PAGE_MIN
        rows += answer["logs"]
        if len(rows) == count:
            break
    assert [row["epoch"] for row in rows] == list(range(count)) and answer["away"] == ["ann"]


@pytest.mark.parametrize("arguments", [{"kind": "gossip"}, {"stream": 7}, {"after": -1}, {"after": "x"}, {"kind": []}])
def test_what_is_no_survey_is_refused(arguments: dict[str, Any]) -> None:
    world = LogWorld(prompt=True)
    (error,) = world.say(world.connect(), Ask(1, "survey", arguments))
    assert isinstance(error, Error) and error.code == ErrorCode.BAD_REQUEST
