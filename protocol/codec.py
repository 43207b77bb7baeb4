"""Message <-> the msgpack array inside a frame.

Most messages are their fields in order behind their type number, so one table of (field kinds) checks and builds
them. PUBLISH and DELIVER are written out: they carry the traffic. DELIVER is put together from three parts, the routes
of this connection, the head of the portion, which is encoded once however many connections get it, and its records.

Every decode has explicit limits by type; whatever msgpack or a check dislikes becomes one ProtocolViolation. The
first two bytes of a message tell its type, so a host refuses what may not come before it is unpacked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import msgpack

from .batch import Batch, Portion, split_u32
from .errors import ErrorCode, LocalError, ProtocolViolation
from .limits import (
    ATTRIBUTE_NAME_LENGTH_MAX,
    ATTRIBUTES_MAX,
    CONTROL_LENGTH_MAX,
    CREDIT_MAX,
    FRAME_LENGTH_MAX,
    HANDSHAKE_FRAME_LENGTH_MAX,
    INTEREST_ATTRIBUTES_MAX,
    LETTER_LENGTH_MAX,
    LIST_LENGTH_MAX,
    PAGE_LENGTH_MAX,
    PUBLISH_LENGTH_MAX,
    SETTINGS_MAX,
    TEXT_LENGTH_MAX,
)
from .messages import MESSAGE_TYPES, Deliver, Forward, Message, Mode, Puback, Publish, Scope
from .peer_codec import decode_forward, encode_forward, is_kind, is_member, is_settings, unpack_forward

__all__ = ["decode", "encode", "encode_chunks", "kind_of"]

_pack = msgpack.Packer(autoreset=True).pack
_TYPE_NUMBER: dict[type[Any], int] = {kind: number for number, kind in MESSAGE_TYPES.items()}
_DELIVER_HEAD = b"\x99\x0e"
_ARRAY_MARK, _TYPE_NUMBER_MAX = 0x90, 0x7F
_PUBLISH, _PUBLISH_LENGTH = 12, 8
_FORWARD = 35

_LARGE = frozenset((14, 18))
"""DELIVER and ANSWER: only a broker sends them, and their lists may be long."""

_LENGTH_MAX = {
    12: PUBLISH_LENGTH_MAX,
    14: FRAME_LENGTH_MAX,
    18: FRAME_LENGTH_MAX,
    32: HANDSHAKE_FRAME_LENGTH_MAX,
    34: PAGE_LENGTH_MAX,
    35: FRAME_LENGTH_MAX,
}
"""Type number -> bytes of its frame; every other has CONTROL_LENGTH_MAX."""

_LIST_LENGTH_MAX = {
    8: 256,
    14: LIST_LENGTH_MAX,
    16: 256,
    17: 256,
    18: LIST_LENGTH_MAX,
    33: LETTER_LENGTH_MAX,
    34: LIST_LENGTH_MAX,
}
"""Type number -> elements of a list inside it. msgpack makes room for what a header claims, at any depth."""

_OUTER_LENGTH_MAX = 16
"""The same for messages that hold no list: what a stranger may send before the handshake costs next to nothing."""

_MAP_LENGTH_MAX = {8: 256, 17: 256, 18: 1024, 32: SETTINGS_MAX, 33: 256, 34: 1024}
"""Type number -> members of a map inside it; no other message but PUBLISH and FORWARD has one."""

_COUNTER, _TEXT, _NAME, _BIN, _FLAG, _SECONDS, _MAP, _NAMES, _ANY, _SCOPE = range(10)
_SETTINGS, _MEMBER, _MEMBER_OR_NIL, _KIND, _LIST = range(10, 15)

_FIELDS: dict[int, tuple[int, ...]] = {
    1: (_COUNTER, _NAME, _BIN, _COUNTER, _COUNTER, _SECONDS, _NAME),
    2: (_COUNTER, _NAME, _BIN, _FLAG, _COUNTER, _COUNTER, _SECONDS),
    3: (_COUNTER, _SCOPE, _COUNTER, _TEXT),
    4: (_COUNTER, _TEXT),
    5: (_COUNTER,),
    6: (_COUNTER,),
    7: (_COUNTER, _COUNTER),
    8: (_COUNTER, _COUNTER, _TEXT, _TEXT, _MAP),
    9: (_COUNTER, _COUNTER),
    10: (_COUNTER, _COUNTER),
    11: (_COUNTER, _COUNTER),
    13: (_COUNTER,),
    15: (_COUNTER, _COUNTER, _TEXT),
    16: (_TEXT, _NAMES),
    17: (_COUNTER, _NAME, _MAP),
    18: (_COUNTER, _ANY),
    32: (_COUNTER, _NAME, _COUNTER, _NAME, _NAME, _SETTINGS),
    33: (_MEMBER, _MEMBER_OR_NIL, _KIND, _LIST),
    34: (_KIND, _LIST),
}


def encode_chunks(message: Message) -> list[bytes]:
    """The bytes of a message, without its frame's length, in one or two pieces that are not copied again.

    Raises LocalError when a field cannot be written: half a surrogate pair, an integer of more than 64 bits, an object.
    """
    try:
        return _chunks(message)
    except (TypeError, ValueError, OverflowError) as error:
        raise LocalError(f"{type(message).__name__.upper()} cannot be encoded: {error}") from error


def _chunks(message: Message) -> list[bytes]:
    if type(message) is Deliver:
        portion = message.portion
        return [_DELIVER_HEAD + _pack(message.routes) + (portion.encoded or _encode_head(portion)), portion.records]
    if type(message) is Publish:
        batch = message.batch
        return [
            b"\x98\x0c"
            + _pack(message.sequence)
            + _pack(message.mode)
            + _pack(batch.topics)
            + _pack(batch.lengths)
            + _pack(batch.columns)
            + (b"\xc3" if batch.complete else b"\xc2"),
            _pack(batch.records),
        ]
    if type(message) is Forward:
        return encode_forward(message, _pack)
    if type(message) is Puback:
        return [b"\x92\x0d" + _pack(message.sequence)]
    number = _TYPE_NUMBER[type(message)]
    return [_pack([number, *(getattr(message, name) for name in message.__slots__)])]


def encode(message: Message) -> bytes:
    """The bytes of a message, without its frame's length."""
    return b"".join(encode_chunks(message))


