"""Well-formed frames that ask for what nobody should get (filters, topics), beside a witness.

A request that is refused leaves the connection as it was: each test ends by asking for something ordinary.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

import headgate
from headgate.protocol.data import Batch, encode_column, join_u32, make_batch
from headgate.protocol.errors import ErrorCode
from headgate.protocol.limits import CREDIT_MAX
from headgate.protocol.messages import (
    Answer,
    Ask,
    Credit,
    Deliver,
    Error,
    Hello,
    Mode,
    Puback,
    Publish,
    Suback,
    Subscribe,
    Unsubscribe,
    Welcome,
)
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_until
from tests.support.witness import besieged

SECONDS_MAX = 2.0
"""For one refusal, on a machine that has other things to do."""

NEVER_TAKEN = {
    "empty": "()",
    "ten thousand parentheses": "(" * 10_000 + "a = 1" + ")" * 10_000,
    "ten thousand terms": "OR ".join(["a "] * 10_000),
    "257 terms": " OR ".join(["a=1"] * 257),
    "a chain of NOT": "NOT " * 1000 + "a = 1",
    "a number of 5,000 digits": "a = " + "9" * 5000,
    "a number over 64 bits": "a = 9223372036854775808",
    "a long LIKE": "a LIKE '" + "%a" * 3000 + "'",
    "an open string": "a = 'x",
    "a call": "sleep(10)",
    "a semicolon": "a = 1; a = 2",
    "a NUL": "a = \x00",
}
PATTERNS_NEVER_TAKEN = {
    "empty": "",
    "wildcard only": "*",
    "200 levels": "/".join(["a"] * 200),
    "2 KiB": "a" * 2048,
    "NUL": "a\x00b",
    "line feed": "a\nb",
    "empty level": "a//b",
    "MQTT": "a/#",
    "leading slash": "/a",
}
TOPICS_NEVER_TAKEN = {**PATTERNS_NEVER_TAKEN, "wildcard": "a/*"}
del TOPICS_NEVER_TAKEN["MQTT"], TOPICS_NEVER_TAKEN["line feed"]


async def still_well(client: RawClient) -> None:
    """The connection is as good as before."""
    assert isinstance(await client.subscribe(7777, "ordinary"), Suback)


@pytest.mark.parametrize("kind", NEVER_TAKEN)
async def test_a_condition_that_is_refused_at_once(kind: str) -> None:
    async with besieged() as broker:
        client = await RawClient.greeted(broker.address)
        began = time.monotonic()
        answer = await client.subscribe(1, "a", NEVER_TAKEN[kind])
        assert time.monotonic() - began < SECONDS_MAX
        assert isinstance(answer, Error) and answer.code == ErrorCode.BAD_CONDITION, answer
        assert len(answer.text) < 2000
        await still_well(client)
        await client.close()


async def test_a_condition_of_a_mebibyte_ends_the_connection() -> None:
    async with besieged() as broker:
        client = await RawClient.greeted(broker.address)
        # The encoder of honest clients would not make such a frame, so it is put together here.
        text = b"a = 1 OR " * 116_509
        body = b"\x96\x08\x01\x01\xa1a\xdb" + len(text).to_bytes(4, "big") + text + b"\x80"
        await client.write(len(body).to_bytes(4, "big") + body)
        refusal = await client.refusal()
        assert refusal.code in (ErrorCode.PROTOCOL, ErrorCode.TOO_LARGE)
        await client.close()


@pytest.mark.parametrize("kind", PATTERNS_NEVER_TAKEN)
async def test_a_pattern_that_is_refused(kind: str) -> None:
    async with besieged() as broker:
        client = await RawClient.greeted(broker.address)
        answer = await client.subscribe(1, PATTERNS_NEVER_TAKEN[kind])
        assert isinstance(answer, Error) and answer.code == ErrorCode.BAD_PATTERN, answer
        await still_well(client)
        await client.close()


async def test_like_bombs_are_matched_in_linear_time() -> None:
    async with besieged() as broker:
        client = await RawClient.greeted(broker.address)
        patterns = ["%a" * 100 + "b", "%" * 500, "_%" * 200, "%" + "a" * 200 + "%", "a%" * 150]
        for number, pattern in enumerate(patterns, start=1):
            assert isinstance(await client.subscribe(number, "bomb", f"text LIKE '{pattern}'"), Suback)
        began = time.monotonic()
        batch = make_batch(["bomb"], {"text": ["a" * 20_000] * 5}, [b""] * 5)
        await client.say(Publish(1, Mode.ACCEPTED, batch))
        assert await client.hear_a(Puback) == Puback(1)
        assert time.monotonic() - began < SECONDS_MAX
        await client.close()


@pytest.mark.parametrize("kind", TOPICS_NEVER_TAKEN)
async def test_a_topic_that_is_refused_costs_its_batch_only(kind: str) -> None:
    async with besieged() as broker:
        client = await RawClient.greeted(broker.address)
        await client.subscribe(1, "good")
        bad = Batch(TOPICS_NEVER_TAKEN[kind], 1, join_u32([1]), b"x")
        good = make_batch(["good"], {}, [b"x"])
        await client.say(Publish(1, Mode.ACCEPTED, bad), Publish(2, Mode.ACCEPTED, good))
        error = await client.hear_a(Error)
        assert (error.code, error.reference) == (ErrorCode.BAD_TOPIC, 1)
        assert (await client.hear_a(Deliver)).portion.count == 1
        assert await client.hear_a(Puback) == Puback(2)
        await client.close()


GOOD = make_batch(["victim/a"], {"price": [1.0, 2.0]}, [b"one", b"two"])
MALFORMED: dict[str, Batch] = {
    "a column of garbage": replace(GOOD, columns={"price": b"\xc1\xff\x00"}),
    "an empty column": replace(GOOD, columns={"price": b""}),
    "a column too short": replace(GOOD, columns={"price": encode_column([1.0])}),
    "a column too long": replace(GOOD, columns={"price": encode_column([1.0, 2.0, 3.0])}),
    "two streams": replace(GOOD, topics="victim/a\nother/a"),
    "records that are none, columns to be derived": replace(
        GOOD, records=b"\xc1" * len(GOOD.records), columns={}, complete=False
    ),
}


@pytest.mark.parametrize("kind", MALFORMED)
async def test_a_malformed_batch_is_refused_alone(kind: str) -> None:
    async with besieged() as broker:
        client = await RawClient.greeted(broker.address)
        assert isinstance(await client.subscribe(1, "victim", "price > 0"), Suback)
        bad, good = Publish(1, Mode.ACCEPTED, MALFORMED[kind]), Publish(2, Mode.ACCEPTED, GOOD)
        await client.say(bad, good)
        error = await client.hear_a(Error)
        assert (error.scope, error.reference) == (2, 1) and error.code in (ErrorCode.BAD_BATCH, ErrorCode.BAD_TOPIC)
        assert (await client.hear_a(Deliver)).portion.records == GOOD.records
        assert await client.hear_a(Puback) == Puback(2)
        await client.close()


@pytest.mark.parametrize(
    "records",
    [b"\xc1", b"\xff" * 40, b"\x92\x81\xa1a\xdd\xff\xff\xff\xff", b"\x91" * 60, bytes(range(256))],
    ids=["no msgpack", "ones", "a huge array", "nested", "all bytes"],
)
async def test_records_that_are_none_are_skipped_by_a_healthy_client(records: bytes) -> None:
    async with besieged() as broker, await headgate.connect(broker.address) as victim:
        subscription = await victim.subscribe("victim")
        hostile = await RawClient.greeted(broker.address)
        bad = Batch("victim/a", 1, join_u32([len(records)]), records)
        await hostile.say(Publish(1, Mode.ACCEPTED, bad), Publish(2, Mode.ACCEPTED, GOOD))
        heard = [(await anext(subscription)).body for _ in range(2)]
        assert heard == [b"one", b"two"]
        assert (victim.malformed, victim.reconnects) == (1, 0)
        await hostile.close()


@pytest.mark.parametrize(
    "batch",
    [
        Batch("a", 1, join_u32([1]), b"x", {f"a{number}": encode_column([1]) for number in range(257)}),
        Batch("a", 1, join_u32([2]), b"x"),
        Batch("a", 1, b"\x01\x00\x00", b"x"),
        Batch("a", 0, b"", b""),
        Batch("a\nb\nc", 2, join_u32([1, 1]), b"xy"),
    ],
    ids=["too many columns", "lengths that do not add up", "half a length", "no events", "too many topics"],
)
async def test_a_batch_whose_parts_do_not_fit_ends_the_connection(batch: Batch) -> None:
    async with besieged() as broker:
        client = await RawClient.greeted(broker.address)
        await client.say(Publish(1, Mode.ACCEPTED, batch))
        assert (await client.refusal()).code == ErrorCode.PROTOCOL
        await client.close()


@pytest.mark.parametrize(
    "credit",
    [Credit(CREDIT_MAX + 1, 0), Credit(2**63, 0), Credit(10, 1), Credit(10, 10**9)],
    ids=["over the largest", "2^63", "more than was sent", "far more"],
)
async def test_credit_that_cannot_be_ends_the_connection(credit: Credit) -> None:
    async with besieged() as broker:
        client = await RawClient.greeted(broker.address)
        await client.say(credit)
        assert (await client.refusal()).code == ErrorCode.PROTOCOL
        await client.close()


async def test_negative_credit_is_no_credit_at_all() -> None:
    async with besieged() as broker:
        client = await RawClient.greeted(broker.address)
        # -1 as a signed byte, which the encoder of honest clients would refuse.
        await client.write(b"\x00\x00\x00\x04\x93\x07\xff\x00")
        assert (await client.refusal()).code == ErrorCode.PROTOCOL
        await client.close()


async def test_who_comes_back_with_more_than_was_sent_is_refused() -> None:
    async with besieged() as broker:
        client = await RawClient.connect(broker.address)
        await client.say(Hello())
        welcome = await client.hear_a(Welcome)
        await client.close()
        again = await RawClient.connect(broker.address)
        await again.say(Hello(session=welcome.session, received=1))
        assert (await again.refusal()).code == ErrorCode.PROTOCOL
        await again.close()


async def test_credit_never_shrinks() -> None:
    async with besieged() as broker:
        client = await RawClient.greeted(broker.address, credit=10)
        await client.subscribe(1, "a")
        await client.say(Credit(0, 0), Publish(1, Mode.ACCEPTED, make_batch(["a"], {}, [b"x"])))
        assert (await client.hear_a(Deliver)).portion.count == 1
        await client.close()


async def test_a_sequence_with_a_hole_ends_the_connection() -> None:
    async with besieged() as broker:
        client = await RawClient.greeted(broker.address)
        await client.say(Publish(7, Mode.ACCEPTED, GOOD))
        assert (await client.refusal()).code == ErrorCode.SEQUENCE_GAP
        await client.close()


ODD_QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("nonsense", {}),
    ("", {}),
    ("subs", {"after": "x"}),
    ("explain", {}),
    ("explain", {"pattern": 1}),
    ("explain", {"pattern": "a", "condition": "(" * 4000}),
    ("explain", {"pattern": "a", "condition": "a = 1", "event": []}),
    ("explain", {"pattern": "a", "event": {"topic": 1, "attrs": {}}}),
    ("explain", {"pattern": "a", "event": {"topic": ["a"], "attrs": {}}}),
    ("explain", {"pattern": "a", "condition": "a = 1", "event": {"attrs": {"a": [1, {"b": 2}]}}}),
    ("explain", {"pattern": "a", "condition": "a LIKE 'x'", "event": {"attrs": {"a": b"\xff"}}}),
    ("schema.put", {}),
    ("schema.put", {"stream": "a/b", "schema": {}}),
    ("schema.put", {"stream": "a", "schema": {"attributes": {"x": {"type": ["int"]}}}}),
    ("schema.put", {"stream": "a", "schema": {"attributes": {"x": {"type": "int", "min": "low"}}}}),
    ("schema.put", {"stream": "a", "schema": {"attributes": []}}),
    ("schema.get", {"stream": ["a"]}),
    ("schema.rm", {"stream": "none"}),
    ("status", {"x": {"y": [None] * 200}}),
]


@pytest.mark.parametrize("number", range(len(ODD_QUESTIONS)))
async def test_an_odd_question_gets_an_answer_or_a_refusal(number: int) -> None:
    verb, arguments = ODD_QUESTIONS[number]
    async with besieged() as broker:
        client = await RawClient.greeted(broker.address)
        await client.say(Ask(1, verb, arguments))
        answer = await client.hear()
        assert isinstance(answer, Answer | Error) and getattr(answer, "scope", 1) == 1, answer
        await still_well(client)
        await client.close()
        assert broker.daemon.driver.faults == 0


async def test_requests_that_make_no_sense_are_refused_one_by_one() -> None:
    async with besieged() as broker:
        client = await RawClient.greeted(broker.address)
        await client.say(
            Unsubscribe(1, 99),
            Subscribe(2, 0, "a"),
            Subscribe(3, 1, "a", "", {"nonsense": 1}),
            Subscribe(4, 1, "a", "", {"exact": "yes"}),
            Subscribe(6, 1, "a", "", {"from": "start"}),
            Subscribe(7, 1, "a", "XPATH '/a/b' AND DELTA(p) > 1"),
            Subscribe(8, 1, "a"),
            Subscribe(9, 1, "b"),
        )
        answers = [await client.hear() for _ in range(8)]
        codes = [answer.code if isinstance(answer, Error) else None for answer in answers]
        unsupported = ErrorCode.UNSUPPORTED
        bad = ErrorCode.BAD_REQUEST
        assert codes == [
            ErrorCode.NOT_FOUND, bad, bad, bad, unsupported, unsupported, None, ErrorCode.DUPLICATE
        ]  # fmt: skip
        await client.say(Subscribe(10, 2, "a", "", {"durable": "mine"}))
        refused = await client.hear()
        assert isinstance(refused, Error) and refused.code == unsupported, "there is no disk"
        await still_well(client)
        await client.close()
        await wait_until(lambda: broker.daemon.server.connections == 2)
