"""Finds the patterns that match a topic. (HIER, sections II and III.)

A topic is levels joined by `/`; in a pattern any level but the first may be `*`, and a pattern matches the topics at
and below it. `check_topic` gives the levels of a topic, `parse_pattern` a `Pattern`; `WILDCARD` is its star.

Four tables do the same behind one interface, `TopicTable`: add a pattern, remove it, find the values of those that
match a topic. `TopicMasks` is the one that the index uses, a hash table for each set of wildcard levels in use.
`TopicTree` (III-A), `TopicRegex` (III-B) and `TopicHash` (III-C) are the three algorithms of the paper, kept to be
measured beside it; the tree also takes what masks cannot. `TopicMemory` remembers answers, because streams repeat
their topics.

Order of reading: `patterns`, `table` (the interface and the tree), `masks`, then `hash` and `regex`.
"""

from .hash import TopicHash
from .masks import TopicMasks
from .patterns import WILDCARD, Pattern, check_topic, parse_pattern
from .regex import TopicRegex
from .table import TopicMemory, TopicTable, TopicTree

__all__ = [
    "Pattern",
    "TopicHash",
    "TopicMasks",
    "TopicMemory",
    "TopicRegex",
    "TopicTable",
    "TopicTree",
    "WILDCARD",
    "check_topic",
    "parse_pattern",
]
