r"""What Spark evaluates for a subscription: its condition as Spark SQL, its pattern as a regular expression.

Nothing of a text that stands in a log is ever handed to Spark: `expr()` would run subqueries and call Java methods. The
condition is parsed by our own grammar and printed again; the pattern is parsed and its levels are escaped one by one.

`quotes/*/OTE` becomes `\Aquotes/[^/]*/OTE(?:/|\z)`, to be *found* in a topic: at the beginning, and up to the end of a
level. Java's `$` would also match before a last line feed, so `\z` it is.
"""

from __future__ import annotations

from typing import Final

from headgate.matching.language import parse_condition, to_spark
from headgate.matching.limits import CANONICAL_BYTES_MAX
from headgate.matching.topics import WILDCARD, Pattern
from headgate.matching.tree import Tree

__all__ = ["condition_text", "condition_tree", "pattern_expression"]

_SPECIAL: Final = frozenset("\\^$.|?*+()[]{}-&~#")


def condition_tree(text: str) -> Tree | None:
    """The condition of a subscription as the log has it; None when there is none. Raises ConditionError."""
    return parse_condition(text, CANONICAL_BYTES_MAX) if text else None


def condition_text(tree: Tree) -> str:
    """What goes into `expr`, over split columns. The line feed ends a comment, should there ever be one."""
    return f"({to_spark(tree)}\n)"


def pattern_expression(pattern: Pattern) -> str:
    """The regular expression of Java that is found in exactly the topics that the pattern matches."""
    levels = ["[^/]*" if level == WILDCARD else _escaped(level) for level in pattern.levels]
    return r"\A" + "/".join(levels) + (r"\z" if pattern.exact else r"(?:/|\z)")


def _escaped(level: str) -> str:
    return "".join(["\\" + one if one in _SPECIAL else one for one in level])
