"""The kinds of fields: what each message's fields may hold, for messages that are nothing but fields in a row.

SPEC.md section 3 has the same kinds as a table; those that occur between brokers alone are in its section 18.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .errors import ProtocolViolation
from .limits import (
    ATTRIBUTE_NAME_LENGTH_MAX,
    CONDITION_LENGTH_MAX,
    CREDIT_MAX,
    INTEREST_ATTRIBUTES_MAX,
    LOG_CHUNK_ROWS_MAX,
    LOG_ORIGINS_MAX,
    SETTINGS_MAX,
    TEXT_LENGTH_MAX,
)
from .messages import Scope
from .peer_codec import is_kind, is_member, is_settings

__all__ = ["FIELDS", "check_fields", "is_attribute_name", "is_counter", "is_name"]

_COUNTER, _TEXT, _NAME, _BIN, _FLAG, _SECONDS, _MAP, _NAMES, _ANY, _SCOPE = range(10)
_KIND, _NUMBERS, _ROWS, _CONDITION = range(10, 14)
_SETTINGS, _MEMBER, _MEMBER_OR_NIL, _LIST, _ROW = range(14, 19)

FIELDS: dict[int, tuple[int, ...]] = {
    1: (_COUNTER, _NAME, _BIN, _COUNTER, _COUNTER, _SECONDS, _NAME, _COUNTER),
    2: (_COUNTER, _NAME, _BIN, _FLAG, _COUNTER, _COUNTER, _SECONDS),
    3: (_COUNTER, _SCOPE, _COUNTER, _TEXT),
    4: (_COUNTER, _TEXT),
    5: (_COUNTER,),
    6: (_COUNTER,),
    7: (_COUNTER, _COUNTER, _COUNTER, _COUNTER),
    8: (_COUNTER, _COUNTER, _TEXT, _CONDITION, _MAP),
    9: (_COUNTER, _COUNTER),
    10: (_COUNTER, _COUNTER),
    11: (_COUNTER, _COUNTER),
    13: (_COUNTER,),
    15: (_COUNTER, _COUNTER, _TEXT),
    16: (_TEXT, _NAMES),
    17: (_COUNTER, _NAME, _MAP),
    18: (_COUNTER, _ANY),
    20: (_COUNTER, _NAME, _COUNTER, _KIND, _TEXT, _COUNTER, _COUNTER, _TEXT, _TEXT),
    21: (_COUNTER, _COUNTER, _COUNTER, _COUNTER, _NUMBERS, _ROWS),
    22: (_COUNTER, _FLAG),
    32: (_COUNTER, _NAME, _COUNTER, _NAME, _NAME, _NAME, _FLAG, _SETTINGS),
    33: (_MEMBER, _MEMBER_OR_NIL, _KIND, _LIST),
    34: (_KIND, _LIST),
    36: (_NAME, _COUNTER, _KIND, _TEXT, _ROW),
}


_OMISSIBLE = {1: 1, 7: 2}
"""Messages whose last fields may be left out, and how many: a bound that is none, and what nobody counted."""


def check_fields(number: int, name: str, kind: type[Any], parts: list[Any]) -> None:
    """Raises ProtocolViolation unless these are the fields of that message, its type number before them."""
    kinds = FIELDS[number]
    if not len(kinds) - _OMISSIBLE.get(number, 0) <= len(parts) - 1 <= len(kinds):
        raise ProtocolViolation(f"{name} has {len(kinds)} fields, not {len(parts) - 1}")
    for position, field in enumerate(kinds[: len(parts) - 1], 1):
        if not _CHECKS[field](parts[position]):
            raise ProtocolViolation(f"{name}: {kind.__slots__[position - 1]} is not {_WANTED[field]}")


def is_counter(value: Any) -> bool:
    """A number that counts."""
    return type(value) is int and 0 <= value <= CREDIT_MAX


def is_name(value: Any) -> bool:
    """A short string."""
    return type(value) is str and len(value) <= ATTRIBUTE_NAME_LENGTH_MAX


def _is_seconds(value: Any) -> bool:
    return (type(value) is float or type(value) is int) and 0 <= value <= 86_400


def _is_names(value: Any) -> bool:
    if value is None:
        return True
    if type(value) is not list or len(value) > INTEREST_ATTRIBUTES_MAX:
        return False
    return all(type(name) is str and is_attribute_name(name) for name in value)


def is_attribute_name(name: str) -> bool:
    """1 to 256 bytes; counting characters first spares most names the encoding."""
    if not 0 < len(name) <= ATTRIBUTE_NAME_LENGTH_MAX:
        return False
    return name.isascii() or len(name.encode()) <= ATTRIBUTE_NAME_LENGTH_MAX


def _is_numbers(value: Any) -> bool:
    return type(value) is dict and all(is_name(name) and is_counter(number) for name, number in value.items())


def _is_rows(value: Any) -> bool:
    return type(value) is list and all(type(row) is bytes for row in value)


_CHECKS: dict[int, Callable[[Any], bool]] = {
    _COUNTER: is_counter,
    _TEXT: lambda value: type(value) is str and len(value) <= TEXT_LENGTH_MAX,
    _CONDITION: lambda value: type(value) is str and len(value) <= CONDITION_LENGTH_MAX,
    _NAME: is_name,
    _BIN: lambda value: type(value) is bytes and len(value) <= ATTRIBUTE_NAME_LENGTH_MAX,
    _FLAG: lambda value: type(value) is bool,
    _SECONDS: _is_seconds,
    _MAP: lambda value: type(value) is dict,
    _NAMES: _is_names,
    _ANY: lambda value: True,
    _SCOPE: lambda value: type(value) is int and Scope.CONNECTION <= value <= Scope.PUBLISH,
    _SETTINGS: is_settings,
    _MEMBER: is_member,
    _MEMBER_OR_NIL: lambda value: value is None or is_member(value),
    _LIST: lambda value: type(value) is list,
    _KIND: is_kind,
    _NUMBERS: _is_numbers,
    _ROWS: _is_rows,
    _ROW: lambda value: type(value) is bytes,
}

_WANTED: dict[int, str] = {
    _COUNTER: "an integer from 0 to 2^53",
    _TEXT: "a string of at most 64 KiB",
    _CONDITION: "a string of at most 520 KiB",
    _NAME: "a string of at most 256 characters",
    _BIN: "a bin of at most 256 bytes",
    _FLAG: "a bool",
    _SECONDS: "a number of seconds, at most a day",
    _MAP: "a map with string keys",
    _NAMES: f"nil or a list of at most {INTEREST_ATTRIBUTES_MAX} attribute names",
    _ANY: "anything",
    _SCOPE: "0 (connection), 1 (request) or 2 (publish)",
    _SETTINGS: f"a map of at most {SETTINGS_MAX} names to scalars",
    _MEMBER: "a list of identifier, incarnation, padding, address",
    _MEMBER_OR_NIL: "nil or a list of identifier, incarnation, padding, address",
    _KIND: "an integer from 0 to 255",
    _LIST: "a list",
    _NUMBERS: f"a map of at most {LOG_ORIGINS_MAX} names to counters",
    _ROWS: f"a list of at most {LOG_CHUNK_ROWS_MAX} rows, each a bin",
    _ROW: "a bin",
}
