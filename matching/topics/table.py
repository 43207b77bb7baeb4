"""From a topic to the patterns that match it.

`TopicTable` is what the index needs; `TopicTree` is the first of the three algorithms of the paper (HIER III-A): the
patterns form a tree by level, and a topic walks down it along the edge of its level's name and the wildcard edge. A
node met on the way holds patterns that end there and so match at and below; exact ones count at the last level only.
Each edge counts the patterns that are reached through it, and goes when there are none. The others are in
`regex.py` and `hash.py`, and `masks.py` is the one that the index uses, with the reason.

`TopicMemory` remembers the answers, because streams repeat their topics. It keeps the remembered topics in a tree of
their own, so that a new pattern forgets those topics that it matches, and no others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from headgate.matching.limits import RESOLVED_TOPICS_MAX
from headgate.matching.topics.patterns import WILDCARD, Pattern

__all__ = ["TopicMemory", "TopicTable", "TopicTree"]

T = TypeVar("T")

# What the garbage collector adds to the size of a node and of its table.
_COLLECTOR_BYTES = 32


class TopicTable(Protocol[T]):
    """Patterns, each with one value, and the question which of them match a topic."""

    def get(self, pattern: Pattern) -> T | None:
        """The value of a pattern, or None."""

    def put(self, pattern: Pattern, value: T) -> None:
        """Give a pattern that has none a value."""

    def remove(self, pattern: Pattern) -> None:
        """Take a pattern and its value out; KeyError when it is not there."""

    def resolve(self, topic: str) -> list[T]:
        """The values of all patterns that match the topic."""

    def memory_bytes(self) -> int:
        """About how much memory the table takes, without patterns, names and values."""


@dataclass(slots=True)
class _Node(Generic[T]):
    """A node with the edge that leads to it. `routes` counts the patterns that are reached through that edge."""

    routes: int = 0
    named: dict[str, _Node[T]] = field(default_factory=dict)
    wildcard: _Node[T] | None = None
    below: T | None = None
    exact: T | None = None


class TopicTree(Generic[T]):
    """HIER's tree. `TopicTable` says what the methods do."""

    def __init__(self) -> None:
        self._root: _Node[T] = _Node()

    def get(self, pattern: Pattern) -> T | None:
        node: _Node[T] | None = self._root
        for level in pattern.levels:
            if node is None:
                return None
            node = node.wildcard if level == WILDCARD else node.named.get(level)
        if node is None:
            return None
        return node.exact if pattern.exact else node.below

    def put(self, pattern: Pattern, value: T) -> None:
        node = self._root
        node.routes += 1
        for level in pattern.levels:
            if level == WILDCARD:
                if node.wildcard is None:
                    node.wildcard = _Node()
                node = node.wildcard
            else:
                following = node.named.get(level)
                if following is None:
                    following = node.named[level] = _Node()
                node = following
            node.routes += 1
        if pattern.exact:
            node.exact = value
        else:
            node.below = value

    def remove(self, pattern: Pattern) -> None:
        if self.get(pattern) is None:
            raise KeyError(str(pattern))
        node = self._root
        node.routes -= 1
        for level in pattern.levels:
            following = node.wildcard if level == WILDCARD else node.named.get(level)
            assert following is not None
            following.routes -= 1
            if not following.routes:  # nothing else is reached this way, so all of it can go at once
                if level == WILDCARD:
                    node.wildcard = None
                else:
                    del node.named[level]
                return
            node = following
        if pattern.exact:
            node.exact = None
        else:
            node.below = None

    def resolve(self, topic: str) -> list[T]:
        found: list[T] = []
        here = [self._root]
        for level in topic.split("/"):
            following = []
            for node in here:
                for child in (node.named.get(level), node.wildcard):
                    if child is not None:
                        following.append(child)
                        if child.below is not None:
                            found.append(child.below)
            here = following
        found.extend(node.exact for node in here if node.exact is not None)
        return found

    def __bool__(self) -> bool:
        return self._root.routes > 0

    def nodes(self) -> int:
        """How many nodes there are below the root; each has one edge that leads to it."""
        return sum(1 for _ in self._walk()) - 1

    def _walk(self) -> Iterator[_Node[T]]:
        waiting = [self._root]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(node.named.values())
            if node.wildcard is not None:
                waiting.append(node.wildcard)

    def memory_bytes(self) -> int:
        return sum(node.__sizeof__() + _COLLECTOR_BYTES + node.named.__sizeof__() for node in self._walk())


@dataclass(slots=True)
class _Place:
    """A level of remembered topics."""

    below: dict[str, _Place] = field(default_factory=dict)
    topic: str | None = None


class TopicMemory(Generic[T]):
    """A bounded memory from topics to answers. `answers` is read directly on the hot path, and written here only."""

    def __init__(self, topics_max: int = RESOLVED_TOPICS_MAX) -> None:
        self.answers: dict[str, T] = {}
        self._topics_max = topics_max
        self._root = _Place()

    def remember(self, topic: str, answer: T) -> T | None:
        """Keep the answer of a topic that has none; the answer that had to go for it, or None."""
        gone = None
        if len(self.answers) >= self._topics_max:
            gone = self._forget(next(iter(self.answers)))
        self.answers[topic] = answer
        place = self._root
        for level in topic.split("/"):
            following = place.below.get(level)
            if following is None:
                following = place.below[level] = _Place()
            place = following
        place.topic = topic
        return gone

    def forget(self, pattern: Pattern) -> list[T]:
        """Forget all topics that a pattern matches; their answers, one for each topic."""
        here = [self._root]
        for level in pattern.levels:
            if level == WILDCARD:
                here = [place for parent in here for place in parent.below.values()]
            else:
                here = [parent.below[level] for parent in here if level in parent.below]
        topics: list[str] = []
        while here:
            place = here.pop()
            if place.topic is not None:
                topics.append(place.topic)
            if not pattern.exact:
                here.extend(place.below.values())
        return [self._forget(topic) for topic in topics]

    def _forget(self, topic: str) -> T:
        levels = topic.split("/")
        path = [self._root]
        for level in levels:
            path.append(path[-1].below[level])
        path[-1].topic = None
        for depth in range(len(levels), 0, -1):
            if path[depth].below or path[depth].topic is not None:
                break
            del path[depth - 1].below[levels[depth - 1]]
        return self.answers.pop(topic)

    def validate(self) -> None:
        """The tree holds exactly the topics that have an answer, and no dead branches."""
        topics: list[str] = []
        waiting = [self._root]
        while waiting:
            place = waiting.pop()
            assert place is self._root or place.below or place.topic is not None, "dead branch"
            if place.topic is not None:
                topics.append(place.topic)
            waiting.extend(place.below.values())
        assert sorted(topics) == sorted(self.answers), "tree and answers differ"
        assert len(topics) <= self._topics_max, "memory over its bound"