def kind_of(data: bytes | bytearray | memoryview) -> type[Any]:
    """The type of the message in a frame, told from its first two bytes. Raises ProtocolViolation.

    A host asks this first: what may not come now is refused before anything of it is unpacked.
    """
    if len(data) < 2 or data[0] & 0xF0 != _ARRAY_MARK or data[1] > _TYPE_NUMBER_MAX:
        raise ProtocolViolation("a message is an array that begins with its type number")
    kind = MESSAGE_TYPES.get(data[1])
    if kind is None:
        raise ProtocolViolation(f"unknown message type {data[1]}")
    return kind


def decode(data: bytes | bytearray | memoryview, kind: type[Any] | None = None) -> Message:
    """The message in a frame, whose kind the caller may know already. Raises ProtocolViolation, and nothing else."""
    if kind is None:
        kind = kind_of(data)
    number = data[1]
    length_max = _LENGTH_MAX.get(number, CONTROL_LENGTH_MAX)
    if len(data) > length_max:
        text = f"{kind.__name__.upper()} has at most {length_max} bytes, not {len(data)}"
        raise ProtocolViolation(text, ErrorCode.TOO_LARGE)
    try:
        parts = _unpack(data, number)
    except ProtocolViolation:
        raise
    except Exception as error:  # msgpack raises a dozen kinds; each means the same to us
        raise ProtocolViolation(f"not a msgpack message: {type(error).__name__}: {error}"[:300]) from error
    special = _SPECIAL.get(number)
    if special is not None:
        return special(parts)
    kinds = _FIELDS[number]
    if len(parts) != len(kinds) + 1:
        raise ProtocolViolation(f"{kind.__name__.upper()} has {len(kinds)} fields, not {len(parts) - 1}")
    for position, field in enumerate(kinds, 1):
        if not _CHECKS[field](parts[position]):
            name = kind.__slots__[position - 1]
            raise ProtocolViolation(f"{kind.__name__.upper()}: {name} is not {_WANTED[field]}")
    message: Message = kind(*parts[1:])
    return message


