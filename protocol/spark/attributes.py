"""Attributes of events -> Arrow arrays: a struct of declared types, a map of texts, or a map of values by type.

A value of another type than declared is NULL, as it is to a condition that compares unlike types; only an integer
where a double is declared becomes one. A map of texts has every value as people write it: `true`, `8.5`, `OTE`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .errors import UnsupportedType
from .layout import HEADERS_PREFIX

__all__ = ["attribute_array", "header_array"]

_Attributes = Sequence[dict[str, Any]]
_MEMBERS: dict[str, type] = {"l": int, "d": float, "s": str, "b": bool}
"""Member of a split attribute -> the type of values that it holds."""


def attribute_array(rows: _Attributes, kind: Any) -> Any:
    """The attributes of each event as the type of Spark's column wants them; a map of texts leaves headers out."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        children = [_child(rows, field) for field in kind]
        return pa.StructArray.from_arrays(children, fields=list(kind))
    if not pa.types.is_map(kind):
        raise UnsupportedType("attributes", str(kind), "declare it as a MAP<STRING, STRING> or a STRUCT")
    if pa.types.is_struct(kind.item_type):
        return _typed_map(rows, kind)
    return _text_map(rows, kind, headers=False)


def header_array(rows: _Attributes, kind: Any) -> Any:
    """Those attributes that came as headers, without the prefix."""
    start = len(HEADERS_PREFIX)
    chosen = [
        {name[start:]: value for name, value in row.items() if name[:start] == HEADERS_PREFIX} if row else row
        for row in rows
    ]
    return _text_map(chosen, kind, headers=True)


def _text_map(rows: _Attributes, kind: Any, headers: bool) -> Any:
    """A map of every value as text, those that came as headers with or without."""
    import pyarrow as pa

    ends, names, values = _flat(rows, headers)
    texts = [value if type(value) is str else _text(value) for value in values]
    return pa.MapArray.from_arrays(ends, pa.array(names, pa.string()), pa.array(texts, pa.string())).cast(kind)


def _flat(rows: _Attributes, headers: bool) -> tuple[Any, list[str], list[Any]]:
    """Where each row's attributes end in the lists of all names and all values that are there."""
    import pyarrow as pa

    start = len(HEADERS_PREFIX)
    ends, names, values = [0], [], []
    for row in rows:
        for name, value in row.items():
            if value is not None and (headers or name[:start] != HEADERS_PREFIX):
                names.append(name)
                values.append(value)
        ends.append(len(names))
    return pa.array(ends, pa.int32()), names, values


def _text(value: Any) -> str:
    if type(value) is bool:
        return "true" if value else "false"
    return repr(value)


def _child(rows: _Attributes, field: Any) -> Any:
    """One attribute as an array of its declared type."""
    import pyarrow as pa

    values = [row.get(field.name) for row in rows]
    kind = field.type
    if pa.types.is_struct(kind):
        children = [pa.array(_of_type(values, _MEMBERS[member.name]), member.type) for member in kind]
        return pa.StructArray.from_arrays(children, fields=list(kind))
    if pa.types.is_string(kind):
        return pa.array(_of_type(values, str), kind)
    if pa.types.is_boolean(kind):
        return pa.array(_of_type(values, bool), kind)
    if pa.types.is_floating(kind):
        return pa.array([_as_double(value) for value in values], kind)
    integers = _of_type(values, int)
    if pa.types.is_int64(kind):
        return pa.array(integers, kind)
    if pa.types.is_int32(kind) or pa.types.is_date32(kind):
        fitting = [value if value is not None and -(2**31) <= value < 2**31 else None for value in integers]
        return pa.array(fitting, pa.int32()).cast(kind)
    if pa.types.is_timestamp(kind):
        return pa.array(integers, pa.int64()).cast(kind)
    raise UnsupportedType(f"attributes.{field.name}", str(kind), "see option 'attributesSchema' for the types that are")


def _of_type(values: Sequence[Any], wanted: type) -> list[Any]:
    return [value if type(value) is wanted else None for value in values]


def _as_double(value: Any) -> float | None:
    return float(value) if type(value) is float or type(value) is int else None


def _typed_map(rows: _Attributes, kind: Any) -> Any:
    """Each value in the member of its own type, headers too: a condition may ask for them. No dict for a value."""
    import pyarrow as pa

    ends, names, values = _flat(rows, headers=True)
    members = [pa.array(_of_type(values, _MEMBERS[member.name]), member.type) for member in kind.item_type]
    items = pa.StructArray.from_arrays(members, fields=list(kind.item_type))
    return pa.MapArray.from_arrays(ends, pa.array(names, pa.string()), items).cast(kind)
