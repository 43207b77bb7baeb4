"""What there is of a stream, from the catalogue of its logs; and the options with which the logs are read."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.broker.core.config import broker_id
from headgate.ops.exits import UsageError
from headgate.ops.jobs import LogSource
from headgate.ops.jobs.audit_source import survey_of
from headgate.protocol.client import LogInfo
from headgate.protocol.data import LogKind, LogName
from headgate.protocol.errors import ErrorCode, Refused


def log(
    broker: str, kind: LogKind = LogKind.EVENTS, epoch: int = 5, first: int = 0, upto: int = 10, *holders: str
) -> LogInfo:
    """Its times are its positions, in seconds."""
    name = LogName(broker, epoch, int(kind), "quotes")
    return LogInfo(name, first, upto, 0, first * 1_000_000, upto * 1_000_000, holders or (broker,))


def survey(*logs: LogInfo) -> Any:
    kinds = {"events": LogKind.EVENTS, "deliveries": LogKind.DELIVERIES, "subscriptions": LogKind.SUBSCRIPTIONS}
    return survey_of({word: [one for one in logs if one.name.kind == kind] for word, kind in kinds.items()})


def test_whole_logs_reach_back_to_the_beginning() -> None:
    found = survey(log("b1"), log("b2", upto=20), log("b1", LogKind.DELIVERIES, upto=99))
    assert (found.since, found.newest, found.gone, found.notes) == (0, 20_000_000, (), [])


def test_retention_moves_the_beginning_and_is_said() -> None:
    found = survey(
        log("b1", first=3), log("b2", LogKind.DELIVERIES, first=7), log("b2", LogKind.SUBSCRIPTIONS, first=9)
    )
    assert found.since == 7_000_000
    assert [note.split(":")[0] for note in found.notes] == ["b1@5 begins at position 3", "b2@5 begins at position 7"]


def test_a_broker_whose_newest_logs_only_others_have_is_gone() -> None:
    found = survey(log("b1"), log("b2", LogKind.EVENTS, 5, 0, 10, "b1"))
    assert found.gone == (f"{broker_id('b2'):016x}",) and "b2 cannot be reached" in found.notes[0]


def test_a_broker_that_lost_an_old_epoch_and_lives_is_not_gone() -> None:
    assert survey(log("b2", LogKind.EVENTS, 5, 0, 10, "b1"), log("b2", LogKind.EVENTS, 6)).gone == ()


def test_nothing_published_yet() -> None:
    assert survey(log("b1", LogKind.SUBSCRIPTIONS)).newest == 0
    assert survey(log("b1", first=4, upto=4)).newest == 0


class Reader:
    """Remembers how it was told to read."""

    def __init__(self) -> None:
        self.said: dict[str, str] = {}

    def format(self, name: str) -> Reader:
        assert name == "headgate"
        return self

    def options(self, **options: str) -> Reader:
        self.said = options
        return self

    def load(self) -> dict[str, str]:
        return self.said


class Spark:
    def __init__(self) -> None:
        self.registered: list[Any] = []

    @property
    def read(self) -> Reader:
        return Reader()

    readStream = read

    @property
    def dataSource(self) -> Any:
        return self

    def register(self, source: Any) -> None:
        self.registered.append(source)


SCHEMAS = {"memory": {"attributes": {}}, "stored": {"durability": "stored"}, "lonely": {"audit": True}}


class Client:
    def logs(self, stream: str | None, kind: str) -> list[LogInfo]:
        if stream not in (None, "quotes") or kind != "subscriptions":
            return []
        return [log("b1", LogKind.SUBSCRIPTIONS), log("b2", LogKind.SUBSCRIPTIONS)]

    def ask(self, verb: str, stream: str = "", at: str = "", after: str = "") -> Any:
        if verb == "ring":
            states = {"b1": "up", "b2": "up", "b3": "down"}
            return {"brokers": [{"name": name, "state": state} for name, state in states.items()]}
        if verb == "durables":
            kept = {"b1": ["a", "c"], "b2": ["b"]}[at]
            row = {"waiting": 5, "unacked": 2, "dead": 1}
            return [{"name": name} | row for name in kept if name > after][:1]
        assert verb == "schema.get"
        if stream not in SCHEMAS:
            raise Refused(ErrorCode.NOT_FOUND, "it has no schema")
        return {"stream": stream, "schema": SCHEMAS[stream]}


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> LogSource:
    found = LogSource("b1:7400,b2:7400", Client())  # type: ignore[arg-type]  # what is used of a client
    found.attach(Spark())
    return found


def test_streams_are_those_with_a_log_of_subscriptions(source: LogSource) -> None:
    assert source.streams() == ["quotes"]
    assert source.survey("quotes").since == 0


@pytest.mark.parametrize(
    ("stream", "words"),
    [("typo", "is not known"), ("memory", "is in memory"), ("stored", "is stored and not audited")],
)
def test_a_stream_of_which_nothing_is_kept_is_refused(source: LogSource, stream: str, words: str) -> None:
    with pytest.raises(UsageError, match=f"stream '{stream}' {words}"):
        source.check(stream)


@pytest.mark.parametrize("stream", ["quotes", "lonely"])
def test_a_stream_that_is_audited_may_be_judged(source: LogSource, stream: str) -> None:
    source.check(stream)


def test_every_broker_that_lives_is_asked_how_much_waits_for_whom(source: LogSource) -> None:
    assert source.held() == {"a": 8, "b": 8, "c": 8}


def test_logs_are_read_with_types_and_whole_where_history_needs_it(source: LogSource) -> None:
    frames = source.frames("quotes", 5_000_999)
    everywhere = {"headgate.bootstrap.servers": "b1:7400,b2:7400", "topic": "quotes", "failOnDataLoss": "false"}
    since = {"startingTimestamp": "5000"}
    assert frames.events == everywhere | since | {"subscribe": "events", "attributesSchema": "typed"}
    assert frames.deliveries == everywhere | since | {"subscribe": "deliveries"}
    assert frames.subscriptions == everywhere | {"subscribe": "subscriptions"}
    assert "startingTimestamp" not in source.frames("quotes").events


def test_a_stream_is_read_from_its_beginning(source: LogSource) -> None:
    said = source.read_stream("events", "quotes", attributesSchema="typed")
    assert said["startingOffsets"] == "earliest" and said["attributesSchema"] == "typed"
