"""The index: which subscriptions does each event of a batch satisfy?

    add(subscription, pattern, condition)   remove(subscription)
    match(topics, count, columns)           statistics()          validate()

It joins two parts that do not know each other: `TopicTable` finds the patterns of a topic, `PredicateIndex` the
conditions of a row. What a topic resolves to is its **audience**: the subscriptions without a condition, as one
ready tuple, and the predicate indexes to ask. Topics with the same patterns share one audience, and a topic's audience
is remembered, so a row that only plain subscriptions want costs one dictionary lookup and one append.

A change touches as little as possible: a subscription to a pattern that is known already changes one number, and an
audience that includes that pattern brings itself up to date when it is next used; a new pattern, or the end of one,
forgets the remembered topics it matches. Nothing is rebuilt before a row needs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from headgate.matching.index.columns import Column, Columns
from headgate.matching.index.conditions import Condition
from headgate.matching.index.predicates import PredicateIndex
from headgate.matching.index.steps import Found
from headgate.matching.language import shapes_kept
from headgate.matching.limits import RESOLVED_TOPICS_MAX
from headgate.matching.shrinking import ShrinkingDict
from headgate.matching.topics import Pattern, TopicMasks, TopicMemory, TopicTable
from headgate.matching.tree import Tree

__all__ = ["Index", "Matches", "Statistics"]

# What things take, measured on a hundred thousand of each; for the estimate in Statistics only.
_SUBSCRIPTION_BYTES, _ENTRY_BYTES, _TOPIC_BYTES, _CONDITION_BYTES, _PLACE_BYTES = 190, 900, 300, 400, 200

# Groups of (sorted subscription ids, ascending rows); each pair of id and row occurs once.
Matches: TypeAlias = list[tuple[tuple[int, ...], Sequence[int]]]


@dataclass(frozen=True, slots=True)
class Statistics:
    """A snapshot of an index."""

    subscriptions: int
    patterns: int
    conditions: int  # distinct ones, counted for each pattern
    scanned_conditions: int  # those that are tried on every row of their pattern
    places: int  # where conditions are filed; one may be filed under several keys
    rows: int  # that were matched with conditions, counted for each pattern that is there now
    tested: int  # candidates: compiled conditions that were called while matching these rows
    passed: int  # of these, how many were true
    resolved_topics: int  # that were not remembered when they came
    attributes: int
    remembered_topics: int
    audiences: int
    shapes: int  # of compiled conditions, in the whole process
    memory_bytes: int  # an estimate, without what the caller holds

    @property
    def candidates_each(self) -> float:
        """Conditions that had to be tested for a row; those that the index proves are not among them."""
        return self.tested / self.rows if self.rows else 0.0

    @property
    def hit_rate(self) -> float:
        """The part of the candidates that were true."""
        return self.passed / self.tested if self.tested else 1.0

    @property
    def bytes_each(self) -> float:
        """Estimated bytes of memory for a subscription."""
        return self.memory_bytes / self.subscriptions if self.subscriptions else 0.0


@dataclass(slots=True, eq=False)
class _Entry:
    """One pattern with its subscribers. `version` counts the changes that concern audiences."""

    pattern: Pattern
    plain: ShrinkingDict[int, None] = field(default_factory=ShrinkingDict)
    predicates: PredicateIndex = field(default_factory=PredicateIndex)
    version: int = 0


@dataclass(slots=True, eq=False)
class _Audience:
    """What topics of the same patterns have in common. `topics` counts those that are remembered."""

    entries: tuple[_Entry, ...]
    topics: int = 0
    checked: int = -1  # the index's count of changes when this was last known to be right
    version: int = -1
    plain: tuple[int, ...] = ()
    predicates: tuple[PredicateIndex, ...] = ()


class Index:
    """Subscriptions to match batches of events with. A subscription is an integer that the caller chooses."""

    def __init__(self, remembered_topics_max: int = RESOLVED_TOPICS_MAX) -> None:
        self._subscriptions: ShrinkingDict[int, tuple[_Entry, Condition | None]] = ShrinkingDict()
        self._table: TopicTable[_Entry] = TopicMasks()
        self._entries: ShrinkingDict[Pattern, _Entry] = ShrinkingDict()
        self._remembered_topics_max = remembered_topics_max
        self._memory: TopicMemory[_Audience] = TopicMemory(remembered_topics_max)
        self._audiences: dict[tuple[_Entry, ...], _Audience] = {}
        self._uses: dict[str, int] = {}
        self._attributes: tuple[str, ...] | None = ()
        self._changes = 0
        self._resolved = 0

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __contains__(self, subscription: int) -> bool:
        return subscription in self._subscriptions

    def add(self, subscription: int, pattern: Pattern, condition: Tree | None = None) -> None:
        """Add a subscription; KeyError when the number is taken."""
        if subscription in self._subscriptions:
            raise KeyError(f"subscription {subscription} is there already")
        entry = self._entries.get(pattern)
        if entry is None:
            entry = self._entries[pattern] = _Entry(pattern)
            self._table.put(pattern, entry)
            self._forget(pattern)
        placed = None
        if condition is None:
            entry.plain[subscription] = None
            self._note_change(entry)
        else:
            if not len(entry.predicates):
                self._note_change(entry)
            placed = entry.predicates.add(subscription, condition)
            self._count_uses(placed, 1)
        self._subscriptions[subscription] = entry, placed

    def remove(self, subscription: int) -> None:
        """Remove a subscription; KeyError when there is none of that number."""
        entry, condition = self._subscriptions.drop(subscription)
        if condition is None:
            entry.plain.drop(subscription)
            self._note_change(entry)
        else:
            entry.predicates.remove(subscription, condition)
            self._count_uses(condition, -1)
            if not len(entry.predicates):
                self._note_change(entry)
        if not entry.plain and not len(entry.predicates):
            self._entries.drop(entry.pattern)
            self._table.remove(entry.pattern)
            self._forget(entry.pattern)

    def attributes(self) -> tuple[str, ...]:
        """The attributes that some condition reads, sorted: the columns worth decoding."""
        if self._attributes is None:
            self._attributes = tuple(sorted(self._uses))
        return self._attributes

    def plain(self, topic: str) -> tuple[int, ...] | None:
        """The subscriptions of a topic when the topic alone decides; None when conditions have a say."""
        audience = self._audience(topic)
        self._refresh(audience)
        return None if audience.predicates else audience.plain

    def match(self, topics: Sequence[str], count: int, columns: Mapping[str, Column]) -> Matches:
        """The subscriptions that each of `count` rows satisfies.

        `topics` has one topic for each row, or a single one for all. A column that is missing is NULL in every row.
        """
        if count == 0:
            return []
        if len(topics) == 1:
            audience = self._audience(topics[0])
            self._refresh(audience)
            if audience.predicates:
                return _match_conditions(audience, range(count), Columns(columns, count))
            return [(audience.plain, range(count))] if audience.plain else []
        assert len(topics) == count, "topics must be one for all rows, or one for each"
        return self._match_many(topics, count, columns)

    def _match_many(self, topics: Sequence[str], count: int, columns: Mapping[str, Column]) -> Matches:
        changes = self._changes
        matches: Matches = []
        conditional: list[Matches] = []
        for audience, rows in self._group(topics).items():
            if audience.checked != changes:
                self._refresh(audience)
            if audience.predicates:
                if not isinstance(columns, Columns):
                    columns = Columns(columns, count)
                conditional.append(_match_conditions(audience, rows, columns))
            elif audience.plain:
                matches.append((audience.plain, rows))
        if conditional:
            # Rows that miss every condition of their audience may have the subscriptions of another one.
            return _merge([matches, *conditional]) if matches or len(conditional) > 1 else conditional[0]
        return matches

    def _group(self, topics: Sequence[str]) -> dict[_Audience, list[int]]:
        """The rows of each audience, in ascending order."""
        groups = _grouped(map(self._memory.answers.get, topics))
        if None in groups:
            # While topics are remembered others may be forgotten, and an audience with them: within the batch it stays.
            audiences = [self._audience(topic) for topic in topics]
            same = {audience.entries: audience for audience in audiences}
            groups = _grouped([same[audience.entries] for audience in audiences])
        return cast(dict[_Audience, list[int]], groups)

    def _audience(self, topic: str) -> _Audience:
        """The audience of a topic, remembered."""
        audience = self._memory.answers.get(topic)
        if audience is None:
            self._resolved += 1
            entries = tuple(self._table.resolve(topic))
            audience = self._audiences.get(entries)
            if audience is None:
                audience = self._audiences[entries] = _Audience(entries)
            audience.topics += 1
            gone = self._memory.remember(topic, audience)
            if gone is not None:
                self._release(gone)
        return audience

    def _release(self, audience: _Audience) -> None:
        audience.topics -= 1
        if not audience.topics:
            del self._audiences[audience.entries]

    def _forget(self, pattern: Pattern) -> None:
        for audience in self._memory.forget(pattern):
            self._release(audience)

    def _refresh(self, audience: _Audience) -> None:
        """Bring an audience up to date, if anything it consists of has changed."""
        audience.checked = self._changes
        version = sum([entry.version for entry in audience.entries])
        if version != audience.version:
            audience.version = version
            plain = [subscription for entry in audience.entries for subscription in entry.plain]
            audience.plain = tuple(sorted(plain))
            audience.predicates = tuple([entry.predicates for entry in audience.entries if len(entry.predicates)])

    def _note_change(self, entry: _Entry) -> None:
        """What an audience holds of an entry has changed: its plain subscriptions, or whether there are conditions."""
        entry.version += 1
        self._changes += 1

    def _count_uses(self, condition: Condition, change: int) -> None:
        for name in condition.attributes:
            uses = self._uses.get(name, 0) + change
            if uses == 0:
                del self._uses[name]
                self._attributes = None
            else:
                self._uses[name] = uses
                if uses == change:
                    self._attributes = None

    def forget_topics(self) -> None:
        """Give back the memory of resolved topics; each is resolved anew when it comes again."""
        self._memory = TopicMemory(self._remembered_topics_max)
        self._audiences.clear()

    def statistics(self) -> Statistics:
        """A snapshot of the sizes of things."""
        parts = [entry.predicates for entry in self._entries.values()]
        conditions, places = sum(map(len, parts)), sum(part.tally.places for part in parts)
        return Statistics(
            subscriptions=len(self._subscriptions),
            patterns=len(self._entries),
            conditions=conditions,
            scanned_conditions=sum(part.scanned for part in parts),
            places=places,
            rows=sum(part.rows for part in parts),
            tested=sum(part.tally.tested for part in parts),
            passed=sum(part.tally.passed for part in parts),
            resolved_topics=self._resolved,
            attributes=len(self._uses),
            remembered_topics=len(self._memory.answers),
            audiences=len(self._audiences),
            shapes=shapes_kept(),
            memory_bytes=self._table.memory_bytes()
            + len(self._subscriptions) * _SUBSCRIPTION_BYTES
            + len(self._entries) * _ENTRY_BYTES
            + len(self._memory.answers) * _TOPIC_BYTES
            + conditions * _CONDITION_BYTES
            + places * _PLACE_BYTES,
        )

    def explain(self, subscription: int) -> tuple[str, ...]:
        """How a row reaches a subscription, in words: the pattern, then each way through the index to its condition."""
        entry, condition = self._subscriptions[subscription]
        pattern = f"{'exactly' if entry.pattern.exact else 'at and below'} {entry.pattern}"
        if condition is None:
            return (f"{pattern} -> match",)
        return tuple(f"{pattern} -> {route}" for route in entry.predicates.routes(condition)) or (
            f"{pattern} -> never",
        )

    def validate(self) -> None:
        """Assert what must hold between any two calls."""
        members = 0
        for pattern, entry in self._entries.items():
            assert self._table.get(pattern) is entry, "table and entries differ"
            assert entry.plain or len(entry.predicates), "entry without subscribers"
            members += len(entry.plain)
            entry.predicates.validate()
        uses: dict[str, int] = {}
        for subscription, (entry, condition) in self._subscriptions.items():
            assert self._entries[entry.pattern] is entry, "subscription to an entry that is gone"
            assert (subscription in entry.plain) == (condition is None), "subscription in the wrong place"
            members += condition is not None and subscription in condition.ids
            for name in condition.attributes if condition else ():
                uses[name] = uses.get(name, 0) + 1
        assert members == len(self._subscriptions), "subscribers and subscriptions differ"
        assert uses == self._uses and self.attributes() == tuple(sorted(uses)), "uses of attributes are wrong"
        self._memory.validate()
        topics: dict[_Audience, int] = {}
        for topic, audience in self._memory.answers.items():
            topics[audience] = topics.get(audience, 0) + 1
            assert set(audience.entries) == set(self._table.resolve(topic)), "a remembered audience is wrong"
        assert topics == {audience: audience.topics for audience in self._audiences.values()}, "topics are miscounted"


def _grouped(audiences: Iterable[_Audience | None]) -> dict[_Audience | None, list[int]]:
    """The rows of each audience, in ascending order; None gathers the rows whose audience is not known yet."""
    groups: dict[_Audience | None, list[int]] = {}
    for row, audience in enumerate(audiences):
        if audience in groups:
            groups[audience].append(row)
        else:
            groups[audience] = [row]
    return groups


def _match_conditions(audience: _Audience, rows: Sequence[int], columns: Columns) -> Matches:
    """The groups among the rows of an audience that has conditions."""
    found: Found = {}
    for predicates in audience.predicates:
        predicates.match(rows, columns, found)
    plain = audience.plain
    if not found:
        return [(plain, rows)] if plain else []
    # Rows that satisfied the same conditions are one group. Answers are first told apart by identity, which is cheap
    # and finds nearly all that are equal; `found` keeps them alive.
    groups: dict[object, list[int]] = {}
    for row in found if len(found) == 1 else sorted(found):
        hits = found[row]
        key: object = id(hits[0]) if len(hits) == 1 else tuple(map(id, hits))
        group = groups.get(key)
        if group is None:
            groups[key] = [row]
        else:
            group.append(row)
    matches: Matches = []
    for group in groups.values():
        hits = found[group[0]]
        ids = hits[0] if len(hits) == 1 and not plain else tuple(sorted([i for part in (plain, *hits) for i in part]))
        matches.append((ids, group))
    # Equal answers begin with the same id, and an index has one object for it. Only its place is looked at: in a large
    # index a look into the answers, or at the number itself, waits for memory longer than all the rest takes.
    if len({id(ids[0]) for ids, _ in matches}) < len(matches):
        matches = _merge([matches])
    if plain and len(found) < len(rows):
        matches.append((plain, [row for row in rows if row not in found]))
    return matches


def _merge(parts: list[Matches]) -> Matches:
    """The groups of several audiences; those with the same subscriptions become one."""
    merged: dict[tuple[int, ...], list[int]] = {}
    for matches in parts:
        for ids, rows in matches:
            if ids in merged:
                merged[ids] += rows
            else:
                merged[ids] = list(rows)
    return [(ids, sorted(rows)) for ids, rows in merged.items()]
