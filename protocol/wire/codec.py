"""Message <-> the msgpack array inside a frame.

Most messages are their fields in order behind their type number, so one table checks and builds them (`FIELDS`).
PUBLISH, DELIVER and HANDED are written out: they carry the traffic. DELIVER is put together from three parts, the
routes of this connection, the head of the portion, which is encoded once however many connections get it, and its
records.

Every decode has explicit limits by type; whatever msgpack or a check dislikes becomes one ProtocolViolation. The
first two bytes of a message tell its type, so a host refuses what may not come before it is unpacked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from operator import ge, gt
from typing import Any

import msgpack

from ..data import SCALAR_TYPES, Batch, LogShift, Portion, join_u32, split_u32
from ..errors import ErrorCode, LocalError, ProtocolViolation
from ..limits import (
    ACK_SPANS_MAX,
    ATTRIBUTE_NAME_LENGTH_MAX,
    ATTRIBUTES_MAX,
    CHECK_ITEMS_MAX,
    CHECKS_MAX,
    COLUMNS_MAX,
    CONDITION_LENGTH_MAX,
    CONTROL_LENGTH_MAX,
    CREDIT_MAX,
    DIGEST_LENGTH_MAX,
    DIMENSION_LENGTH_MAX,
    DIMENSIONS_MAX,
    FRAME_LENGTH_MAX,
    HANDSHAKE_FRAME_LENGTH_MAX,
    HOPS_MAX,
    INTEREST_ATTRIBUTES_MAX,
    LETTER_LENGTH_MAX,
    LIST_LENGTH_MAX,
    LOG_CHUNK_ROWS_MAX,
    PAGE_LENGTH_MAX,
    PUBLISH_LENGTH_MAX,
    SETTINGS_MAX,
    SUBSCRIBE_LENGTH_MAX,
    TEXT_LENGTH_MAX,
)
from ..messages import (
    MESSAGE_TYPES,
    AckVerb,
    Credit,
    Deliver,
    Forward,
    Handed,
    Hello,
    Message,
    Mode,
    Puback,
    Publish,
    Scope,
    Stamp,
    Suback,
    wire_name,
)

__all__ = [
    "FIELDS",
    "check_fields",
    "decode",
    "decode_forward",
    "decode_stamp",
    "encode",
    "encode_chunks",
    "encode_forward",
    "encode_stamp",
    "is_attribute_name",
    "is_counter",
    "is_kind",
    "is_member",
    "is_name",
    "is_settings",
    "kind_of",
    "unpack_forward",
]

# The messages of peer links and the msgpack inside their frames: FORWARD written out, and the kinds of fields.
#
# FORWARD carries the traffic between brokers, so it is put together field by field like PUBLISH. While it is unpacked,
# every list and map is counted: it has few of them, and a frame of four million empty ones ends at the first too many.

_FIELDS = 12
_PLACE_MAX = 2**64 - 1
_KIND_MAX = 255
_LISTS_MAX = 2 * DIMENSIONS_MAX + 3
_HEAD = bytes([0x90 + _FIELDS + 1, 35])


def encode_forward(message: Forward, pack: Callable[[Any], bytes]) -> list[bytes]:
    """The bytes of a FORWARD in two pieces, the records apart because they are long and stand as they are."""
    batch = message.batch
    return [
        _HEAD
        + pack([[dimension, join_u32(rows)] for dimension, rows in message.dimensions])
        + pack(message.hops)
        + pack(message.log)
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
            raise ProtocolViolation(f"FORWARD has at most {DIMENSIONS_MAX} dimensions")
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
        max_array_len=DIMENSIONS_MAX,
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
    _, dimensions, hops, log, origin, base, time, offsets, topics, lengths, columns, complete, records = parts
    if (
        type(dimensions) is not list
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
        text = "dimensions, hops, log, origin, base, time, offsets, topics, lengths, columns, complete, records"
        raise ProtocolViolation(f"FORWARD is {text}")
    if not 0 <= hops <= HOPS_MAX:
        raise ProtocolViolation(f"FORWARD: passed on by at most {HOPS_MAX} brokers")
    if len(origin) > ATTRIBUTE_NAME_LENGTH_MAX:
        raise ProtocolViolation(f"FORWARD: origin has at most {ATTRIBUTE_NAME_LENGTH_MAX} characters")
    batch = Batch(topics, len(lengths) // 4, lengths, records, columns, complete)
    batch.check()
    if offsets and len(split_u32(offsets)) != batch.count:
        raise ProtocolViolation("FORWARD: offsets name one row for each event")
    opened = _open_dimensions(dimensions, batch.count)
    return Forward(opened, hops, batch, origin, base, offsets, time, _open_log("FORWARD", log, base))


def _open_log(name: str, value: Any, base: int) -> LogShift | None:
    """Which log events stand in, whose numbers begin at `base`, and how far their positions are above these."""
    if value is None:
        return None
    is_pair = type(value) is list and len(value) == 2 and is_name(value[0]) and type(value[1]) is int
    if not is_pair or not 0 <= base + value[1] <= CREDIT_MAX:
        raise ProtocolViolation(
            f"{name}: log is nil, or a log's name and what added to a number makes a position in it"
        )
    return LogShift(*value)


def _open_dimensions(dimensions: list[Any], count: int) -> list[Any]:
    if not 0 < len(dimensions) <= DIMENSIONS_MAX:
        raise ProtocolViolation(f"FORWARD: 1 to {DIMENSIONS_MAX} dimensions")
    opened: list[Any] = []
    for pair in dimensions:
        if type(pair) is not list or len(pair) != 2 or type(pair[0]) is not list or type(pair[1]) is not bytes:
            raise ProtocolViolation("FORWARD: a dimension comes as [dimension, rows]")
        dimension, rows = pair[0], split_u32(pair[1])
        if not 0 < len(dimension) <= DIMENSION_LENGTH_MAX or not SCALAR_TYPES.issuperset(map(type, dimension)):
            raise ProtocolViolation(f"FORWARD: a dimension is a list of 1 to {DIMENSION_LENGTH_MAX} scalars")
        if not rows or rows[-1] >= count or any(map(ge, rows, rows[1:])):
            raise ProtocolViolation(f"FORWARD: the rows of a dimension ascend, at least one, below {count}")
        opened.append([dimension, rows])
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


# The kinds of fields: what each message's fields may hold, for messages that are nothing but fields in a row.
#
# SPEC.md section 3 has the same kinds as a table; those that occur between brokers alone are in its section 18.2.

_COUNTER, _TEXT, _NAME, _BIN, _FLAG, _SECONDS, _MAP, _NAMES, _ANY, _SCOPE = range(10)
_KIND, _ROWS, _CONDITION = range(10, 13)
_SETTINGS, _MEMBER, _MEMBER_OR_NIL, _LIST, _ROW = range(13, 18)
_VERB, _SPANS, _SOME_SPANS, _DELAY, _CHECKS_OF_TWIGS = range(18, 23)

FIELDS: dict[int, tuple[int, ...]] = {
    1: (_COUNTER, _NAME, _BIN, _COUNTER, _COUNTER, _SECONDS, _TEXT, _COUNTER),
    2: (_COUNTER, _NAME, _BIN, _FLAG, _COUNTER, _COUNTER, _SECONDS),
    3: (_COUNTER, _SCOPE, _COUNTER, _TEXT),
    4: (_COUNTER, _TEXT),
    5: (_COUNTER,),
    6: (_COUNTER,),
    7: (_COUNTER, _COUNTER, _COUNTER, _COUNTER),
    8: (_COUNTER, _COUNTER, _TEXT, _CONDITION, _MAP),
    9: (_COUNTER, _COUNTER, _CHECKS_OF_TWIGS),
    10: (_COUNTER, _COUNTER),
    11: (_COUNTER, _COUNTER),
    13: (_COUNTER,),
    15: (_COUNTER, _COUNTER, _TEXT),
    16: (_TEXT, _NAMES),
    17: (_COUNTER, _NAME, _MAP),
    18: (_COUNTER, _ANY),
    20: (_COUNTER, _NAME, _COUNTER, _KIND, _TEXT, _COUNTER, _COUNTER, _TEXT, _TEXT, _SECONDS),
    21: (_COUNTER, _COUNTER, _COUNTER, _COUNTER, _ROWS),
    22: (_COUNTER, _FLAG),
    24: (_COUNTER, _COUNTER, _VERB, _SOME_SPANS, _DELAY, _TEXT),
    25: (_COUNTER, _SPANS),
    26: (_COUNTER, _COUNTER, _TEXT),
    27: (_COUNTER, _COUNTER, _SOME_SPANS, _FLAG, _TEXT),
    32: (_COUNTER, _NAME, _COUNTER, _NAME, _NAME, _NAME, _FLAG, _SETTINGS),
    33: (_MEMBER, _MEMBER_OR_NIL, _KIND, _LIST),
    34: (_KIND, _LIST),
    36: (_NAME, _COUNTER, _KIND, _TEXT, _ROW, _COUNTER, _COUNTER, _COUNTER),
    37: (_COUNTER, _COUNTER, _TEXT, _ROWS),
}


_OMISSIBLE = {1: 1, 7: 2, 9: 1}
"""Messages whose last fields may be left out, and how many: a bound that is none, what
nobody counted, and checks of a condition without XPATH."""


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


def _is_rows(value: Any) -> bool:
    return type(value) is list and all(type(row) is bytes for row in value)


def _is_spans(value: Any) -> bool:
    """Pairs of first and last, ascending and apart."""
    if type(value) is not list or len(value) > 2 * ACK_SPANS_MAX or len(value) % 2 or not all(map(is_counter, value)):
        return False
    return not any(map(gt, value[::2], value[1::2])) and not any(map(ge, value[1::2], value[2::2]))


def _is_checks(value: Any) -> bool:
    """Pairs of a text and a list of texts."""
    if type(value) is not list or len(value) > CHECKS_MAX:
        return False
    return all(
        type(one) is list
        and len(one) == 2
        and type(one[0]) is str
        and type(one[1]) is list
        and len(one[1]) <= CHECK_ITEMS_MAX
        and all(type(item) is str for item in one[1])
        for one in value
    )


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
    _ROWS: _is_rows,
    _ROW: lambda value: type(value) is bytes,
    _VERB: lambda value: type(value) is int and AckVerb.ACK <= value <= AckVerb.SKIP,
    _SPANS: _is_spans,
    _SOME_SPANS: lambda value: _is_spans(value) and value != [],
    _CHECKS_OF_TWIGS: _is_checks,
    _DELAY: lambda value: _is_seconds(value) or (value == -1 and type(value) in (int, float)),
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
    _ROWS: f"a list of at most {LOG_CHUNK_ROWS_MAX} rows, each a bin",
    _ROW: "a bin",
    _VERB: "0 (ack), 1 (nak), 2 (progress), 3 (term) or 4 (skip)",
    _SPANS: f"a list of at most {ACK_SPANS_MAX} pairs of numbers, first and last, ascending and apart",
    _SOME_SPANS: f"a list of 1 to {ACK_SPANS_MAX} pairs of numbers, first and last, ascending and apart",
    _CHECKS_OF_TWIGS: f"a list of at most {CHECKS_MAX} checks, an XPath text and at most {CHECK_ITEMS_MAX} items each",
    _DELAY: "a number of seconds, at most a day, or -1",
}


# The stamp of a batch in a PRODUCE: five fields between its mode and its topics.


def encode_stamp(stamp: Stamp, pack: Callable[[Any], bytes]) -> bytes:
    """The fields of a stamp as they stand in a PRODUCE."""
    # Packed at once as an array, whose head of one byte is cut off.
    return pack((stamp.producer, stamp.epoch, stamp.number, stamp.digest, stamp.ids))[1:]


def decode_stamp(parts: list[Any]) -> Stamp:
    """The stamp of these five parts. Raises ProtocolViolation."""
    producer, epoch, number, digest, ids = parts
    if type(producer) is not str or not 0 < len(producer) <= ATTRIBUTE_NAME_LENGTH_MAX:
        raise ProtocolViolation(f"PRODUCE: a producer has a name of 1 to {ATTRIBUTE_NAME_LENGTH_MAX} characters")
    if not is_counter(epoch) or not is_counter(number):
        raise ProtocolViolation("PRODUCE: epoch and number are integers from 0 to 2^53")
    if type(digest) is not bytes or len(digest) > DIGEST_LENGTH_MAX:
        raise ProtocolViolation(f"PRODUCE: a digest is a bin of at most {DIGEST_LENGTH_MAX} bytes")
    if type(ids) is not bytes:
        raise ProtocolViolation("PRODUCE: ids are a column with one string an event, or an empty bin")
    return Stamp(producer, epoch, number, digest, ids)


_pack = msgpack.Packer(autoreset=True).pack
_TYPE_NUMBER: dict[type[Any], int] = {kind: number for number, kind in MESSAGE_TYPES.items()}
_DELIVER_HEAD = b"\x9a\x0e"
_NIL = b"\xc0"
_HANDED_HEAD, _HANDED_LENGTH = b"\x9b\x17", 11
_ARRAY_MARK, _TYPE_NUMBER_MAX = 0x90, 0x7F
_PUBLISH, _PUBLISH_LENGTH = 12, 8
_PRODUCE, _PRODUCE_LENGTH = 19, 13
_FORWARD = 35

_TEXT_LENGTH_MAX = {
    8: CONDITION_LENGTH_MAX,
    14: FRAME_LENGTH_MAX,
    17: CONDITION_LENGTH_MAX,
    18: FRAME_LENGTH_MAX,
    23: FRAME_LENGTH_MAX,
    34: FRAME_LENGTH_MAX,
}
"""Type number -> bytes of a string inside it: those that carry conditions, and DELIVER, HANDED, ANSWER and CONTROL,
which only a broker sends; every other has TEXT_LENGTH_MAX."""

_LENGTH_MAX = {
    8: SUBSCRIBE_LENGTH_MAX,
    12: PUBLISH_LENGTH_MAX,
    14: FRAME_LENGTH_MAX,
    17: SUBSCRIBE_LENGTH_MAX,
    18: FRAME_LENGTH_MAX,
    19: PUBLISH_LENGTH_MAX,
    21: FRAME_LENGTH_MAX,
    23: FRAME_LENGTH_MAX,
    32: HANDSHAKE_FRAME_LENGTH_MAX,
    34: PAGE_LENGTH_MAX,
    35: FRAME_LENGTH_MAX,
    36: FRAME_LENGTH_MAX,
    37: FRAME_LENGTH_MAX,
}
"""Type number -> bytes of its frame; every other has CONTROL_LENGTH_MAX."""

_LIST_LENGTH_MAX = {
    8: 256,
    9: max(CHECKS_MAX, CHECK_ITEMS_MAX),
    14: LIST_LENGTH_MAX,
    16: 256,
    17: 256,
    18: LIST_LENGTH_MAX,
    21: LOG_CHUNK_ROWS_MAX,
    24: 2 * ACK_SPANS_MAX,
    25: 2 * ACK_SPANS_MAX,
    33: LETTER_LENGTH_MAX,
    34: LIST_LENGTH_MAX,
    37: LOG_CHUNK_ROWS_MAX,
}
"""Type number -> elements of a list inside it. msgpack makes room for what a header claims, at any depth."""

_OUTER_LENGTH_MAX = 16
"""The same for messages that hold no list: what a stranger may send before the handshake costs next to nothing."""

_MAP_LENGTH_MAX = {8: 256, 17: ATTRIBUTES_MAX, 18: 1024, 32: SETTINGS_MAX, 33: 256, 34: 1024}
"""Type number -> members of a map inside it; no other message but PUBLISH, PRODUCE and FORWARD has one."""


def encode_chunks(message: Message) -> list[bytes]:
    """The bytes of a message, without its frame's length, in one or two pieces that are not copied again.

    Raises LocalError when a field cannot be written: half a surrogate pair, an integer of more than 64 bits, an object.
    """
    try:
        if type(message) is Deliver:
            portion = message.portion
            log = _NIL if portion.log is None else _pack(portion.log)
            head = _DELIVER_HEAD + _pack(message.routes) + log + (portion.encoded or _encode_head(portion))
            return [head, portion.records]
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
    if type(message) is Handed:
        portion = message.portion
        head = _HANDED_HEAD + _pack(message.subscription) + _pack(message.first) + _pack(message.counts)
        return [head + (portion.encoded or _encode_head(portion)), portion.records]
    if type(message) is Forward:
        return encode_forward(message, _pack)
    if type(message) is Puback:
        return [b"\x92\x0d" + _pack(message.sequence)]
    number = _TYPE_NUMBER[type(message)]
    if type(message) is Credit and message.allowed_bytes == CREDIT_MAX and not message.taken:
        return [_pack([number, message.allowed, message.received])]
    if type(message) is Suback and not message.checks:
        return [_pack([number, message.request, message.subscription])]
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
    if len(parts) != 10:
        raise ProtocolViolation(f"DELIVER has 9 fields, not {len(parts) - 1}")
    _, routes, log, origin, base, time, offsets, topics, lengths, records = parts
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
        raise ProtocolViolation("DELIVER is routes, log, origin, base, time, offsets, topics, lengths, records")
    count = len(lengths) // 4
    Batch(topics, count, lengths, records).check()
    if offsets and len(split_u32(offsets)) != count:
        raise ProtocolViolation("DELIVER: offsets name one row for each event")
    _check_routes(routes, count)
    log = _open_log("DELIVER", log, base)
    return Deliver(routes, Portion(origin, base, time, offsets, topics, lengths, records, count, log))


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


def _decode_handed(parts: list[Any]) -> Handed:
    if len(parts) != _HANDED_LENGTH:
        raise ProtocolViolation(f"HANDED has {_HANDED_LENGTH - 1} fields, not {len(parts) - 1}")
    _, subscription, first, counts, origin, base, time, offsets, topics, lengths, records = parts
    if (
        not is_counter(subscription)
        or not is_counter(first)
        or type(counts) is not bytes
        or not is_name(origin)
        or not is_counter(base)
        or not is_counter(time)
        or type(offsets) is not bytes
        or type(topics) is not str
        or type(lengths) is not bytes
        or type(records) is not bytes
    ):
        text = "subscription, first, counts, origin, base, time, offsets, topics, lengths, records"
        raise ProtocolViolation(f"HANDED is {text}")
    count = len(lengths) // 4
    Batch(topics, count, lengths, records).check()
    if offsets and len(split_u32(offsets)) != count:
        raise ProtocolViolation("HANDED: offsets name one row for each event")
    if first == 0 or first + count - 1 > CREDIT_MAX:
        raise ProtocolViolation("HANDED: delivery numbers are from 1 to 2^53")
    if counts and (len(counts) != 4 * count or 0 in split_u32(counts)):
        raise ProtocolViolation("HANDED: counts are empty, or one number from 1 for each event")
    return Handed(subscription, first, counts, Portion(origin, base, time, offsets, topics, lengths, records, count))


_SPECIAL: dict[int, Callable[[list[Any]], Message]] = {
    12: _decode_publish,
    14: _decode_deliver,
    19: _decode_produce,
    23: _decode_handed,
    35: decode_forward,
}
