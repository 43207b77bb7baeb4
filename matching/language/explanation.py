"""Why a condition matches a row, or does not: the verdict of each of its predicates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headgate.matching.language.text import quote_name, to_text
from headgate.matching.limits import EXCERPT_CHARACTERS_MAX
from headgate.matching.meaning import evaluate, value_of
from headgate.matching.structure import parse_twig
from headgate.matching.tree import (
    And,
    Arithmetic,
    Attribute,
    Between,
    Compare,
    Delta,
    In,
    Like,
    Literal,
    Negate,
    Not,
    Or,
    Tree,
    ValueNode,
    XPath,
    attributes,
)
from headgate.matching.values import Value, known

__all__ = ["Explanation", "Verdict", "explain"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One predicate with what it says of the row: "true", "false", "unknown", or "later" for XPATH and DELTA."""

    text: str
    verdict: str
    why: str = ""
    """What makes it unknown: an attribute that is not there, or is there as another type than was asked for. Of an
    XPATH, what it asks of a document."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The verdict of a whole condition, and of each predicate in the order of the text."""

    verdict: str
    predicates: tuple[Verdict, ...]

    @property
    def matches(self) -> bool:
        """Only TRUE matches; UNKNOWN does not."""
        return self.verdict == "true"


_WORDS = {True: "true", False: "false", None: "unknown"}


def explain(tree: Tree, row: Mapping[str, object]) -> Explanation:
    """The verdicts of a condition on one event's attributes.

    XPATH and DELTA need more than the attributes of one event: their verdict is "later", and the whole verdict is that
    of the rest.
    """
    return Explanation(_WORDS[evaluate(tree, row)], tuple(_verdict(leaf, row) for leaf in _leaves(tree)))


def _verdict(leaf: Tree, row: Mapping[str, object]) -> Verdict:
    text = to_text(leaf)
    if isinstance(leaf, XPath):
        return Verdict(text, "later", _structure(leaf))
    if isinstance(leaf, Delta):
        return Verdict(text, "later")
    verdict = evaluate(leaf, row)
    return Verdict(text, _WORDS[verdict], "; ".join(_reasons(leaf, row)) if verdict is None else "")


def _structure(leaf: XPath) -> str:
    """The items that a twig asks a document for."""
    twig = parse_twig(leaf.twig)
    shown = ", ".join([*sorted(twig.items()), *sorted(twig.values())])
    return f"it asks the document for {shown[:EXCERPT_CHARACTERS_MAX]}{'…' * (len(shown) > EXCERPT_CHARACTERS_MAX)}"


def _reasons(leaf: Tree, row: Mapping[str, object]) -> list[str]:
    """Why a predicate is unknown."""
    reasons: dict[str, None] = {}
    for node, wanted in _asked(leaf.operand if isinstance(leaf, Not) else leaf, row):
        value = value_of(node, row)
        if value is None:
            reasons.update(dict.fromkeys(_without_value(node, row)))
        elif isinstance(node, Attribute) and wanted and wanted != _noun(value):
            reasons[_unlike(node.name, value, wanted)] = None
    return list(reasons) or ["unlike values do not compare"]


def _asked(leaf: Tree, row: Mapping[str, object]) -> list[tuple[ValueNode, str]]:
    """The values that a predicate looks at, each with what it is asked to be; nothing when anything will do."""
    match leaf:
        case Compare(_, left, right):
            return [(left, _noun(value_of(right, row))), (right, _noun(value_of(left, row)))]
        case Between(operand, low, high):
            others = [_noun(value_of(bound, row)) for bound in (low, high)]
            noun = _noun(value_of(operand, row))
            return [*((operand, other) for other in others), (low, noun), (high, noun)]
        case In(operand, items):
            return [(operand, _noun(items[0].value))]
        case Like(operand):
            return [(operand, "a string")]
        case Attribute() | Literal():
            return [(leaf, "true or false")]
    return []


def _without_value(node: ValueNode, row: Mapping[str, object]) -> list[str]:
    """Why a value is NULL."""
    if isinstance(node, Literal):
        return ["NULL equals nothing, and nothing is less or greater: write IS NULL"]
    reasons = []
    for name in attributes(node):
        value, there = known(row.get(name)), row.get(name)
        if name not in row:
            reasons.append(f"the event has no {quote_name(name)}")
        elif value is None:
            kind = "null" if there is None else "a list, bytes or an integer beyond 64 bits, which counts as null"
            reasons.append(f"{quote_name(name)} is {kind}")
        elif isinstance(node, Arithmetic | Negate) and _noun(value) != "a number":
            reasons.append(_unlike(name, value, "a number"))
    return reasons or [f"{to_text(node)} overflows, or divides by zero"]


def _unlike(name: str, value: Value, wanted: str) -> str:
    kind = {"a string": "the string ", "a number": "the number ", "true or false": ""}[_noun(value)]
    shown = to_text(Literal(value)) if not isinstance(value, float) else repr(value)
    if len(shown) > EXCERPT_CHARACTERS_MAX:
        shown = f"{shown[:EXCERPT_CHARACTERS_MAX]}…"
    return f"the event has {quote_name(name)}, as {kind}{shown}, and {wanted} was asked for"


def _noun(value: Value) -> str:
    if value is None:
        return ""
    return "true or false" if isinstance(value, bool) else "a string" if isinstance(value, str) else "a number"


def _leaves(tree: Tree) -> list[Tree]:
    """The predicates below AND, OR and NOT. NOT of one predicate (NOT IN, IS NOT NULL, ...) is explained as written."""
    if isinstance(tree, (And, Or)):
        return [leaf for operand in tree.operands for leaf in _leaves(operand)]
    if isinstance(tree, Not) and isinstance(tree.operand, (And, Or, Not)):
        return _leaves(tree.operand)
    return [tree]
