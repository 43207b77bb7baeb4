"""The steps that lead a row from the top of a predicate index to the conditions it satisfies.

A `Branch` holds the conditions that ask for the same things so far. It is a list of steps, each of which knows one way
to go on:

    Keyed      the value of an attribute is a key              -> a branch below
    Listed     the value of an attribute is on a long list     -> conditions, with a test where something is left
    Prefixed   a string begins with a prefix                   -> a branch below
    Ranged     a number is in a range                          -> conditions, with a test where something is left
    Filtered   a document's filter has all these bits          -> conditions, with a test where something is left
    Ready      nothing is left to ask                          -> conditions
    Scanned    what is left cannot be looked up                -> conditions, each with its test

so `symbol = 'OTE' AND price BETWEEN 8 AND 9` is found by one dictionary lookup and two bisections, and never tested.
`sweep` takes many rows through a step of the root, column by column; `collect` takes one row through a step below.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from headgate.matching.index.anchors import Key, key_of
from headgate.matching.index.columns import Columns
from headgate.matching.index.conditions import IDS, PLACES, Place, merged_ids
from headgate.matching.index.ranges import RangeTable
from headgate.matching.shrinking import ShrinkingDict
from headgate.matching.structure import FilterIndex

__all__ = [
    "Branch",
    "Filtered",
    "Found",
    "Keyed",
    "LeafStep",
    "Listed",
    "Prefixed",
    "Ranged",
    "Ready",
    "Scanned",
    "Step",
    "Tally",
]

Hits: TypeAlias = list[tuple[int, ...]]

# Row -> the id tuples of the conditions it satisfies.
Found: TypeAlias = dict[int, Hits]


@dataclass(slots=True)
class Tally:
    """How many places there are, how many conditions were tested, and how many passed."""

    places: int = 0
    tested: int = 0
    passed: int = 0


class Step(Protocol):
    """What all steps have in common."""

    def sweep(self, rows: Sequence[int], columns: Columns, found: Found) -> None:
        """Add to `found` what the rows satisfy."""

    def collect(self, row: int, columns: Columns, hits: Hits) -> None:
        """Add to `hits` what one row satisfies."""

    def is_empty(self) -> bool:
        """Whether nothing is filed here any more."""

    def places(self) -> Iterator[Place]:
        """All places here and below."""


class LeafStep(Step, Protocol):
    """A step at which conditions are filed."""

    branch: Branch

    def take(self, place: Place) -> None:
        """Take a place out."""

    def touch(self, place: Place, present: bool) -> None:
        """The ids of a condition are about to change and leave the answers that are ready; or they have, and enter."""


@dataclass(slots=True, eq=False)
class Branch:
    """Conditions that ask for the same things so far, by what they ask for next."""

    above: Keyed | Prefixed | None = None
    key: Key = None
    steps: list[Step] = field(default_factory=list)

    def prune(self, step: Step) -> None:
        """Take a step out if it is empty, and this branch with its last step."""
        if step.is_empty():
            self.steps.remove(step)
            if not self.steps and self.above is not None:
                self.above.discard(self.key)

    def keyed(self, attribute: str) -> Keyed:
        """The step for the keys of an attribute, made when there is none."""
        for step in self.steps:
            if isinstance(step, Keyed) and step.attribute == attribute:
                return step
        made = Keyed(self, attribute)
        self.steps.append(made)
        return made

    def listed(self, attribute: str, tally: Tally) -> Listed:
        """The step for long lists of values of an attribute."""
        for step in self.steps:
            if isinstance(step, Listed) and step.attribute == attribute:
                return step
        made = Listed(self, attribute, tally)
        self.steps.append(made)
        return made

    def prefixed(self, attribute: str) -> Prefixed:
        """The step for the prefixes of an attribute."""
        for step in self.steps:
            if isinstance(step, Prefixed) and step.attribute == attribute:
                return step
        made = Prefixed(self, attribute)
        self.steps.append(made)
        return made

    def ranged(self, attribute: str, tally: Tally | None) -> Ranged:
        """The step for ranges of an attribute: those with a test when there is a tally for it, or those without."""
        for step in self.steps:
            if isinstance(step, Ranged) and step.attribute == attribute and step.tally is tally:
                return step
        made = Ranged(self, attribute, tally)
        self.steps.append(made)
        return made

    def filtered(self, attribute: str, tally: Tally) -> Filtered:
        """The step for filters of documents."""
        for step in self.steps:
            if isinstance(step, Filtered) and step.attribute == attribute:
                return step
        made = Filtered(self, attribute, tally)
        self.steps.append(made)
        return made

    def ready(self) -> Ready:
        """The step for conditions of which nothing is left."""
        for step in self.steps:
            if isinstance(step, Ready):
                return step
        made = Ready(self)
        self.steps.append(made)
        return made

    def scanned(self, tally: Tally) -> Scanned:
        """The step for conditions that have to be tested."""
        for step in self.steps:
            if isinstance(step, Scanned):
                return step
        made = Scanned(self, tally)
        self.steps.append(made)
        return made


@dataclass(slots=True, eq=False)
class Keyed:
    """Branches by the value of an attribute."""

    branch: Branch
    attribute: str
    table: ShrinkingDict[Key, Branch] = field(default_factory=ShrinkingDict)

    def below(self, key: Key) -> Branch:
        branch = self.table.get(key)
        if branch is None:
            branch = self.table[key] = Branch(self, key)
        return branch

    def discard(self, key: Key) -> None:
        self.table.drop(key)
        self.branch.prune(self)

    def sweep(self, rows: Sequence[int], columns: Columns, found: Found) -> None:
        column = columns[self.attribute]
        if column is columns.nulls and None not in self.table:
            return
        values: Sequence[Key] = column if isinstance(rows, range) else [column[row] for row in rows]
        if self.attribute in columns.boolean:
            values = list(map(key_of, values))
        for row, branch in zip(rows, map(self.table.get, values), strict=True):
            if branch is not None:
                hits = found.get(row)
                if hits is None:
                    hits = []
                for step in branch.steps:
                    step.collect(row, columns, hits)
                if hits:
                    found[row] = hits

    def collect(self, row: int, columns: Columns, hits: Hits) -> None:
        value = columns[self.attribute][row]
        branch = self.table.get(key_of(value) if self.attribute in columns.boolean else value)
        if branch is not None:
            for step in branch.steps:
                step.collect(row, columns, hits)

    def is_empty(self) -> bool:
        return not self.table

    def places(self) -> Iterator[Place]:
        for branch in self.table.values():
            for step in branch.steps:
                yield from step.places()


@dataclass(slots=True, eq=False)
class Listed:
    """Conditions by lists of values of an attribute, IN with thousands of them: one place each, named by each value.

    A branch a value, as `Keyed` has it, would take several times the memory, and nothing is asked below it.
    """

    branch: Branch
    attribute: str
    tally: Tally
    table: ShrinkingDict[Key, list[Place]] = field(default_factory=ShrinkingDict)
    lists: dict[Place, tuple[Key, ...]] = field(default_factory=dict)

    def put(self, place: Place, keys: tuple[Key, ...]) -> None:
        self.lists[place] = keys
        table = self.table
        for key in keys:
            listed = table.get(key)
            if listed is None:
                table[key] = [place]
            else:
                listed.append(place)

    def take(self, place: Place) -> None:
        for key in self.lists.pop(place):
            listed = self.table[key]
            if len(listed) == 1:
                self.table.drop(key)
            else:
                listed.remove(place)
        self.branch.prune(self)

    def touch(self, place: Place, present: bool) -> None:
        """Ids are read when a value was on the list."""

    def sweep(self, rows: Sequence[int], columns: Columns, found: Found) -> None:
        if columns[self.attribute] is not columns.nulls:
            _sweep(self.collect, rows, columns, found)

    def collect(self, row: int, columns: Columns, hits: Hits) -> None:
        for place in self.table.get(key_of(columns[self.attribute][row]), ()):
            if place.test is None:
                _hit(place, hits)
            else:
                _try((place,), row, columns, hits, self.tally)

    def is_empty(self) -> bool:
        return not self.lists

    def places(self) -> Iterator[Place]:
        yield from self.lists


@dataclass(slots=True, eq=False)
class Prefixed:
    """Branches by the first characters of a string, a table for each length in use."""

    branch: Branch
    attribute: str
    lengths: dict[int, ShrinkingDict[str, Branch]] = field(default_factory=dict)

    def below(self, prefix: str) -> Branch:
        table = self.lengths.setdefault(len(prefix), ShrinkingDict())
        branch = table.get(prefix)
        if branch is None:
            branch = table[prefix] = Branch(self, prefix)
        return branch

    def discard(self, key: Key) -> None:
        assert isinstance(key, str)
        table = self.lengths[len(key)]
        table.drop(key)
        if not table:
            del self.lengths[len(key)]
            self.branch.prune(self)

    def sweep(self, rows: Sequence[int], columns: Columns, found: Found) -> None:
        if columns[self.attribute] is not columns.nulls:
            _sweep(self.collect, rows, columns, found)

    def collect(self, row: int, columns: Columns, hits: Hits) -> None:
        value = columns[self.attribute][row]
        if type(value) is str:
            for length, table in self.lengths.items():
                branch = table.get(value[:length])
                if branch is not None:
                    for step in branch.steps:
                        step.collect(row, columns, hits)

    def is_empty(self) -> bool:
        return not self.lengths

    def places(self) -> Iterator[Place]:
        for table in self.lengths.values():
            for branch in table.values():
                for step in branch.steps:
                    yield from step.places()


class Ranged:
    """Conditions by a range of an attribute: with a tally they are tested, without one they match."""

    __slots__ = ("attribute", "branch", "table", "tally")

    def __init__(self, branch: Branch, attribute: str, tally: Tally | None) -> None:
        self.branch = branch
        self.attribute = attribute
        self.tally = tally
        self.table: RangeTable[Place, Any] = RangeTable(IDS if tally is None else PLACES)

    def put(self, place: Place) -> None:
        self.table.add(place)

    def take(self, place: Place) -> None:
        self.table.remove(place)
        self.branch.prune(self)

    def touch(self, place: Place, present: bool) -> None:
        if self.tally is None:
            self.table.touch(place, present)

    def sweep(self, rows: Sequence[int], columns: Columns, found: Found) -> None:
        if columns[self.attribute] is not columns.nulls:
            _sweep(self.collect, rows, columns, found)

    def collect(self, row: int, columns: Columns, hits: Hits) -> None:
        value: Any = columns[self.attribute][row]
        kind = type(value)
        if kind is float or kind is int:
            if self.tally is None:
                self.table.find(value, hits)
            else:
                candidates: list[tuple[Place, ...]] = []
                self.table.find(value, candidates)
                for places in candidates:
                    _try(places, row, columns, hits, self.tally)

    def is_empty(self) -> bool:
        return not self.table.size

    def places(self) -> Iterator[Place]:
        yield from self.table.spans()


@dataclass(slots=True, eq=False)
class Filtered:
    """Conditions by the filter that the document's must contain."""

    branch: Branch
    attribute: str
    tally: Tally
    filters: FilterIndex[Place] = field(default_factory=FilterIndex)

    def put(self, place: Place, bits: int) -> None:
        self.filters.add(place, bits)

    def take(self, place: Place) -> None:
        self.filters.remove(place)
        self.branch.prune(self)

    def touch(self, place: Place, present: bool) -> None:
        """Ids are read when a filter was contained."""

    def sweep(self, rows: Sequence[int], columns: Columns, found: Found) -> None:
        _sweep(self.collect, rows, columns, found)

    def collect(self, row: int, columns: Columns, hits: Hits) -> None:
        document: Any = columns[self.attribute][row]
        for place in self.filters.match(document):
            if place.test is None:
                _hit(place, hits)
            else:
                _try((place,), row, columns, hits, self.tally)

    def is_empty(self) -> bool:
        return not self.filters

    def places(self) -> Iterator[Place]:
        yield from self.filters


