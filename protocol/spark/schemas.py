"""The columns of the three logs as Spark types, and `attributesSchema` as a type.

Spark parses the text when the source is loaded. `attributesSchema` is parsed here first, so that a mistake in it is
told by the option's name and not as a syntax error in a text that nobody wrote.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from .errors import BadOption
from .options import ReadOptions

__all__ = ["TYPED", "attributes_type", "schema_text"]

TYPED = "STRUCT<`l`: BIGINT, `d`: DOUBLE, `s`: STRING, `b`: BOOLEAN>"
"""A value in the field of its own type: what an evaluator needs that tells 1 from '1' and from TRUE."""

_COLUMNS = {
    "events": "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, event_id STRING, producer_id STRING, "
    "sequence BIGINT, attributes {attributes}, headers MAP<STRING, STRING>, value BINARY, content_type STRING",
    "deliveries": "partition INT, offset BIGINT, timestamp TIMESTAMP, event_id STRING, subscription_id STRING, "
    "subscriber_id STRING, published_at TIMESTAMP, delivered_at TIMESTAMP, acked_at TIMESTAMP, attempt INT, "
    "node STRING, outcome INT, stream STRING",
    "state": "what STRING, broker STRING, name STRING, stream STRING, at TIMESTAMP, fields MAP<STRING, STRING>",
    "subscriptions": "partition INT, offset BIGINT, timestamp TIMESTAMP, subscription_id STRING, "
    "subscriber_id STRING, pattern STRING, exact BOOLEAN, filter STRING, spark STRING, action STRING, "
    "effective_at TIMESTAMP, reason STRING, node STRING, stream STRING",
}

_TYPES = {
    "string": "STRING",
    "bigint": "BIGINT",
    "long": "BIGINT",
    "int": "INT",
    "integer": "INT",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "timestamp": "TIMESTAMP",
    "date": "DATE",
}
_DECLARED = {"bool": "BOOLEAN", "int": "BIGINT", "float": "DOUBLE", "string": "STRING"}
"""Type in a stream's schema -> Spark's."""

_FIELDS = {"l": "BIGINT", "d": "DOUBLE", "s": "STRING", "b": "BOOLEAN"}
_NAME = r"(?:`((?:[^`]|``)+)`|([A-Za-z_][A-Za-z0-9_]*))"
_PART = re.compile(rf"\s*{_NAME}\s*:?\s*(?:([A-Za-z]+)\s*(<[^<>]*>)?)\s*(,|$)", re.DOTALL)


def schema_text(options: ReadOptions, declared: Callable[[], Mapping[str, Any]] | None = None) -> str:
    """The columns of the log that these options read, as Spark writes schemas.

    `declared` gives the attributes that the streams' schemas declare, for `attributesSchema` `declared`.
    """
    text = options.attributes_schema
    if text.lower() == "declared":
        found = declared() if declared is not None else {}
        if declared is not None and not found:
            raise BadOption(
                "attributesSchema", text, f"'declared' when the schema of {options.topic} declares attributes"
            )
        text = ", ".join(
            f"`{name.replace('`', '``')}` {_DECLARED[entry['type']]}" for name, entry in sorted(found.items())
        )
    return _COLUMNS[options.kind].format(attributes=attributes_type(text))


def attributes_type(text: str) -> str:
    """The type of column `attributes`. Raises BadOption when the text is no list of names and types."""
    if not text:
        return "MAP<STRING, STRING>"
    if text.lower() == "typed":
        return f"MAP<STRING, {TYPED}>"
    fields: list[str] = []
    place = 0
    while place < len(text):
        match = _PART.match(text, place)
        kind = _type_of(match[3], match[4]) if match else None
        if match is None or kind is None:
            raise BadOption("attributesSchema", text, _allowed(text[place : place + 40]))
        fields.append(f"`{match[1] or match[2]}`: {kind}")
        place = match.end()
        if bool(match[5]) == (place == len(text)):  # a comma and nothing behind it, or something and no comma
            raise BadOption("attributesSchema", text, _allowed(text[place : place + 40]))
    return f"STRUCT<{', '.join(fields)}>"


def _type_of(word: str, members: str | None) -> str | None:
    if word.lower() != "struct":
        return None if members else _TYPES.get(word.lower())
    if members is None:
        return None
    fields: list[str] = []
    for member in members[1:-1].split(","):
        match = re.fullmatch(r"\s*`?([ldsb])`?\s*:?\s*([A-Za-z]+)\s*", member)
        kind = _TYPES.get(match[2].lower()) if match else None
        if match is None or kind != _FIELDS[match[1]]:
            return None
        fields.append(f"`{match[1]}`: {kind}")
    return f"STRUCT<{', '.join(fields)}>"


def _allowed(near: str) -> str:
    types = ", ".join(dict.fromkeys(_TYPES.values()))
    return (
        f"'typed', or names and types such as 'symbol STRING, `body.price` DOUBLE' (types {types}, and "
        f"STRUCT<l BIGINT, d DOUBLE, s STRING, b BOOLEAN>); it ends to make sense at {near!r}"
    )
