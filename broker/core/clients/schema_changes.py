"""Schema changes: what `schema.put` makes of the schema there is, what it changed, and what holds without being said.

A put merges, as JSON Merge Patch does (RFC 7396), down to attributes: keys that are given replace those keys, each
attribute that is given replaces that attribute, and null takes a key or an attribute away. All that is not named stays.
With `replace` the given schema is the schema.

    there is  {"durability": "stored", "attributes": {"price": P}}
    put       {"attributes": {"size": S}}
    there is  {"durability": "stored", "attributes": {"price": P, "size": S}}

A stream that is stored is not made one in memory by leaving something out: that has to be written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headgate.protocol.errors import ErrorCode, Refused

from ..delivery import read_settings
from ..placement import precision_of

__all__ = ["changed_schema", "changes_of", "defaults_of"]


def changed_schema(stream: str, before: Any, given: Mapping[str, Any], replace: bool) -> dict[str, Any]:
    """The schema that follows. Raises Refused when it would end a stream's being stored without a word about that."""
    schema = _merged({} if replace or type(before) is not dict else before, given)
    if read_settings(before).stored and not read_settings(schema).stored and given.get("durability") != "memory":
        if replace or "durability" in given:
            text = f"stream {stream} is stored, and this would keep it in memory: "
            raise Refused(ErrorCode.BAD_REQUEST, text + 'say "durability": "stored", or "memory" if you want that')
        schema["durability"] = "stored"  # it was, because it was audited, and no schema said that this should end
    return schema


def _merged(before: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    schema = {**before, **given}
    if type(given.get("attributes")) is dict:
        attributes = before.get("attributes")
        together = {**(attributes if type(attributes) is dict else {}), **given["attributes"]}
        schema["attributes"] = {name: one for name, one in together.items() if one is not None}
    return {key: value for key, value in schema.items() if value is not None}


def changes_of(before: Any, after: Mapping[str, Any]) -> dict[str, Any]:
    """What differs: a key, or `attributes.NAME`, to what it was and what it is; null is for what was not, or is not."""
    old, new = _flat(before if type(before) is dict else {}), _flat(after)
    return {key: {"old": old.get(key), "new": new.get(key)} for key in {**old, **new} if old.get(key) != new.get(key)}


def _flat(schema: Mapping[str, Any]) -> dict[str, Any]:
    attributes = schema.get("attributes")
    named = attributes.items() if type(attributes) is dict else ()
    settings = {key: value for key, value in schema.items() if key != "attributes"}
    return settings | {f"attributes.{name}": one for name, one in named}


def defaults_of(schema: Any) -> dict[str, Any]:
    """The part of a schema that holds without being said: by what precision ranges of an attribute are put away."""
    attributes = schema.get("attributes") if type(schema) is dict else None
    found = {
        name: {"precision": precision}
        for name, one in (attributes.items() if type(attributes) is dict else ())
        if type(one) is dict and one.get("precision") is None and (precision := precision_of(one)) is not None
    }
    return {"attributes": found} if found else {}
