"""Property: with random roles that change in between, what users are given is what brute force says: live, and read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.broker.core.inputs import Admitted, Governed
from headgate.broker.core.rights import Grant, Member, Policy, Role
from headgate.broker.core.safeguards import SAFEGUARDS, Safeguard
from headgate.matching import evaluate, parse_condition, parse_pattern
from headgate.protocol.data import LogKind, decode_record, decode_row, row_batch
from headgate.protocol.messages import (
    Ack,
    AckVerb,
    Ended,
    Error,
    Handed,
    LogChunk,
    Message,
    Mode,
    ReadLog,
    Subscribe,
    Unsubscribe,
)
from tests.support.builders import deliveries_of, make_publish, make_subscribe, quote_batch
from tests.support.log_world import LogWorld

USERS = ("ann", "bob")
PATTERNS = st.sampled_from(["quotes", "quotes/a", "quotes/*/x", "quotes/b", "memory", "memory/a"])
TOPICS = ["quotes", "quotes/a", "quotes/b", "quotes/a/x", "quotes/b/x", "memory", "memory/a"]
CONDITIONS = st.sampled_from(["", "p > 1", "s = 'O'", "NOT p > 1", "p IS NULL OR s = 'O'"])
RIGHT = st.tuples(PATTERNS, CONDITIONS)
ROLES = st.tuples(*[st.tuples(st.lists(RIGHT, max_size=3), st.lists(RIGHT, max_size=1)) for _ in USERS])
ROWS = st.lists(
    st.tuples(st.sampled_from(TOPICS), st.sampled_from([None, 0, 2]), st.sampled_from([None, "O"])),
    min_size=1,
    max_size=4,
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), ROWS),
        st.tuples(st.just("roles"), ROLES),
        st.tuples(st.just("subscribe"), st.tuples(st.integers(0, 1), PATTERNS, CONDITIONS)),
    ),
    min_size=2,
    max_size=9,
)
FEED = Role("feed", publish=(Grant(parse_pattern("quotes")), Grant(parse_pattern("memory"))))


def grants(rows: Any) -> tuple[Grant, ...]:
    return tuple(Grant(parse_pattern(text), parse_condition(where) if where else None) for text, where in rows)


def policy_of(roles: Any) -> Policy:
    made = {
        name: Role(name, subscribe=grants(allowed), no_subscribe=grants(denied), durable=("*",))
        for name, (allowed, denied) in zip(USERS, roles, strict=True)
    }
    users = {name: Member((name,), frozenset({"pw"})) for name in (*USERS, "feed")}
    return Policy(users, {**made, "feed": FEED})


def is_at(pattern: str, condition: str, event: Any) -> bool | None:
    topic, price, symbol = event
    if not parse_pattern(pattern).matches(topic):
        return False
    return True if not condition else evaluate(parse_condition(condition), {"p": price, "s": symbol})  # type: ignore[return-value]


def may(roles: Any, user: int, event: Any) -> bool:
    allowed, denied = roles[user]
    return any(is_at(*one, event) is True for one in allowed) and all(is_at(*one, event) is False for one in denied)


def enter(world: LogWorld, user: str) -> int:
    world.feed(Admitted(world._links + 1, user, "pw"))
    return world.connect(name=user)


def read_all(world: LogWorld, link: int, pattern: str, condition: str) -> list[str]:
    """Bodies of what is read of the log; none where it is refused."""
    name, found, position = world.name(LogKind.EVENTS), [], 0
    while True:
        message = ReadLog(9, name.broker, name.epoch, name.kind, "quotes", position, 0, pattern, condition)
        answer = world.say(link, message)[0]
        if isinstance(answer, Error):
            return []
        assert isinstance(answer, LogChunk)
        for data in answer.rows:
            found += [decode_record(piece)[1].decode() for piece in row_batch(decode_row(data)).pieces()]
        if answer.next == answer.end:
            return found
        position = answer.next


def run(steps: Any, sent: list[str] | None, safeguards: frozenset[Safeguard] = SAFEGUARDS) -> None:
    """Raises AssertionError where a user is given something else than brute force says."""
    world = LogWorld(prompt=True, safeguards=safeguards)
    roles: Any = [([("quotes", "")], []), ([("memory", "")], [])]
    world.feed(Governed(policy_of(roles)))
    publisher, links = enter(world, "feed"), [enter(world, user) for user in USERS]
    live: dict[int, tuple[int, str, str]] = {}
    stored: list[tuple[str, Any]] = []
    sequence = events = number = 0
    for kind, what in steps:
        if kind == "roles":
            roles = what
            world.feed(Governed(policy_of(roles)))
            for link in links:
                for message in world.take(link):
                    if isinstance(message, Ended):
                        del live[message.subscription]
        elif kind == "subscribe":
            number += 1
            user, pattern, condition = what
            answers = world.say(links[user], make_subscribe(number, pattern, condition))
            if not any(isinstance(one, Error) for one in answers):
                live[number] = what
        else:
            for stream in ("quotes", "memory"):
                rows = [row for row in what if row[0].startswith(stream)]
                if not rows:
                    continue
                sequence += 1
                bodies = [str(events + place) for place in range(len(rows))]
                events += len(rows)
                columns = {"p": [row[1] for row in rows], "s": [row[2] for row in rows]}
                batch = quote_batch([row[0] for row in rows], bodies, sent, **columns)
                world.say(publisher, make_publish(sequence, batch, Mode.ACCEPTED))
                stored += zip(bodies, rows, strict=True) if stream == "quotes" else []
                for user, link in enumerate(links):
                    expected = [
                        (subscription, body)
                        for subscription, (owner, pattern, condition) in live.items()
                        for body, row in zip(bodies, rows, strict=True)
                        if owner == user and is_at(pattern, condition, row) is True and may(roles, user, row)
                    ]
                    assert sorted(deliveries_of(world.take(link))) == sorted(expected)
        for user, link in enumerate(links):
            for pattern, condition in (("", ""), ("quotes/a", "p > 1")):
                wanted = [
                    body
                    for body, row in stored
                    if is_at(pattern or "quotes", condition, row) is True and may(roles, user, row)
                ]
                assert read_all(world, link, pattern, condition) == wanted


@given(STEPS, st.sampled_from([None, [], ["p"]]))
@settings(max_examples=120)
def test_live_and_read_are_those_of_brute_force(steps: Any, sent: list[str] | None) -> None:
    run(steps, sent)


ONE = [("publish", [("quotes/a", 2, "O"), ("quotes/b", 2, None)]), ("roles", [([("quotes", "s = 'O'")], []), ([], [])])]


def test_without_its_safeguard_reading_looks_at_no_rights() -> None:
    run(ONE, None)
    with pytest.raises(AssertionError):
        run(ONE, None, SAFEGUARDS - {Safeguard.RIGHTS_AT_READING})


def handed_to(messages: list[Message]) -> list[str]:
    """The bodies of what these hand out."""
    found = []
    for message in messages:
        if isinstance(message, Handed):
            lengths, at = message.portion.lengths, 0
            for place in range(message.portion.count):
                size = int.from_bytes(lengths[4 * place : 4 * place + 4], "little")
                found.append(decode_record(message.portion.records[at : at + size])[1].decode())
                at += size
    return found


def mailbox(safeguards: frozenset[Safeguard]) -> tuple[list[str], list[str]]:
    """What a durable subscription hands out that gathered under wider rights; before, and after they were narrowed."""
    world = LogWorld(prompt=True, safeguards=safeguards)
    world.feed(Governed(policy_of([([("quotes", "p > 0")], []), ([], [])])))
    publisher, link = enter(world, "feed"), enter(world, "ann")
    wish = Subscribe(1, 1, "quotes", "", {"durable": "mine"})
    world.say(link, wish)
    world.wake_at(world.now + 2)
    rows = [
        ("quotes/a", 2, "O"),
        ("quotes/b", 2, None),
        ("quotes/a", 0, "O"),
        ("quotes/a", 5, "O"),
        ("quotes/b", 5, "X"),
    ]
    columns = {"p": [row[1] for row in rows], "s": [row[2] for row in rows]}
    batch = quote_batch([row[0] for row in rows], [*"abcde"], **columns)
    world.say(publisher, make_publish(1, batch, Mode.STORED))
    world.wake_at(world.now + 2)
    before = handed_to(world.take(link))
    world.say(link, Unsubscribe(2, 1))
    world.feed(Governed(policy_of([([("quotes", "p > 0 AND s = 'O'")], []), ([], [])])))
    after = handed_to(world.say(link, Subscribe(3, 1, "quotes", "", {"durable": "mine"})))
    world.wake_at(world.now + 2)
    after += handed_to(world.take(link))
    world.say(link, Ack(4, 1, AckVerb.ACK, [0, 2**40]))
    world.wake_at(world.now + 2)
    (row,) = world.ask(link, "durables")
    assert (row["owner"], row["waiting"], row["unacked"]) == ("ann", 0, 0)
    return before, after


def test_a_mailbox_hands_out_what_is_allowed_now() -> None:
    assert mailbox(SAFEGUARDS) == ([*"abde"], [*"ad"])
    assert mailbox(SAFEGUARDS - {Safeguard.RIGHTS_AT_READING}) == ([*"abde"], [*"abde"])
