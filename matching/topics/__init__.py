"""FACE of topics."""

from . import hash, masks
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
    "hash",
    "masks",
    "parse_pattern",
]
