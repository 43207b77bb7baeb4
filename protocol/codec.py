"""Message <-> the msgpack array inside a frame.

Most messages are their fields in order behind their type number, so one table checks and builds them (`fields.py`).
PUBLISH and DELIVER are written out: they carry the traffic. DELIVER is put together from three parts, the routes of
this connection, the head of the portion, which is encoded once however many connections get it, and its records.

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
from .fields import check_fields, is_attribute_name, is_counter, is_name
from .limits import (
    ATTRIBUTES_MAX,
    COLUMNS_MAX,
    CONDITION_LENGTH_MAX,
    CONTROL_LENGTH_MAX,
    CREDIT_MAX,
    FRAME_LENGTH_MAX,
    HANDSHAKE_FRAME_LENGTH_MAX,
    LETTER_LENGTH_MAX,
    LIST_LENGTH_MAX,
    LOG_CHUNK_ROWS_MAX,
    LOG_ORIGINS_MAX,
    PAGE_LENGTH_MAX,
    PUBLISH_LENGTH_MAX,
    SETTINGS_MAX,
    SUBSCRIBE_LENGTH_MAX,
    TEXT_LENGTH_MAX,
)
from .log_codec import decode_stamp, encode_stamp
from .messages import MESSAGE_TYPES, Credit, Deliver, Forward, Hello, Message, Mode, Puback, Publish, wire_name
from .peer_codec import decode_forward, encode_forward, unpack_forward

__all__ = ["decode", "encode", "encode_chunks", "kind_of"]

_pack = msgpack.Packer(autoreset=True).pack
_TYPE_NUMBER: dict[type[Any], int] = {kind: number for number, kind in MESSAGE_TYPES.items()}
_DELIVER_HEAD = b"\x99\x0e"
_ARRAY_MARK, _TYPE_NUMBER_MAX = 0x90, 0x7F
_PUBLISH, _PUBLISH_LENGTH = 12, 8
_PRODUCE, _PRODUCE_LENGTH = 19, 13
_FORWARD = 35

_TEXT_LENGTH_MAX = {
    8: CONDITION_LENGTH_MAX,
    14: FRAME_LENGTH_MAX,
    17: CONDITION_LENGTH_MAX,
    18: FRAME_LENGTH_MAX,
    34: FRAME_LENGTH_MAX,
}
"""Type number -> bytes of a string inside it: those that carry conditions, and DELIVER, ANSWER and CONTROL, which only
a broker sends; every other has TEXT_LENGTH_MAX."""

_LENGTH_MAX = {
    8: SUBSCRIBE_LENGTH_MAX,
    12: PUBLISH_LENGTH_MAX,
    14: FRAME_LENGTH_MAX,
    17: SUBSCRIBE_LENGTH_MAX,
    18: FRAME_LENGTH_MAX,
    19: PUBLISH_LENGTH_MAX,
    21: FRAME_LENGTH_MAX,
    32: HANDSHAKE_FRAME_LENGTH_MAX,
    34: PAGE_LENGTH_MAX,
    35: FRAME_LENGTH_MAX,
    36: FRAME_LENGTH_MAX,
}
"""Type number -> bytes of its frame; every other has CONTROL_LENGTH_MAX."""

_LIST_LENGTH_MAX = {
    8: 256,
    14: LIST_LENGTH_MAX,
    16: 256,
    17: 256,
    18: LIST_LENGTH_MAX,
    21: LOG_CHUNK_ROWS_MAX,
    33: LETTER_LENGTH_MAX,
    34: LIST_LENGTH_MAX,
}
"""Type number -> elements of a list inside it. msgpack makes room for what a header claims, at any depth."""

_OUTER_LENGTH_MAX = 16
"""The same for messages that hold no list: what a stranger may send before the handshake costs next to nothing."""

_MAP_LENGTH_MAX = {8: 256, 17: ATTRIBUTES_MAX, 18: 1024, 21: LOG_ORIGINS_MAX, 32: SETTINGS_MAX, 33: 256, 34: 1024}
"""Type number -> members of a map inside it; no other message but PUBLISH, PRODUCE and FORWARD has one."""


def encode_chunks(message: Message) -> list[bytes]:
    """The bytes of a message, without its frame's length, in one or two pieces that are not copied again.

    Raises LocalError when a field cannot be written: half a surrogate pair, an integer of more than 64 bits, an object.
    """
    try:
        if type(message) is Deliver:
            portion = message.portion
            return [_DELIVER_HEAD + _pack(message.routes) + (portion.encoded or _encode_head(portion)), portion.records]
        return _chunks(message)
    except (TypeError, ValueError, OverflowError) as error:
        raise LocalError(f"{wire_name(type(message))} cannot be encoded: {error}") from error


def _chunks(message: Message) -> list[bytes]:
    if type(message) is Publish:
        batch = message.batch
        if message.stamp is None:
            head = b"\x98\x0c" + _pack(message.sequence) + _pack(message.mode)
        else:
            head = b"\x9d\x13" + _pack(message.sequence) + _pack(message.mode) + encode_stamp(message.stamp, _pack)
        return [
            head
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
    if type(message) is Credit and message.allowed_bytes == CREDIT_MAX and not message.taken:
        return [_pack([number, message.allowed, message.received])]
    if type(message) is Hello and message.credit_bytes == CREDIT_MAX:
        return [_pack([number, *(getattr(message, name) for name in message.__slots__[:-1])])]
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
        text = f"{wire_name(kind)} has at most {length_max} bytes, not {len(data)}"
        raise ProtocolViolation(text, ErrorCode.TOO_LARGE)
    try:
        parts = _unpack_publish(data, _PUBLISH_LENGTH) if number == _PUBLISH else _unpack(data, number)
    except ProtocolViolation:
        raise
    except Exception as error:  # msgpack raises a dozen kinds; each means the same to us
        raise ProtocolViolation(f"not a msgpack message: {type(error).__name__}: {error}"[:300]) from error
    special = _SPECIAL.get(number)
    if special is not None:
        return special(parts)
    check_fields(number, wire_name(kind), kind, parts)
    message: Message = kind(*parts[1:])
    return message


def _unpack(data: bytes | bytearray | memoryview, number: int) -> list[Any]:
    if number == _PRODUCE:
        return _unpack_publish(data, _PRODUCE_LENGTH)
    if number == _FORWARD:
        return unpack_forward(data, _columns)
    parts: list[Any] = msgpack.unpackb(
        data,
        object_pairs_hook=_string_keyed,
        ext_hook=_no_extension,
        max_str_len=_TEXT_LENGTH_MAX.get(number, TEXT_LENGTH_MAX),
        max_bin_len=FRAME_LENGTH_MAX,
        max_array_len=_LIST_LENGTH_MAX.get(number, _OUTER_LENGTH_MAX),
        max_map_len=_MAP_LENGTH_MAX.get(number, 0),
        max_ext_len=0,
    )
    return parts


def _unpack_publish(data: bytes | bytearray | memoryview, length: int) -> list[Any]:
    """The parts of a PUBLISH or PRODUCE. A list inside it, which neither has, is dropped as it is built.

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
        max_array_len=length,
        max_map_len=COLUMNS_MAX,
        max_ext_len=0,
    )
    return lists[0]


