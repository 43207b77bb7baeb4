"""What a user may set with `.option(name, value)`: one table for reading and writing, checked, and made into data.

One set of names serves both directions, because a temporary view hands the same options to its reader and to its
writer. Spark lower-cases the names on their way here, so messages take the spelling from the table.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime

from . import limits
from .errors import BadOption, MissingOption, UnknownOption

__all__ = [
    "KINDS",
    "OPTIONS",
    "STATE",
    "Access",
    "Option",
    "ReadOptions",
    "WriteOptions",
    "read_options",
    "write_options",
]

KINDS = ("events", "deliveries", "subscriptions")
"""The logs, in the order of their numbers."""

STATE = "state"
"""What brokers say of themselves, which is no log."""

_IDEMPOTENCE = ("guarded", "id", "none")
_DOCUMENTS = ("xml", "json")
_SECONDS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_BYTES = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "mib": 1 << 20}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Option:
    """A row of the table."""

    name: str
    default: str
    use: str
    meaning: str


OPTIONS = (
    Option("headgate.bootstrap.servers", "", "all", "brokers, `host:port,host:port`; one that answers is enough"),
    Option("headgate.request.timeout.ms", "30000", "all", "how long a lost broker is looked for"),
    Option("headgate.user", "", "all", "who this is, with `headgate.password`; else HEADGATE_USER of the driver"),
    Option("headgate.password", "", "all", "its password; else HEADGATE_PASSWORD of the driver"),
    Option("headgate.token", "", "all", "instead of both; else HEADGATE_TOKEN of the driver"),
    Option("headgate.tls.ca", "", "all", "whose brokers are trusted, a file; else HEADGATE_TLS_CA"),
    Option("headgate.tls.cert", "", "all", "a certificate to show, a file; else HEADGATE_TLS_CERT"),
    Option("headgate.tls.key", "", "all", "its key; else HEADGATE_TLS_KEY"),
    Option(
        "topic", "", "all", "write: the topic of every row; read: streams, or patterns in them, with commas between"
    ),
    Option("subscribe", "events", "read", "which log: `events`, `deliveries` or `subscriptions`; or `state`"),
    Option("filter", "", "read", "a condition that the broker evaluates; only `events`"),
    Option("startingOffsets", "", "read", "`earliest` (batch), `latest` (streaming), or JSON by log"),
    Option("endingOffsets", "latest", "read", "`latest`, or JSON by log; batch only"),
    Option("startingTimestamp", "", "read", "from this time on (milliseconds, or ISO 8601); wins over offsets"),
    Option("endingTimestamp", "", "read", "up to, and without, this time; batch only"),
    Option("maxOffsetsPerTrigger", "", "read", "rows of one micro-batch at most; streaming only"),
    Option("minOffsetsPerTrigger", "", "read", "a micro-batch waits for so many rows; streaming only"),
    Option("maxTriggerDelay", "15m", "read", "and no longer than this; streaming only"),
    Option("minPartitions", "", "read", "tasks to split the logs into, at least; one reads 250,000 events at most"),
    Option("maxRecordsPerFetch", "10000", "read", "rows of one Arrow batch"),
    Option("failOnDataLoss", "true", "read", "`false`: go on when positions asked for are gone"),
    Option(
        "attributesSchema",
        "",
        "read",
        "`symbol STRING, price DOUBLE`: attributes as a struct of these; `declared`: of the schema",
    ),
    Option("producerId", "", "write", "names the job; the same again goes on where it stopped"),
    Option("idempotence", "guarded", "write", "`guarded`, `id`, `none`: how a retry is kept from repeating"),
    Option("eventIdColumn", "", "write", "a column that is unique in the job; means `idempotence` `id`"),
    Option("documentColumn", "", "write", "the column that is the body and a document, whose structure XPATH can ask"),
    Option("documentKind", "xml", "write", "`xml` or `json`: what 'documentColumn' holds"),
    Option("inflight", "8", "write", "frames that may be unanswered"),
    Option("maxFrameBytes", "1MiB", "write", "bytes of records in one frame"),
    Option("ackTimeout", "30s", "write", "how long a task waits for an answer"),
    Option("checkpointLocation", "", "stream", "Spark's own, which it also shows to us"),
)

_NO_GROUP = "nothing: how far a query has come is in its checkpoint"
_OTHERS = {
    "kafka.bootstrap.servers": "'headgate.bootstrap.servers'",
    "subscribepattern": "'topic' with a pattern such as quotes/*/OTE",
    "assign": "'topic', and 'startingOffsets' by log",
    "includeheaders": "nothing: column 'headers' is always there",
    "startingoffsetsbytimestamp": "'startingTimestamp'",
    "endingoffsetsbytimestamp": "'endingTimestamp'",
    "kafka.group.id": _NO_GROUP,
    "groupidprefix": _NO_GROUP,
}
"""Options of Kafka's source, in lower case -> what to write here."""

