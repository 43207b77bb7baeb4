"""Findings: how many events a subscription with XPATH kept back, by why and by topic.

What filters let through is the doing of whoever published it, and a delivery does not say who that was: it names the
broker that accepted the event. The topic is what comes nearest: a publisher chooses it, and rights say who may publish
to it. A table of the topics has a bound, so that nobody fills it: where there are too many, the one with the fewest
events gives way, and its counts go to `OTHERS`. So no event is left out, and a topic with many of them stays.
"""

from __future__ import annotations

from ..limits import FALSE_POSITIVE_TOPICS_MAX
from ..structure import Finding

__all__ = ["OTHERS", "Findings"]

OTHERS = "*"
"""All topics that are not named. No topic is called so."""


class Findings:
    """Counts of one subscription."""

    def __init__(self, topics_max: int = FALSE_POSITIVE_TOPICS_MAX) -> None:
        self._topics_max = topics_max
        self._by_topic: dict[str, dict[str, int]] = {}
        self._others: dict[str, int] = {}
        self.by_why: dict[str, int] = {}

    @property
    def by_topic(self) -> dict[str, dict[str, int]]:
        """The same for each topic, the one with most events first, and for all others last."""
        order = sorted(self._by_topic, key=lambda topic: (-sum(self._by_topic[topic].values()), topic))
        found = {topic: dict(self._by_topic[topic]) for topic in order}
        return {**found, OTHERS: dict(self._others)} if self._others else found

    def count(self, topic: str, finding: Finding) -> None:
        """An event was kept back."""
        why, counts = finding.value, self._by_topic.get(topic)
        self.by_why[why] = self.by_why.get(why, 0) + 1
        if counts is None:
            if len(self._by_topic) >= self._topics_max:
                least = min(self._by_topic, key=lambda one: sum(self._by_topic[one].values()))
                for one, number in self._by_topic.pop(least).items():
                    self._others[one] = self._others.get(one, 0) + number
            counts = self._by_topic[topic] = {}
        counts[why] = counts.get(why, 0) + 1