def _columns(pairs: list[tuple[Any, Any]]) -> dict[str, bytes]:
    if not pairs:
        return {}
    columns = dict(pairs)
    if len(columns) != len(pairs):
        raise ProtocolViolation("PUBLISH: an attribute has one match column")
    for name, column in pairs:
        if type(name) is not str or type(column) is not bytes or not is_attribute_name(name):
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
    if batch.count > 1:
        batch.split_topics()
    batch.check()
    return Publish(sequence, mode, batch)


def _decode_produce(parts: list[Any]) -> Publish:
    if len(parts) != _PRODUCE_LENGTH:
        raise ProtocolViolation(f"PRODUCE has {_PRODUCE_LENGTH - 1} fields, not {len(parts) - 1}")
    stamp = decode_stamp(parts[3:8])
    message = _decode_publish(parts[:3] + parts[8:])
    if message.mode == Mode.FIRE:
        raise ProtocolViolation("PRODUCE: mode is 1 (accepted) or 2 (stored), because it is answered")
    message.stamp = stamp
    return message


def _decode_deliver(parts: list[Any]) -> Deliver:
    if len(parts) != 9:
        raise ProtocolViolation(f"DELIVER has 8 fields, not {len(parts) - 1}")
    _, routes, origin, base, time, offsets, topics, lengths, records = parts
    if (
        type(routes) not in (list, bytes)
        or not is_name(origin)
        or not is_counter(base)
        or not is_counter(time)
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
        several = type(subscriptions) is list and subscriptions and all(map(is_counter, subscriptions))
        if not (several or is_counter(subscriptions)) or not is_counter(run) or run == 0:
            raise ProtocolViolation("DELIVER: routes alternate subscriptions and a number of events")
        covered += run
    if covered != count or len(routes) % 2:
        raise ProtocolViolation(f"DELIVER: the routes cover {covered} of {count} events")


_SPECIAL: dict[int, Callable[[list[Any]], Message]] = {
    12: _decode_publish,
    14: _decode_deliver,
    19: _decode_produce,
    35: decode_forward,
}
