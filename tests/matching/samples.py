"""Random conditions and rows with all the awkward values in them, drawn from a `random.Random` or Hypothesis's own."""

from __future__ import annotations

from random import Random

from headgate.matching.tree import (
    And,
    Arithmetic,
    Attribute,
    Between,
    Compare,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Tree,
    ValueNode,
    conjunction,
    disjunction,
    membership,
    opposite,
)
from headgate.matching.values import Value

__all__ = ["NAMES", "random_row", "random_tree", "random_value"]

NAMES = ("a", "b", "body.order.price", "weird `name`", "größe")
INTEGERS = (0, 1, -1, 2, 3, 7, 10, -7, 2**53, 2**53 + 1, 2**53 - 1, 2**63 - 1, -(2**63), 2**31 - 1, -(2**31), 2**62)
DOUBLES = (0.0, -0.0, 1.0, 0.5, -1.5, 3.0, 8.3, 1e-3, 2.0**53, 2.0**63, -(2.0**63), 1e308, -1e308, 5e-324)
SPECIAL_DOUBLES = (float("nan"), float("inf"), float("-inf"))
STRINGS = (
    "",
    "a",
    "A",
    "ab",
    "abc",
    "It's",
    "a\\b",
    "a%c",
    "a_c",
    "%",
    "_",
    "\\",
    "line\nbreak",
    "10",
    "é",
    "e\u0301",
    "😀",
    "\x00",
)
PATTERNS = (
    "%",
    "_",
    "a%",
    "%c",
    "a_c",
    "a\\%c",
    "a\\_c",
    "%b%",
    "_\\\\_",
    "",
    "a%%_",
    "%n_b%",
    "__",
    "😀",
    "It's",
    "%'%",
)
BANG_PATTERNS = ("a!%c", "a!_c", "!!", "%!_%", "\\", "a\\b", "a%")
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
OPERATORS = ("+", "-", "*", "/", "%")


def random_value(rng: Random) -> Value:
    """A value of a row."""
    kind = rng.randrange(10)
    if kind < 2:
        return None
    if kind < 5:
        return rng.choice(INTEGERS)
    if kind < 7:
        return rng.choice(DOUBLES + SPECIAL_DOUBLES)
    return rng.choice(STRINGS) if kind < 9 else rng.random() < 0.5


def random_row(rng: Random) -> dict[str, Value]:
    """A row, from which some attributes may be absent."""
    return {name: random_value(rng) for name in NAMES if rng.randrange(8)}


def random_literal(rng: Random) -> Literal:
    kind = rng.randrange(12)
    if kind == 0:
        return Literal(None)
    if kind < 5:
        return Literal(rng.choice(INTEGERS))
    if kind < 8:
        return Literal(rng.choice(DOUBLES))
    return Literal(rng.choice(STRINGS)) if kind < 11 else Literal(rng.random() < 0.5)


def random_operand(rng: Random, depth: int) -> ValueNode:
    """A value expression."""
    kind = rng.randrange(10)
    if depth <= 0 or kind < 6:
        return Attribute(rng.choice(NAMES)) if rng.randrange(5) else random_literal(rng)
    if kind < 7:
        return opposite(random_operand(rng, depth - 1))
    return Arithmetic(rng.choice(OPERATORS), random_operand(rng, depth - 1), random_operand(rng, depth - 1))


def random_items(rng: Random) -> list[ValueNode]:
    kind = rng.randrange(4)
    count = rng.randint(1, 4)
    if kind == 0:
        return [Literal(rng.choice(INTEGERS)) for _ in range(count)]
    if kind == 1:
        return [Literal(rng.choice(STRINGS)) for _ in range(count)]
    if kind == 2:
        return [Literal(rng.choice(DOUBLES)) for _ in range(count)]
    return [random_operand(rng, 0) for _ in range(count)]


def random_predicate(rng: Random) -> Tree:
    kind = rng.randrange(16)
    if kind < 7:
        return Compare(rng.choice(COMPARISONS), random_operand(rng, 2), random_operand(rng, 2))
    if kind < 9:
        return Between(random_operand(rng, 1), random_operand(rng, 0), random_operand(rng, 0))
    if kind < 11:
        return membership(random_operand(rng, 1), random_items(rng))
    if kind == 11:
        return IsNull(random_operand(rng, 1))
    if kind == 12:
        return Like(random_operand(rng, 0), rng.choice(BANG_PATTERNS), "!")
    if kind == 13:
        return Like(random_operand(rng, 1), rng.choice(PATTERNS))
    if kind == 14:
        return Attribute(rng.choice(NAMES))
    return Literal(rng.choice((True, False, None)))


def random_tree(rng: Random, depth: int = 3) -> Tree:
    """A condition in normal form."""
    kind = rng.randrange(10)
    if depth <= 0 or kind < 4:
        return random_predicate(rng)
    if kind < 6:
        return Not(random_tree(rng, depth - 1))
    parts = [random_tree(rng, depth - 1) for _ in range(rng.randint(2, 3))]
    tree = conjunction(parts) if kind < 8 else disjunction(parts)
    assert isinstance(tree, (And, Or))
    return tree
