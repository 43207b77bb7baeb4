"""The plain three-valued meaning of a condition: TRUE, FALSE or UNKNOWN (None).

This is the dumb twin. It is written to be read, not to be fast; the compiled form, the index and Spark must agree with
it on every row. It never raises, whatever the row holds.

An extension (XPATH, DELTA) counts as TRUE here: this is the static part of a condition, and the layers that know a
document's structure or a subscription's last delivery decide the rest.
"""

from __future__ import annotations

from collections.abc import Mapping

from headgate.matching.likes import compile_like
from headgate.matching.tree import (
    And,
    Arithmetic,
    Attribute,
    Between,
    Compare,
    Delta,
    In,
    IsNull,
    Like,
    Literal,
    Negate,
    Not,
    Or,
    Tree,
    ValueNode,
    XPath,
)
from headgate.matching.values import ARITHMETIC, COMPARISONS, Value, equal, known, less_or_equal, negate

__all__ = ["evaluate", "value_of"]


def evaluate(tree: Tree, row: Mapping[str, object]) -> bool | None:
    """The verdict of a condition on one event's attributes; a name that is not there is NULL."""
    match tree:
        case And(operands):
            return _all([evaluate(operand, row) for operand in operands])
        case Or(operands):
            return _any([evaluate(operand, row) for operand in operands])
        case Not(operand):
            return _not(evaluate(operand, row))
        case Compare(operator, left, right):
            return COMPARISONS[operator](value_of(left, row), value_of(right, row))
        case Between(operand, low, high):
            value = value_of(operand, row)
            return _all([less_or_equal(value_of(low, row), value), less_or_equal(value, value_of(high, row))])
        case In(operand, items):
            value = value_of(operand, row)
            return _any([equal(value, item.value) for item in items])
        case Like(operand, pattern, escape):
            value = value_of(operand, row)
            return compile_like(pattern, escape)(value) if isinstance(value, str) else None
        case IsNull(operand):
            return value_of(operand, row) is None
        case XPath() | Delta():
            return True
        case Attribute() | Literal():
            value = value_of(tree, row)
            return value if isinstance(value, bool) else None


def value_of(node: ValueNode, row: Mapping[str, object]) -> Value:
    """The value of a value expression on one event's attributes."""
    match node:
        case Attribute(name):
            return known(row.get(name))
        case Literal(value):
            return value
        case Negate(operand):
            return negate(value_of(operand, row))
        case Arithmetic(operator, left, right):
            return ARITHMETIC[operator](value_of(left, row), value_of(right, row))


def _not(verdict: bool | None) -> bool | None:
    return None if verdict is None else not verdict


def _all(verdicts: list[bool | None]) -> bool | None:
    """FALSE if any is FALSE, else UNKNOWN if any is UNKNOWN, else TRUE."""
    return False if False in verdicts else None if None in verdicts else True


def _any(verdicts: list[bool | None]) -> bool | None:
    """TRUE if any is TRUE, else UNKNOWN if any is UNKNOWN, else FALSE."""
    return True if True in verdicts else None if None in verdicts else False
