"""One line of JSON as an event to publish, and one delivery as a line of JSON.

In:  {"topic", "attrs", "body" | "body_base64" | "xml" | "json"}, and "floats", "content_type" if wanted.
Out: {"id", "time", "topic", "attrs", "body" | "body_base64", "subscription"}, and "floats", "content_type" if needed;
of a durable subscription "delivery", "delivery_count" and "redelivered" as well.

What came out goes in again as the same event; `id`, `time` and what is about the delivery are passed over. JSON has no
NaN and no infinity: they are the strings "NaN", "Infinity" and "-Infinity", and `floats` names the attributes in which
these are numbers, so that the text "NaN" stays a text. `content_type` is there when it is not what `body` or
`body_base64` alone stand for.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headgate.protocol.client import Event
from headgate.protocol.data import Scalar, flatten
from headgate.protocol.errors import LocalError

from .exits import UsageError
from .jsontext import json_text

__all__ = ["Line", "event_text", "parse_line", "read_attributes"]

_BODIES = ("body", "body_base64", "xml", "json")
_OPTIONAL = ("topic", "attrs", "floats", "content_type")
_PASSED_OVER = ("id", "time", "subscription", "position", "delivery", "delivery_count", "redelivered")
_KNOWN = frozenset((*_BODIES, *_OPTIONAL, *_PASSED_OVER))

_TYPES = {"body": "text/plain", "body_base64": "", "xml": "application/xml", "json": "application/json"}
"""Form of a body -> the content type of whoever names none. What is empty has none."""

_UNWRITTEN = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""The floats that JSON cannot write, by what stands for them."""


@dataclass(slots=True)
class Line:
    """An event parsed from a line, its attributes by their dotted names."""

    topic: str
    attributes: dict[str, Any]
    body: bytes
    content_type: str


def parse_line(text: str | bytes, topic: str = "", attributes: Mapping[str, Scalar] | None = None) -> Line:
    """The event of a line; `topic` and `attributes` are for lines that have none of their own. Raises UsageError."""
    try:
        members = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"this is not JSON: {error}") from error
    if not isinstance(members, dict):
        raise UsageError('a line is one JSON object, like {"topic": "quotes/NYSE/OTE", "attrs": {"price": 8.45}}')
    unknown = members.keys() - _KNOWN
    if unknown:
        known = ", ".join((*_OPTIONAL, *_BODIES))
        raise UsageError(f"unknown key {min(unknown)!r}; there are {known}")
    topic = members.get("topic", topic)
    if not isinstance(topic, str) or not topic:
        raise UsageError('an event has a topic: add "topic" to the line, or name one TOPIC for all lines')
    body, content_type = _body(members)
    return Line(topic, {**(attributes or {}), **read_attributes(members)}, body, content_type)


def read_attributes(members: Mapping[str, Any]) -> dict[str, Any]:
    """What a line's `attrs` says, and the dotted `body.…` names of its `json`. Raises UsageError."""
    attributes = members.get("attrs")
    if attributes is not None and not isinstance(attributes, dict):
        raise UsageError('"attrs" is an object of names and values, like {"price": 8.45}')
    attributes = {**(attributes or {}), **_floats(members.get("floats"), attributes or {})}
    for name in _lists(attributes):
        advice = 'give each of its values a name of its own, or send the document it is from as "json"'
        raise UsageError(f"attribute {name!r} is a list, and an attribute is one value: {advice}")
    document = members.get("json")
    return {**_flat("json", document, "body."), **_flat("attrs", attributes, "")}


def _flat(key: str, members: Any, prefix: str) -> dict[str, Scalar]:
    """A member of a line as dotted names; integers beyond 64 bits are the nearest float. Raises UsageError."""
    try:
        return flatten(members, prefix, lenient=True) if isinstance(members, dict) else {}
    except LocalError as error:
        raise UsageError(f'"{key}": {error}') from error


def _floats(names: Any, attributes: Mapping[str, Any]) -> dict[str, float]:
    """The attributes that are floats though a string stands for them. Raises UsageError."""
    if names is None:
        return {}
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UsageError('"floats" is a list of names of attributes, like ["price"]')
    floats = {}
    for name in names:
        text = attributes.get(name)
        if not isinstance(text, str) or text not in _UNWRITTEN:
            words = ", ".join(f'"{word}"' for word in _UNWRITTEN)
            raise UsageError(f'"floats": attribute {name!r} is none of {words}; other numbers are written as they are')
        floats[name] = _UNWRITTEN[text]
    return floats


def _lists(attributes: Mapping[str, Any]) -> Iterator[str]:
    """The dotted names at which there is a list."""
    pending = list(attributes.items())
    while pending:
        name, value = pending.pop()
        if isinstance(value, dict):
            pending += [(f"{name}.{inner}", member) for inner, member in value.items()]
        elif isinstance(value, list):
            yield name


def _body(members: dict[str, Any]) -> tuple[bytes, str]:
    """(body, content type) of a line."""
    given = [key for key in _BODIES if key in members]
    if len(given) > 1:
        raise UsageError(f"an event has one body: keep {given[0]!r} or {given[1]!r}")
    content_type = members.get("content_type")
    if content_type is not None and not isinstance(content_type, str):
        raise UsageError('"content_type" is a string, like "text/csv"')
    if not given:
        return b"", content_type or ""
    body = _body_bytes(given[0], members[given[0]])
    return body, _usual_type(given[0], body) if content_type is None else content_type


def _usual_type(form: str, body: bytes) -> str:
    return _TYPES[form] if body else ""


def _body_bytes(form: str, value: Any) -> bytes:
    """The body that a member of the line gives in this form."""
    if form == "json":
        return _json_bytes(value)
    if not isinstance(value, str):
        raise UsageError(f'"{form}" is a string; a JSON document goes into "json"')
    if form == "body_base64":
        return _from_base64(value)
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f'"{form}" is not valid Unicode: {error.reason}') from error


def _json_bytes(value: Any) -> bytes:
    try:
        return json_text(value).encode()
    except ValueError as error:
        raise UsageError('"json" holds NaN or an infinity, which no JSON document may: use null') from error


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise UsageError(f'"body_base64" is not base64: {error}') from error


def event_text(event: Event) -> str:
    """A delivery as one line, without its end."""
    members: dict[str, Any] = {
        "id": event.id,
        "time": event.time,
        "topic": event.topic,
        "attrs": event.attributes,
    }
    form = "body"
    try:
        members[form] = event.body.decode()
    except UnicodeDecodeError:
        form = "body_base64"
        members[form] = base64.b64encode(event.body).decode()
    if event.content_type != _usual_type(form, event.body):
        members["content_type"] = event.content_type
    members["subscription"] = event.subscription
    if event.position:
        members["position"] = event.position
    if event.delivery:
        members["delivery"] = event.delivery
        members["delivery_count"] = event.delivery_count
        members["redelivered"] = event.redelivered
    try:
        return json_text(members)
    except ValueError:
        unwritten = {name: _word(value) for name, value in event.attributes.items() if _is_unwritten(value)}
        members["attrs"] = event.attributes | unwritten
        members["floats"] = list(unwritten)
        return json_text(members)


def _is_unwritten(value: Scalar) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _word(value: Any) -> str:
    """What stands for a float that JSON cannot write."""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
