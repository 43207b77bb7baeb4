"""From a topic to the patterns that match it.

`TopicTable` is what the index needs; `TopicTree` is the first of the three algorithms of the paper (HIER III-A): the
patterns form a tree by level, and a topic walks down it along the edge of its level's name and the wildcard edge. A
node met on the way holds patterns that end there and so match at and below; exact ones count at the last level only.

`TopicMemory` remembers the answers, because streams repeat their topics. It keeps the remembered topics in a tree of
their own, so that a new pattern forgets those topics that it matches, and no others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from matching.limits import RESOLVED_TOPICS_MAX
from matching.topics import WILDCARD, Pattern

__all__ = ["TopicMemory", "TopicTable", "TopicTree"]

T = TypeVar("T")


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


@dataclass(slots=True)
class _Node(Generic[T]):
    named: dict[str, _Node[T]] = field(default_factory=dict)
    wildcard: _Node[T] | None = None
    below: T | None = None
    exact: T | None = None

    def is_empty(self) -> bool:
        return not self.named and self.wildcard is None and self.below is None and self.exact is None


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
        if pattern.exact:
            node.exact = value
        else:
            node.below = value

    def remove(self, pattern: Pattern) -> None:
        if self.get(pattern) is None:
            raise KeyError(str(pattern))
        path = [self._root]
        for level in pattern.levels:
            following = path[-1].wildcard if level == WILDCARD else path[-1].named.get(level)
            assert following is not None
            path.append(following)
        if pattern.exact:
            path[-1].exact = None
        else:
            path[-1].below = None
        for depth in range(len(pattern.levels), 0, -1):
            if not path[depth].is_empty():
                break
            if pattern.levels[depth - 1] == WILDCARD:
                path[depth - 1].wildcard = None
            else:
                del path[depth - 1].named[pattern.levels[depth - 1]]

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
