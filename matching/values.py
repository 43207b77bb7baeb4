"""Attribute values: the types there are, and the only place that decides how two of them compare and combine.

A value is NULL (None), a bool, a 64-bit integer, a double or a string. The rules are Spark SQL's, because the audit
asks Spark whether we were right:

* Two integers compare exactly. An integer meets a double as a double, so 9007199254740993 = 9007199254740992.0 is true
  (Python, which compares exactly, says false).
* NaN = NaN is true and NaN is greater than every other number; -0.0 = 0.0.
* Strings compare by code point; a bool compares with a bool only (false < true).
* Unlike values do not compare: the answer is None, UNKNOWN.
* Integer overflow, division by zero and arithmetic on anything but numbers give NULL. Nothing here ever raises.

Whatever is none of these types (bytes, lists, integers beyond 64 bits) is no attribute value: it is read as NULL.
Types are tested exactly: a subclass of int or str is not one of ours, and True is not 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, TypeAlias

from headgate.matching.limits import INTEGER_MAX, INTEGER_MIN

__all__ = [
    "ARITHMETIC",
    "COMPARISONS",
    "EXACT_MAX",
    "Value",
    "add",
    "among",
    "divide",
    "equal",
    "greater",
    "greater_or_equal",
    "hash_key",
    "is_null",
    "known",
    "less",
    "less_or_equal",
    "multiply",
    "negate",
    "order",
    "remainder",
    "subtract",
    "unequal",
]

Value: TypeAlias = bool | int | float | str | None

# Below this magnitude every integer is a double too, so comparing exactly and comparing as doubles are the same.
EXACT_MAX: Final = 2**53 - 1


def is_null(value: object) -> bool:
    """Is this NULL, or something that is read as NULL because it is no attribute value?"""
    kind = type(value)
    if kind is str or kind is float or kind is bool:
        return False
    return kind is not int or not INTEGER_MIN <= value <= INTEGER_MAX  # type: ignore[operator]  # an int by then


def known(value: object) -> Value:
    """The value itself when it is an attribute value, else None."""
    return None if is_null(value) else value  # type: ignore[return-value]  # is_null let it pass


def order(left: object, right: object) -> int | None:
    """-1, 0 or 1 as left is less than, equal to or greater than right; None when they do not compare."""
    left_kind, right_kind = type(left), type(right)
    if left_kind is right_kind and left_kind in (str, bool):
        return int(left > right) - int(left < right)  # type: ignore[operator]  # both of one kind
    if left_kind not in (int, float) or right_kind not in (int, float) or is_null(left) or is_null(right):
        return None
    if left_kind is int and right_kind is int:
        return int(left > right) - int(left < right)  # type: ignore[operator]  # both int
    return _order_doubles(float(left), float(right))  # type: ignore[arg-type]  # numbers both


def _order_doubles(left: float, right: float) -> int:
    left_is_nan, right_is_nan = left != left, right != right
    if left_is_nan or right_is_nan:
        return left_is_nan - right_is_nan
    return (left > right) - (left < right)


def equal(left: object, right: object) -> bool | None:
    """`=`"""
    place = order(left, right)
    return None if place is None else place == 0


def among(value: object, listed: frozenset[Value], doubles: frozenset[float]) -> bool | None:
    """IN: whether a value equals one of those listed, which are of one type; `doubles` are the doubles that do."""
    kind = type(value)
    if is_null(value) or (kind is str) is bool(doubles) or kind is bool:
        return None
    if kind is str or (kind is int and type(next(iter(listed))) is int):
        return value in listed
    return float(value) in doubles  # type: ignore[arg-type]  # a number by now


def unequal(left: object, right: object) -> bool | None:
    """`<>`"""
    place = order(left, right)
    return None if place is None else place != 0


def less(left: object, right: object) -> bool | None:
    """`<`"""
    place = order(left, right)
    return None if place is None else place < 0


def less_or_equal(left: object, right: object) -> bool | None:
    """`<=`"""
    place = order(left, right)
    return None if place is None else place <= 0


def greater(left: object, right: object) -> bool | None:
    """`>`"""
    place = order(left, right)
    return None if place is None else place > 0


def greater_or_equal(left: object, right: object) -> bool | None:
    """`>=`"""
    place = order(left, right)
    return None if place is None else place >= 0


def _numbers(left: object, right: object) -> tuple[int, int] | tuple[float, float] | None:
    """Both as integers, or both as doubles, or None when one of them is no number."""
    left_kind, right_kind = type(left), type(right)
    if left_kind not in (int, float) or right_kind not in (int, float) or is_null(left) or is_null(right):
        return None
    if left_kind is int and right_kind is int:
        return left, right  # type: ignore[return-value]
    return float(left), float(right)  # type: ignore[arg-type]


def _fitting(number: int | float) -> int | float | None:
    return None if is_null(number) else number


def add(left: object, right: object) -> int | float | None:
    """`+`"""
    pair = _numbers(left, right)
    return None if pair is None else _fitting(pair[0] + pair[1])


def subtract(left: object, right: object) -> int | float | None:
    """`-`"""
    pair = _numbers(left, right)
    return None if pair is None else _fitting(pair[0] - pair[1])


def multiply(left: object, right: object) -> int | float | None:
    """`*`"""
    pair = _numbers(left, right)
    return None if pair is None else _fitting(pair[0] * pair[1])


def divide(left: object, right: object) -> float | None:
    """`/`, always a double: 1 / 2 is 0.5."""
    pair = _numbers(left, right)
    if pair is None or pair[1] == 0:
        return None
    return float(pair[0]) / float(pair[1])


def remainder(left: object, right: object) -> int | float | None:
    """`%`, with the sign of the dividend: -7 % 3 is -1."""
    pair = _numbers(left, right)
    if pair is None or pair[1] == 0:
        return None
    dividend, divisor = pair
    if isinstance(dividend, int) and isinstance(divisor, int):
        size = abs(dividend) % abs(divisor)
        return -size if dividend < 0 else size
    # Python raises where IEEE says NaN.
    return math.nan if math.isinf(dividend) else math.fmod(dividend, divisor)


def negate(operand: object) -> int | float | None:
    """Unary minus; the least integer has no opposite."""
    if type(operand) is float:
        return -operand
    return subtract(0, operand)


def hash_key(value: Value) -> Value:
    """The value if a hash table finds by it exactly what `=` calls equal, else None.

    Python's own equality serves: 1 and 1.0 are one key. Not so numbers from 2**53 on (see `order`), NaN (unequal to
    itself in Python), and True, which Python takes for 1: tables of bools must be kept apart from tables of numbers.
    """
    if isinstance(value, (bool, str)):
        return value
    if isinstance(value, (int, float)) and -EXACT_MAX <= value <= EXACT_MAX:
        return value
    return None


COMPARISONS: Final[dict[str, Callable[[object, object], bool | None]]] = {
    "=": equal,
    "<>": unequal,
    "<": less,
    "<=": less_or_equal,
    ">": greater,
    ">=": greater_or_equal,
}

ARITHMETIC: Final[dict[str, Callable[[object, object], int | float | None]]] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "%": remainder,
}
