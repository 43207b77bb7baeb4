"""FACE of language."""

from . import compiled
from .compiled import Compiled, compile_condition, shapes_kept
from .explanation import Explanation, Verdict, explain
from .parser import parse_condition
from .spark_text import SPARK_TYPES, spark_columns, to_spark
from .text import to_text

__all__ = [
    "Compiled",
    "Explanation",
    "SPARK_TYPES",
    "Verdict",
    "compile_condition",
    "compiled",
    "explain",
    "parse_condition",
    "shapes_kept",
    "spark_columns",
    "to_spark",
    "to_text",
]
