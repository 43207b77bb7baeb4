"""Questions: what each ASK verb answers, what it refuses, and that no answer outgrows its frame."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.broker.core.clients.questions import VERBS
from headgate.broker.core.inputs import LinkPaused, Received
from headgate.broker.core.limits import Limits
from headgate.protocol.errors import ErrorCode
from headgate.protocol.limits import FRAME_LENGTH_MAX
from headgate.protocol.messages import Answer, Ask, Credit, Error, Hello, Hold
from headgate.protocol.wire import encode
from tests.support.builders import make_publish, make_subscribe, quote_batch
from tests.support.node_world import NodeWorld


def ask(world: NodeWorld, verb: str, **arguments: Any) -> Any:
    link = world.connect(name="asker")
    (answer,) = world.say(link, Ask(1, verb, arguments))
    assert isinstance(answer, Answer), answer
    return answer.value


def refusal(world: NodeWorld, verb: str, **arguments: Any) -> Error:
    (answer,) = world.say(world.connect(), Ask(1, verb, arguments))
    assert isinstance(answer, Error), answer
    return answer


def test_a_question_that_does_not_exist_is_told_which_do() -> None:
    error = refusal(NodeWorld(), "gossip")
    assert error.code == ErrorCode.BAD_REQUEST
    assert all(verb in error.text for verb in VERBS)


def test_status_is_the_statistics() -> None:
    world = NodeWorld()
    world.subscriber()
    status = ask(world, "status")
    assert (status["broker"], status["sessions"], status["subscriptions"]) == ("broker-1", 2, 1)


def test_streams_are_listed_by_name_with_what_happened_there() -> None:
    world = NodeWorld()
    world.subscriber(("quotes", "price > 1"), ("alerts", ""))
    world.say(world.connect(), make_publish(1, quote_batch(bodies=["a", "b"], price=[1, 2])))
    ask(world, "schema.put", stream="quotes", schema={})
    alerts, quotes = ask(world, "streams")
    assert quotes == {
        "stream": "quotes",
        "events": 2,
        "deliveries": 1,
        "subscriptions": 1,
        "publishers": 1,
        "attributes": ["price"],
        "schema": True,
        "durability": "memory",
        "placement": "anchored",
        "audit": False,
    }
    assert (alerts["stream"], alerts["events"], alerts["schema"]) == ("alerts", 0, False)


def test_a_stream_that_is_only_declared_is_listed_as_well() -> None:
    world = NodeWorld()
    world.node.streams.declare("trades", {"durability": "stored"})
    (row,) = ask(world, "streams")
    assert (row["stream"], row["events"], row["schema"], row["durability"]) == ("trades", 0, True, "stored")
    assert "trades" not in world.node.streams.by_name, "and takes no room"


def test_a_condition_that_is_not_served_yet_delivers_nothing() -> None:
    event = {"attrs": {"a": 1}}
    answer = ask(NodeWorld(), "explain", pattern="q", condition="XPATH '/x' AND a = 1", event=event)
    assert [row["verdict"] for row in answer["predicates"]] == ["later", "true"]
    assert (answer["verdict"], answer["delivered"]) == ("true", False)


def test_of_a_condition_with_delta_it_is_said_what_was_last_sent() -> None:
    world = NodeWorld()
    link = world.subscriber(("quotes", "DELTA(price) > 0.5 AND price > 0"), name="ann")
    world.say(link, make_publish(1, quote_batch("quotes/a", ["x"], price=[8])))
    asked = {"pattern": "quotes", "condition": "DELTA(price) > 0.5 AND price > 0"}
    (row,) = ask(world, "explain", **asked)["delta"]
    assert row == {
        "client": "ann", "subscription": 1, "topic": "quotes/a", "attributes": ["price"],
        "last": [8], "time": row["time"], "below": 7.5, "above": 8.5,
    }  # fmt: skip
    answer = ask(world, "explain", **asked, event={"topic": "quotes/b", "attrs": {"price": 9}})
    assert answer["delivered"] and [one["last"] for one in answer["delta"]] == [None]
    assert ask(world, "explain", pattern="quotes/a", condition="DELTA(price) > 0.5")["delta"] == []
    assert "delta" not in ask(world, "explain", pattern="quotes", condition="price > 0")


def test_of_a_rise_there_is_no_lower_trigger() -> None:
    world = NodeWorld()
    link = world.subscriber(("quotes", "RISE(price) > 25 PERCENT"), name="ann")
    world.say(link, make_publish(1, quote_batch("quotes/a", ["x"], price=[8])))
    (row,) = ask(world, "explain", pattern="quotes", condition="RISE(price) > 25 PERCENT")["delta"]
    assert (row["last"], row["below"], row["above"]) == ([8], None, 10)


def test_subscriptions_are_listed_in_pages() -> None:
    world = NodeWorld()
    link = world.subscriber(("quotes/*", "price > 8.30"), name="ann")
    world.say(link, make_subscribe(7, "quotes/x", exact=True))
    first, second = ask(world, "subs")
    assert (first["client"], first["subscription"], first["pattern"], first["connected"]) == (
        "ann",
        1,
        "quotes/*",
        True,
    )
    assert "price" in first["condition"] and first["subid"] is None
    assert (second["subscription"], second["exact"], second["condition"]) == (7, True, "")
    world.drop(link)
    assert ask(world, "subs", after=first["id"]) == [second | {"connected": False, "pace": "away"}]
    assert ask(world, "subs", after=second["id"]) == []
    assert refusal(world, "subs", after="x").code == ErrorCode.BAD_REQUEST


def test_a_subscription_shows_where_its_client_is_and_how_it_keeps_up() -> None:
    world = NodeWorld()
    world.feed(Received(50, [Hello(name="ann", credit=2)], "192.0.2.7:5000"))
    world.say(50, make_subscribe(1, "quotes"))
    publisher = world.connect()
    paces = []
    for number in range(1, 4):
        (row,) = ask(world, "subs")
        paces.append((row["pace"], row["credit"], row["waiting_events"]))
        world.say(publisher, make_publish(number, quote_batch(bodies=["a"], price=[1])))
    (row,) = ask(world, "subs")
    assert paces == [("ok", 2, 0), ("ok", 1, 0), ("no credit", 0, 0)]
    assert (row["address"], row["pace"], row["waiting_events"]) == ("192.0.2.7:5000", "no credit", 1)
    assert row["waiting_bytes"] > 0


def test_pace_says_what_a_client_waits_for() -> None:
    world = NodeWorld()
    link = world.subscriber(("quotes", ""))
    world.feed(LinkPaused(link))
    assert [row["pace"] for row in ask(world, "subs")] == ["blocked"]
    world.drop(link)
    assert [row["pace"] for row in ask(world, "subs")] == ["away"]


def test_a_full_subscription_is_told_and_counted_and_the_others_of_its_client_are_not() -> None:
    world = NodeWorld()
    link = world.subscriber(("quotes", ""), ("quotes", "price > 1"), name="two", credit=3)
    world.say(link, Hold(1, True))
    publisher = world.connect()
    world.say(publisher, make_publish(1, quote_batch(bodies=["a", "b"], price=[1, 2])))
    full, other = ask(world, "subs")
    assert (full["subscription"], full["pace"], full["waiting_events"]) == (1, "full", 2)
    assert (other["pace"], other["waiting_events"], other["waiting_bytes"]) == ("ok", 0, 0)
    assert full["waiting_bytes"] > 0
    assert [(row["client"], row["pace"], row["waiting_events"]) for row in ask(world, "slowest")] == [
        ("two", "full", 2)
    ]
    world.say(link, Hold(1, False))
    assert [(row["pace"], row["waiting_events"]) for row in ask(world, "subs")] == [("no credit", 0)] * 2
    assert ask(world, "slowest") == []


def test_the_slowest_clients_are_those_for_whom_most_waits() -> None:
    world = NodeWorld()
    world.subscriber(("quotes", ""), name="quick")
    world.subscriber(("quotes", ""), name="slow", credit=1)
    world.subscriber(("quotes", ""), name="slower", credit=0)
    publisher = world.connect()
    for number in range(1, 4):
        world.say(publisher, make_publish(number, quote_batch(bodies=["a"], price=[1])))
    rows = ask(world, "slowest")
    assert [(row["client"], row["waiting_events"], row["pace"]) for row in rows] == [
        ("slower", 3, "no credit"),
        ("slow", 2, "no credit"),
    ]


def test_streams_and_subscriptions_of_one_stream_alone() -> None:
    world = NodeWorld()
    world.subscriber(("quotes", ""), ("alerts", ""))
    assert [row["stream"] for row in ask(world, "subs", stream="alerts")] == ["alerts"]
    assert [row["stream"] for row in ask(world, "streams", stream="alerts")] == ["alerts"]
    assert ask(world, "subs", stream="none") == []
    assert refusal(world, "subs", stream=5).code == refusal(world, "streams", stream=5).code == ErrorCode.BAD_REQUEST


def test_a_page_has_so_many_rows_and_no_more() -> None:
    world = NodeWorld(limits=Limits(answer_rows=3))
    world.subscriber(*[(f"stream{number}", "") for number in range(8)])
    assert len(ask(world, "streams")) == 3
    seen: list[int] = []
    while page := ask(world, "subs", after=seen[-1] if seen else 0):
        assert len(page) <= 3
        seen += [row["id"] for row in page]
    assert len(seen) == len(set(seen)) == 8


@pytest.mark.slow
def test_pages_of_the_longest_conditions_fit_a_frame() -> None:
    world = NodeWorld()
    link = world.connect()
    long = "symbol = '" + "ΔΕΗ" * 600 + "'"
    for number in range(1, 1_000):
        world.say(link, make_subscribe(number, f"quotes/{'x' * 1_000}", f"{long} AND price > {number}"))
    seen = 0
    while page := ask(world, "subs", after=seen):
        assert len(encode(Answer(1, page))) < FRAME_LENGTH_MAX
        seen = page[-1]["id"]
    assert seen == 999


# --- explain ----------------------------------------------------------------------------------------------------------


def test_explain_says_what_a_subscription_means_and_where_it_lives() -> None:
    answer = ask(NodeWorld(), "explain", pattern="quotes/*/OTE", condition="price > 8.30")
    assert (answer["stream"], answer["pattern"], answer["exact"]) == ("quotes", "quotes/*/OTE", False)
    assert answer["attributes"] == ["price"]
    assert answer["lives_on"] == ["broker-1"]
    assert answer["spark"]
    assert "verdict" not in answer


def test_explain_says_what_a_subscriber_checks_of_documents() -> None:
    answer = ask(NodeWorld(), "explain", pattern="feeds", condition="price > 1 AND XPATH '//entry[title]'")
    xpath = "boolean(//*[local-name()='entry'][*[local-name()='title']])"
    assert answer["checks"] == [[xpath, ["n/entry", "n/title", "s/entry/title"]]]
    assert answer["attributes"] == ["#structure/1024/1", "price"]


def test_explain_gives_the_verdict_of_each_predicate() -> None:
    event = {"topic": "quotes/NYSE/OTE", "attrs": {"price": 8.5}}
    condition = "price > 8.30 AND volume > 1000 AND price < 1"
    answer = ask(NodeWorld(), "explain", pattern="quotes", condition=condition, event=event)
    assert [row["verdict"] for row in answer["predicates"]] == ["true", "unknown", "false"]
    assert (answer["verdict"], answer["topic_matches"], answer["delivered"]) == ("false", True, False)


@pytest.mark.parametrize(
    ("pattern", "event", "delivered"),
    [
        ("quotes", {"topic": "quotes/x"}, True),
        ("quotes", {"topic": "alerts/x"}, False),
        ("quotes", {}, True),
        ("quotes", {"topic": 5}, False),
    ],
)
def test_without_a_condition_the_topic_decides(pattern: str, event: dict[str, Any], delivered: bool) -> None:
    assert ask(NodeWorld(), "explain", pattern=pattern, event=event)["delivered"] is delivered


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, ErrorCode.BAD_REQUEST),
        ({"pattern": 5}, ErrorCode.BAD_REQUEST),
        ({"pattern": "quotes", "condition": 5}, ErrorCode.BAD_REQUEST),
        ({"pattern": "quotes/#"}, ErrorCode.BAD_PATTERN),
        ({"pattern": "quotes", "condition": "price >"}, ErrorCode.BAD_CONDITION),
        ({"pattern": "quotes", "event": []}, ErrorCode.BAD_REQUEST),
        ({"pattern": "quotes", "event": {"attrs": []}}, ErrorCode.BAD_REQUEST),
        ({"pattern": "quotes", "event": {"topic": "quotes//x"}}, ErrorCode.BAD_TOPIC),
    ],
)
def test_explain_refuses_what_it_cannot_read(arguments: dict[str, Any], code: ErrorCode) -> None:
    assert refusal(NodeWorld(), "explain", **arguments).code == code


def test_explain_takes_attributes_of_any_kind() -> None:
    event = {"attrs": {"price": [1], "volume": {"a": b"x"}, "big": 2**63}}
    condition = "price > 1 OR volume > 1 OR big > 1"
    answer = ask(NodeWorld(), "explain", pattern="quotes", condition=condition, event=event)
    assert answer["verdict"] == "unknown"


# --- schemas ----------------------------------------------------------------------------------------------------------

SCHEMA = {"attributes": {"price": {"type": "float", "min": 0, "max": 1.5, "precision": 0.01}, "live": {"type": "bool"}}}


def test_a_schema_is_put_got_listed_and_removed() -> None:
    world = NodeWorld()
    ask(world, "schema.put", stream="quotes", schema=SCHEMA)
    ask(world, "schema.put", stream="alerts", schema={})
    assert ask(world, "schema.get", stream="quotes") == {"stream": "quotes", "schema": SCHEMA, "defaults": {}}
    assert [row["stream"] for row in ask(world, "schema.list")] == ["alerts", "quotes"]
    assert ask(world, "schema.rm", stream="quotes")["schema"] == SCHEMA
    assert refusal(world, "schema.get", stream="quotes").code == ErrorCode.NOT_FOUND
    assert refusal(world, "schema.rm", stream="quotes").code == ErrorCode.NOT_FOUND


@pytest.mark.parametrize(
    ("schema", "word"),
    [
        (None, "attributes"),
        ({"attributes": []}, "attributes"),
        ({"attributes": {"a": 5}}, "type"),
        ({"attributes": {"a": {"type": "date"}}}, "float"),
        ({"attributes": {"a": {"type": "int", "unit": "m"}}}, "unit"),
        ({"attributes": {"a": {"type": "int", "min": "0"}}}, "min"),
        ({"attributes": {"a": {"type": "int", "min": True}}}, "min"),
        ({"attributes": {"a": {"type": "int", "min": 2, "max": 2}}}, "below"),
        ({"attributes": {"a": {"type": "float", "min": 0, "max": float("nan")}}}, "finite"),
        ({"attributes": {"a": {"type": "float", "min": 0, "max": float("inf")}}}, "finite"),
        ({"attributes": {"a": {"type": "float", "min": 0, "max": 1, "precision": 0}}}, "above 0"),
        ({"attributes": {"a": {"type": "float", "min": 0, "max": 1, "precision": 1e-300}}}, "2^48 steps"),
        ({"attributes": {}, "replicas": 3}, "there are attributes, durability"),
        ({"audit": True, "durability": "memory"}, "leave durability out"),
        ({"attributes": {str(number): {"type": "int"} for number in range(257)}}, "256"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_schema_that_makes_no_sense_is_refused_and_not_kept(schema: Any, word: str) -> None:
    world = NodeWorld()
    assert word in refusal(world, "schema.put", stream="quotes", schema=schema).text
    assert ask(world, "schema.list") == []


def test_a_second_put_is_merged_and_says_what_it_changed() -> None:
    world = NodeWorld()
    stored = {"durability": "stored", "retention_seconds": 60, "attributes": {"live": {"type": "bool"}}}
    ask(world, "schema.put", stream="quotes", schema=stored)
    price = {"type": "float", "min": 0, "max": 1024}
    answer = ask(world, "schema.put", stream="quotes", schema={"attributes": {"price": price}, "retention_seconds": 90})
    wanted = {"durability": "stored", "retention_seconds": 90, "attributes": {"live": {"type": "bool"}, "price": price}}
    assert answer["schema"] == ask(world, "schema.get", stream="quotes")["schema"] == wanted
    assert answer["changed"] == {
        "retention_seconds": {"old": 60, "new": 90},
        "attributes.price": {"old": None, "new": price},
    }
    assert answer["defaults"] == {"attributes": {"price": {"precision": 2**-10}}}
    answer = ask(world, "schema.put", stream="quotes", schema={"durability": "stored"}, replace=True)
    assert answer["schema"] == {"durability": "stored"} and "attributes.live" in answer["changed"]
    assert "replace" in refusal(world, "schema.put", stream="quotes", schema={}, replace="yes").text


@pytest.mark.parametrize("replace", [False, True])
def test_a_stored_stream_is_not_made_one_in_memory_by_leaving_something_out(replace: bool) -> None:
    world = NodeWorld()
    ask(world, "schema.put", stream="quotes", schema={"durability": "stored"})
    given = {"attributes": {}} if replace else {"durability": None}
    error = refusal(world, "schema.put", stream="quotes", schema=given, replace=replace)
    assert 'say "durability": "stored", or "memory" if you want that' in error.text
    assert ask(world, "schema.get", stream="quotes")["schema"] == {"durability": "stored"}
    given = {"durability": "memory"}
    assert ask(world, "schema.put", stream="quotes", schema=given, replace=replace)["schema"] == given


@pytest.mark.parametrize("shut_out", ["", "another broker has its name"])
def test_whoever_has_not_heard_of_the_schemas_yet_waits_and_merges_then(
    monkeypatch: pytest.MonkeyPatch, shut_out: str
) -> None:
    world, known, reason = NodeWorld(), [False], [""]
    publishers, link = world.node.publishers, world.connect()
    monkeypatch.setattr(publishers, "_knows", False)
    monkeypatch.setattr(world.node.cluster, "knows_streams", lambda now: known[0])
    monkeypatch.setattr(world.node.cluster, "shut_out", lambda now: reason[0])
    put = Ask(1, "schema.put", {"stream": "quotes", "schema": SCHEMA})
    assert world.say(link, put) == [] and world.node.streams.schemas == {}
    publishers.go_on(world.now)
    known[0], reason[0] = not shut_out, shut_out
    publishers.go_on(world.now)
    (answer,) = [one for one in world.say(link, Credit(1000, 0)) if isinstance(one, Answer | Error)]
    if shut_out:
        assert isinstance(answer, Error) and answer.code == ErrorCode.UNAVAILABLE and shut_out in answer.text
    else:
        assert isinstance(answer, Answer) and world.node.streams.schemas == {"quotes": SCHEMA}


@pytest.mark.parametrize("stream", [None, 5, "", "a/b", "*", "\x00"])
def test_a_name_that_is_no_stream_is_refused(stream: Any) -> None:
    world = NodeWorld()
    for verb in ("schema.put", "schema.get", "schema.rm"):
        assert refusal(world, verb, stream=stream, schema={}).code in (ErrorCode.BAD_REQUEST, ErrorCode.BAD_TOPIC)


def test_schemas_are_bounded() -> None:
    world = NodeWorld(limits=Limits(schemas=1))
    ask(world, "schema.put", stream="a", schema={})
    assert refusal(world, "schema.put", stream="b", schema={}).code == ErrorCode.LIMIT
    assert ask(world, "schema.put", stream="a", schema=SCHEMA)["schema"] == SCHEMA
