"""`sub`: what is asked for, what is printed, and when it ends."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Sequence

import pytest

from headgate.ops.cli import main
from headgate.ops.commands.sub import human_text
from headgate.protocol.client import Event, HandedEvent, LogInfo
from headgate.protocol.data import LogKind, LogName, LogShift
from headgate.protocol.errors import ConnectionLost, ErrorCode, Refused
from headgate.protocol.messages import Gap
from tests.ops.fakes import FakeClient, FakeSubscription, event, use_client

Capture = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


def ids(text: str) -> list[str]:
    return [json.loads(line)["id"] for line in text.splitlines()]


def test_deliveries_are_printed_and_subscribed_is_said(monkeypatch: Patch, capfd: Capture) -> None:
    client = use_client(monkeypatch, FakeClient(batches=[[event(0), event(1)], [event(2)]]))
    assert main(["sub", "quotes/*", "--where", "price > 8", "--exact", "--json"]) == 0
    captured = capfd.readouterr()
    assert ids(captured.out) == ["ab-1.0", "ab-1.1", "ab-1.2"]
    assert captured.err == "subscribed\n"
    ((pattern, where, options),) = client.subscribed
    assert (pattern, where) == ("quotes/*", "price > 8")
    assert options == {"exact": True, "start": None}
    assert client.closed


def test_what_xpath_kept_back_is_said_at_the_end(monkeypatch: Patch, capfd: Capture) -> None:
    monkeypatch.setattr(FakeSubscription, "false_positives", {"hash": 2, "no document": 1})
    use_client(monkeypatch, FakeClient(batches=[[event(0)]]))
    assert main(["sub", "quotes", "--where", "XPATH 'a'", "--json"]) == 0
    words = "3 events were not printed, whose documents XPATH does not match: 2 of hash, 1 without one"
    assert capfd.readouterr().err == f"subscribed\n{words}\n"


def test_the_topics_of_what_xpath_kept_back_are_named_the_most_first(monkeypatch: Patch, capfd: Capture) -> None:
    one = {"quotes/a": {"hash": 2}}
    monkeypatch.setattr(FakeSubscription, "false_positives", {"hash": 2})
    monkeypatch.setattr(FakeSubscription, "false_positives_by_topic", one)
    use_client(monkeypatch, FakeClient(batches=[[event(0)]]))
    words = ["sub", "quotes", "--where", "XPATH 'a'", "--json"]
    assert main(words) == 0
    assert len(capfd.readouterr().err.splitlines()) == 2, "there is one topic, and nothing to tell apart"
    many = {f"quotes/{name}": {"hash": 1} for name in "bcdef"} | {"*": {"structure": 4}}
    monkeypatch.setattr(FakeSubscription, "false_positives_by_topic", one | many)
    assert main(words) == 0
    *_, first, _, _, _, last, others = capfd.readouterr().err.splitlines()
    assert first == "  quotes/a: 2 of hash" and last == "  quotes/e: 1 of hash" and others == "  other topics: 5"


@pytest.mark.parametrize(("count", "expected"), [("1", 1), ("2", 2), ("3", 3), ("4", 3)])
def test_count_ends_it_within_a_batch(monkeypatch: Patch, capfd: Capture, count: str, expected: int) -> None:
    use_client(monkeypatch, FakeClient(batches=[[event(0), event(1)], [event(2)]]))
    assert main(["sub", "a", "--count", count, "--json"]) == 0
    assert len(ids(capfd.readouterr().out)) == expected


@pytest.mark.parametrize(
    ("text", "start"), [("start", "start"), ("now", "now"), ("17", 17), ("ann@5:7,bob@6:0", "ann@5:7,bob@6:0")]
)
def test_where_to_begin(monkeypatch: Patch, text: str, start: object, capfd: Capture) -> None:
    client = use_client(monkeypatch, FakeClient())
    assert main(["sub", "a", "--from", text]) == 0
    assert client.subscribed[0][2] == {"exact": False, "start": start}
    assert capfd.readouterr().err == "subscribed\n"


@pytest.mark.parametrize("words", [["--from", "-10m"], ["--from=-10m"], ["--from", "2026-11-01T06:00Z"]])
def test_a_time_is_looked_up_in_every_log(monkeypatch: Patch, capfd: Capture, words: list[str]) -> None:
    old, young = event(0, time=1.0), event(1, time=4e9)
    live = event(2, time=1.0)
    old.log = young.log = LogShift("cyd@5", 0)  # of a log that nobody had when it began
    client = use_client(monkeypatch, FakeClient(batches=[[old, young], [live]]))
    client.held = [LogInfo(LogName(name, 5, LogKind.EVENTS, "a"), 0, 9, 0, 0, 0, (name,)) for name in ("ann", "bob")]
    client.positions = {"ann@5": 7, "bob@5": 12}
    assert main(["sub", "a/b", "--json", *words]) == 0
    assert client.subscribed[0][2]["start"] == "ann@5:7,bob@5:9"
    assert ids(capfd.readouterr().out) == ["ab-1.1", "ab-1.2"]
    times = {details["time"] for verb, details in client.asked if verb == "log.at"}
    assert len(times) == 1 and 1_793_512_800_000_000 <= times.pop() <= time.time() * 1e6


def test_a_stream_without_logs_begins_where_they_begin(monkeypatch: Patch, capfd: Capture) -> None:
    client = use_client(monkeypatch, FakeClient())
    assert main(["sub", "a", "--from", "-10m"]) == 0
    assert client.subscribed[0][2]["start"] == "start"


def test_its_name(monkeypatch: Patch, capfd: Capture) -> None:
    client = use_client(monkeypatch, FakeClient())
    assert main(["sub", "a", "--name", "desk 4"]) == 0
    assert client.name == "desk 4"
    assert main(["sub", "a"]) == 0
    assert client.name == "headgate sub"


def handed(number: int, count: int = 1) -> Event:
    """An event as a durable subscription hands it out."""
    known = event(number)
    made = HandedEvent(known.origin, number, known.time, known.topic, known.attributes, b"", "", 1)
    made.delivery, made.delivery_count = 100 + number, count
    return made


def test_what_a_durable_one_hands_out_is_acknowledged_when_it_is_printed(monkeypatch: Patch, capfd: Capture) -> None:
    client = use_client(monkeypatch, FakeClient(batches=[[handed(0), handed(1, 3)], [handed(2)]]))
    words = ["--sharing", "shared", "--ack-wait", "5", "--backoff", "1,2", "--takeover", "--from", "start"]
    assert main(["sub", "a", "--where", "x > 1", "--durable", "mine", "--json", *words]) == 0
    captured = capfd.readouterr()
    lines = [json.loads(line) for line in captured.out.splitlines()]
    assert [(one["delivery"], one["delivery_count"], one["redelivered"]) for one in lines] == [
        (100, 1, False),
        (101, 3, True),
        (102, 1, False),
    ]
    assert captured.err == "subscribed\n"
    ((pattern, where, options),) = client.subscribed
    settings = {"durable": "mine", "sharing": "shared", "ack_wait": 5.0, "backoff": [1.0, 2.0], "takeover": True}
    assert (pattern, where, options) == ("a", "x > 1", {"exact": False, "start": "start", **settings})
    assert client.asked == [], "the broker knows the past of its streams"
    assert client.subscription is not None and client.subscription.acknowledged == ["ab-1.1", "ab-1.2"]


def test_what_is_over_the_count_is_not_acknowledged(monkeypatch: Patch, capfd: Capture) -> None:
    client = use_client(monkeypatch, FakeClient(batches=[[handed(0), handed(1, 2)], [handed(2), handed(3)]]))
    assert main(["sub", "--durable", "mine", "--count", "3"]) == 0
    assert client.subscription is not None and client.subscription.acknowledged == ["ab-1.1", "ab-1.2"]
    assert client.subscribed == [
        ("", None, {"exact": False, "start": None, "durable": "mine", "window": 3, "limit": 3})
    ]
    assert "(handed out 2 times)" in capfd.readouterr().out.splitlines()[1]


def test_what_may_come_again_is_said(monkeypatch: Patch, capfd: Capture) -> None:
    client = use_client(monkeypatch, FakeClient(batches=[[handed(0)]]))
    client.stale = 2
    assert main(["sub", "a", "--durable", "mine"]) == 0
    told = capfd.readouterr().err.splitlines()[-1]
    assert told == "headgate sub: 2 acknowledgements came too late: these events come again, as redelivered"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["a", "--ack-wait", "5"], "--ack-wait is for durable subscriptions"),
        (["a", "--takeover"], "--takeover is for durable subscriptions"),
        ([], "a PATTERN"),
        (["a", "--durable", ""], "wants a name"),
        (["a", "--durable", "mine", "--from", "17"], "a position names its log"),
        (["a", "--durable", "mine", "--sharing", "all"], "one of exclusive"),
    ],
)
def test_usage_of_a_durable_one(monkeypatch: Patch, capfd: Capture, words: list[str], text: str) -> None:
    client = use_client(monkeypatch, FakeClient())
    assert main(["sub", *words]) == 2
    assert text in capfd.readouterr().err and client.subscribed == []


def test_a_stream_in_memory_has_no_past_and_that_is_said(monkeypatch: Patch, capfd: Capture) -> None:
    client = FakeClient()
    client.stored = False
    client.held = [LogInfo(LogName("ann", 1, LogKind.EVENTS, "a"), 5, 5, 0, 0, 0, ("ann",))]  # all of it was removed
    use_client(monkeypatch, client)
    assert main(["sub", "a/b", "--from", "start"]) == 0
    told, subscribed = capfd.readouterr().err.splitlines()
    assert told.startswith("headgate sub: stream a is kept in memory and has no past: ") and "schema put a " in told
    assert (subscribed, client.asked) == ("subscribed", [("survey", {"stream": "a"})])


@pytest.mark.parametrize(("words", "last"), [([], 2), (["--count", "2"], 1)])
def test_who_stops_is_told_where_to_go_on(monkeypatch: Patch, capfd: Capture, words: list[str], last: int) -> None:
    events = [event(number) for number in range(3)]
    for one in events:
        one.log = LogShift("ann@5", 10)
    client = use_client(monkeypatch, FakeClient(batches=[events[:1], events[1:]]))
    client.begins = {"ann@5": 7, "bob@5": 9}
    assert main(["sub", "a", "--from", "now", *words]) == 0
    told = capfd.readouterr().err.splitlines()
    assert told == ["subscribed", f"to go on behind the last line: --from ann@5:{last + 11},bob@5:9"]


@pytest.mark.parametrize(("words", "stored"), [(["--from", "now"], False), ([], True)])
def test_who_cannot_go_on_is_told_of_no_place(
    monkeypatch: Patch, capfd: Capture, words: list[str], stored: bool
) -> None:
    client = use_client(monkeypatch, FakeClient(batches=[[event(0)]]))
    client.stored = stored
    assert main(["sub", "a", *words]) == 0
    assert capfd.readouterr().err == "subscribed\n"


def test_what_a_stream_kept_when_it_was_stored_is_a_past(monkeypatch: Patch, capfd: Capture) -> None:
    client = use_client(monkeypatch, FakeClient())
    client.stored = False
    client.held = [LogInfo(LogName("ann", 1, LogKind.EVENTS, "a"), 0, 5, 100, 0, 0, ("ann",))]
    assert main(["sub", "a/b", "--from", "start"]) == 0
    assert capfd.readouterr().err == "subscribed\n"


@pytest.mark.parametrize(
    "words",
    [
        ["--from", "yesterday"],
        ["--from", "-1"],
        ["--from", "-10x"],
        ["--from", "2126-01-01"],
        ["--from", "2026-99-01"],
        ["--from", "ann@5"],
        ["--name", "x" * 257],
        ["--count", "0"],
        ["--timeout", "0"],
        ["--timeout", "nan"],
    ],
)
def test_usage(monkeypatch: Patch, words: list[str], capfd: Capture) -> None:
    client = use_client(monkeypatch, FakeClient())
    assert main(["sub", "a", *words]) == 2
    assert words[0] in capfd.readouterr().err
    assert client.subscribed == []


def test_no_place_to_begin_says_how_to_write_one_and_a_time(monkeypatch: Patch, capfd: Capture) -> None:
    use_client(monkeypatch, FakeClient())
    assert main(["sub", "a", "--from", "yesterday"]) == 2
    assert re.search("start, now, .*ann@1763492000:120 .*or a time, as in -10m or 2026", capfd.readouterr().err)


def test_a_refusal_is_not_subscribed(monkeypatch: Patch, capfd: Capture) -> None:
    client = use_client(monkeypatch, FakeClient())
    client.refusal = Refused(ErrorCode.BAD_CONDITION, "condition, column 3: expected a value")
    assert main(["sub", "a", "--where", "x ="]) == 1
    assert capfd.readouterr().err == "headgate sub: condition, column 3: expected a value\n"


def test_gaps_are_told(monkeypatch: Patch, capfd: Capture) -> None:
    client = use_client(monkeypatch, FakeClient())
    client.gap = Gap(1, 12, "slow consumer")
    assert main(["sub", "a"]) == 0
    assert "gap: 12 deliveries lost (slow consumer)\n" in capfd.readouterr().err


class Endless(FakeSubscription):
    """One batch, then whatever `then` does, then silence; a second iteration gives what had come meanwhile."""

    def __init__(self, then: Exception | int | None = None) -> None:
        super().__init__(())
        self._then = then
        self._again = False

    async def batches(self) -> AsyncIterator[Sequence[Event]]:
        yield [event(1 if self._again else 0)]
        self._again = True
        if isinstance(self._then, Exception):
            raise self._then
        if self._then is not None:
            os.kill(os.getpid(), self._then)
        await asyncio.Event().wait()


def endless(monkeypatch: Patch, then: Exception | int | None = None) -> None:
    client = use_client(monkeypatch, FakeClient())

    async def subscribe(*details: object, **options: object) -> Endless:
        return Endless(then)

    monkeypatch.setattr(client, "subscribe", subscribe)
    monkeypatch.setattr("headgate.ops.commands.sub.DRAIN_SECONDS", 0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_after_what_has_come(monkeypatch: Patch, capfd: Capture, number: int) -> None:
    endless(monkeypatch, number)
    assert main(["sub", "a", "--json"]) == 0
    assert ids(capfd.readouterr().out) == ["ab-1.0", "ab-1.1"]


def test_a_timeout_without_count_is_an_ordinary_end(monkeypatch: Patch, capfd: Capture) -> None:
    endless(monkeypatch)
    assert main(["sub", "a", "--timeout", "0.02", "--json"]) == 0


def test_a_timeout_with_count_unmet_is_not(monkeypatch: Patch, capfd: Capture) -> None:
    endless(monkeypatch)
    assert main(["sub", "a", "--timeout", "0.02", "--count", "5"]) == 1
    assert "fewer than 5 deliveries in 0.02 seconds" in capfd.readouterr().err


def test_a_timeout_before_it_is_in_force_is_not_either(monkeypatch: Patch, capfd: Capture) -> None:
    client = use_client(monkeypatch, FakeClient())

    async def never(*words: object, **options: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(client, "subscribe", never)
    assert main(["sub", "a", "--timeout", "0.02"]) == 1
    assert "not subscribed within 0.02 seconds" in capfd.readouterr().err


def test_a_broker_that_stays_away_is_code_3(monkeypatch: Patch, capfd: Capture) -> None:
    endless(monkeypatch, ConnectionLost("nobody answered for 30 seconds"))
    assert main(["sub", "a"]) == 3


@pytest.mark.parametrize(
    ("details", "text"),
    [
        ({}, "quotes/NYSE/OTE price=8.45"),
        ({"body": b"hi\x1b"}, "quotes/NYSE/OTE price=8.45 | hi\\x1b"),
        ({"body": b"\xff\xff"}, "quotes/NYSE/OTE price=8.45 | <2 bytes>"),
        ({"attributes": {"a": None, "b": True, "c": "x\n", "d": 7}}, "quotes/NYSE/OTE a=null b=true c=x\\n d=7"),
        ({"topic": "a\u202eb", "attributes": {}}, "a\\u202eb"),
    ],
)
def test_a_line_for_people(details: dict[str, object], text: str) -> None:
    clock, _, rest = human_text(event(**details)).partition(" ")
    assert clock.endswith(":20.500")
    assert rest == text
