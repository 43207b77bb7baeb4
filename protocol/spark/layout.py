"""What becomes of each column of a DataFrame that is written: topic, body, attributes. Decided once, on the driver.

Six names are reserved. `topic` is the topic, unless option `topic` names one for all rows; `value` is the body;
`headers`, a map of strings, becomes attributes named `headers.NAME`. `event_id` and `key` (strings) and `event_time` (a
timestamp) are attributes like every other column, only that their types are fixed. Option `documentColumn` names the
body in place of `value`, and says that it is a document.

Every other column is an attribute: integers and booleans as they are, float and double as doubles, strings, a timestamp
as microseconds and a date as days since 1970. NULL means that the event has no such attribute. What has no place in an
event (arrays, structs, decimals, ...) is refused here, before any task runs.

A frame that was read from a log can be written back: its column `attributes` (a struct, or a map of texts or of typed
values) becomes attributes, and the log's own columns (`partition`, `offset`, `timestamp`, `producer_id`, `sequence`,
the broker's `event_id`) are left out, for they say where the event stood. Its `content_type` is the bodies' again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headgate.protocol.client import Vocabulary, check_names
from headgate.protocol.errors import LocalError

from .errors import BadOption, MissingOption, UnsupportedType
from .options import WriteOptions

__all__ = ["HEADERS_PREFIX", "RESERVED", "Layout", "plan_layout", "unpacked"]

HEADERS_PREFIX = "headers."
"""How attributes that came as headers begin; nested maps are dotted names in every client."""

_FORMS = {
    "boolean": "bool",
    "tinyint": "int",
    "smallint": "int",
    "int": "int",
    "bigint": "int",
    "float": "double",
    "double": "double",
    "string": "string",
    "timestamp": "int",
    "timestamp_ntz": "int",
    "date": "int",
    "void": "void",
}

RESERVED = {
    "topic": ("string",),
    "value": ("binary", "string"),
    "headers": ("map<string,string>", "map<string,binary>", "array<struct<key:string,value:binary>>"),
    "event_id": ("string",),
    "key": ("string",),
    "event_time": ("timestamp", "timestamp_ntz"),
}
"""Reserved column -> the types it may have."""

_PARTS = ("topic", "value", "headers")
_ATTRIBUTES = "attributes"
_TYPES = "content_type"
_OF_A_LOG = ("partition", "offset", "timestamp", "producer_id", "sequence", "event_id", _TYPES)
_TYPED = "map<string,struct<l:bigint,d:double,s:string,b:boolean>>"
_MAPS = ("map<string,string>", _TYPED)
_CURES = {
    "decimal": "an event has 64-bit integers and doubles; cast it to DOUBLE, or to STRING to keep every digit",
    "binary": "bytes are the body's: name the column 'value', or cast it to STRING with base64()",
    "array": "an event's attributes are flat; write to_json() of it to 'value', or choose its members",
    "map": "an event's attributes are flat; only 'headers' and 'attributes' may be maps, of strings to strings",
    "struct": "an event's attributes are flat; select its fields as columns, `order.price AS `order.price``",
    "variant": "an event's attributes are flat; write to_json() of it to 'value', or extract its members",
}


@dataclass(frozen=True, slots=True)
class Layout:
    """Where each column goes. `attributes` pairs a column with its form: bool, int, double or string.

    `maps` are the columns of attributes in maps, opened row by row; `fields` are the members of a struct `attributes`,
    which `unpacked` makes columns; `left_out` are columns of a log that was read. `value` is the type of column `body`,
    and `content_type` what its documents are; where that is empty it holds none, or column `types` says what each is.
    """

    topic: str
    value: str
    maps: tuple[str, ...]
    attributes: tuple[tuple[str, str], ...]
    id_column: str
    fields: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    body: str = "value"
    content_type: str = ""
    types: str = ""


def plan_layout(
    columns: Sequence[tuple[str, str]], options: WriteOptions, fields: Sequence[tuple[str, str]] | None = None
) -> Layout:
    """The layout of (name, type as Spark writes it) columns. Raises a ConnectorError that names column or option.

    `fields` are those of column `attributes` when it is a struct.
    """
    kinds = dict(columns)
    left_out = _left_out(kinds, fields, options)
    if fields is not None:
        _check_fields(kinds, fields, left_out, options)
    columns = [(name, kind) for name, kind in columns if name not in left_out]
    if fields is not None:
        columns = [(name, kind) for name, kind in columns if name != _ATTRIBUTES] + list(fields)
    maps = [name for name in ("headers", _ATTRIBUTES) if kinds.get(name, "void") != "void" and name in dict(columns)]
    for name, kind in columns:
        _check_reserved(name, kind)
    _check_topic(kinds, options)
    _check_document(dict(columns), options)
    body = options.document_column or "value"
    attributes = [(name, _form(name, kind)) for name, kind in columns if name not in (*_PARTS, *maps, body)]
    try:
        check_names(tuple(name for name, _ in attributes))
    except LocalError as error:
        raise UnsupportedType(attributes[-1][0], "an attribute", f"{error}; select fewer columns") from error
    return Layout(
        topic=options.topic,
        value=kinds.get(body, ""),
        maps=tuple(maps),
        attributes=tuple((name, form) for name, form in attributes if form != "void"),
        id_column=_id_column(kinds, options),
        fields=tuple(name for name, _ in fields or ()),
        left_out=left_out,
        body=body,
        content_type=f"application/{options.document_kind}" if options.document_column else "",
        types=_TYPES if _TYPES in left_out and kinds[_TYPES] == "string" and not options.document_column else "",
    )


def unpacked(rows: Any, layout: Layout) -> Any:
    """The rows of a pyarrow.RecordBatch with the members of struct `attributes` as columns of their own."""
    if not layout.fields:
        return rows
    import pyarrow as pa
    import pyarrow.compute as pc

    names = [name for name in rows.schema.names if name != _ATTRIBUTES and name not in layout.fields]
    columns = [rows.column(name) for name in names]
    packed = rows.column(_ATTRIBUTES)
    columns += [pc.struct_field(packed, [place]) for place in range(packed.type.num_fields)]
    return pa.RecordBatch.from_arrays(columns, names=[*names, *layout.fields])


def _left_out(
    kinds: dict[str, str], fields: Sequence[tuple[str, str]] | None, options: WriteOptions
) -> tuple[str, ...]:
    """The columns of a log that say where its events stood; what was typed holds the headers as well."""
    if fields is None and kinds.get(_ATTRIBUTES) not in _MAPS:
        return ()
    twice = ("headers",) if kinds[_ATTRIBUTES] == _TYPED else ()
    return tuple(name for name in (*_OF_A_LOG, *twice) if name in kinds)


def _check_fields(
    kinds: dict[str, str], fields: Sequence[tuple[str, str]], left_out: tuple[str, ...], options: WriteOptions
) -> None:
    for name, kind in fields:
        if name in kinds and (name not in left_out or (options.idempotence == "id" and name == options.id_column)):
            raise UnsupportedType(f"attributes.{name}", kind, f"there is a column {name!r} as well; drop one of them")


def _check_reserved(name: str, kind: str) -> None:
    allowed = RESERVED.get(name)
    if allowed is not None and kind not in allowed and kind != "void":
        raise UnsupportedType(name, kind, f"this name is reserved for {' or '.join(allowed)}; cast or rename it")


def _check_document(kinds: dict[str, str], options: WriteOptions) -> None:
    name = options.document_column
    if not name:
        return
    if name not in kinds or (name in RESERVED and name != "value"):
        others = ", ".join(one for one in kinds if one == "value" or one not in RESERVED)
        raise BadOption("documentColumn", name, f"a column of documents, one of {others}")
    if kinds[name] not in ("string", "binary", "void"):
        raise UnsupportedType(name, kinds[name], "a document is a STRING or BINARY; to_json() writes one")
    if name != "value" and kinds.get("value", "void") != "void":
        raise BadOption("documentColumn", name, "'value', or the only body: drop column 'value'")


def _check_topic(kinds: dict[str, str], options: WriteOptions) -> None:
    if options.topic:
        try:
            Vocabulary().stream_of(options.topic)
        except LocalError as error:
            raise BadOption("topic", options.topic, f"a topic such as 'quotes/NYSE/OTE': {error}") from error
    elif kinds.get("topic", "void") == "void":
        raise MissingOption("topic", "set it for all rows, or add a column 'topic' such as 'quotes/NYSE/OTE'")


def _form(name: str, kind: str) -> str:
    form = _FORMS.get(kind)
    if form is None and kind.startswith(("varchar", "char")):
        form = "string"
    if form is None:
        family = kind.partition("<")[0].partition("(")[0]
        raise UnsupportedType(name, kind, _CURES.get(family, "cast it to a type that an attribute can have"))
    return form


def _id_column(kinds: dict[str, str], options: WriteOptions) -> str:
    if options.idempotence != "id":
        return ""
    if options.id_column not in kinds:
        raise BadOption("eventIdColumn", options.id_column, f"one of the columns, {', '.join(kinds)}")
    if kinds[options.id_column] not in ("string", "bigint", "int", "smallint", "tinyint"):
        raise UnsupportedType(options.id_column, kinds[options.id_column], "an event id is a string or an integer")
    return options.id_column