@dataclass(slots=True, eq=False)
class Ready:
    """Conditions that match."""

    branch: Branch
    filed: ShrinkingDict[Place, None] = field(default_factory=ShrinkingDict)
    ids: tuple[int, ...] | None = None

    def put(self, place: Place) -> None:
        self.filed[place] = None
        self.ids = None

    def take(self, place: Place) -> None:
        self.filed.drop(place)
        self.ids = None
        self.branch.prune(self)

    def touch(self, place: Place, present: bool) -> None:
        self.ids = None

    def sweep(self, rows: Sequence[int], columns: Columns, found: Found) -> None:
        _sweep(self.collect, rows, columns, found)

    def collect(self, row: int, columns: Columns, hits: Hits) -> None:
        ids = self.ids
        if ids is None:
            ids = self.ids = merged_ids(list(self.filed))
        hits.append(ids)

    def is_empty(self) -> bool:
        return not self.filed

    def places(self) -> Iterator[Place]:
        yield from self.filed


@dataclass(slots=True, eq=False)
class Scanned:
    """Conditions to be tested, by the attributes that their tests read."""

    branch: Branch
    tally: Tally
    plans: dict[tuple[str, ...], dict[Place, Callable[..., bool]]] = field(default_factory=dict)

    def put(self, place: Place) -> None:
        assert place.test is not None
        self.plans.setdefault(place.names, {})[place] = place.test

    def take(self, place: Place) -> None:
        plan = self.plans[place.names]
        del plan[place]
        if not plan:
            del self.plans[place.names]
            self.branch.prune(self)

    def touch(self, place: Place, present: bool) -> None:
        """Ids are read when a test has passed."""

    def sweep(self, rows: Sequence[int], columns: Columns, found: Found) -> None:
        for names, plan in self.plans.items():
            chosen = [columns[name] for name in names]
            if not isinstance(rows, range):
                chosen = [[column[row] for row in rows] for column in chosen]
            self.tally.tested += len(plan) * len(rows)
            for place, test in plan.items():
                if len(chosen) == 1:
                    passed = [row for row, value in zip(rows, chosen[0], strict=True) if test(value)]
                elif chosen:
                    passed = [r for r, values in zip(rows, zip(*chosen, strict=True), strict=True) if test(*values)]
                else:
                    passed = list(rows) if test() else []
                self.tally.passed += len(passed)
                for row in passed:
                    _hit(place, found.setdefault(row, []))

    def collect(self, row: int, columns: Columns, hits: Hits) -> None:
        for plan in self.plans.values():
            _try(plan, row, columns, hits, self.tally)

    def is_empty(self) -> bool:
        return not self.plans

    def places(self) -> Iterator[Place]:
        for plan in self.plans.values():
            yield from plan


def _sweep(collect: Callable[[int, Columns, Hits], None], rows: Sequence[int], columns: Columns, found: Found) -> None:
    """Row by row, for a step that has nothing to gain from a whole column."""
    for row in rows:
        hits = found.get(row)
        if hits is None:
            hits = []
            collect(row, columns, hits)
            if hits:
                found[row] = hits
        else:
            collect(row, columns, hits)


def _try(places: Collection[Place], row: int, columns: Columns, hits: Hits, tally: Tally) -> None:
    """The tests of several places on one row."""
    names: tuple[str, ...] | None = None
    values: list[object] = []
    tally.tested += len(places)
    for place in places:
        if place.names is not names:
            names = place.names
            values = [columns[name][row] for name in names]
        if place.test(*values):  # type: ignore[misc]  # scanned places have a test
            tally.passed += 1
            _hit(place, hits)


def _hit(place: Place, hits: Hits) -> None:
    """A condition has passed its test; one that is filed under several sides of an OR may have passed already."""
    ids = place.condition.ids
    if not place.condition.overlapping or not any(ids is other for other in hits):
        hits.append(ids)