def _unpack(data: bytes | bytearray | memoryview, number: int) -> list[Any]:
    if number == _PUBLISH:
        return _unpack_publish(data)
    if number == _FORWARD:
        return unpack_forward(data, _columns)
    parts: list[Any] = msgpack.unpackb(
        data,
        object_pairs_hook=_string_keyed,
        ext_hook=_no_extension,
        max_str_len=FRAME_LENGTH_MAX if number in _LARGE else TEXT_LENGTH_MAX,
        max_bin_len=FRAME_LENGTH_MAX,
        max_array_len=_LIST_LENGTH_MAX.get(number, _OUTER_LENGTH_MAX),
        max_map_len=_MAP_LENGTH_MAX.get(number, 0),
        max_ext_len=0,
    )
    return parts


def _unpack_publish(data: bytes | bytearray | memoryview) -> list[Any]:
    """The parts of a PUBLISH. A list inside it, which no PUBLISH has, is dropped as it is built and leaves None.

    So a frame of four million empty lists costs the time to read it and no memory.
    """
    lists: deque[list[Any]] = deque(maxlen=1)  # what remains is the list that ended last, the outermost
    msgpack.unpackb(
        data,
        list_hook=lists.append,
        object_pairs_hook=_columns,
        ext_hook=_no_extension,
        max_str_len=FRAME_LENGTH_MAX,
        max_bin_len=FRAME_LENGTH_MAX,
        max_array_len=_PUBLISH_LENGTH,
        max_map_len=ATTRIBUTES_MAX,
        max_ext_len=0,
    )
    return lists[0]


def _columns(pairs: list[tuple[Any, Any]]) -> dict[str, bytes]:
    columns = dict(pairs)
    if len(columns) != len(pairs):
        raise ProtocolViolation("PUBLISH: an attribute has one match column")
    for name, column in pairs:
        if type(name) is not str or type(column) is not bytes or not _is_attribute_name(name):
            raise ProtocolViolation("PUBLISH: columns map attribute names to encoded columns")
    return columns


