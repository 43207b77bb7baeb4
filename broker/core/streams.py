"""Streams: the index of each, who publishes to it, what its publishers should send, its schema and counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from matching import Index, TopicError, check_topic
from protocol.limits import INTEREST_ATTRIBUTES_MAX

from .limits import KNOWN_TOPICS_MAX, STREAMS_MAX

if TYPE_CHECKING:
    from .subscribers import ClientSession

__all__ = ["Plan", "Stream", "Streams"]

Plan: TypeAlias = tuple[Any, ...]
"""The sessions that get an event, each followed by the number, or the list of numbers, of its own subscriptions that
asked for it. Flat, and a lone number bare, because a plan is read for every event: each object between is a cache miss.
"""


class Stream:
    """One stream on this broker."""

    __slots__ = ("deliveries", "events", "index", "interest", "known_topics", "lanes", "name", "publishers")

    def __init__(self, name: str) -> None:
        self.name = name
        self.index = Index()
        self.interest: tuple[str, ...] | None = ()
        self.publishers: dict[bytes, ClientSession] = {}
        self.known_topics: set[str] = set()
        self.lanes: dict[str, Plan] = {}
        self.events = 0
        self.deliveries = 0

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
                if len(known) >= KNOWN_TOPICS_MAX:
                    known.clear()
                known.add(topic)

    def keep_lane(self, topic: str, plan: Plan) -> None:
        """Remember the plan of a topic that no condition has a say in."""
        if len(self.lanes) >= KNOWN_TOPICS_MAX:
            self.lanes.clear()
        self.lanes[topic] = plan

    def subscriptions_changed(self) -> bool:
        """Lanes may be wrong now; True when publishers must be told of another interest."""
        self.lanes.clear()
        return self._interest_changed()

    def _interest_changed(self) -> bool:
        attributes: tuple[str, ...] | None = tuple(sorted(self.index.attributes()))
        if attributes is not None and len(attributes) > INTEREST_ATTRIBUTES_MAX:
            attributes = None
        if attributes == self.interest:
            return False
        self.interest = attributes
        return True


class Streams:
    """All streams of this broker by name; they come into being by use."""

    def __init__(self) -> None:
        self.by_name: dict[str, Stream] = {}
        self.schemas: dict[str, Any] = {}

    def find(self, name: str) -> Stream | None:
        """The stream of that name, made if need be; None when there are too many."""
        stream = self.by_name.get(name)
        if stream is None and len(self.by_name) < STREAMS_MAX:
            stream = self.by_name[name] = Stream(name)
        return stream

    def validate(self) -> None:
        """Asserts what must always hold."""
        assert len(self.by_name) <= STREAMS_MAX
        for name, stream in self.by_name.items():
            assert stream.name == name
            assert len(stream.known_topics) <= KNOWN_TOPICS_MAX
            assert len(stream.lanes) <= KNOWN_TOPICS_MAX
            stream.index.validate()
