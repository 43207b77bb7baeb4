r"""Tree -> the text that Spark evaluates when it audits us: `expr("(" + to_spark(tree) + "\n)")`.

**Columns.** An attribute has a value of any type in any event, and a Spark column has one type. So an attribute `a` is
split into four columns, of which at most one is not NULL in a row:

    `a.l` BIGINT     `a.d` DOUBLE     `a.s` STRING     `a.b` BOOLEAN

**Values.** A value expression is kept as up to four Spark texts (`_Typed`): as an integer, as a number (an integer or
a double, as a double), as a string, as a bool; each is NULL where the value is not of that type. Comparing two values
is `coalesce` over the types they may share, integers first, so unlike types come out NULL, as they do here.

**Arithmetic.** Spark's ANSI mode raises on overflow and division by zero; the `try_` functions give NULL instead. The
sum of two integers that overflows must stay NULL and not fall back to doubles, so the double form of a calculation
first asks whether both operands are integers.

**Literals.** Integers carry L (a bare 5 is 32 bits wide), doubles D, and strings are escaped, because Spark reads
backslashes in them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from headgate.matching.language.text import quote_name
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
    XPath,
)
from headgate.matching.values import Value

__all__ = ["SPARK_TYPES", "spark_columns", "to_spark"]

# Suffix of the column -> its Spark type, in the order in which a row's value is looked for.
SPARK_TYPES: Final = {"l": "BIGINT", "d": "DOUBLE", "s": "STRING", "b": "BOOLEAN"}

_UNKNOWN: Final = "CAST(NULL AS BOOLEAN)"
_TRY: Final = {"+": "try_add", "-": "try_subtract", "*": "try_multiply", "/": "try_divide", "%": "try_mod"}
_ESCAPED: Final = re.compile(r"['\\\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(slots=True)
class _Typed:
    """A value expression in Spark, by type; None where it can never be of that type.

    Where all the columns named by `integers` are not NULL, the value is an integer or an overflow, and not a double;
    None where it never is an integer.
    """

    integer: str | None = None
    number: str | None = None
    string: str | None = None
    boolean: str | None = None
    integers: tuple[str, ...] | None = None


def spark_columns(name: str) -> dict[str, str]:
    """The four columns of an attribute, unquoted, with their Spark types."""
    return {f"{name}.{suffix}": kind for suffix, kind in SPARK_TYPES.items()}


def to_spark(tree: Tree) -> str:
    """The condition over split columns, as Spark SQL text. XPATH and DELTA count as TRUE: this is the static part."""
    match tree:
        case And(operands):
            return "(" + " AND ".join([to_spark(operand) for operand in operands]) + ")"
        case Or(operands):
            return "(" + " OR ".join([to_spark(operand) for operand in operands]) + ")"
        case Not(operand):
            return f"(NOT {to_spark(operand)})"
        case Compare(operator, left, right):
            return _compare(operator, _typed(left), _typed(right))
        case Between(operand, low, high):
            value = _typed(operand)
            return f"({_compare('>=', value, _typed(low))} AND {_compare('<=', value, _typed(high))})"
        case In(operand, items):
            return _among(_typed(operand), [item.value for item in items])
        case Like(operand, pattern, escape):
            return _like(_typed(operand).string, pattern, escape)
        case IsNull(operand):
            value = _typed(operand)
            forms = [text for text in (value.number, value.string, value.boolean) if text is not None]
            return "(" + " AND ".join([f"{text} IS NULL" for text in forms]) + ")" if forms else "TRUE"
        case XPath() | Delta():
            return "TRUE"
        case Attribute() | Literal():
            return _typed(tree).boolean or _UNKNOWN


def _like(operand: str | None, pattern: str, escape: str | None) -> str:
    if operand is None:
        return _UNKNOWN
    return f"({operand} LIKE {_string(pattern)} ESCAPE {_string(escape or chr(92))})"


def _among(operand: _Typed, values: list[Value]) -> str:
    """IN, once for each type that they may share, as in `_compare`: Spark too looks such a list up.

    It looks doubles up by their bits, to which 0 is not -0: adding 0 to the operand makes one of the two of them.
    """
    if isinstance(values[0], bool):
        return "(" + " OR ".join([_compare("=", operand, _literal(value)) for value in values]) + ")"
    if isinstance(values[0], str):
        return f"({operand.string} IN ({', '.join(map(_string, map(str, values)))}))" if operand.string else _UNKNOWN
    if operand.number is None:
        return _UNKNOWN
    numbers = [value for value in values if isinstance(value, int | float)]
    doubles = ", ".join(dict.fromkeys(f"{float(value) + 0.0!r}D" for value in numbers))
    texts = [f"(({operand.number} + 0.0D) IN ({doubles}))"]
    if operand.integer is not None and isinstance(values[0], int):
        texts.insert(0, f"({operand.integer} IN ({', '.join([f'{value}L' for value in values])}))")
    return texts[0] if len(texts) == 1 else f"coalesce({', '.join(texts)})"


def _compare(operator: str, left: _Typed, right: _Typed) -> str:
    forms = (
        (left.integer, right.integer),
        (left.number, right.number),
        (left.string, right.string),
        (left.boolean, right.boolean),
    )
    texts = [f"({a} {operator} {b})" for a, b in forms if a is not None and b is not None]
    if not texts:
        return _UNKNOWN
    return texts[0] if len(texts) == 1 else f"coalesce({', '.join(texts)})"


def _typed(node: Any) -> _Typed:
    match node:
        case Attribute(name):
            integer, double, string, boolean = (quote_name(column) for column in spark_columns(name))
            number = f"coalesce({double}, CAST({integer} AS DOUBLE))"
            return _Typed(integer, number, string, boolean, (integer,))
        case Literal(value):
            return _literal(value)
        case Negate(operand):
            return _negate(_typed(operand))
        case Arithmetic(operator, left, right):
            return _calculate(operator, _typed(left), _typed(right))
    raise TypeError(f"no value node: {node!r}")


def _literal(value: object) -> _Typed:
    match value:
        case bool():
            return _Typed(boolean="TRUE" if value else "FALSE")
        case int():
            return _Typed(integer=f"({value}L)", number=f"CAST(({value}L) AS DOUBLE)", integers=())
        case float():
            return _Typed(number=f"({value!r}D)")
        case str():
            return _Typed(string=_string(value))
        case _:
            return _Typed()


def _string(text: str) -> str:
    """A string literal as Spark reads it: quotes, backslashes and control characters as escapes."""
    return "'" + _ESCAPED.sub(lambda match: f"\\u{ord(match.group()):04X}", text) + "'"


def _negate(operand: _Typed) -> _Typed:
    if operand.number is None:
        return _Typed()
    if operand.integer is None:
        return _Typed(number=f"(-{operand.number})")
    return _integer_or_double(f"try_subtract(0L, {operand.integer})", f"(-{operand.number})", operand.integers or ())


def _calculate(operator: str, left: _Typed, right: _Typed) -> _Typed:
    if left.number is None or right.number is None:
        return _Typed()
    doubles = f"{_TRY[operator]}({left.number}, {right.number})"
    if operator == "/" or left.integer is None or right.integer is None:
        return _Typed(number=doubles)
    columns = tuple(dict.fromkeys((left.integers or ()) + (right.integers or ())))
    return _integer_or_double(f"{_TRY[operator]}({left.integer}, {right.integer})", doubles, columns)


def _integer_or_double(integer: str, double: str, columns: tuple[str, ...]) -> _Typed:
    """A calculation that is one of integers where all the columns have a value, else one of doubles."""
    if not columns:
        return _Typed(integer, f"CAST({integer} AS DOUBLE)", integers=())
    condition = " AND ".join([f"{column} IS NOT NULL" for column in columns])
    number = f"CASE WHEN {condition} THEN CAST({integer} AS DOUBLE) ELSE {double} END"
    # Spark's optimizer takes sums and products of integers apart: it would make 0 * (a * 9) to 0 even where a * 9
    # overflows. A bitwise OR with nothing keeps it from looking inside.
    return _Typed(f"({integer} | 0L)", number, integers=columns)
