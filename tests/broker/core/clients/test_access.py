"""What each user may ask and do at a broker, in a cluster, and within the limits of its roles."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.inputs import Admitted, Governed, WallClock
from headgate.broker.core.limits import TOKENS_LOOK_SECONDS
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


# --- web tokens: others name users, and their roles -------------------------------------------------------------------

KEY = "key:1"
WALL = 1_800_000_000.0


def issued(**roles: Any) -> Policy:
    return Policy(USERS, read_roles({"roles": {**ROLES, **roles}}), "1", frozenset({KEY}))


def web_world() -> LogWorld:
    world = LogWorld(prompt=True)
    world.feed(WallClock(WALL - world.now))
    world.feed(Governed(issued()))
    return world


def come(world: LogWorld, user: str, roles: tuple[str, ...], ends: float = 60.0, **hello: Any) -> tuple[int, Any]:
    """With a token that is good for so many seconds."""
    offset = world.node.clock.offset
    world.feed(Admitted(world._links + 1, user, KEY, roles, world.now + offset + ends))
    link, answers = world.dial(Hello(name=user, **hello))
    return link, answers[0]


def test_a_web_token_says_which_roles_its_user_has() -> None:
    world = web_world()
    link, said = come(world, "zoe", ("few", "gone", "few"))
    assert isinstance(said, Welcome)
    answers = [world.say(link, make_subscribe(number))[-1] for number in (1, 2, 3)]
    assert [type(one) for one in answers] == [Suback, Suback, Error]
    assert world.ask(link, "status").code == ErrorCode.FORBIDDEN
    # Whom the file knows as an operator has the roles of its token all the same, and nothing else.
    named, _ = come(world, "op", ("feed",))
    assert world.ask(named, "status").code == ErrorCode.FORBIDDEN
    none, said = come(world, "yan", ())
    assert isinstance(said, Welcome)
    assert world.say(none, make_subscribe(1))[-1].code == ErrorCode.FORBIDDEN  # type: ignore[union-attr]
    # Roles of the file may change under it, and so may the keys.
    world.feed(Governed(issued(few={"publish": [{"pattern": "quotes"}]})))
    assert {one.subscription for one in world.take(link) if isinstance(one, Ended)} == {1, 2}
    world.feed(Governed(policy("2")))
    gone = [one for one in world.take(link) if isinstance(one, Error)]
    assert [one.code for one in gone] == [ErrorCode.UNAUTHORISED] and "no longer good" in gone[0].text
    assert isinstance(come(world, "zoe", ("few",))[1], Error), "another key is none of ours"


def test_a_session_goes_on_with_the_next_token_and_ends_with_the_last() -> None:
    world = web_world()
    link, said = come(world, "zoe", ("few",), ends=10)
    world.wake_at(world.now + 9.9)
    assert world.node.subscribers.by_link[link].user == "zoe" and not world.take(link)
    world.drop(link)
    link, resumed = come(world, "zoe", ("few",), ends=10, session=said.session)
    assert resumed.resumed
    world.wake_at(world.now + 9.9)
    assert link in world.node.subscribers.by_link
    began = world.now
    world.wake_at(began + 0.1 + TOKENS_LOOK_SECONDS)
    (error,) = [one for one in world.take(link) if isinstance(one, Error)]
    assert error.code == ErrorCode.UNAUTHORISED and "the token of zoe has expired" in error.text
    assert link in world.closed and not world.node.subscribers.by_key
    world.wake_at(world.now + 60)
    assert world.node.clients._first_end == float("inf")


def test_under_other_roles_a_session_does_not_go_on_with_what_the_former_ones_allowed() -> None:
    world = web_world()
    feed, _ = enter(world, "feed")
    link, said = come(world, "zoe", ("few",))
    world.say(link, make_subscribe(1))
    world.drop(link)
    world.say(feed, make_publish(1, quote_batch(["quotes"], ["while it was away"])))
    for user, roles in (("zoe", ("feed",)), ("zoe", ("few", "feed")), ("few", ("few",))):
        other, welcome = come(world, user, roles, session=said.session)
        assert not welcome.resumed and welcome.session != said.session
        world.drop(other)
    # Nor with a password of the user of the file that has the same name.
    named, first = come(world, "few", ("few",))
    world.drop(named)
    world.feed(Admitted(world._links + 1, "few", "pw"))
    assert not world.dial(Hello(name="few", session=first.session))[1][0].resumed  # type: ignore[attr-defined]
    world.feed(Admitted(world._links + 1, "zoe", KEY, ("few",), WALL + 60))
    answers = world.dial(Hello(name="zoe", session=said.session))[1]
    assert isinstance(answers[0], Welcome) and answers[0].resumed
    assert deliveries_of(answers) == [(1, "while it was away")]


def test_a_durable_subscription_is_of_a_user_of_the_file() -> None:
    world = web_world()
    stranger, _ = come(world, "zoe", ("trader",))
    (error,) = world.say(stranger, make_subscribe(1, "quotes/NYSE", "", durable="t-1"))
    assert isinstance(error, Error) and error.code == ErrorCode.FORBIDDEN and "file of users" in error.text
    known, _ = come(world, "trader", ("trader",))
    assert not [
        one for one in world.say(known, make_subscribe(1, "quotes/NYSE", "", durable="t-1")) if isinstance(one, Error)
    ]


@pytest.mark.slow
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("come"), st.floats(-1, 20)),
            st.tuples(st.just("wait"), st.floats(0, 5)),
            st.tuples(st.just("clock"), st.floats(-15, 15)),
            st.tuples(st.just("drop"), st.integers(0, 9)),
        ),
        max_size=25,
    )
)
def test_tokens_end_by_the_clock_on_the_wall_within_a_second_and_never_before(steps: list[tuple[str, Any]]) -> None:
    world = LogWorld(prompt=True, grace_seconds=1000.0)
    world.feed(WallClock(WALL - world.now))
    world.feed(Governed(issued()))
    ends: dict[bytes, float] = {}
    over: dict[bytes, float] = {}  # since when on the steady clock each has been over, as the dumb twin sees it
    for kind, value in [*steps, ("wait", 1.0)]:
        began, alive = world.now, set(world.node.subscribers.by_key)
        if kind == "come":
            link, _ = come(world, "zoe", ("feed",), value)
            ends[world.key(link)] = world.node.subscribers.by_link[link].ends
        elif kind == "wait":
            world.wake_at(world.now + value)
        elif kind == "clock":
            world.feed(WallClock(world.node.clock.offset + value))
        elif world.node.subscribers.by_link:
            links = sorted(world.node.subscribers.by_link)
            world.drop(links[value % len(links)])
        wall = world.now + world.node.clock.offset
        for key, end in ends.items():
            if end > wall:
                over.pop(key, None)
                assert key in world.node.subscribers.by_key or key not in alive, "it ended before its time"
            else:
                since = over.setdefault(key, max(began, world.now - (wall - end)))
                assert key not in world.node.subscribers.by_key or world.now - since < 1.0, "it is here for too long"


def test_a_condition_has_as_many_terms_as_a_role_allows_wherever_it_is_asked() -> None:
    world = LogWorld(prompt=True)
    few: Any = {"subscribe": [{"pattern": "quotes", "where": "p > 0 AND p < 9 AND p <> 5"}], "durable": ["*"]}
    world.feed(Governed(policy(few={**few, "condition_terms": 2})))
    link, _ = enter(world, "few")

    def said(number: int, condition: str, **options: Any) -> Any:
        answers = world.say(link, make_subscribe(number, "quotes", condition, **options))
        world.wake_at(world.now + 2)
        return [*answers, *world.take(link)][0]

    good = ["p = 1", "p > 1 AND p < 5", "p BETWEEN 1 AND 5", "p IN (1, 2, 3, 4) OR NOT p = 5", ""]
    for number, condition in enumerate(good, 1):
        assert isinstance(said(number, condition), Suback), condition
    for number, condition in enumerate(
        ["p = 1 OR p = 2 OR p = 3", "p BETWEEN 1 AND 5 AND p <> 3", "p + 1 > 2 AND p < 5"], 20
    ):
        refused = said(number, condition)
        assert isinstance(refused, Error) and refused.code == ErrorCode.LIMIT and "at most 2 terms" in refused.text
        assert said(number + 10, condition, durable=f"of {number}").code == ErrorCode.LIMIT
    world.feed(Governed(policy(few={**few, "condition_terms": 1})))
    ended = sorted(message.subscription for message in world.take(link) if isinstance(message, Ended))
    assert ended == [2, 3, 4]
    world.feed(Governed(policy(few=few)))
    assert isinstance(said(50, "p = 1 OR p = 2 OR p = 3"), Suback)
