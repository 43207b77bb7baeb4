"""Reads, prints and compiles conditions: text to tree, tree to text, tree to code.

`parse_condition` makes a tree (`matching.tree`) of the text of a WHERE clause, or raises an error that points at the
column. `to_text` prints the one canonical text of a tree. `compile_condition` makes of it a `Compiled`: the names of
the attributes it reads and a fast test of their values, which must agree with `matching.meaning`; code of the same
shape is made once and kept in a cache (`Shapes`), and `shapes_kept` says how many shapes are kept. `explain` says why a
row matches or does not: an `Explanation` with the `Verdict` of each predicate.

For the audit, `to_spark` prints the text that Spark evaluates, over columns split by type: `spark_columns` names them
and `SPARK_TYPES` gives their types.

Order of reading: `words` (text to words), `parser` (words to tree), `text`, `compiled`, `explanation`, `spark_text`.
"""

from .compiled import Compiled, Shapes, compile_condition, shapes_kept
from .explanation import Explanation, Verdict, explain
from .parser import parse_condition
from .spark_text import SPARK_TYPES, spark_columns, to_spark
from .text import to_text

__all__ = [
    "Compiled",
    "Explanation",
    "SPARK_TYPES",
    "Shapes",
    "Verdict",
    "compile_condition",
    "explain",
    "parse_condition",
    "shapes_kept",
    "spark_columns",
    "to_spark",
    "to_text",
]
