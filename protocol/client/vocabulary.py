"""A client's vocabulary: topics and sets of attribute names that it has used, checked once and remembered.

Brokers refuse a whole batch for one bad topic, so an event is checked before it joins a batch that it would spoil.
What was seen before costs one lookup; the memory is bounded, and forgets everything when it is full.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from ..data import FILTER_COLUMNS, SCALAR_TYPES, Scalar, flatten
from ..errors import LocalError
from ..limits import (
    ATTRIBUTE_NAME_LENGTH_MAX,
    ATTRIBUTES_MAX,
    KNOWN_SHAPES_MAX,
    KNOWN_TOPICS_MAX,
    TOPIC_LENGTH_MAX,
    TOPIC_LEVELS_MAX,
)
from ..messages import Mode
from ..structure import Document, read_document, to_body

__all__ = ["Body", "Vocabulary", "body_bytes", "document_body", "check_names", "mode_number", "subscribe_options"]

Body = bytes | bytearray | memoryview | str

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_MODES: dict[str | int, int] = {mode.name.lower(): int(mode) for mode in Mode} | {int(mode): int(mode) for mode in Mode}
_TYPED = ("d", "q")


class Vocabulary:
    """Topics and shapes that are known to be good."""

    def __init__(self, topics_max: int = KNOWN_TOPICS_MAX, shapes_max: int = KNOWN_SHAPES_MAX) -> None:
        self._topics_max = topics_max
        self._shapes_max = shapes_max
        self._streams: dict[str, str] = {}
        self._shapes: dict[tuple[str, ...], None] = {}

    def stream_of(self, topic: str) -> str:
        """The stream of a topic, its first level. Raises LocalError when it is no topic."""
        stream = self._streams.get(topic)
        if stream is None:
            stream = _checked_topic(topic)
            if len(self._streams) >= self._topics_max:
                self._streams.clear()
            self._streams[topic] = stream
        return stream

    def checked(self, attributes: Mapping[str, Any]) -> dict[str, Scalar]:
        """A copy of an event's attributes, nested maps as dotted names. Raises LocalError for what is no attribute."""
        values = dict(attributes)
        for value in values.values():
            if type(value) not in SCALAR_TYPES:
                values = flatten(values)
                break
        shape = tuple(values)
        if shape not in self._shapes:
            check_names(shape)
            if len(self._shapes) >= self._shapes_max:
                self._shapes.clear()
            self._shapes[shape] = None
        return values

    def checked_columns(self, columns: Mapping[str, Sequence[Any]], count: int) -> dict[str, Sequence[Scalar]]:
        """Attribute columns as lists, or as typed arrays where they are; other containers give theirs by `tolist`."""
        check_names(tuple(columns))
        checked: dict[str, Sequence[Scalar]] = {}
        for name, values in columns.items():
            if len(values) != count:
                raise LocalError(f"{count} bodies want {count} values of {name!r}, not {len(values)}")
            if isinstance(values, list | tuple) or (isinstance(values, array) and values.typecode in _TYPED):
                checked[name] = values
            else:
                checked[name] = values.tolist() if hasattr(values, "tolist") else list(values)
        return checked


def body_bytes(body: Body, content_type: str) -> tuple[bytes, str]:
    """A body as bytes with its content type: text is UTF-8, and text/plain when nothing else is said."""
    if isinstance(body, str):
        try:
            return body.encode(), content_type or "text/plain"
        except UnicodeEncodeError as error:
            raise LocalError(f"a body that is a string must be valid Unicode: {error.reason}") from error
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body), content_type
    raise LocalError(f"a body is bytes or a string, not {type(body).__name__}: encode it first")


def document_body(document: Any, body: Body, content_type: str) -> tuple[bytes, str, Document]:
    """An event's document as its body, with its content type, read. Raises LocalError when it cannot be."""
    if body:
        raise LocalError("an event has one body: leave `body` out where there is a `document`")
    body, content_type = to_body(document, content_type)
    return body, content_type, read_document(body, content_type)


def mode_number(mode: str | int) -> int:
    """A mode's number on the wire, from its name or from the number itself."""
    number = _MODES.get(mode)
    if number is None:
        raise LocalError(f"a mode is 'fire', 'accepted' or 'stored', not {mode!r}")
    return number


def check_names(names: tuple[str, ...]) -> None:
    """Raises LocalError unless these may name the attributes of one event."""
    if len(names) > ATTRIBUTES_MAX:
        raise LocalError(f"an event has at most {ATTRIBUTES_MAX} attributes, not {len(names)}")
    for name in names:
        if not isinstance(name, str) or not name:
            raise LocalError(f"an attribute's name is a string of at least one character, not {name!r}")
        if name.startswith(FILTER_COLUMNS):
            raise LocalError(
                f"{name!r} is the name of a filter, which the library makes of a document: take another one"
            )
        if len(name.encode("utf-8", "replace")) > ATTRIBUTE_NAME_LENGTH_MAX:
            raise LocalError(f"an attribute's name has at most {ATTRIBUTE_NAME_LENGTH_MAX} bytes: {name[:40]!r}…")


def _checked_topic(topic: str) -> str:
    if not isinstance(topic, str) or not topic:
        raise LocalError(f"a topic is a string such as 'quotes/NYSE/OTE', not {topic!r}")
    try:
        length = len(topic.encode())
    except UnicodeEncodeError as error:
        raise LocalError(f"a topic must be valid Unicode: {error.reason}") from error
    if length > TOPIC_LENGTH_MAX:
        raise LocalError(f"a topic has at most {TOPIC_LENGTH_MAX} bytes, not {length}")
    if _CONTROL.search(topic):
        raise LocalError(f"a topic has no control characters: {topic!r}")
    levels = topic.split("/")
    if len(levels) > TOPIC_LEVELS_MAX:
        raise LocalError(f"a topic has at most {TOPIC_LEVELS_MAX} levels, not {len(levels)}")
    if "" in levels:
        raise LocalError(f"{topic!r} has an empty level: write names with one / between them, and none at the ends")
    if "*" in levels:
        raise LocalError(f"{topic!r}: an event has one topic, so no level may be *: name the level")
    return levels[0]


def subscribe_options(exact: bool, ordered: bool, slow: str | None = None) -> dict[str, Any]:
    """The options of SUBSCRIBE: those that were set. `durable_options` has more."""
    options: dict[str, Any] = {}
    if exact:
        options["exact"] = True
    if ordered:
        options["ordered"] = True
    if slow is not None:
        options["slow"] = slow
    return options
