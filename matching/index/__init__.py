"""FACE of index."""

from . import predicates, range_blocks, ranges, traffic
from .anchors import parts_of
from .index import Index, Matches, Statistics
from .range_blocks import Answers, Span
from .ranges import RangeTable

__all__ = [
    "Answers",
    "Index",
    "Matches",
    "RangeTable",
    "Span",
    "Statistics",
    "parts_of",
    "predicates",
    "range_blocks",
    "ranges",
    "traffic",
]