_CANONICAL = {option.name.lower(): option for option in OPTIONS}


@dataclass(frozen=True, slots=True)
class Access:
    """Who connects, and what it trusts; "" where nothing is said."""

    user: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""

    @classmethod
    def of_environment(cls) -> Access:
        """As the command line has it."""
        return cls(*(os.environ.get(f"HEADGATE_{one.name.upper()}", "") for one in fields(cls)))


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """What a writer needs to know."""

    servers: str
    request_seconds: float
    topic: str
    producer_id: str
    idempotence: str
    id_column: str
    document_column: str
    document_kind: str
    inflight: int
    frame_bytes: int
    ack_seconds: float
    access: Access = Access()


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a reader needs to know. Offsets stay text until the logs are known; times are microseconds or None."""

    servers: str
    request_seconds: float
    kind: str
    topic: str
    condition: str
    starting: str
    ending: str
    starting_time: int | None
    ending_time: int | None
    trigger_events: int | None
    trigger_events_min: int | None
    trigger_seconds: float
    partitions_min: int
    fetch_records: int
    fail_on_data_loss: bool
    attributes_schema: str
    access: Access = Access()

    @property
    def patterns(self) -> dict[str, str]:
        """The streams that are read -> what the broker is to keep of their topics; empty when that is all of them."""
        topics = [topic.strip() for topic in self.topic.split(",")]
        return {topic.split("/", 1)[0]: topic if "/" in topic else "" for topic in topics}


class _Values:
    """The options as given, with defaults, read one by one."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given: dict[str, str] = {}
        for name, value in given.items():
            option = _CANONICAL.get(name.lower())
            if option is None:
                raise UnknownOption(name, tuple(one.name for one in OPTIONS), _OTHERS.get(name.lower(), ""))
            self._given[option.name] = str(value).strip()

    def given(self, name: str) -> bool:
        return bool(self._given.get(name))

    def text(self, name: str) -> str:
        return self._given.get(name) or _CANONICAL[name.lower()].default

    def one_of(self, name: str, allowed: tuple[str, ...]) -> str:
        value = self.text(name).lower()
        if value not in allowed:
            raise BadOption(name, self.text(name), "one of " + ", ".join(allowed))
        return value

    def flag(self, name: str) -> bool:
        return self.one_of(name, ("true", "false")) == "true"

    def count(self, name: str, high: int) -> int:
        value = self.text(name)
        if not value.isdecimal() or not 1 <= int(value) <= high:
            raise BadOption(name, value, f"a whole number from 1 to {high}")
        return int(value)

    def amount(self, name: str, units: Mapping[str, float], low: float, high: float, example: str) -> float:
        match = _AMOUNT.fullmatch(self.text(name))
        unit = units.get(match[2].lower()) if match else None
        if match is None or unit is None or not low <= float(match[1]) * unit <= high:
            raise BadOption(name, self.text(name), f"{example}, from {low:g} to {high:g}")
        return float(match[1]) * unit

    def time(self, name: str) -> int | None:
        value = self.text(name)
        if not value:
            return None
        if value.isdecimal():
            return int(value) * 1000
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            raise BadOption(name, value, "milliseconds since 1970, or a time such as 2026-05-01T12:00:00Z") from None
        since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
        return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds

    def topics(self) -> str:
        """The streams or patterns of a read, one a stream."""
        parts = [part.strip() for part in self.text("topic").split(",")]
        if not all(parts):
            raise MissingOption("topic", "name the stream whose log is read, or several with commas between")
        if len({part.split("/", 1)[0] for part in parts}) < len(parts):
            raise BadOption(
                "topic", self.text("topic"), "each stream once; for two patterns of a stream write two reads"
            )
        if len(parts) > limits.STREAMS_READ_MAX:
            raise BadOption("topic", self.text("topic"), f"at most {limits.STREAMS_READ_MAX} streams")
        return ",".join(parts)

    def servers(self) -> str:
        value = self.text("headgate.bootstrap.servers")
        if not value:
            raise MissingOption("headgate.bootstrap.servers", "write the address of a broker, such as 127.0.0.1:7400")
        return ",".join(one.strip() for one in value.split(",") if one.strip())

    def access(self) -> Access:
        """What options say; what the environment says of who this is only where they say nothing of that."""
        said = {one.name: self.text(f"headgate.{one.name.replace('_', '.')}") for one in fields(Access)}
        known = Access.of_environment()
        if said["user"] or said["password"] or said["token"]:
            known = replace(known, user="", password="", token="")
        if known.token and known.user:
            known = replace(known, user="", password="")
        return replace(known, **{name: value for name, value in said.items() if value})

    def request_seconds(self) -> float:
        return self.count("headgate.request.timeout.ms", 3_600_000) / 1000


