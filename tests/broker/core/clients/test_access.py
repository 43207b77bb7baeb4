"""What each user may ask and do at a broker, in a cluster, and within the limits of its roles."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.broker.core.inputs import Admitted, Governed
from headgate.broker.core.rights import Member, Policy, read_roles
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Ended, Error, Gap, Hello, Suback, Welcome
from tests.support.builders import deliveries_of, make_publish, make_subscribe, quote_batch
from tests.support.log_world import LogWorld
from tests.support.node_cluster import NodeCluster

ROLES: dict[str, Any] = {
    "trader": {
        "publish": [{"pattern": "orders"}],
        "subscribe": [
            {"pattern": "quotes/NYSE", "where": "p < 10"},
            {"pattern": "quotes/*/OTE"},
            {"pattern": "quotes/LSE", "where": "p > 100"},
        ],
        "durable": ["t-*"],
        "deny": {"subscribe": [{"pattern": "quotes/NYSE/SECRET"}]},
    },
    "feed": {"publish": [{"pattern": "quotes"}]},
    "few": {"subscribe": [{"pattern": "quotes"}], "connections": 1, "subscriptions": 2},
    "op": {"admin": True},
    "au": {"audit": True},
}
USERS = {name: Member((name,), frozenset({"pw"})) for name in ROLES}


def policy(version: str = "1", **roles: Any) -> Policy:
    return Policy(USERS, read_roles({"roles": {**ROLES, **roles}}), version)


def enter(world: LogWorld, user: str, credential: str = "pw") -> tuple[int, Any]:
    world.feed(Admitted(world._links + 1, user, credential))
    link, answers = world.dial(Hello(name=user))
    return link, answers[0]


def test_in_a_ring_the_right_rests_with_the_subscription_wherever_that_is() -> None:
    cluster = NodeCluster(6)
    for host in cluster.hosts.values():
        cluster.feed(host, Governed(policy()))
    cluster.run(3.0)
    assert not any(
        note.event == "users and roles differ" for host in cluster.hosts.values() for note in host.notes[-3:]
    )
    trader, feed = cluster.connect("b1", "trader"), cluster.connect("b4", "feed")
    for number, (pattern, condition) in enumerate([("quotes", ""), ("quotes/NYSE", "p > 2"), ("quotes/*/OTE", "")], 1):
        trader.subscribe(number, pattern, condition)
    cluster.until(lambda: len(trader.of(Suback)) == 3, 20.0)
    trader.take()
    rows = [
        ("quotes/NYSE/OTE", 5),
        ("quotes/NYSE/OTE", 50),
        ("quotes/NYSE/IBM", 5),
        ("quotes/NYSE/IBM", 50),
        ("quotes/NYSE/SECRET", 5),
        ("quotes/LSE", 500),
        ("quotes/LSE/OTE", 1),
        ("quotes/LSE/IBM", 5),
        ("quotes", 5),
    ]
    lying = quote_batch(
        [topic for topic, _ in rows], [str(row) for row in range(len(rows))], p=[price for _, price in rows]
    )
    lying.columns["p"] = quote_batch(["quotes"] * 9, [*"abcdefghi"], p=[5] * 9).columns["p"]
    lying.columns["#level/1"] = quote_batch(["quotes"] * 9, [*"abcdefghi"], x=["LSE"] * 9).columns["x"]
    feed.publish(lying)
    cluster.run(2.0)
    want = {1: [0, 1, 2, 5, 6], 2: [0, 2], 3: [0, 1, 6]}
    # Of NYSE only what costs less than 10, but OTE always.
    want[2] = [0, 1, 2]
    assert {number: sorted(int(body) for one, body in trader.bodies if one == number) for number in want} == want


def test_brokers_tell_each_other_by_which_users_they_let_in() -> None:
    cluster = NodeCluster(3)
    for host in cluster.hosts.values():
        cluster.feed(host, Governed(policy("one")))
    cluster.feed(cluster.hosts["b1"], Governed(policy("two")))
    cluster.run(1.0)
    operator = cluster.connect("b0", "op")
    from headgate.protocol.messages import Answer, Ask

    operator.send(Ask(1, "ring", {}))
    (answer,) = operator.of(Answer)
    told = {broker["name"]: broker["users_and_roles"] for broker in answer.value["brokers"]}
    assert told == {"b0": "one", "b1": "two", "b2": "one"}
    differ = [note for note in cluster.hosts["b0"].notes if note.event == "users and roles differ"]
    assert differ and differ[-1].facts["theirs"] == "two" and differ[-1].alarming


@pytest.mark.parametrize(
    ("user", "may", "may_not"),
    [
        ("trader", {"durables"}, {"status", "ring", "subs", "streams", "schema.list", "logs", "producers.forget"}),
        ("feed", {"durables"}, {"status", "subs"}),
        ("op", {"status", "ring", "subs", "streams", "slowest", "schema.list", "logs", "durables"}, {"producer.open"}),
        ("au", {"ring", "streams", "logs", "durables", "schema.list"}, {"status", "subs", "slowest"}),
    ],
)
def test_who_may_ask_what(user: str, may: set[str], may_not: set[str]) -> None:
    world = LogWorld(prompt=True)
    world.feed(Governed(policy()))
    link, _ = enter(world, user)
    for verb in may | may_not:
        answer = world.ask(link, verb)
        refused = isinstance(answer, Error) and answer.code == ErrorCode.FORBIDDEN
        assert refused == (verb in may_not), (verb, answer)


def test_nobody_is_somebody_else_in_a_question() -> None:
    world = LogWorld(prompt=True)
    world.feed(Governed(policy()))
    link, _ = enter(world, "trader")
    answer = world.ask(link, "durables", user="op")
    assert isinstance(answer, Error) and answer.code == ErrorCode.BAD_REQUEST
    assert world.ask(link, "survey", stream="quotes", kind="deliveries").code == ErrorCode.FORBIDDEN
    assert world.ask(link, "schema.get", stream="quotes")["stream"] == "quotes"
    assert world.ask(link, "schema.get", stream="secrets").code == ErrorCode.FORBIDDEN
    said = world.say(link, make_subscribe(7, "quotes", "", durable="t-1", dead_letter="quotes/dead"))
    assert [one.code for one in said if isinstance(one, Error)] == [ErrorCode.FORBIDDEN]
    said = world.say(link, make_subscribe(7, "quotes", "", durable="t-1", user="op"))
    assert [one.code for one in said if isinstance(one, Error)] == [ErrorCode.BAD_REQUEST]


def test_who_is_not_admitted_or_shows_what_is_gone_stays_out() -> None:
    world = LogWorld(prompt=True)
    world.feed(Governed(policy()))
    assert isinstance(world.dial(Hello())[1][0], Error)
    for user, credential in (("trader", "old"), ("gone", "pw")):
        said = enter(world, user, credential)[1]
        assert isinstance(said, Error) and said.code == ErrorCode.UNAUTHORISED
    assert isinstance(enter(world, "trader")[1], Welcome)


def test_limits_of_a_role_are_of_each_user() -> None:
    world = LogWorld(prompt=True)
    world.feed(Governed(policy()))
    first, _ = enter(world, "few")
    said = enter(world, "few")[1]
    assert isinstance(said, Error) and said.code == ErrorCode.TOO_MANY
    answers = [world.say(first, make_subscribe(number))[-1] for number in (1, 2, 3)]
    assert [type(one) for one in answers] == [Suback, Suback, Error] and answers[2].code == ErrorCode.LIMIT  # type: ignore[union-attr]
    world.drop(first)
    assert isinstance(enter(world, "few")[1], Welcome)


def test_what_waits_for_a_subscription_goes_with_the_right_to_it() -> None:
    world = LogWorld(prompt=True)
    world.feed(Governed(policy()))
    feed, _ = enter(world, "feed")
    world.feed(Admitted(world._links + 1, "few", "pw"))
    slow, _ = world.dial(Hello(name="slow", credit=1))
    for number, pattern in ((1, "quotes/a"), (2, "quotes/b")):
        world.say(slow, make_subscribe(number, pattern))
    for sequence in range(1, 7):
        batch = quote_batch(["quotes/a", "quotes/b"], [f"a{sequence}", f"b{sequence}"])
        world.say(feed, make_publish(sequence, batch))
    got = deliveries_of(world.take(slow))
    world.feed(Governed(policy("2", few={"subscribe": [{"pattern": "quotes/b"}]})))
    said = world.take(slow)
    assert [(one.subscription, one.code) for one in said if isinstance(one, Ended)] == [(1, ErrorCode.FORBIDDEN)]
    world.grant(slow, 1 << 30, len(got))
    rest = deliveries_of(world.take(slow)) + deliveries_of(said)
    assert {number for number, _ in got + rest} >= {2} and 1 not in {number for number, _ in rest}
    world.feed(Governed(policy("3", few={"subscribe": [{"pattern": "quotes/b", "where": "p = 1"}]})))
    assert [one.subscription for one in world.take(slow) if isinstance(one, Gap)] == [2]
