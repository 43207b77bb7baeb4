"""Tree -> a fast two-valued function over the values of one row.

**Theory.** A condition matches when it is TRUE; FALSE and UNKNOWN are the same to the index. So three values are needed
only to get NOT right, and they can be removed before the first row is seen: for each node there are two ordinary
Python expressions, T ("it is TRUE") and F ("it is FALSE"), and

    T(NOT e) = F(e)      T(a AND b) = T(a) and T(b)      F(a AND b) = F(a) or F(b)
    F(NOT e) = T(e)      T(a OR b)  = T(a) or T(b)       F(a OR b)  = F(a) and F(b)

so one expression of the size of the condition remains, with T or F of its predicates at the leaves. Python's own
operators differ from ours at the edges only (unlike types, True = 1, NaN, integers beyond 64 bits); a leaf that
compares an attribute with a literal is written out with just the guards that its literal needs, and every other leaf
calls `matching/values.py`.

**Shapes.** No text of a client gets into the source: attributes are the arguments v0, v1, ... and literals the defaults
of the arguments c0, c1, .... Conditions that differ in literals only have the same source, which is compiled once; each
of them is one more function object around the same code (about 200 bytes).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from headgate.matching import values
from headgate.matching.likes import compile_like, literal_prefix
from headgate.matching.limits import INTEGER_MAX, INTEGER_MIN, SHAPES_MAX
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
from headgate.matching.values import EXACT_MAX

__all__ = ["Compiled", "Shapes", "compile_condition", "shapes_kept"]


@dataclass(frozen=True, slots=True)
class Compiled:
    """`test(*values)` says whether the condition is TRUE; the values come in the order of `attributes`."""

    attributes: tuple[str, ...]
    test: Callable[..., bool]


_OPPOSITE: Final = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_MIRRORED: Final = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_FUNCTIONS: Final = {"=": "equal", "<>": "unequal", "<": "less", "<=": "less_or_equal"} | {
    ">": "greater",
    ">=": "greater_or_equal",
}
_CALCULATIONS: Final = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%": "remainder"}

# An attribute {v} against a number literal {c} of exact magnitude. A float is NaN when it differs from itself; NaN is
# greater than all numbers. The integer bounds keep integers beyond 64 bits out.
_FLOAT: Final = {
    "<>": "{v} != {c}",
    "<": "{v} < {c}",
    "<=": "{v} <= {c}",
    ">": "not {v} <= {c}",
    ">=": "not {v} < {c}",
}
_INTEGER: Final = {
    "<>": "{v} != {c} and LEAST <= {v} <= MOST",
    "<": "LEAST <= {v} < {c}",
    "<=": "LEAST <= {v} <= {c}",
    ">": "{c} < {v} <= MOST",
    ">=": "{c} <= {v} <= MOST",
}

# All that generated code can see.
_GLOBALS: Final[dict[str, Any]] = {
    "__builtins__": {},
    "LEAST": INTEGER_MIN,
    "MOST": INTEGER_MAX,
    "type": type,
    "bool": bool,
    "int": int,
    "float": float,
    "str": str,
    **{
        name: getattr(values, name)
        for name in (*_FUNCTIONS.values(), *_CALCULATIONS.values(), "negate", "is_null", "among")
    },
}

_Shape = tuple[Callable[..., Callable[..., bool]], tuple[str, ...]]


class Shapes:
    """A bounded cache of compiled shapes. The oldest is dropped; conditions made from it keep its code."""

    def __init__(self, shapes_max: int = SHAPES_MAX) -> None:
        self._shapes_max = shapes_max
        self._kept: dict[tuple[str, tuple[str, ...]], _Shape] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, expression: str, names: tuple[str, ...], constants: int) -> _Shape:
        """The shape of an expression over these attributes, with so many constants; made if need be."""
        shape = self._kept.get((expression, names))
        if shape is None:
            shape = _make_shape(expression, names, constants)
            if len(self._kept) >= self._shapes_max:
                del self._kept[next(iter(self._kept))]
            self._kept[expression, names] = shape
        return shape


_SHAPES: Final = Shapes()


def shapes_kept() -> int:
    """How many shapes the cache of this process holds; for statistics."""
    return len(_SHAPES)


def compile_condition(tree: Tree, shapes: Shapes = _SHAPES) -> Compiled:
    """The fast form of a condition. Its static part, that is: XPATH and DELTA count as TRUE."""
    writer = _Writer()
    expression = writer.condition(tree, True)
    make, names = shapes.find(expression, tuple(writer.names), len(writer.constants))
    return Compiled(names, make(*writer.constants))


def _make_shape(expression: str, names: tuple[str, ...], constants: int) -> _Shape:
    constant_names = [f"c{i}" for i in range(constants)]
    arguments = [f"v{i}" for i in range(len(names))] + [f"{name}={name}" for name in constant_names]
    source = f"def make({', '.join(constant_names)}):\n return lambda {', '.join(arguments)}: {expression}\n"
    scope: dict[str, Any] = dict(_GLOBALS)
    exec(compile(source, "<condition>", "exec"), scope)
    return scope["make"], names


@dataclass(slots=True)
class _Writer:
    """Writes one condition as a Python expression, collecting its attributes and constants on the way."""

    names: dict[str, str] = field(default_factory=dict)
    constants: list[object] = field(default_factory=list)

    def attribute(self, name: str) -> str:
        return self.names.setdefault(name, f"v{len(self.names)}")

    def constant(self, value: object) -> str:
        self.constants.append(value)
        return f"c{len(self.constants) - 1}"

    def condition(self, tree: Tree, wanted: bool) -> str:
        """An expression that is true exactly when the condition's verdict is the wanted one."""
        match tree:
            case Not(operand):
                return self.condition(operand, not wanted)
            case And(operands) | Or(operands):
                joint = " and " if isinstance(tree, And) is wanted else " or "
                return "(" + joint.join(self.condition(operand, wanted) for operand in operands) + ")"
            case Compare(operator, left, right):
                return self.compare(operator, left, right, wanted)
            case Between(operand, low, high):
                return self.between(operand, low, high, wanted)
            case In(operand, items):
                return self.contained(operand, items, wanted)
            case Like():
                return self.like(tree, wanted)
            case IsNull(operand):
                return f"{'' if wanted else 'not '}is_null({self.value(operand)})"
            case XPath() | Delta():
                return str(wanted)
            case Literal(value):
                return str(value is wanted)
            case Attribute(name):
                return f"{self.attribute(name)} is {wanted}"

    def value(self, node: Any) -> str:
        """An expression for the value; attributes stay raw, every function called with them knows how to read them."""
        match node:
            case Attribute(name):
                return self.attribute(name)
            case Literal(value):
                return self.constant(value)
            case Negate(operand):
                return f"negate({self.value(operand)})"
            case Arithmetic(operator, left, right):
                return f"{_CALCULATIONS[operator]}({self.value(left)}, {self.value(right)})"
        raise TypeError(f"no value node: {node!r}")

    def compare(self, operator: str, left: Any, right: Any, wanted: bool) -> str:
        if isinstance(left, Literal) and isinstance(right, Attribute):
            operator, left, right = _MIRRORED[operator], right, left
        # All values that compare at all are in a total order, so "it is FALSE" is "the opposite is TRUE".
        operator = operator if wanted else _OPPOSITE[operator]
        if isinstance(left, Attribute) and isinstance(right, Literal):
            if type(right.value) is str:
                return self.compare_string(operator, self.attribute(left.name), right.value)
            if _is_exact(right.value):
                return self.compare_number(operator, self.attribute(left.name), right.value)
        return f"{_FUNCTIONS[operator]}({self.value(left)}, {self.value(right)}) is True"

    def compare_string(self, operator: str, name: str, text: str) -> str:
        constant = self.constant(text)
        if operator == "=":
            return f"({name} == {constant} and type({name}) is str)"
        return f"(type({name}) is str and {name} {'!=' if operator == '<>' else operator} {constant})"

    def compare_number(self, operator: str, name: str, number: object) -> str:
        constant = self.constant(number)
        if operator == "=":
            return f"({name} == {constant} and (type({name}) is float or type({name}) is int))"
        for_float = _FLOAT[operator].format(v=name, c=constant)
        for_integer = _INTEGER[operator].format(v=name, c=constant)
        return f"({for_float} if type({name}) is float else type({name}) is int and {for_integer})"

    def between(self, operand: Any, low: Any, high: Any, wanted: bool) -> str:
        if wanted and isinstance(operand, Attribute) and _is_exact(_literal(low)) and _is_exact(_literal(high)):
            # Both bounds are finite, so neither NaN nor an integer beyond 64 bits is between them.
            name = self.attribute(operand.name)
            inside = f"{self.constant(low.value)} <= {name} <= {self.constant(high.value)}"
            return f"((type({name}) is float or type({name}) is int) and {inside})"
        joint = " and " if wanted else " or "
        return f"({self.compare('>=', operand, low, wanted)}{joint}{self.compare('<=', operand, high, wanted)})"

    def contained(self, operand: Any, items: tuple[Literal, ...], wanted: bool) -> str:
        literals = [item.value for item in items]
        kind = type(literals[0])
        if kind is bool:
            joint = " or " if wanted else " and "
            return "(" + joint.join(self.compare("=", operand, item, wanted) for item in items) + ")"
        if not isinstance(operand, Attribute):
            wholes, doubles = self.constant(frozenset(literals)), self.constant(_doubles(literals))
            return f"among({self.value(operand)}, {wholes}, {doubles}) is {wanted}"
        name = self.attribute(operand.name)
        operator = "in" if wanted else "not in"
        if kind is str:
            return f"(type({name}) is str and {name} {operator} {self.constant(frozenset(literals))})"
        doubles = self.constant(_doubles(literals))
        integer = (
            f"{name} {operator} {self.constant(frozenset(literals))}"
            if kind is int
            else (f"LEAST <= {name} <= MOST and float({name}) {operator} {doubles}")
        )
        if kind is int and not wanted:
            integer = f"LEAST <= {name} <= MOST and {integer}"
        return f"(type({name}) is float and {name} {operator} {doubles} or type({name}) is int and {integer})"

    def like(self, tree: Like, wanted: bool) -> str:
        if not isinstance(tree.operand, (Attribute, Literal)):
            return "False"  # a calculation is never a string
        prefix = literal_prefix(tree.pattern, tree.escape)
        operand = self.value(tree.operand)
        if isinstance(tree.operand, Attribute) and wanted and _is_prefix(tree, prefix):
            return f"(type({operand}) is str and {operand}.startswith({self.constant(prefix)}))"
        matcher = self.constant(compile_like(tree.pattern, tree.escape))
        return f"(type({operand}) is str and {'' if wanted else 'not '}{matcher}({operand}))"


def _literal(node: Any) -> object:
    return node.value if isinstance(node, Literal) else None


def _doubles(literals: Sequence[object]) -> frozenset[float]:
    """The doubles that equal one of these numbers."""
    return frozenset(float(literal) for literal in literals if isinstance(literal, int | float))


def _is_exact(value: object) -> bool:
    """A number that compares as a double exactly as it compares as itself."""
    return type(value) in (int, float) and -EXACT_MAX <= value <= EXACT_MAX  # type: ignore[operator]  # a number, as asked


def _is_prefix(tree: Like, prefix: str) -> bool:
    return "\\" not in tree.pattern and tree.escape is None and tree.pattern == prefix + "%"