def write_options(given: Mapping[str, str]) -> WriteOptions:
    """The options of a write. Raises a ConnectorError that names the option."""
    values = _Values(given)
    id_column = values.text("eventIdColumn")
    idempotence = "id" if id_column and not values.given("idempotence") else values.one_of("idempotence", _IDEMPOTENCE)
    if id_column and idempotence != "id":
        raise BadOption("idempotence", idempotence, "'id', because 'eventIdColumn' is set; take one of them away")
    if values.given("documentKind") and not values.given("documentColumn"):
        raise BadOption(
            "documentKind", values.text("documentKind"), "set beside 'documentColumn', the column it is about"
        )
    frame_bytes = values.amount(
        "maxFrameBytes", _BYTES, limits.FRAME_BYTES_MIN, limits.FRAME_BYTES_MAX, "bytes such as 1MiB or 65536"
    )
    return WriteOptions(
        servers=values.servers(),
        request_seconds=values.request_seconds(),
        topic=values.text("topic"),
        producer_id=values.text("producerId"),
        idempotence=idempotence,
        id_column=id_column or "event_id",
        document_column=values.text("documentColumn"),
        document_kind=values.one_of("documentKind", _DOCUMENTS),
        inflight=values.count("inflight", limits.INFLIGHT_MAX),
        frame_bytes=int(frame_bytes),
        ack_seconds=values.amount("ackTimeout", _SECONDS, 0.001, limits.ACK_SECONDS_MAX, "a time such as 30s or 500ms"),
        access=values.access(),
    )


def read_options(given: Mapping[str, str], *, streaming: bool = False) -> ReadOptions:
    """The options of a read. Raises a ConnectorError that names the option."""
    values = _Values(given)
    if values.text("subscribe") == STATE:
        if streaming:
            raise BadOption("subscribe", STATE, f"{', '.join(KINDS)} in a stream; 'state' is read once")
        if "/" in values.text("topic"):
            raise BadOption(
                "topic", values.text("topic"), "a stream, or nothing for all of them, beside 'subscribe' 'state'"
            )
    elif values.text("subscribe") not in KINDS and not values.given("topic"):
        cure = f"which log is read ({', '.join(KINDS)}); the stream is option 'topic', '{values.text('subscribe')}'"
        raise BadOption("subscribe", values.text("subscribe"), cure)
    kind = values.one_of("subscribe", (*KINDS, STATE))
    topic = values.text("topic") if kind == STATE else values.topics()
    if kind != "events" and values.text("filter"):
        raise BadOption("filter", values.text("filter"), "set for 'subscribe' 'events' alone; use where() after it")
    if kind != "events" and "/" in topic:
        raise BadOption("topic", topic, f"the name of a stream, without '/', because 'subscribe' is {kind!r}")
    trigger = values.text("maxOffsetsPerTrigger")
    trigger_min = values.text("minOffsetsPerTrigger")
    partitions = values.text("minPartitions")
    return ReadOptions(
        servers=values.servers(),
        request_seconds=values.request_seconds(),
        kind=kind,
        topic=topic,
        condition=values.text("filter"),
        starting=values.text("startingOffsets") or ("latest" if streaming else "earliest"),
        ending=values.text("endingOffsets"),
        starting_time=values.time("startingTimestamp"),
        ending_time=values.time("endingTimestamp"),
        trigger_events=values.count("maxOffsetsPerTrigger", 2**53) if trigger else None,
        trigger_events_min=values.count("minOffsetsPerTrigger", 2**53) if trigger_min else None,
        trigger_seconds=values.amount(
            "maxTriggerDelay", _SECONDS, 0.001, limits.TRIGGER_SECONDS_MAX, "a time such as 15m"
        ),
        partitions_min=values.count("minPartitions", limits.PARTITIONS_MAX) if partitions else 1,
        fetch_records=values.count("maxRecordsPerFetch", limits.FETCH_RECORDS_MAX),
        fail_on_data_loss=values.flag("failOnDataLoss"),
        attributes_schema=values.text("attributesSchema"),
        access=values.access(),
    )
