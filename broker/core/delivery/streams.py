"""Streams: the index of each, who publishes to it, what its publishers should send, its schema and counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from headgate.matching import Index, TopicError, check_topic
from headgate.matching.cube import BITS_MAX, FOLD
from headgate.matching.limits import FILTER_BITS_MAX, FILTER_HASHES_MAX
from headgate.matching.structure import DEFAULT_SHAPE, Shape
from headgate.protocol.data import LEVEL_COLUMNS
from headgate.protocol.errors import ErrorCode, Refused
from headgate.protocol.limits import INTEREST_ATTRIBUTES_MAX

from ..keyspace import KBSP, ROUTINGS, is_cube
from ..limits import (
    DEFAULT_LIMITS,
    KEY_BITS_DEFAULT,
    KEY_BITS_MIN,
    RETENTION_BYTES_MIN,
    RETENTION_SECONDS_MIN,
    TOPIC_OVERHEAD_BYTES,
    Limits,
)

if TYPE_CHECKING:
    from .subscribers import ClientSession

__all__ = [
    "DEFAULTS",
    "Plan",
    "SETTINGS",
    "Stream",
    "StreamSettings",
    "Streams",
    "check_settings",
    "read_settings",
    "stream_of",
]

# Stream settings: what a schema says about a stream beside its attributes, read and checked in this one place.
#
# durability         "memory" (default): delivered and forgotten. "stored": every batch is in the log of the broker
#                    that accepted it before any subscriber sees it
# audit              deliveries and the history of subscriptions are logged as well; that takes a stored stream
# verify             match columns are derived from the records, whatever the publisher sent; as `audit` unless said.
#                    Filters of documents cannot be, so none is believed: XPATH is sent every document
# retention_seconds  what is older leaves the logs
# retention_bytes    what is more, oldest first, leaves each log
# dynamic            who decides DELTA: "auto" (default), or "local", the broker of the client; auto takes local as well
# placement          how subscriptions are put where events pass: "anchored" (default), or "counting"
# structure.routing  how events find subscriptions with XPATH on the cube: "kbsp" (default), "kbpp" or "flood"
# structure.l, .k    bits of a filter, and hashes of an item (1,024 and 1)
# structure.n        bits of a key: the cube has 2^n vertices (8; log2 of the brokers, where they are more than 64)
# structure.map      which bit of a key each bit of a filter goes to: "fold", or what `headgate schema learn` learned

_CHOICES = {
    "durability": ("memory", "stored"),
    "dynamic": ("auto", "local"),
    "placement": ("anchored", "counting"),
    "structure.routing": ROUTINGS,
}
_SWITCHES = ("audit", "verify")
_LEAST = {"retention_seconds": RETENTION_SECONDS_MIN, "retention_bytes": RETENTION_BYTES_MIN}
_WHOLE = {"structure.l": range(8, FILTER_BITS_MAX + 1, 8), "structure.k": range(1, FILTER_HASHES_MAX + 1)}
_WHOLE["structure.n"] = range(KEY_BITS_MIN, BITS_MAX + 1)

_MAP = "structure.map"

SETTINGS = (*_CHOICES, *_SWITCHES, *_LEAST, *_WHOLE, _MAP)
"""The keys of a schema that are settings."""


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """What a schema says of a stream beside its attributes; a retention of None is for ever."""

    durability: str = "memory"
    audit: bool = False
    verify: bool = False
    retention_seconds: float | None = None
    retention_bytes: float | None = None
    placement: str = "anchored"
    dynamic: str = "auto"
    structure_routing: str = KBSP
    structure_l: int = DEFAULT_SHAPE.length
    structure_k: int = DEFAULT_SHAPE.hashes
    structure_n: int = KEY_BITS_DEFAULT
    structure_map: str = FOLD

    @property
    def shape(self) -> Shape:
        """What filters of documents and twigs are made with."""
        return Shape(self.structure_l, self.structure_k)

    @property
    def stored(self) -> bool:
        """Whether events go to the log."""
        return self.durability == "stored"


DEFAULTS = StreamSettings()
"""Of a stream without a schema."""


def read_settings(schema: Any) -> StreamSettings:
    """The settings in a schema. What cannot be understood, because another version wrote it, counts as not said."""
    if type(schema) is not dict:
        return DEFAULTS
    said = {name: schema[name] for name in SETTINGS if name in schema and not _objection(name, schema[name])}
    audit = said.get("audit", False)
    said.setdefault("verify", audit)
    if audit:
        said["durability"] = "stored"
    settings = StreamSettings(**{name.replace(".", "_"): value for name, value in said.items()})
    has_map = is_cube(settings.shape.column, settings.structure_n, settings.structure_map)
    return settings if has_map else replace(settings, structure_map=FOLD)


def check_settings(schema: dict[str, Any]) -> None:
    """Raises Refused, saying what to write, unless the settings in a schema make sense."""
    for name in SETTINGS:
        objection = _objection(name, schema[name]) if name in schema else ""
        if objection:
            raise Refused(ErrorCode.BAD_REQUEST, f"{name} {objection}, not {schema[name]!r}")
    if schema.get("audit", False) and schema.get("durability", "stored") != "stored":
        text = "an audited stream keeps a log, so its durability is stored: "
        raise Refused(ErrorCode.BAD_REQUEST, text + "write that, leave durability out, or say audit false")
    about = [name for name in SETTINGS if name.startswith("structure.") and name in schema]
    if about and read_settings(schema).verify:
        text = f"{about[0]} is about filters of documents, and with verify true brokers believe none that a publisher "
        text += "sends: they cannot make their own, because a broker never parses a document. "
        text += "Say verify false (audit true turns it on), or leave the structure settings out: XPATH is then sent "
        raise Refused(ErrorCode.BAD_REQUEST, text + "every document, and subscribers are shown those that match")
    if _MAP in schema and read_settings(schema).structure_map != schema[_MAP]:
        text = f"{_MAP} is not one from structure.l bits to structure.n, which may have changed since it was learned: "
        raise Refused(ErrorCode.BAD_REQUEST, text + "learn it anew (`headgate schema learn`), or remove it with null")
    kept = [name for name in _LEAST if schema.get(name) is not None]
    if kept and not read_settings(schema).stored:
        text = f"{kept[0]} is about a stored stream, and this one would be kept in memory"
        raise Refused(
            ErrorCode.BAD_REQUEST, f"{text}: say durability stored as well, or leave {kept[0]} out (null removes it)"
        )


def _objection(name: str, value: Any) -> str:
    """What such a value has to be, when this is none."""
    if name == "dynamic" and value in ("sf", "mfd"):
        return f"is {' or '.join(_CHOICES[name])}: filters on a segment of the ring are measured, and not served"
    if name in _CHOICES:
        return "" if value in _CHOICES[name] else f"is {' or '.join(_CHOICES[name])}"
    if name in _SWITCHES:
        return "" if type(value) is bool else "is true or false"
    if name == _MAP:
        return "" if type(value) is str else "is text"
    if name in _WHOLE:
        whole = _WHOLE[name]
        by = "" if whole.step == 1 else f", a multiple of {whole.step}"
        return "" if type(value) is int and value in whole else f"is a whole number from {whole[0]} to {whole[-1]}{by}"
    if value is None or (type(value) in (int, float) and _LEAST[name] <= value < float("inf")):
        return ""
    return f"is a number from {_LEAST[name]:.0f} on, or null"


Plan: TypeAlias = tuple[Any, ...]
"""The sessions that get an event, each followed by the number, or the list of numbers, of its own subscriptions that
asked for it. Flat, and a lone number bare, because a plan is read for every event: each object between is a cache miss.
"""


def stream_of(topics: str) -> str:
    """The stream of a column of topics: the first level of the first one."""
    return topics.partition("\n")[0].partition("/")[0]


class TopicMemory:
    """The bytes that all streams together remember topics with; over the bound all of it is forgotten at once."""

    def __init__(self, forget: Callable[[], None], bytes_max: int = DEFAULT_LIMITS.known_topics_bytes) -> None:
        self.spent = 0
        self.bytes_max = bytes_max
        self._forget = forget

    def spend(self, topic: str) -> None:
        """One more topic is going to be remembered."""
        self.spent += len(topic) + TOPIC_OVERHEAD_BYTES
        if self.spent > self.bytes_max:
            self._forget()
            self.spent = 0


class Stream:
    """One stream on this broker."""

    __slots__ = (
        "_asked",
        "_fed",
        "_memory",
        "deliveries",
        "events",
        "index",
        "interest",
        "known_topics",
        "lanes",
        "name",
        "plain",
        "publishers",
        "settings",
        "verifies",
    )

    def __init__(
        self,
        name: str,
        memory: TopicMemory | None = None,
        settings: StreamSettings = DEFAULTS,
        verified: bool = False,
    ) -> None:
        self.name = name
        self.use(settings, verified)
        self._memory = memory or TopicMemory(self.forget_topics)
        self.index = Index()
        self.interest: tuple[str, ...] | None = ()
        self._asked: Sequence[str] = ()
        self._fed: Sequence[str] = ()
        self.publishers: dict[bytes, ClientSession] = {}
        self.known_topics: set[str] = set()
        self.lanes: dict[str, Plan] = {}
        self.events = 0
        self.deliveries = 0

    def use(self, settings: StreamSettings, verified: bool = False) -> None:
        """These are its settings from now on. `plain`: nothing but delivery is asked of it, as is common. `verified`:
        rights of a user depend on what its events hold.
        """
        self.settings = settings
        self.verifies = settings.verify or verified
        self.plain = not settings.stored and not self.verifies

    def check_topics(self, topics: Sequence[str]) -> None:
        """Raises TopicError unless each is a well-formed topic of this stream; a known topic costs one look-up."""
        known = self.known_topics
        if known.issuperset(topics):
            return
        for topic in topics:
            if topic not in known:
                check_topic(topic)
                if topic.partition("/")[0] != self.name:
                    raise TopicError(topic, f"this batch is of stream {self.name!r}", "send one batch a stream")
                self._memory.spend(topic)
                known.add(topic)

    def keep_lane(self, topic: str, plan: Plan) -> None:
        """Remember the plan of a topic that no condition has a say in."""
        self._memory.spend(topic)
        self.lanes[topic] = plan

    def forget_topics(self) -> None:
        """Check and resolve every topic anew."""
        self.known_topics.clear()
        self.lanes.clear()
        self.index.forget_topics()

    def subscriptions_changed(self) -> None:
        """What was remembered of topics may be wrong now."""
        self.lanes.clear()

    def show_interest(self, names: Sequence[str]) -> bool:
        """The attributes that a subscription anywhere in the cluster filters on; True when publishers must be told of
        another set.
        """
        self._asked = [name for name in names if not name.startswith(LEVEL_COLUMNS)]
        return self._add_up()

    def show_fed(self, names: Sequence[str]) -> bool:
        """The same of feeds of durable subscriptions from logs of this broker."""
        self._fed = [name for name in names if not name.startswith(LEVEL_COLUMNS)]
        return self._add_up()

    def _add_up(self) -> bool:
        names = tuple(self._asked) if not self._fed else tuple(sorted({*self._asked, *self._fed}))
        interest = names if len(names) <= INTEREST_ATTRIBUTES_MAX else None
        if interest == self.interest:
            return False
        self.interest = interest
        return True


class Streams:
    """All streams of this broker by name; they come into being by use."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._streams_max = limits.streams
        self.by_name: dict[str, Stream] = {}
        self._memory = TopicMemory(self._forget_topics, limits.known_topics_bytes)
        self.schemas: dict[str, Any] = {}
        self._settings: dict[str, StreamSettings] = {}
        self.verified: frozenset[str] = frozenset()
        """Those of which match columns are derived, whatever their settings say."""
        self.changes: list[tuple[str, StreamSettings, StreamSettings]] = []
        """Streams whose settings changed, with those of before and after; not told to any other part yet."""

    def declare(self, name: str, schema: Any) -> None:
        """The stream has this schema from now on, and the settings in it."""
        self.schemas[name] = schema
        self._use(name, read_settings(schema))

    def undeclare(self, name: str) -> None:
        """It has none any more."""
        del self.schemas[name]
        self._use(name, DEFAULTS)

    def settings_of(self, name: str) -> StreamSettings:
        """The settings of a stream, whether it is in use here or not."""
        return self._settings.get(name, DEFAULTS)

    def _use(self, name: str, settings: StreamSettings) -> None:
        before = self.settings_of(name)
        if settings == DEFAULTS:
            self._settings.pop(name, None)
        else:
            self._settings[name] = settings
        if name in self.by_name:
            self.by_name[name].use(settings, name in self.verified)
        if settings != before:
            self.changes.append((name, before, settings))

    def verify(self, names: frozenset[str]) -> None:
        """The streams whose events decide, by what they hold, who may have them; all of them, for this takes the place
        of what was said before.
        """
        self.verified = names
        for name, stream in self.by_name.items():
            stream.use(stream.settings, name in names)

    def take_changes(self) -> list[tuple[str, StreamSettings, StreamSettings]]:
        """Takes the changes out; the caller tells the other parts of them."""
        changes, self.changes = self.changes, []
        return changes

    def find(self, name: str) -> Stream | None:
        """The stream of that name, made if need be; None when there are too many."""
        stream = self.by_name.get(name)
        if stream is None:
            if len(self.by_name) >= self._streams_max and not self._make_room():
                return None
            settings = self._settings.get(name, DEFAULTS)
            stream = self.by_name[name] = Stream(name, self._memory, settings, name in self.verified)
        return stream

    def _make_room(self) -> bool:
        """Let go of the oldest stream without publishers and subscriptions; False when there is none."""
        for name, stream in self.by_name.items():
            if not stream.publishers and not len(stream.index):
                del self.by_name[name]
                return True
        return False

    def forget_lanes(self) -> None:
        """Other keys are answered for here than before: plans of topics are made anew."""
        for stream in self.by_name.values():
            stream.lanes.clear()

    def _forget_topics(self) -> None:
        for stream in self.by_name.values():
            stream.forget_topics()

    def validate(self) -> None:
        """Settings are those of the schemas, and memory of topics is within its bound."""
        assert len(self.by_name) <= self._streams_max
        remembered = 0
        for name, stream in self.by_name.items():
            assert stream.name == name
            assert stream.settings == self.settings_of(name)
            remembered += sum(map(len, stream.known_topics)) + sum(map(len, stream.lanes))
            stream.index.validate()
        assert remembered <= self._memory.bytes_max