def _string_keyed(pairs: list[tuple[Any, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs) or not all(type(name) is str for name in members):
        raise ProtocolViolation("the keys of a map are strings, each used once")
    return members


def _no_extension(code: int, _: bytes) -> Any:
    raise ProtocolViolation(f"extension type {code} has no meaning here")


def _encode_head(portion: Portion) -> bytes:
    """Everything of a portion up to its records; they follow as they are, so they exist once however many wait."""
    length = len(portion.records)
    if length < 0x100:
        head = b"\xc4" + length.to_bytes(1, "big")
    elif length < 0x10000:
        head = b"\xc5" + length.to_bytes(2, "big")
    else:
        head = b"\xc6" + length.to_bytes(4, "big")
    # Packed at once as an array, whose head of one byte is cut off: much faster than field by field.
    fields = (portion.origin, portion.base, portion.time, portion.offsets, portion.topics, portion.lengths)
    portion.encoded = _pack(fields)[1:] + head
    return portion.encoded


def _decode_publish(parts: list[Any]) -> Publish:
    if len(parts) != _PUBLISH_LENGTH:
        raise ProtocolViolation(f"PUBLISH has 7 fields, not {len(parts) - 1}")
    _, sequence, mode, topics, lengths, columns, complete, records = parts
    if (
        type(sequence) is not int
        or type(topics) is not str
        or type(lengths) is not bytes
        or type(columns) is not dict
        or type(complete) is not bool
        or type(records) is not bytes
    ):
        raise ProtocolViolation("PUBLISH is sequence, mode, topics, lengths, columns, complete, records")
    if type(mode) is not int or not Mode.FIRE <= mode <= Mode.STORED:
        raise ProtocolViolation("PUBLISH: mode is 0 (fire), 1 (accepted) or 2 (stored)")
    if not 0 <= sequence <= CREDIT_MAX or (sequence == 0) != (mode == Mode.FIRE):
        raise ProtocolViolation("PUBLISH: a sequence counts from 1, and is 0 in mode FIRE alone")
    batch = Batch(topics, len(lengths) // 4, lengths, records, columns, complete)
    batch.check()
    return Publish(sequence, mode, batch)


def _decode_deliver(parts: list[Any]) -> Deliver:
    if len(parts) != 9:
        raise ProtocolViolation(f"DELIVER has 8 fields, not {len(parts) - 1}")
    _, routes, origin, base, time, offsets, topics, lengths, records = parts
    if (
        type(routes) not in (list, bytes)
        or not _CHECKS[_NAME](origin)
        or not _is_counter(base)
        or not _is_counter(time)
        or type(offsets) is not bytes
        or type(topics) is not str
        or type(lengths) is not bytes
        or type(records) is not bytes
    ):
        raise ProtocolViolation("DELIVER is routes, origin, base, time, offsets, topics, lengths, records")
    count = len(lengths) // 4
    Batch(topics, count, lengths, records).check()
    if offsets and len(split_u32(offsets)) != count:
        raise ProtocolViolation("DELIVER: offsets name one row for each event")
    _check_routes(routes, count)
    return Deliver(routes, Portion(origin, base, time, offsets, topics, lengths, records, count))


def _check_routes(routes: list[Any] | bytes, count: int) -> None:
    if type(routes) is bytes:
        if len(routes) != 4 * count:
            raise ProtocolViolation(f"DELIVER: routes of {count} events are {4 * count} bytes, not {len(routes)}")
        return
    covered = 0
    for subscriptions, run in zip(routes[::2], routes[1::2], strict=False):
        several = type(subscriptions) is list and subscriptions and all(map(_is_counter, subscriptions))
        if not (several or _is_counter(subscriptions)) or not _is_counter(run) or run == 0:
            raise ProtocolViolation("DELIVER: routes alternate subscriptions and a number of events")
        covered += run
    if covered != count or len(routes) % 2:
        raise ProtocolViolation(f"DELIVER: the routes cover {covered} of {count} events")


def _is_counter(value: Any) -> bool:
    return type(value) is int and 0 <= value <= CREDIT_MAX


def _is_seconds(value: Any) -> bool:
    return (type(value) is float or type(value) is int) and 0 <= value <= 86_400


def _is_names(value: Any) -> bool:
    if value is None:
        return True
    if type(value) is not list or len(value) > INTEREST_ATTRIBUTES_MAX:
        return False
    return all(type(name) is str and _is_attribute_name(name) for name in value)


def _is_attribute_name(name: str) -> bool:
    """1 to 256 bytes; counting characters first spares most names the encoding."""
    if not 0 < len(name) <= ATTRIBUTE_NAME_LENGTH_MAX:
        return False
    return name.isascii() or len(name.encode()) <= ATTRIBUTE_NAME_LENGTH_MAX


_CHECKS: dict[int, Callable[[Any], bool]] = {
    _COUNTER: _is_counter,
    _TEXT: lambda value: type(value) is str and len(value) <= TEXT_LENGTH_MAX,
    _NAME: lambda value: type(value) is str and len(value) <= ATTRIBUTE_NAME_LENGTH_MAX,
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
    _KIND: is_kind,
    _LIST: lambda value: type(value) is list,
}

_WANTED: dict[int, str] = {
    _COUNTER: "an integer from 0 to 2^53",
    _TEXT: "a string of at most 64 KiB",
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
}

_SPECIAL: dict[int, Callable[[list[Any]], Message]] = {12: _decode_publish, 14: _decode_deliver, 35: decode_forward}
