"""The messages of peer links and the msgpack inside their frames: FORWARD written out, and the kinds of fields.

FORWARD carries the traffic between brokers, so it is put together field by field like PUBLISH. While it is unpacked,
every list and map is counted: it has few of them, and a frame of four million empty ones ends at the first too many.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import ge
from typing import Any

import msgpack

from .batch import Batch, join_u32, split_u32
from .columns import SCALAR_TYPES
from .errors import ProtocolViolation
from .limits import (
    ATTRIBUTE_NAME_LENGTH_MAX,
    COLUMNS_MAX,
    CREDIT_MAX,
    FRAME_LENGTH_MAX,
    HOPS_MAX,
    SETTINGS_MAX,
    SHELF_LENGTH_MAX,
    SHELVES_MAX,
)
from .peer_messages import Forward

__all__ = ["decode_forward", "encode_forward", "is_kind", "is_member", "is_settings", "unpack_forward"]

_FIELDS = 11
_PLACE_MAX = 2**64 - 1
_KIND_MAX = 255
_LISTS_MAX = 2 * SHELVES_MAX + 2
_HEAD = bytes([0x90 + _FIELDS + 1, 35])


def encode_forward(message: Forward, pack: Callable[[Any], bytes]) -> list[bytes]:
    """The bytes of a FORWARD in two pieces, the records apart because they are long and stand as they are."""
    batch = message.batch
    return [
        _HEAD
        + pack([[shelf, join_u32(rows)] for shelf, rows in message.shelves])
        + pack(message.hops)
        + pack(message.origin)
        + pack(message.base)
        + pack(message.time)
        + pack(message.offsets)
        + pack(batch.topics)
        + pack(batch.lengths)
        + pack(batch.columns)
        + (b"\xc3" if batch.complete else b"\xc2"),
        pack(batch.records),
    ]


def unpack_forward(data: bytes | bytearray | memoryview, columns: Callable[[list[tuple[Any, Any]]], Any]) -> list[Any]:
    """The parts of a FORWARD, `columns` checks its one map. Raises ProtocolViolation on more lists or maps than it has.

    What msgpack itself dislikes is raised as msgpack raises it.
    """
    lists, maps = 0, 0

    def count_list(value: list[Any]) -> list[Any]:
        nonlocal lists
        lists += 1
        if lists > _LISTS_MAX:
            raise ProtocolViolation(f"FORWARD has at most {SHELVES_MAX} shelves")
        return value

    def count_map(pairs: list[tuple[Any, Any]]) -> Any:
        nonlocal maps
        maps += 1
        if maps > 1:
            raise ProtocolViolation("FORWARD has one map, its columns")
        return columns(pairs)

    parts: list[Any] = msgpack.unpackb(
        data,
        list_hook=count_list,
        object_pairs_hook=count_map,
        ext_hook=_no_extension,
        max_str_len=FRAME_LENGTH_MAX,
        max_bin_len=FRAME_LENGTH_MAX,
        max_array_len=SHELVES_MAX,
        max_map_len=COLUMNS_MAX,
        max_ext_len=0,
    )
    return parts


def _no_extension(code: int, _: bytes) -> Any:
    raise ProtocolViolation(f"extension type {code} has no meaning here")


def decode_forward(parts: list[Any]) -> Forward:
    """The message of these parts. Raises ProtocolViolation when they are none, or do not fit one another."""
    if len(parts) != _FIELDS + 1:
        raise ProtocolViolation(f"FORWARD has {_FIELDS} fields, not {len(parts) - 1}")
    _, shelves, hops, origin, base, time, offsets, topics, lengths, columns, complete, records = parts
    if (
        type(shelves) is not list
        or type(hops) is not int
        or type(origin) is not str
        or not _is_counter(base)
        or not _is_counter(time)
        or type(offsets) is not bytes
        or type(topics) is not str
        or type(lengths) is not bytes
        or type(columns) is not dict
        or type(complete) is not bool
        or type(records) is not bytes
    ):
        text = "shelves, hops, origin, base, time, offsets, topics, lengths, columns, complete, records"
        raise ProtocolViolation(f"FORWARD is {text}")
    if not 0 <= hops <= HOPS_MAX:
        raise ProtocolViolation(f"FORWARD: passed on by at most {HOPS_MAX} brokers")
    if len(origin) > ATTRIBUTE_NAME_LENGTH_MAX:
        raise ProtocolViolation(f"FORWARD: origin has at most {ATTRIBUTE_NAME_LENGTH_MAX} characters")
    batch = Batch(topics, len(lengths) // 4, lengths, records, columns, complete)
    batch.check()
    if offsets and len(split_u32(offsets)) != batch.count:
        raise ProtocolViolation("FORWARD: offsets name one row for each event")
    return Forward(_open_shelves(shelves, batch.count), hops, batch, origin, base, offsets, time)


def _open_shelves(shelves: list[Any], count: int) -> list[Any]:
    if not 0 < len(shelves) <= SHELVES_MAX:
        raise ProtocolViolation(f"FORWARD: 1 to {SHELVES_MAX} shelves")
    opened: list[Any] = []
    for pair in shelves:
        if type(pair) is not list or len(pair) != 2 or type(pair[0]) is not list or type(pair[1]) is not bytes:
            raise ProtocolViolation("FORWARD: a shelf comes as [shelf, rows]")
        shelf, rows = pair[0], split_u32(pair[1])
        if not 0 < len(shelf) <= SHELF_LENGTH_MAX or not SCALAR_TYPES.issuperset(map(type, shelf)):
            raise ProtocolViolation(f"FORWARD: a shelf is a list of 1 to {SHELF_LENGTH_MAX} scalars")
        if not rows or rows[-1] >= count or any(map(ge, rows, rows[1:])):
            raise ProtocolViolation(f"FORWARD: the rows of a shelf ascend, at least one, below {count}")
        opened.append([shelf, rows])
    return opened


def is_kind(value: Any) -> bool:
    """A number of somebody's vocabulary: one byte."""
    return type(value) is int and 0 <= value <= _KIND_MAX


def is_member(value: Any) -> bool:
    """[identifier, incarnation, padding, address]."""
    if type(value) is not list or len(value) != 4:
        return False
    numbers, address = value[:3], value[3]
    if not all(type(number) is int and 0 <= number <= _PLACE_MAX for number in numbers):
        return False
    return type(address) is str and len(address) <= ATTRIBUTE_NAME_LENGTH_MAX


def is_settings(value: Any) -> bool:
    """A map of few short names to scalars."""
    return type(value) is dict and len(value) <= SETTINGS_MAX and SCALAR_TYPES.issuperset(map(type, value.values()))


def _is_counter(value: Any) -> bool:
    return type(value) is int and 0 <= value <= CREDIT_MAX
