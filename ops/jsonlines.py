"""One line of JSON as an event to publish, and one delivery as a line of JSON.

In:  {"topic", "attrs", "body" | "body_base64" | "xml" | "json"}, and "content_type" if wanted.
Out: {"id", "time", "topic", "attrs", "body" | "body_base64", "subscription"}

What came out may go in again: `id`, `time` and `subscription` are passed over. JSON has no NaN and no infinity, so they
come out as the strings "NaN", "Infinity" and "-Infinity". Everything beyond ASCII is escaped, so that a line is a line
for every reader, and for every terminal.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headgate.protocol.columns import Scalar
from headgate.protocol.errors import LocalError
from headgate.protocol.receiving import Event
from headgate.protocol.records import flatten

from .exits import UsageError

__all__ = ["Line", "event_text", "parse_line", "read_attributes"]

_BODIES = ("body", "body_base64", "xml", "json")
_OPTIONAL = ("topic", "attrs", "content_type")
_PASSED_OVER = ("id", "time", "subscription", "position")
_KNOWN = frozenset((*_BODIES, *_OPTIONAL, *_PASSED_OVER))

_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


@dataclass(slots=True)
class Line:
    """An event as a line tells it, its attributes by their dotted names."""

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
    document = members.get("json")
    return {**_flat("json", document, "body."), **_flat("attrs", attributes, "")}


def _flat(key: str, members: Any, prefix: str) -> dict[str, Scalar]:
    """A member of a line as dotted names; integers beyond 64 bits are the nearest float. Raises UsageError."""
    try:
        return flatten(members, prefix, lenient=True) if isinstance(members, dict) else {}
    except LocalError as error:
        raise UsageError(f'"{key}": {error}') from error


def _body(members: dict[str, Any]) -> tuple[bytes, str]:
    """(body, content type) of a line."""
    given = [key for key in _BODIES if key in members]
    if len(given) > 1:
        raise UsageError(f"an event has one body: keep {given[0]!r} or {given[1]!r}")
    content_type = members.get("content_type", "")
    if not isinstance(content_type, str):
        raise UsageError('"content_type" is a string, like "text/csv"')
    if not given:
        return b"", content_type
    value = members[given[0]]
    if given[0] == "json":
        return _json_text(value), content_type or "application/json"
    if not isinstance(value, str):
        raise UsageError(f'"{given[0]}" is a string; a JSON document goes into "json"')
    if given[0] == "body_base64":
        return _from_base64(value), content_type
    try:
        return value.encode(), content_type or ("application/xml" if given[0] == "xml" else "text/plain")
    except UnicodeEncodeError as error:
        raise UsageError(f'"{given[0]}" is not valid Unicode: {error.reason}') from error


def _json_text(value: Any) -> bytes:
    try:
        return _encode(value).encode()
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
    try:
        members["body"] = event.body.decode()
    except UnicodeDecodeError:
        members["body_base64"] = base64.b64encode(event.body).decode()
    members["subscription"] = event.subscription
    if event.position:
        members["position"] = event.position
    try:
        return _encode(members)
    except ValueError:
        members["attrs"] = {name: _finite(value) for name, value in event.attributes.items()}
        return _encode(members)


def _finite(value: Scalar) -> Scalar:
    """A value that JSON can write."""
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
