"""Attributes of events -> Arrow arrays: a struct of declared types, a map of texts, or a map of values by type.

A value of another type than declared is NULL, as it is to a condition that compares unlike types; only an integer
where a double is declared becomes one. A map of texts has every value as people write it: `true`, `8.5`, `OTE`.
"""

from __future__ import annotations

from typing import Any

from ..errors import UnsupportedType
from ..layout import HEADERS_PREFIX
from .opening import ABSENT, BOOL, FLOAT, INT, TEXT, Opened, Values

__all__ = ["attribute_array", "header_array", "wanted_names"]

_PLAIN_LOW, _PLAIN_HIGH = 1e-4, 1e10
"""Between these Arrow and Python write doubles alike, but for the `.0` of whole ones."""


def wanted_names(kind: Any) -> frozenset[str] | None:
    """The attributes that a column of this type shows; None means all of them."""
    import pyarrow as pa

    return frozenset(field.name for field in kind) if pa.types.is_struct(kind) else None


def attribute_array(opened: Opened, kind: Any) -> Any:
    """The attributes of each event as the type of Spark's column wants them; a map of texts leaves headers out."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        if not len(kind):
            return pa.array([{}] * opened.count, kind)
        children = [_child(opened.attributes.get(field.name), opened.count, field) for field in kind]
        return pa.StructArray.from_arrays(children, fields=list(kind))
    if not pa.types.is_map(kind):
        raise UnsupportedType("attributes", str(kind), "declare it as a MAP<STRING, STRING> or a STRUCT")
    if pa.types.is_struct(kind.item_type):
        return _map(opened, list(opened.attributes.items()), kind, lambda values: _split(values, kind.item_type))
    plain = [(name, values) for name, values in opened.attributes.items() if not name.startswith(HEADERS_PREFIX)]
    return _map(opened, plain, kind, _texts)


def header_array(opened: Opened, kind: Any) -> Any:
    """Those attributes that came as headers, without the prefix."""
    start = len(HEADERS_PREFIX)
    chosen = [(name[start:], values) for name, values in opened.attributes.items() if name.startswith(HEADERS_PREFIX)]
    return _map(opened, chosen, kind, _texts)


def _map(opened: Opened, chosen: list[tuple[str, Values]], kind: Any, items_of: Any) -> Any:
    """A map of these attributes; each event has those that it has."""
    import numpy as np
    import pyarrow as pa

    count = opened.count
    names = pa.array([name for name, _ in chosen], pa.string())
    if not chosen:
        ends = np.zeros(count + 1, np.int32)
        return pa.MapArray.from_arrays(pa.array(ends), names, pa.array([], kind.item_type)).cast(kind)
    # Columns stand one behind the other; an event takes its own from each.
    there = np.stack([values.kinds != ABSENT for _, values in chosen], axis=1)
    places = np.arange(len(chosen) * count).reshape(len(chosen), count).T[there]
    ends = np.zeros(count + 1, np.int32)
    np.cumsum(there.sum(axis=1), out=ends[1:])
    columns = [items_of(values) for _, values in chosen]
    items = (columns[0] if len(columns) == 1 else pa.concat_arrays(columns)).take(pa.array(places))
    return pa.MapArray.from_arrays(pa.array(ends), names.take(pa.array(places // count)), items).cast(kind)


def _texts(values: Values) -> Any:
    """Every value as text."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    written = [pa.nulls(len(values.kinds), pa.string())]
    for kind in np.unique(values.kinds[values.kinds != ABSENT]).tolist():
        others = ~values.of_kind(kind)
        if kind == TEXT:
            written.append(values.texts())
        elif kind == INT:
            written.append(pa.array(values.words, mask=others).cast(pa.string()))
        elif kind == BOOL:
            written.append(pa.array(values.words != 0, mask=others).cast(pa.string()))
        else:
            written.append(_written(values.doubles(), others))
    return written[-1] if len(written) <= 2 else pc.coalesce(*written)


def _written(doubles: Any, others: Any) -> Any:
    """Doubles as Python writes them: most by Arrow, which writes the rest in other forms."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = pa.array(doubles, mask=others).cast(pa.string())
    size = np.abs(doubles)
    plain = (size >= _PLAIN_LOW) & (size < _PLAIN_HIGH) & (doubles != np.floor(doubles))
    other = np.flatnonzero(~plain & ~others)
    if not len(other):
        return texts
    replaced = pa.array([repr(value) for value in doubles[other].tolist()], pa.string())
    mask = np.zeros(len(doubles), bool)
    mask[other] = True
    return pc.replace_with_mask(texts, pa.array(mask), replaced)


def _child(values: Values | None, count: int, field: Any) -> Any:
    """One attribute as an array of its declared type."""
    import pyarrow as pa

    kind = field.type
    values = values or Values(count)
    if pa.types.is_struct(kind):
        return _split(values, kind)
    if pa.types.is_string(kind):
        return values.texts().cast(kind)
    if pa.types.is_boolean(kind):
        return _member(values, "b")
    if pa.types.is_floating(kind):
        return _doubles(values, kind)
    if pa.types.is_int64(kind) or pa.types.is_timestamp(kind):
        return _member(values, "l").cast(kind)
    if pa.types.is_int32(kind) or pa.types.is_date32(kind):
        fitting = values.of_kind(INT) & (values.words >= -(2**31)) & (values.words < 2**31)
        return pa.array(values.words.astype("int32"), mask=~fitting).cast(kind)
    raise UnsupportedType(f"attributes.{field.name}", str(kind), "see option 'attributesSchema' for the types that are")


def _doubles(values: Values, kind: Any) -> Any:
    """Doubles, and integers as doubles."""
    import numpy as np
    import pyarrow as pa

    integers, floats = values.of_kind(INT), values.of_kind(FLOAT)
    found = (
        np.where(integers, values.words.astype(np.float64), values.doubles()) if integers.any() else values.doubles()
    )
    return pa.array(found, mask=~(integers | floats)).cast(kind)


def _split(values: Values, kind: Any) -> Any:
    """Each value in the member of its own type: what an evaluator needs that tells 1 from '1' and from TRUE."""
    import pyarrow as pa

    members = [_member(values, member.name).cast(member.type) for member in kind]
    return pa.StructArray.from_arrays(members, fields=list(kind))


def _member(values: Values, name: str) -> Any:
    """The values of one type."""
    import pyarrow as pa

    if name == "l":
        return pa.array(values.words, mask=~values.of_kind(INT))
    if name == "d":
        return pa.array(values.doubles(), mask=~values.of_kind(FLOAT))
    return values.texts() if name == "s" else pa.array(values.words != 0, mask=~values.of_kind(BOOL))
