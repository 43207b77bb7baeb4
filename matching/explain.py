"""Why a condition matches a row, or does not: the verdict of each of its predicates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headgate.matching.meaning import evaluate
from headgate.matching.text import to_text
from headgate.matching.tree import And, Delta, Not, Or, Tree, XPath

__all__ = ["Explanation", "Verdict", "explain"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One predicate with what it says of the row: "true", "false", "unknown", or "later" for XPATH and DELTA."""

    text: str
    verdict: str


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
    predicates = tuple(Verdict(to_text(leaf), _verdict(leaf, row)) for leaf in _leaves(tree))
    return Explanation(_WORDS[evaluate(tree, row)], predicates)


def _verdict(leaf: Tree, row: Mapping[str, object]) -> str:
    return "later" if isinstance(leaf, (XPath, Delta)) else _WORDS[evaluate(leaf, row)]


def _leaves(tree: Tree) -> list[Tree]:
    """The predicates below AND, OR and NOT. NOT of one predicate (NOT IN, IS NOT NULL, ...) is explained as written."""
    if isinstance(tree, (And, Or)):
        return [leaf for operand in tree.operands for leaf in _leaves(operand)]
    if isinstance(tree, Not) and isinstance(tree.operand, (And, Or, Not)):
        return _leaves(tree.operand)
    return [tree]
