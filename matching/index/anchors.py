"""Anchors: what must be so for a condition to be true, in a form that an index can look up.

A condition is cut into **parts** that must all hold (NOT is pushed down to the comparisons first, which three-valued
logic allows: the values that compare at all are in one order, so `NOT a < 5` is `a >= 5`). A part may be found

    by key       a = 'x'   a IN (1, 2)   a = TRUE   a IS NULL     a hash table
    by range     a > 5     a BETWEEN 1 AND 2      a <> 3          `ranges.py`
    by prefix    a LIKE 'abc%'                                    a hash table for each length
    by filter    XPATH 'a/b'                                      `matching.structure.FilterIndex`

and all the ranges that a condition asks of one attribute are one range, their intersection. An OR is an anchor when
each of its sides has one: the condition is then filed under all of them, and because two of them may hold at once it is
verified as a whole and reported once (`overlapping`). Within one attribute the sides are united instead, so that
`a < 1 OR a > 9` needs no such care.

**Ranges are half open.** Next after a double is another double, so `x <= 5` is `x < nextafter(5)` and every range of
numbers is `low <= x < high`; 64-bit integers that doubles cannot tell apart stay out (`values.EXACT_MAX`). `high` is
infinity for a range without an upper end, and then infinity and NaN are in it: NaN is greater than all numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, nextafter
from typing import Any, Final, TypeAlias

from headgate.matching.likes import literal_prefix
from headgate.matching.limits import ALTERNATIVES_MAX, PREFIX_CHARACTERS_MAX
from headgate.matching.structure import Asked
from headgate.matching.tree import (
    And,
    Attribute,
    Between,
    Compare,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Or,
    Tree,
    XPath,
    conjunction,
    conjuncts,
    disjunction,
)
from headgate.matching.values import EXACT_MAX, hash_key

__all__ = ["Anchor", "Bits", "Key", "Keys", "Prefixes", "Range", "Ranges", "Term", "anchors", "key_of", "parts_of"]

# A string, a number, None for NULL, or (True,) and (False,), because Python takes True for 1.
Key: TypeAlias = str | int | float | tuple[bool] | None
Range: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Keys:
    """The attribute has one of these values."""

    attribute: str
    keys: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class Ranges:
    """The attribute is a number in one of these ranges, which are disjoint and in order."""

    attribute: str
    ranges: tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class Prefixes:
    """The attribute is a string that begins with one of these, none of which begins with another."""

    attribute: str
    prefixes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bits:
    """The filter in this column has all of these bits."""

    attribute: str
    bits: int


Term: TypeAlias = Keys | Ranges | Prefixes | Bits


@dataclass(frozen=True, slots=True)
class Anchor:
    """One of the terms must hold. `proven` are the parts that need no test once it does."""

    terms: tuple[Term, ...]
    proven: tuple[Tree, ...]
    overlapping: bool = False


_OPPOSITE: Final = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_MIRRORED: Final = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


def key_of(value: Any) -> Key:
    """The key under which a clean value (see `columns.py`) is filed."""
    return (value,) if value is True or value is False else value


def parts_of(tree: Tree) -> list[Tree]:
    """The parts of a condition, all of which must be true, with NOT pushed down."""
    return [part for conjunct in conjuncts(_pushed(tree, True)) for part in conjuncts(conjunct)]


def _pushed(tree: Tree, wanted: bool) -> Tree:
    """A condition that is true exactly when the tree is true, or when it is false."""
    match tree:
        case Not(operand):
            return _pushed(operand, not wanted)
        case And(operands) | Or(operands):
            pushed = [_pushed(operand, wanted) for operand in operands]
            return conjunction(pushed) if isinstance(tree, And) is wanted else disjunction(pushed)
        case Compare(operator, left, right) if not wanted:
            return Compare(_OPPOSITE[operator], left, right)
        case Between(operand, low, high) if not wanted:
            return disjunction([Compare("<", operand, low), Compare(">", operand, high)])
    return tree if wanted else Not(tree)


def anchors(parts: Sequence[Tree]) -> list[Anchor]:
    """All the ways to find a condition of these parts."""
    found: list[Anchor] = []
    ranges: dict[str, list[tuple[Ranges, Tree]]] = {}
    for part in parts:
        terms = _terms(part)
        if terms is None:
            continue
        single = terms[0]
        if len(terms) == 1 and isinstance(single, Ranges):
            ranges.setdefault(single.attribute, []).append((single, part))
        elif len({term.attribute for term in terms}) == 1 and not any(isinstance(term, Prefixes) for term in terms[1:]):
            found.append(Anchor(terms, (part,) if _is_exact(part) else ()))
        else:
            found.append(Anchor(terms, (), overlapping=True))
    for attribute, several in ranges.items():
        found.append(_narrowest(attribute, several))
    twigs = [part for part in parts if isinstance(part, XPath)]
    if twigs:
        asked = Asked.of(*(part.twig for part in twigs))
        # Values are in another column: such a twig is tested as well.
        found.append(Anchor((Bits(asked.shape.column, asked.items),), () if asked.values else tuple(twigs)))
    return found


def _is_exact(part: Tree) -> bool:
    """Whether the terms of a part say all that the part says; a LIKE may ask for more than its prefix."""
    if isinstance(part, Or):
        return all(_is_exact(operand) for operand in part.operands)
    if isinstance(part, Like):
        return "\\" not in part.pattern and part.escape is None and part.pattern == _prefix(part) + "%"
    return not isinstance(part, And)


def _prefix(part: Like) -> str:
    return literal_prefix(part.pattern, part.escape)[:PREFIX_CHARACTERS_MAX]


def _terms(part: Tree) -> tuple[Term, ...] | None:
    """Terms of which one holds whenever the part is true; None when no index could find it."""
    match part:
        case Or(operands):
            return _united([_side(operand) for operand in operands])
        case Compare(operator, Literal() as left, Attribute() as right):
            return _compared(right.name, _MIRRORED[operator], left.value)
        case Compare(operator, Attribute(name), Literal(value)):
            return _compared(name, operator, value)
        case Between(Attribute(name), Literal(low), Literal(high)) if _is_number(low) and _is_number(high):
            return (Ranges(name, _nonempty((_double(low), _after(high)))),)
        case In(Attribute(name), items):
            return _keyed(name, [item.value for item in items])
        case IsNull(Attribute(name)):
            return (Keys(name, (None,)),)
        case Attribute(name):
            return (Keys(name, ((True,),)),)
        case Not(Attribute(name)):
            return (Keys(name, ((False,),)),)
        case Like(Attribute(name)):
            prefix = _prefix(part)
            return (Prefixes(name, (prefix,)),) if prefix else None
    return None


def _compared(name: str, operator: str, value: object) -> tuple[Term, ...] | None:
    if operator == "=":
        return _keyed(name, [value])
    if not _is_number(value):
        return None
    low, after = _double(value), _after(value)
    ranges: dict[str, tuple[Range, ...]] = {
        "<": ((-inf, low),),
        "<=": ((-inf, after),),
        ">": ((after, inf),),
        ">=": ((low, inf),),
        "<>": ((-inf, low), (after, inf)),
    }
    return (Ranges(name, ranges[operator]),)


def _keyed(name: str, values: Iterable[Any]) -> tuple[Term, ...] | None:
    """By key; not a value that a hash table cannot find, and not NULL, which nothing equals."""
    values = list(values)
    if any(hash_key(value) is None for value in values):
        return None
    return (Keys(name, tuple(dict.fromkeys(key_of(value) for value in values))),)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and -EXACT_MAX <= value <= EXACT_MAX


def _double(number: Any) -> float:
    return float(number)


def _after(number: Any) -> float:
    """The least double above a number."""
    return nextafter(_double(number), inf)


def _nonempty(*ranges: Range) -> tuple[Range, ...]:
    return tuple(one for one in ranges if one[0] < one[1])


def _narrowest(attribute: str, several: list[tuple[Ranges, Tree]]) -> Anchor:
    """The intersection of ranges of one attribute; without those that would cut it into too many pieces."""
    common: tuple[Range, ...] = ((-inf, inf),)
    proven = []
    for term, part in several:
        both = [(max(a[0], b[0]), min(a[1], b[1])) for a in common for b in term.ranges]
        if len(both) <= ALTERNATIVES_MAX:
            common = tuple(sorted(_nonempty(*both)))
            if _is_exact(part):
                proven.append(part)
    return Anchor((Ranges(attribute, common),), tuple(proven))


def _side(operand: Tree) -> tuple[Term, ...] | None:
    """The terms of one side of an OR: of its most selective part, when it is a conjunction."""
    sides = [terms for terms in map(_terms, conjuncts(operand)) if terms is not None]
    return min(sides, key=_breadth) if sides else None


def _breadth(terms: tuple[Term, ...]) -> tuple[int, int]:
    """Smaller is more selective, as far as can be told without looking at traffic."""
    kinds = [0 if isinstance(term, Keys) else 1 if isinstance(term, Prefixes) else 2 for term in terms]
    return max(kinds), len(terms)


def _united(sides: list[tuple[Term, ...] | None]) -> tuple[Term, ...] | None:
    """The terms of all sides; those of one attribute and kind are one term."""
    keys: dict[str, dict[Key, None]] = {}
    ranges: dict[str, list[Range]] = {}
    prefixes: dict[str, list[str]] = {}
    for side in sides:
        if side is None:
            return None
        for term in side:
            if isinstance(term, Keys):
                keys.setdefault(term.attribute, {}).update(dict.fromkeys(term.keys))
            elif isinstance(term, Ranges):
                ranges.setdefault(term.attribute, []).extend(term.ranges)
            elif isinstance(term, Prefixes):
                prefixes.setdefault(term.attribute, []).extend(term.prefixes)
    for name, several in ranges.items():
        numbers = [key for key in keys.get(name, ()) if isinstance(key, (int, float))]
        several += [(float(number), _after(number)) for number in numbers]
        for number in numbers:
            del keys[name][number]
    terms: list[Term] = [Keys(name, tuple(found)) for name, found in keys.items() if found]
    terms += [Ranges(name, _joined(several)) for name, several in ranges.items()]
    terms += [Prefixes(name, _shortest(several)) for name, several in prefixes.items()]
    alternatives = sum(len(t.ranges) if isinstance(t, Ranges) else 1 for t in terms)
    return tuple(terms) if alternatives <= ALTERNATIVES_MAX else None


def _joined(ranges: Sequence[Range]) -> tuple[Range, ...]:
    """The union of ranges as disjoint ones."""
    joined: list[Range] = []
    for low, high in sorted(ranges):
        if joined and low <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(high, joined[-1][1])
        else:
            joined.append((low, high))
    return tuple(joined)


def _shortest(prefixes: Sequence[str]) -> tuple[str, ...]:
    """Without those that begin with another one."""
    kept: list[str] = []
    for prefix in sorted(prefixes):
        if not kept or not prefix.startswith(kept[-1]):
            kept.append(prefix)
    return tuple(kept)
