"""The columns of one batch, made clean when they are first read.

What comes from outside may be anything; after `Columns` a cell is a bool, a 64-bit integer, a double, a string or None,
so that nothing behind it has to ask again. Cleaning is one pass over the types of a column, and only a column that
holds something foreign is copied.

The columns of filters (`#structure/1024/1`) hold numbers, the filters themselves. Where there is none, or none that can
be read, nothing is known of the document: it is -1, all ones, so that no test ever says no.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from headgate.matching.limits import INTEGER_MAX, INTEGER_MIN
from headgate.matching.structure import Shape, unpack
from headgate.matching.values import Value, known

__all__ = ["UNKNOWN_FILTER", "Column", "Columns"]

Column: TypeAlias = Sequence[Value]

UNKNOWN_FILTER: Final = -1

_HARMLESS: Final = frozenset((str, float, bool, type(None)))
_ONLY_INTEGERS: Final = frozenset((int,))


def _fit(integers: Sequence[Any]) -> bool:
    return bool(min(integers) >= INTEGER_MIN and max(integers) <= INTEGER_MAX)


class Columns(dict[str, Column]):
    """Clean columns by name. A name that is missing has `nulls`, which is how an absent attribute is recognised."""

    __slots__ = ("_raw", "boolean", "nulls")

    def __init__(self, raw: Mapping[str, Column], count: int) -> None:
        super().__init__()
        self._raw = raw
        self.nulls: Column = (None,) * count
        # The columns that hold a bool: their keys are not their values.
        self.boolean: dict[str, None] = {}

    def __missing__(self, name: str) -> Column:
        column = self._raw.get(name)
        shape = Shape.of_column(name) if name[:1] == "#" else None
        if shape is not None:
            column = self._filters(column, shape.length)
        elif column is None:
            column = self.nulls
        else:
            kinds = set(map(type, column))
            if bool in kinds:
                self.boolean[name] = None
            if not kinds <= _HARMLESS and not (kinds == _ONLY_INTEGERS and _fit(column)):
                column = list(map(known, column))
        self[name] = column
        return column

    def _filters(self, packed: Sequence[Any] | None, length: int) -> Column:
        if packed is None:
            return (UNKNOWN_FILTER,) * len(self.nulls)
        filters = [unpack(one, length) if type(one) is bytes else None for one in packed]
        return [UNKNOWN_FILTER if one is None else one for one in filters]
