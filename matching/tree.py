"""A condition as a tree of frozen nodes; what it reads, what it costs, what it is a conjunction of.

Value nodes:      Attribute  Literal  Negate  Arithmetic
Condition nodes:  Compare  Between  In  Like  IsNull  Not  And  Or  XPath  Delta
Both:             Attribute (a boolean attribute is a condition), Literal (TRUE, FALSE, NULL)

**Normal form.** The functions `conjunction`, `disjunction`, `opposite` and `membership` build it, the parser uses
nothing else, and `parse(to_text(tree)) == tree` holds for it: AND and OR are flat (no And directly in an And); a minus
before a number literal is part of the literal; IN has literals of one type only (any other list is the OR of `=` that
SQL says it means, because Spark would coerce the whole list to one type); NOT IN, NOT LIKE, NOT BETWEEN and IS NOT
NULL are Not of the positive form, which is what three-valued logic makes of them; `!=` is `<>`; the default escape of
LIKE is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from headgate.matching.limits import INTEGER_MAX, INTEGER_MIN
from headgate.matching.structure import DEFAULT_SHAPE
from headgate.matching.values import Value

__all__ = [
    "And",
    "Arithmetic",
    "Attribute",
    "Between",
    "Compare",
    "Cost",
    "Delta",
    "Extension",
    "In",
    "IsNull",
    "Like",
    "Literal",
    "Negate",
    "Not",
    "Or",
    "Tree",
    "ValueNode",
    "XPath",
    "attributes",
    "children",
    "conjunction",
    "conjuncts",
    "cost",
    "deltas",
    "disjunction",
    "event_part",
    "extensions",
    "membership",
    "opposite",
    "static_part",
]


@dataclass(frozen=True, slots=True)
class Attribute:
    """The value of a named attribute; as a condition, true when it is the bool true."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A constant. 1, 1.0 and TRUE are three different literals, though Python thinks them equal."""

    value: Value

    def _key(self) -> tuple[type, str]:
        return type(self.value), repr(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


@dataclass(frozen=True, slots=True)
class Negate:
    """Unary minus of anything but a number literal."""

    operand: ValueNode


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`left operator right` with one of + - * / %."""

    operator: str
    left: ValueNode
    right: ValueNode


@dataclass(frozen=True, slots=True)
class Compare:
    """`left operator right` with one of = <> < <= > >=."""

    operator: str
    left: ValueNode
    right: ValueNode


@dataclass(frozen=True, slots=True)
class Between:
    """`operand BETWEEN low AND high`, both ends included."""

    operand: ValueNode
    low: ValueNode
    high: ValueNode


@dataclass(frozen=True, slots=True)
class In:
    """`operand IN (items)`, the items being literals of one type and none of them NULL."""

    operand: ValueNode
    items: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class Like:
    r"""`operand LIKE pattern [ESCAPE escape]`; escape None is the default, a backslash."""

    operand: ValueNode
    pattern: str
    escape: str | None = None


@dataclass(frozen=True, slots=True)
class IsNull:
    """`operand IS NULL`, never UNKNOWN."""

    operand: ValueNode


@dataclass(frozen=True, slots=True)
class Not:
    """`NOT operand`."""

    operand: Tree


@dataclass(frozen=True, slots=True)
class And:
    """All of two or more conditions."""

    operands: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Any of two or more conditions."""

    operands: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class XPath:
    """`XPATH 'twig'`: the structure of the event's document contains the twig, which is a canonical text."""

    twig: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The match columns of the filters that it is tested with; that of values when it asks for a text."""
        shape = DEFAULT_SHAPE
        return (shape.column, shape.values_column) if "=" in self.twig else (shape.column,)


Side: TypeAlias = str
"""Which moves count: DELTA (any), RISE (up) or FALL (down)."""


@dataclass(frozen=True, slots=True)
class Delta:
    """`DELTA(attribute) > threshold [PERCENT] [HEARTBEAT seconds]`, or `>=` when inclusive; RISE, FALL as the side."""

    attribute: str
    threshold: int | float
    inclusive: bool
    heartbeat_seconds: int | float | None = None
    percent: bool = False
    side: Side = "DELTA"


ValueNode: TypeAlias = Attribute | Literal | Negate | Arithmetic
Extension: TypeAlias = XPath | Delta
Tree: TypeAlias = Attribute | Literal | Compare | Between | In | Like | IsNull | Not | And | Or | XPath | Delta
Node: TypeAlias = Tree | Negate | Arithmetic

TRUE: Final = Literal(True)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a condition costs at most: how many terms one evaluation may visit, and how deep it nests."""

    terms: int
    depth: int


# Normal form -----------------------------------------------------------------------------------------------------


def conjunction(parts: Sequence[Tree]) -> Tree:
    """AND of the parts, flat; one part stands alone, none is TRUE."""
    flat = [leaf for part in parts for leaf in (part.operands if isinstance(part, And) else (part,))]
    if len(flat) > 1:
        return And(tuple(flat))
    return flat[0] if flat else TRUE


def disjunction(parts: Sequence[Tree]) -> Tree:
    """OR of the parts, flat; one part stands alone, none is FALSE."""
    flat = [leaf for part in parts for leaf in (part.operands if isinstance(part, Or) else (part,))]
    if len(flat) > 1:
        return Or(tuple(flat))
    return flat[0] if flat else Literal(False)


def opposite(operand: ValueNode) -> ValueNode:
    """Unary minus: of a number literal another literal, of anything else a node."""
    if isinstance(operand, Literal) and type(operand.value) in (int, float):
        number = -operand.value  # type: ignore[operator]  # a number, as asked
        if isinstance(number, float) or INTEGER_MIN <= number <= INTEGER_MAX:
            return Literal(number)
    return Negate(operand)


def membership(operand: ValueNode, items: Sequence[ValueNode]) -> Tree:
    """`operand IN (items)`: In when the items are literals of one type, else the OR of `=` that it means."""
    kinds = {type(item.value) if isinstance(item, Literal) else None for item in items}
    if len(kinds) == 1 and kinds <= {str, int, float, bool}:
        return In(operand, tuple(item for item in items if isinstance(item, Literal)))
    return disjunction([Compare("=", operand, item) for item in items])


# Questions -------------------------------------------------------------------------------------------------------


def children(node: Any) -> tuple[Any, ...]:
    """The nodes directly below a node."""
    match node:
        case And() | Or():
            return node.operands
        case Compare() | Arithmetic():
            return (node.left, node.right)
        case Between():
            return (node.operand, node.low, node.high)
        case In():
            return (node.operand, *node.items)
        case Like() | IsNull() | Not() | Negate():
            return (node.operand,)
        case _:
            return ()


def attributes(tree: Any) -> tuple[str, ...]:
    """The names of the columns a condition reads, each once, in order of first appearance: attributes, and filters of
    documents.
    """
    names: dict[str, None] = {}
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        kind = type(node)
        if kind is Attribute:
            names[node.name] = None
        elif kind is Delta:
            names[node.attribute] = None
        elif kind is XPath:
            names.update(dict.fromkeys(node.columns))
        elif kind is not Literal:
            waiting.extend(reversed(children(node)))
    return tuple(names)


def cost(tree: Any) -> Cost:
    """The static cost. An IN list is one look-up, however long."""
    below = [cost(child) for child in children(tree)]
    depth = 1 + max((part.depth for part in below), default=0)
    terms = sum(part.terms for part in below)
    if isinstance(tree, Between):
        terms += 2 + below[0].terms
    elif isinstance(tree, (Compare, In, Like, IsNull, Arithmetic, Negate, XPath, Delta)):
        terms += 1
    return Cost(terms, depth)


def conjuncts(tree: Tree) -> tuple[Tree, ...]:
    """The conditions of which all must hold: the operands of a top-level AND, or the tree itself."""
    return tree.operands if isinstance(tree, And) else (tree,)


def extensions(tree: Tree) -> tuple[Extension, ...]:
    """The XPATH and DELTA conjuncts, in order."""
    return tuple(part for part in conjuncts(tree) if isinstance(part, (XPath, Delta)))


def event_part(tree: Tree) -> Tree:
    """The condition without DELTA: what one event's attributes and the filters of its document can prove wrong."""
    return conjunction([part for part in conjuncts(tree) if not isinstance(part, Delta)])


def twigs(tree: Tree) -> tuple[str, ...]:
    """What the XPATH conjuncts ask for, in order."""
    return tuple(part.twig for part in conjuncts(tree) if isinstance(part, XPath))


def deltas(tree: Tree) -> tuple[Delta, ...]:
    """The DELTA conjuncts, by attribute."""
    found = [part for part in conjuncts(tree) if isinstance(part, Delta)]
    return tuple(sorted(found, key=lambda one: one.attribute))


def static_part(tree: Tree) -> Tree:
    """The condition without its extensions: what can be decided from the attributes of one event alone."""
    return conjunction([part for part in conjuncts(tree) if not isinstance(part, (XPath, Delta))])
