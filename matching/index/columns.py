"""The columns of one batch, made clean when they are first read.

What comes from outside may be anything; after `Columns` a cell is a bool, a 64-bit integer, a double, a string or None,
so that nothing behind it has to ask again. Cleaning is one pass over the types of a column, and only a column that
holds something foreign is copied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from headgate.matching.limits import INTEGER_MAX, INTEGER_MIN
from headgate.matching.values import Value, known

__all__ = ["Column", "Columns"]

Column: TypeAlias = Sequence[Value]

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
        if column is None:
            column = self.nulls
        else:
            kinds = set(map(type, column))
            if bool in kinds:
                self.boolean[name] = None
            if not kinds <= _HARMLESS and not (kinds == _ONLY_INTEGERS and _fit(column)):
                column = list(map(known, column))
        self[name] = column
        return column
