"""A record: one event's attributes and body, encoded once by its publisher and opaque to every broker on the way.

A record is the msgpack array `[attributes, body]`, or `[attributes, body, content_type]`: a map of names to scalars,
a bin, a string. The broker joins records and never opens one, except to derive a match column that its publisher
did not send.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any

import msgpack

from ..errors import LocalError, ProtocolViolation
from ..limits import ATTRIBUTE_NAME_LENGTH_MAX, ATTRIBUTES_MAX, RECORD_LENGTH_MAX
from .columns import SCALAR_TYPES, Scalar, has_wide_integer

__all__ = ["attributes_at_once", "decode_record", "encode_record", "flatten", "pack_record"]

_pack = msgpack.Packer(autoreset=True).pack
_WIDE = b"\xcf"
_EMPTY_HEAD = b"\x92\x80"
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_BINARY = (bytes, bytearray, memoryview)
_TOO_MANY = (
    f"an event has at most {ATTRIBUTES_MAX} attributes, the values in a JSON document counted (lists aside): "
    "send the document as a plain body, and as attributes what is filtered on"
)


def encode_record(attributes: Mapping[str, Scalar] | None, body: bytes, content_type: str = "") -> bytes:
    """One event as a record. Raises LocalError when it is over a limit or an attribute is not a scalar."""
    if not isinstance(body, _BINARY):
        raise LocalError(f"a body is bytes, not {type(body).__name__}: encode it first")
    record = pack_record(attributes, body, content_type)
    if attributes:
        _check_attributes(attributes, record)
    return record


def pack_record(attributes: Mapping[str, Scalar] | None, body: bytes, content_type: str = "") -> bytes:
    """The same for what is known to be names, scalars and bytes: only sizes are still looked at."""
    try:
        record: bytes
        if content_type:
            record = _pack((attributes or {}, body, content_type))
        elif attributes:
            record = _pack((attributes, body))
        else:
            record = _EMPTY_HEAD + _pack(body)
    except (TypeError, ValueError, OverflowError) as error:
        raise LocalError(f"an attribute is null, bool, 64-bit int, float or string: {error}") from error
    if len(record) > RECORD_LENGTH_MAX:
        raise LocalError(
            f"attributes and body of {len(record)} bytes are over the limit of {RECORD_LENGTH_MAX}: keep it in a store"
        )
    if _WIDE in record and attributes:
        _check_attributes(attributes, record)
    return record


def decode_record(record: bytes) -> tuple[dict[str, Scalar], bytes, str]:
    """(attributes, body, content type) of a record. Raises ProtocolViolation when it is not one."""
    try:
        parts = msgpack.unpackb(record, max_array_len=3, max_map_len=ATTRIBUTES_MAX, max_ext_len=0)
    except Exception as error:  # msgpack raises a dozen kinds; each means the same to us
        raise ProtocolViolation(f"a record is not [attributes, body]: {error}") from error
    if type(parts) is not list or len(parts) not in (2, 3):
        raise ProtocolViolation("a record is [attributes, body] or [attributes, body, content_type]")
    attributes, body = parts[0], parts[1]
    content_type = parts[2] if len(parts) == 3 else ""
    if type(attributes) is not dict or type(body) is not bytes or type(content_type) is not str:
        raise ProtocolViolation("a record is a map of attributes, a bin and, if it has one, a content type")
    # A loop, because for the few attributes of an event it costs a third of comparing sets.
    for name, value in attributes.items():
        if type(value) not in SCALAR_TYPES:
            raise ProtocolViolation("an attribute is nil, a bool, a number of 64 bits or a string, never nested")
        if type(name) is not str:
            raise ProtocolViolation("an attribute's name is a string")
    if has_wide_integer(attributes.values(), record):
        raise ProtocolViolation("an attribute is nil, a bool, a number of 64 bits or a string, never nested")
    return attributes, body, content_type


def attributes_at_once(records: bytes, ends: Sequence[int]) -> list[dict[str, Scalar]] | None:
    """The attributes of records that follow one another and end there; what `decode_record` would say of each.

    None when one of them is no record: `decode_record` says what is wrong with it. From some twenty records on that
    costs less, with hundreds two thirds: one unpacker reads them all, and what each has to be is asked of all together.
    """
    unpacker = msgpack.Unpacker(
        None, max_buffer_size=len(records), max_array_len=3, max_map_len=ATTRIBUTES_MAX, max_ext_len=0
    )
    unpacker.feed(records)
    unpack, tell = unpacker.unpack, unpacker.tell
    parts: list[Any] = []
    try:
        for end in ends:
            parts.append(unpack())
            if tell() != end:
                return None
    except Exception:  # of a dozen kinds
        return None
    if set(map(type, parts)) != {list} or not {2, 3}.issuperset(map(len, parts)):
        return None
    found: list[dict[str, Scalar]] = list(map(itemgetter(0), parts))
    others = chain.from_iterable(part[2:] for part in parts) if 3 in map(len, parts) else ()
    if set(map(type, found)) != {dict} or set(map(type, map(itemgetter(1), parts))) != {bytes}:
        return None
    if not {str}.issuperset(map(type, others)) or not {str}.issuperset(map(type, set().union(*found))):
        return None
    if not SCALAR_TYPES.issuperset(map(type, chain.from_iterable(map(dict.values, found)))):
        return None
    return None if has_wide_integer(chain.from_iterable(map(dict.values, found)), records) else found


def flatten(value: Mapping[str, Any], prefix: str = "", lenient: bool = False) -> dict[str, Scalar]:
    """Nested maps as a flat map of dotted names. Arrays in a document have no name to be asked by and are left out; an
    attribute that is itself one raises LocalError.

    `lenient` is for what was read from text, where a number is a number: integers beyond 64 bits are the nearest float.

    >>> flatten({"order": {"price": 8.5, "lines": [1, 2]}, "live": True}, "body.")
    {'body.order.price': 8.5, 'body.live': True}
    """
    flat: dict[str, Scalar] = {}
    pending = [(prefix, value)]
    while pending:
        before, members = pending.pop()
        for name, member in members.items():
            if not (isinstance(name, str) and name):
                raise LocalError(f"an attribute's name is a string of at least one character, not {name!r}")
            if isinstance(member, Mapping):
                pending.append((f"{before}{name}.", member))
            elif not before or not isinstance(member, list | tuple):
                if lenient and isinstance(member, int) and not _INT64_MIN <= member <= _INT64_MAX:
                    member = _nearest_float(before + name, member)
                flat[_checked_name(before + name)] = _checked_value(before + name, member)
                if len(flat) > ATTRIBUTES_MAX:
                    raise LocalError(_TOO_MANY)
    return flat


def _check_attributes(attributes: Mapping[str, Scalar], record: bytes) -> None:
    if len(attributes) > ATTRIBUTES_MAX:
        raise LocalError(f"{_TOO_MANY} (these are {len(attributes)})")
    wide = has_wide_integer(attributes.values(), record)
    for name, value in attributes.items():
        if type(name) is not str or not name:
            raise LocalError("an attribute's name is a string of at least one character")
        if wide or type(value) not in SCALAR_TYPES:
            _checked_value(name, value)


def _nearest_float(name: str, number: int) -> float:
    try:
        return float(number)
    except OverflowError:
        raise LocalError(f"attribute {name!r}: this integer is beyond what a float holds: write a string") from None


def _checked_name(name: str) -> str:
    if len(name.encode("utf-8", "replace")) > ATTRIBUTE_NAME_LENGTH_MAX:
        raise LocalError(f"an attribute's name has at most {ATTRIBUTE_NAME_LENGTH_MAX} bytes: {name[:40]!r}…")
    return name


def _checked_value(name: str, value: Any) -> Scalar:
    if value is None or isinstance(value, bool | float | str):
        return value
    if isinstance(value, int):
        if not _INT64_MIN <= value <= _INT64_MAX:
            raise LocalError(f"attribute {name!r}: integers have 64 bits; write {value} as a float or a string")
        return value
    if hasattr(value, "item"):  # a scalar of numpy
        return _checked_value(name, value.item())
    raise LocalError(f"attribute {name!r} is a {type(value).__name__}; it may be null, bool, int, float or string")
