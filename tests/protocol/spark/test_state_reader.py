"""The state of a cluster as rows: every broker's streams, subscriptions and logs, page by page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from headgate.protocol.errors import ErrorCode, Refused  # noqa: E402
from headgate.protocol.spark import state_reader  # noqa: E402
from headgate.protocol.spark.errors import BadOption  # noqa: E402
from headgate.protocol.spark.options import read_options  # noqa: E402
from headgate.protocol.spark.schemas import schema_text  # noqa: E402
from headgate.protocol.spark.state_reader import StateReader, state_rows  # noqa: E402

GIVEN = {"headgate.bootstrap.servers": "one:7400", "subscribe": "state"}


class FakeCluster:
    """`ann` answers in pages of two, `bob` not at all, `eve` is down."""

    SUBS = (
        {"id": 1, "pattern": "q/a", "pace": "ok"},
        {"id": 2, "pattern": "q"},
        {"id": 5, "pattern": "r", "exact": True},
    )
    LOGS = tuple({"broker": "ann", "epoch": epoch, "kind": "events", "stream": "q"} for epoch in (7, 8, 9))

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def ask(self, verb: str, **details: Any) -> Any:
        self.asked.append((verb, details))
        if verb == "ring":
            states = {"ann": "up", "bob": "up", "eve": "down"}
            return {"brokers": [{"name": name, "state": state} for name, state in states.items()]}
        if details["at"] == "bob":
            raise Refused(ErrorCode.UNAVAILABLE, "bob does not answer")
        if verb == "subs":
            return [row for row in self.SUBS if row["id"] > details.get("after", 0)][:2]  # type: ignore[operator]
        if verb == "logs":
            return list(self.LOGS[details["after"] :][:2])
        return [] if "after" in details else [{"stream": "q", "events": 4}]


def test_everything_of_every_broker() -> None:
    rows = list(state_rows(FakeCluster(), "", 5))
    assert [(row["what"], row["broker"], row["name"], row["stream"]) for row in rows] == [
        ("broker", "ann", "ann", ""),
        ("stream", "ann", "q", "q"),
        ("subscription", "ann", "1", "q"),
        ("subscription", "ann", "2", "q"),
        ("subscription", "ann", "5", "r"),
        *(("log", "ann", f"ann@{epoch}", "q") for epoch in (7, 8, 9)),
        ("broker", "bob", "bob", ""),
        ("broker", "bob", "bob", ""),
        ("broker", "eve", "eve", ""),
    ]
    assert dict(rows[4]["fields"]) == {"id": "5", "pattern": "r", "exact": "true"}
    assert dict(rows[9]["fields"]) == {"state": "down", "reason": "bob does not answer"}


def test_one_stream_is_asked_for() -> None:
    cluster = FakeCluster()
    list(state_rows(cluster, "q", 5))
    assert all(details.get("stream") == "q" for verb, details in cluster.asked if verb != "ring")


def test_what_brokers_refuse_is_told() -> None:
    class Strict(FakeCluster):
        def ask(self, verb: str, **details: Any) -> Any:
            if verb == "subs":
                raise Refused(ErrorCode.BAD_REQUEST, "no")
            return super().ask(verb, **details)

    with pytest.raises(Refused):
        list(state_rows(Strict(), "", 5))


def test_columns_as_spark_asks_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def talking(servers: str, seconds: float, name: str, *access: object) -> Iterator[FakeCluster]:
        yield FakeCluster()

    monkeypatch.setattr(state_reader, "connected", talking)
    texts = pa.map_(pa.string(), pa.string())
    schema = pa.schema({"name": pa.string(), "at": pa.timestamp("us", tz="UTC"), "fields": texts})
    for asked in (schema, pa.schema([])):
        reader = StateReader(read_options(GIVEN), asked)
        (part,) = reader.partitions()
        (batch,) = reader.read(part)
        assert (batch.schema, batch.num_rows) == (asked, 11)


def test_its_options() -> None:
    assert schema_text(read_options(GIVEN)).startswith("what STRING")
    with pytest.raises(BadOption, match="a stream, or nothing"):
        read_options(GIVEN | {"topic": "q/a"})
    with pytest.raises(BadOption, match="read once"):
        read_options(GIVEN, streaming=True)
