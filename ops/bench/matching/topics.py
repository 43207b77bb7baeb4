"""HIER's experiment (section IV): its three algorithms and ours on the same patterns and topics."""

from __future__ import annotations

import gc
import re
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from headgate.matching import Pattern
from headgate.matching.topics import TopicHash, TopicMasks, TopicRegex, TopicTable, TopicTree

from .measure import MEASURED_BYTES_MAX, frozen, seconds
from .workloads import topic_patterns, topics

__all__ = ["ALGORITHMS", "TopicCost", "measure_topics", "topic_rows"]

ALGORITHMS: dict[str, Callable[[], TopicTable[int]]] = {
    "tree (HIER III-A)": TopicTree,
    "regex (HIER III-B)": TopicRegex,
    "hash (HIER III-C)": TopicHash,
    "masks (ours)": TopicMasks,
}

_TOPICS = 2_000
_TOPICS_BY_REGEX = 4
_CHANGES = 2_000


@dataclass(frozen=True, slots=True)
class TopicCost:
    """Microseconds to compute the destinations of a topic, to add and to remove a pattern; bytes of a pattern."""

    resolve_us: float
    add_us: float
    remove_us: float
    bytes_each: float


def measure_topics(make: Callable[[], TopicTable[int]], patterns: Sequence[Pattern], rounds: int) -> TopicCost:
    """What one algorithm costs. Adding and removing are measured on the last patterns, in a table with the rest."""
    rng = Random(5)
    asked = topics(_TOPICS, patterns, rng)
    table = make()
    for number, pattern in enumerate(patterns):
        table.put(pattern, number)
    if isinstance(table, TopicRegex):
        asked = asked[:_TOPICS_BY_REGEX]
    with frozen():
        resolve = seconds(lambda: [table.resolve(topic) for topic in asked], rounds) / len(asked)
        changing = patterns[-_CHANGES:]
        add = remove = float("inf")
        for _ in range(rounds):
            re.purge()
            started = time.process_time()
            for pattern in changing:
                table.remove(pattern)
            between = time.process_time()
            for number, pattern in enumerate(changing):
                table.put(pattern, number)
            add = min(add, (time.process_time() - between) / len(changing))
            remove = min(remove, (between - started) / len(changing))
    return TopicCost(resolve * 1e6, add * 1e6, remove * 1e6, _bytes_each(make, patterns))


def _bytes_each(make: Callable[[], TopicTable[int]], patterns: Sequence[Pattern]) -> float:
    few = patterns[:MEASURED_BYTES_MAX]
    gc.collect()
    re.purge()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        table = make()
        for number, pattern in enumerate(few):
            table.put(pattern, number)
        re.purge()
        return (tracemalloc.get_traced_memory()[0] - before) / len(few)
    finally:
        tracemalloc.stop()


def topic_rows(sizes: Sequence[int], seed: int, rounds: int) -> Iterator[list[str]]:
    """The lines of the table; ratios are to the tree of the same size."""
    for size in sizes:
        patterns = topic_patterns(size, Random(seed))
        tree: TopicCost | None = None
        for name, make in ALGORITHMS.items():
            cost = measure_topics(make, patterns, rounds)
            tree = tree or cost
            yield [
                name,
                f"{size:,}",
                f"{cost.resolve_us:.2f}",
                f"{cost.resolve_us / tree.resolve_us:.2f}",
                f"{cost.add_us:.2f}",
                f"{cost.add_us / tree.add_us:.2f}",
                f"{cost.remove_us:.2f}",
                f"{cost.remove_us / tree.remove_us:.2f}",
                f"{cost.bytes_each:.0f}",
                f"{cost.bytes_each / tree.bytes_each:.2f}",
            ]
