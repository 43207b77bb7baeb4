"""Tree -> canonical text: the one way a condition is written down, in the log, in `explain` and as a key.

The text is Spark SQL and our own language at once: names in backticks, doubles with the suffix D (in Spark a bare 8.3
is a DECIMAL), integers inside calculations with the suffix L (a bare 5 is 32 bits wide there), IN written out as OR
where types mix, `!=` as `<>`, no parentheses but the needed ones. `parse_condition(to_text(tree)) == tree` for every
tree in normal form, so equal texts mean equal conditions.

String literals are SQL-92's: a quote is doubled and a backslash is a backslash. Spark reads backslashes otherwise; what
is handed to Spark is made by `spark_text.py`.
"""

from __future__ import annotations

from typing import Any, Final

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
    XPath,
)
from headgate.matching.values import Value

__all__ = ["quote_name", "quote_string", "to_text"]

_PRECEDENCE: Final = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}


def quote_name(name: str) -> str:
    """An attribute name in backticks."""
    return "`" + name.replace("`", "``") + "`"


def quote_string(text: str) -> str:
    """A string literal of SQL-92."""
    return "'" + text.replace("'", "''") + "'"


def to_text(tree: Any) -> str:
    """The canonical text of a condition, or of any node of one."""
    match tree:
        case And(operands):
            return " AND ".join(_grouped(part) if isinstance(part, Or) else to_text(part) for part in operands)
        case Or(operands):
            return " OR ".join(_grouped(part) if isinstance(part, And) else to_text(part) for part in operands)
        case Not(operand):
            if isinstance(operand, (Between, In, Like, IsNull)):
                return _predicate(operand, "NOT ")
            return f"NOT {to_text(operand)}" if isinstance(operand, Attribute) else f"NOT {_grouped(operand)}"
        case Between() | In() | Like() | IsNull():
            return _predicate(tree, "")
        case Compare(operator, left, right):
            return f"{_value(left)} {operator} {_value(right)}"
        case XPath(twig):
            return f"XPATH {quote_string(twig)}"
        case Delta():
            return _delta(tree)
        case _:
            return _value(tree)


def _grouped(tree: Any) -> str:
    return f"({to_text(tree)})"


def _predicate(tree: Between | In | Like | IsNull, negation: str) -> str:
    operand = _value(tree.operand)
    match tree:
        case Between(_, low, high):
            return f"{operand} {negation}BETWEEN {_value(low)} AND {_value(high)}"
        case In(_, items):
            return f"{operand} {negation}IN ({', '.join(_literal(item.value) for item in items)})"
        case Like(_, pattern, escape):
            suffix = "" if escape is None else f" ESCAPE {quote_string(escape)}"
            return f"{operand} {negation}LIKE {quote_string(pattern)}{suffix}"
        case IsNull():
            return f"{operand} IS {negation}NULL"


def _delta(tree: Delta) -> str:
    more = ">=" if tree.inclusive else ">"
    text = f"{tree.side}({quote_name(tree.attribute)}) {more} {_literal(tree.threshold)}"
    text += " PERCENT" if tree.percent else ""
    return text if tree.heartbeat_seconds is None else f"{text} HEARTBEAT {_literal(tree.heartbeat_seconds)}"


def _literal(value: Value, wide: str = "") -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return f"{value}{wide}"
        case float():
            return f"{value!r}D"
        case str():
            return quote_string(value)


def _value(node: Any, wide: str = "") -> str:
    match node:
        case Attribute(name):
            return quote_name(name)
        case Literal(value):
            return _literal(value, wide)
        case Negate(operand):
            inner = _value(operand, "L")
            return f"-{inner}" if isinstance(operand, Attribute) else f"-({inner})"
        case Arithmetic(operator, left, right):
            return f"{_operand(left, operator, 0)} {operator} {_operand(right, operator, 1)}"
    raise TypeError(f"no value node: {node!r}")


def _operand(node: Any, operator: str, side: int) -> str:
    """An operand of a calculation, in parentheses where it would otherwise bind wrongly or begin with a second sign."""
    text = _value(node, "L")
    if isinstance(node, Arithmetic):
        return f"({text})" if _PRECEDENCE[node.operator] < _PRECEDENCE[operator] + side else text
    return f"({text})" if side and text.startswith("-") else text
