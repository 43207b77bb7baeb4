"""Where an audit reads from: the logs of a cluster, through the data source that users have.

What is around the rows is asked of the brokers directly: which streams are audited, which logs lack their beginning
because retention took it, and which brokers nobody can reach.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from headgate.broker.core.config import broker_id
from headgate.protocol.blocking import BlockingClient
from headgate.protocol.client import LogInfo
from headgate.protocol.errors import ErrorCode, Refused

from ..exits import UsageError
from .audit_batch import Frames

__all__ = ["LogSource", "Survey", "survey_of"]

_KINDS = ("events", "deliveries", "subscriptions")


@dataclass(frozen=True, slots=True)
class Survey:
    """Which parts of a stream's logs can be read. Times in microseconds."""

    since: int
    """From then on nothing is missing from the logs of events and deliveries; 0: they are whole."""
    newest: int
    """When the newest event was accepted; 0 when there is none."""
    gone: tuple[str, ...] = ()
    """Brokers that cannot be reached, by the beginning of their origins."""
    notes: list[str] = field(default_factory=list)


class LogSource:
    """The logs behind these addresses, `host:port`, several with commas; `client` is connected to one of them.

    What there is can be asked at once; rows are read once a Spark session was attached.
    """

    def __init__(self, servers: str, client: BlockingClient) -> None:
        self._servers = servers
        self._client = client
        self._spark: Any = None

    def attach(self, spark: Any) -> None:
        """Read with this session, which has the data source (`start_session` sees to that)."""
        self._spark = spark

    def streams(self) -> list[str]:
        """The streams that are audited: of which some broker has a log of subscriptions."""
        return sorted({info.name.stream for info in self._client.logs(None, "subscriptions")})

    def check(self, stream: str) -> None:
        """Raises UsageError for a stream of whose deliveries nothing is kept."""
        if self._client.logs(stream, "subscriptions"):
            return
        schema = self._schema(stream)
        if schema and schema.get("audit"):
            return  # and nobody has subscribed yet
        if (schema or {}).get("durability") == "stored" or self._client.logs(stream, "events"):
            what = "is stored and not audited, so who was sent what is not known"
        elif schema is None:
            what = "is not known, so there is nothing to audit (`headgate streams` lists those that are)"
        else:
            what = "is in memory, so nothing of it is kept"
        raise UsageError(f'stream {stream!r} {what}: `headgate schema put` with "audit": true audits it from then on')

    def _schema(self, stream: str) -> dict[str, Any] | None:
        try:
            found = self._client.ask("schema.get", stream=stream)["schema"]
        except Refused as refused:
            if refused.code == ErrorCode.NOT_FOUND:
                return None
            raise
        return found if isinstance(found, dict) else None

    def survey(self, stream: str) -> Survey:
        """Find out which parts of a stream's logs can be read."""
        return survey_of({kind: self._client.logs(stream, kind) for kind in _KINDS})

    def held(self) -> dict[str, int]:
        """Of each durable subscription, how many events its coordinator has that are not acknowledged."""
        held: dict[str, int] = {}
        for broker in self._client.ask("ring")["brokers"]:
            after = ""
            while broker["state"] == "up":
                rows = self._client.ask("durables", at=broker["name"], after=after)
                if not rows:
                    break
                after = rows[-1]["name"]
                held |= {row["name"]: row["waiting"] + row["unacked"] + row["dead"] for row in rows}
        return held

    def frames(self, stream: str, since: int = 0) -> Frames:
        """The logs of a stream. Rows that were written before `since` (microseconds) may be left out."""
        starting = {"startingTimestamp": str(since // 1000)} if since else {}
        return Frames(
            self.read("events", stream, attributesSchema="typed", **starting),
            self.read("deliveries", stream, **starting),
            self.read("subscriptions", stream),
        )

    def read(self, kind: str, stream: str, **options: str) -> Any:
        """One kind of log as a DataFrame."""
        return self._with_options(self._spark.read, kind, stream, options).load()

    def read_stream(self, kind: str, stream: str, **options: str) -> Any:
        """The same as a streaming DataFrame, from the beginning."""
        options = {"startingOffsets": "earliest", **options}
        return self._with_options(self._spark.readStream, kind, stream, options).load()

    def _with_options(self, reader: Any, kind: str, stream: str, options: dict[str, str]) -> Any:
        # Rows that retention took are no failure here: the survey says from when on the logs are whole.
        base = {"headgate.bootstrap.servers": self._servers, "subscribe": kind, "topic": stream}
        return reader.format("headgate").options(**base, failOnDataLoss="false", **options)


def survey_of(logs: dict[str, list[LogInfo]]) -> Survey:
    """The survey that these logs, by kind, give."""
    cut = [info for kind in ("events", "deliveries") for info in logs[kind] if info.first > 0]
    since = max((info.first_time for info in cut), default=0)
    notes = [f"{info.partition} begins at position {info.first}: retention took what was before" for info in cut]
    everything = [info for infos in logs.values() for info in infos]
    newest_epoch: dict[str, int] = {}
    for info in everything:
        newest_epoch[info.name.broker] = max(info.name.epoch, newest_epoch.get(info.name.broker, 0))
    gone = sorted(
        {
            info.name.broker
            for info in everything
            if info.name.broker not in info.holders and info.name.epoch == newest_epoch[info.name.broker]
        }
    )
    notes += [f"broker {name} cannot be reached: its logs are read from copies" for name in gone]
    newest = max((info.last_time for info in logs["events"] if info.next > info.first), default=0)
    return Survey(since, newest, tuple(f"{broker_id(name):016x}" for name in gone), notes)
