"""Options: every name known, every value checked, every complaint by the option's own spelling."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.protocol.spark import limits
from headgate.protocol.spark.errors import BadOption, ConnectorError, MissingOption, UnknownOption
from headgate.protocol.spark.options import OPTIONS, Access, read_options, write_options

SERVERS = {"headgate.bootstrap.servers": "one:7400, two:7400"}


def written(**more: str) -> Any:
    return write_options(SERVERS | {"topic": "quotes/a"} | more)


def read(**more: str) -> Any:
    return read_options(SERVERS | {"topic": "quotes"} | more)


def test_defaults() -> None:
    options = written()
    assert options.servers == "one:7400,two:7400"
    assert (options.idempotence, options.id_column, options.inflight) == ("guarded", "event_id", 8)
    assert (options.frame_bytes, options.ack_seconds, options.request_seconds) == (1 << 20, 30.0, 30.0)
    reading = read()
    assert (reading.kind, reading.starting, reading.ending) == ("events", "earliest", "latest")
    assert (reading.fetch_records, reading.fail_on_data_loss) == (10_000, True)
    assert (reading.trigger_events, reading.partitions_min) == (None, 1)
    assert read_options(SERVERS | {"topic": "quotes"}, streaming=True).starting == "latest"


def test_names_come_in_lower_case_and_are_named_as_they_are_spelt() -> None:
    with pytest.raises(BadOption, match="'maxOffsetsPerTrigger'"):
        read_options({"headgate.bootstrap.servers": "a", "topic": "q", "maxoffsetspertrigger": "many"})


def test_both_directions_take_the_names_of_both() -> None:
    every = {option.name: option.default or "x" for option in OPTIONS}
    every |= {"startingTimestamp": "1", "endingTimestamp": "2", "maxOffsetsPerTrigger": "5", "minPartitions": "2"}
    every |= {"minOffsetsPerTrigger": "3"}
    assert write_options(every | {"idempotence": "id"}).id_column == "x"
    assert read_options(every).condition == "x"


def test_an_unknown_name_is_refused_with_the_nearest_known() -> None:
    with pytest.raises(UnknownOption, match="did you mean 'startingOffsets'"):
        read(startingOfsets="earliest")


@pytest.mark.parametrize("use", [write_options, read_options])
def test_a_broker_is_needed(use: Any) -> None:
    with pytest.raises(MissingOption, match="bootstrap"):
        use({"topic": "quotes"})


def test_a_read_needs_a_stream_and_a_write_may_do_without() -> None:
    with pytest.raises(MissingOption, match="'topic'"):
        read_options(SERVERS)
    assert write_options(SERVERS).topic == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("inflight", "0"),
        ("inflight", str(limits.INFLIGHT_MAX + 1)),
        ("inflight", "eight"),
        ("maxFrameBytes", "1"),
        ("maxFrameBytes", "4GiB"),
        ("maxFrameBytes", "1 parsec"),
        ("ackTimeout", "soon"),
        ("ackTimeout", "0s"),
        ("idempotence", "maybe"),
        ("documentKind", "json"),
        ("headgate.request.timeout.ms", "1s"),
    ],
)
def test_a_bad_value_of_a_write_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(BadOption, match=name) as caught:
        written(**{name: value})
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("subscribe", "everything"),
        ("maxOffsetsPerTrigger", "0"),
        ("minPartitions", "-1"),
        ("maxRecordsPerFetch", "1.5"),
        ("failOnDataLoss", "perhaps"),
        ("startingTimestamp", "yesterday"),
        ("endingTimestamp", "-5"),
    ],
)
def test_a_bad_value_of_a_read_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(BadOption, match=name):
        read(**{name: value})


@pytest.mark.parametrize(
    ("text", "seconds"), [("30", 30.0), ("30s", 30.0), ("500ms", 0.5), ("2 m", 120.0), ("1H", 3600.0), ("1.5s", 1.5)]
)
def test_times(text: str, seconds: float) -> None:
    assert written(ackTimeout=text).ack_seconds == seconds


@pytest.mark.parametrize(("text", "size"), [("65536", 65536), ("64k", 65536), ("2 MiB", 2 << 20), ("1.5mb", 3 << 19)])
def test_sizes(text: str, size: int) -> None:
    assert written(maxFrameBytes=text).frame_bytes == size


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("1500", 1_500_000),
        ("1970-01-01T00:00:02Z", 2_000_000),
        ("1970-01-01T00:00:02.000001", 2_000_001),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-02", 86_400_000_000),
    ],
)
def test_timestamps_are_microseconds_and_utc_when_nothing_else_is_said(text: str, time: int) -> None:
    assert read(startingTimestamp=text).starting_time == time


def test_an_id_column_means_id_mode() -> None:
    assert written(eventIdColumn="id").idempotence == "id"
    assert written(eventIdColumn="id", idempotence="ID").idempotence == "id"
    assert written(idempotence="id").id_column == "event_id"
    with pytest.raises(BadOption, match="eventIdColumn"):
        written(eventIdColumn="id", idempotence="guarded")


def test_stream_and_pattern_of_a_topic() -> None:
    assert read().patterns == {"quotes": ""}
    assert read(topic="quotes/*/OTE, trades").patterns == {"quotes": "quotes/*/OTE", "trades": ""}
    for wrong in ("a,,b", "a/x,a/y"):
        with pytest.raises(ConnectorError, match="topic"):
            read(topic=wrong)


def test_who_knows_kafka_is_told_the_name_here() -> None:
    told = {
        "kafka.bootstrap.servers": "'headgate.bootstrap.servers'",
        "subscribePattern": "'topic'",
        "kafka.group.id": "nothing: .*checkpoint",
    }
    for name, instead in told.items():
        with pytest.raises(UnknownOption, match=f"Kafka.*{instead}"):
            read(**{name: "x"})
    with pytest.raises(BadOption, match="the stream is option 'topic', 'trades'"):
        read_options({"headgate.bootstrap.servers": "x:1", "subscribe": "trades"})


@pytest.mark.parametrize("kind", ["deliveries", "subscriptions"])
def test_filters_and_patterns_are_for_events(kind: str) -> None:
    assert read(subscribe=kind).kind == kind
    for more in ({"filter": "price > 1"}, {"topic": "quotes/a"}):
        with pytest.raises(BadOption):
            read(subscribe=kind, **more)


def test_every_complaint_is_a_connector_error() -> None:
    assert issubclass(BadOption, ConnectorError)


def test_every_option_has_a_meaning() -> None:
    assert all(option.meaning and option.use in ("all", "read", "write", "stream") for option in OPTIONS)
    assert len({option.name.lower() for option in OPTIONS}) == len(OPTIONS)


def test_who_connects_is_an_option_or_the_environment_of_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("USER", "PASSWORD", "TOKEN", "TLS_CA", "TLS_CERT", "TLS_KEY"):
        monkeypatch.delenv(f"HEADGATE_{name}", raising=False)
    assert read(topic="q").access == Access()
    monkeypatch.setenv("HEADGATE_TOKEN", "hg_1")
    monkeypatch.setenv("HEADGATE_TLS_CA", "ca.pem")
    assert read(topic="q").access == Access(token="hg_1", tls_ca="ca.pem")
    said = {"headgate.user": "ann", "headgate.password": "horse", "headgate.tls.cert": "c", "headgate.tls.key": "k"}
    access = read_options(SERVERS | {"topic": "q"} | said).access
    assert access == Access("ann", "horse", "", "ca.pem", "c", "k")
    assert "horse" not in repr(access)
    assert write_options(SERVERS | said).access == access
