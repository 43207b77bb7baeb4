"""The conditions on one pattern: which of them does a row satisfy?

A condition is filed in a tree of steps (`steps.py`) by its most selective anchors (`anchors.py`), one within the other:
first a key or a prefix, within it a range, and what no structure can look up is tested by compiled code. Subscriptions
with the same condition share one `Condition`: it is evaluated once and stands for all their ids.

Which anchor is the most selective is guessed when a condition is filed (`traffic.py`). Now and then a row is looked at
again, and a few of the conditions that it led to are filed anew if the traffic turned out otherwise.

This file knows neither topics nor subscriptions that have no condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TypeGuard

from headgate.matching.index.anchors import Anchor, Bits, Key, Keys, Ranges, Term, anchors, key_of, parts_of
from headgate.matching.index.columns import Columns
from headgate.matching.index.conditions import Condition, Place
from headgate.matching.index.steps import Branch, Filtered, Found, Keyed, Listed, Prefixed, Ranged, Scanned, Step, Tally
from headgate.matching.index.traffic import Traffic
from headgate.matching.language import compile_condition, parse_condition, to_text
from headgate.matching.limits import (
    AMENDED_ITEMS_MAX,
    ANCHOR_DEPTH_MAX,
    ATTRIBUTE_SETS_MAX,
    CANONICAL_BYTES_MAX,
    LISTED_VALUES_MIN,
    PLACES_MAX,
    REFILED_CONDITIONS_MAX,
)
from headgate.matching.shrinking import ShrinkingDict
from headgate.matching.structure import Asked
from headgate.matching.tree import Tree, XPath, attributes, conjunction, event_part, static_part

__all__ = ["PredicateIndex"]


@dataclass(slots=True)
class _Filing:
    """A condition on its way into the index. The tests of its remaining parts are compiled once each."""

    condition: Condition
    places: list[Place]
    tests: dict[tuple[int, ...], tuple[tuple[str, ...], Callable[..., bool]]]


class PredicateIndex:
    """The distinct conditions of one pattern. Ids are opaque integers."""

    __slots__ = ("_conditions", "_root", "_traffic", "_unsettled", "tally")

    def __init__(self) -> None:
        self._conditions: ShrinkingDict[str, Condition] = ShrinkingDict()
        self._root = Branch()
        self._unsettled: dict[Condition, None] = {}
        self._traffic = Traffic()
        self.tally = Tally()

    def __len__(self) -> int:
        return len(self._conditions)

    @property
    def scanned(self) -> int:
        """How many conditions are tested on every row."""
        scans = [step for step in self._root.steps if isinstance(step, Scanned)]
        return sum(len(plan) for scan in scans for plan in scan.plans.values())

    @property
    def rows(self) -> int:
        """How many rows conditions were asked for."""
        return self._traffic.seen

    def add(self, identity: int, tree: Tree) -> Condition:
        """Add one subscriber's condition."""
        text = to_text(tree)
        condition = self._conditions.get(text)
        if condition is None:
            condition = self._conditions[text] = Condition(text, _one_of_equal(attributes(tree)))
            condition.note(identity, True)
            self._file(condition, tree)
            return condition
        condition.note(identity, True)
        self._settle(condition)
        return condition

    def remove(self, identity: int, condition: Condition) -> None:
        """Take one subscriber out of a condition, and the condition with its last subscriber."""
        condition.note(identity, False)
        if condition.size:
            self._settle(condition)
        else:
            self._unsettled.pop(condition, None)
            self._conditions.drop(condition.text)
            self._unfile(condition)

    def _settle(self, condition: Condition) -> None:
        """Bring the ids of a condition up to date: at once if they are few, or else when somebody asks for them."""
        if len(condition.ids) <= AMENDED_ITEMS_MAX:
            condition.settle()
        else:
            self._unsettled[condition] = None

    def match(self, rows: Sequence[int], columns: Columns, found: Found) -> None:
        """Add to `found`, for each of the rows, the ids of the conditions it satisfies."""
        if self._unsettled:
            for condition in self._unsettled:
                condition.settle()
            self._unsettled.clear()
        for step in self._root.steps:
            step.sweep(rows, columns, found)
        if self._traffic.due(len(rows)):
            self._traffic.note(rows, columns)
            self._reconsider(rows, columns)

    # Filing ---------------------------------------------------------------------------------------------------------

    def _file(self, condition: Condition, tree: Tree) -> None:
        filing = _Filing(condition, [], {})
        parts = parts_of(event_part(tree))
        candidates = anchors(parts)
        if not any(_is_impossible(anchor) for anchor in candidates):
            self._descend(filing, self._root, parts, candidates, PLACES_MAX)
        condition.file(filing.places)
        self.tally.places += len(filing.places)

    def _unfile(self, condition: Condition) -> None:
        for place in condition.places:
            assert place.step is not None
            place.step.take(place)
            self.tally.places -= 1
        condition.file(())
        condition.overlapping = False

    def _descend(
        self,
        filing: _Filing,
        branch: Branch,
        parts: list[Tree],
        candidates: list[Anchor],
        places_max: int,
        depth: int = 0,
    ) -> None:
        """File a condition under a branch, when these parts and anchors of it are left."""
        anchor = self._choose(branch, candidates, places_max) if depth < ANCHOR_DEPTH_MAX else None
        if anchor is None:
            self._settle_down(filing, branch, parts)
            return
        filing.condition.overlapping |= anchor.overlapping
        proven = [id(part) for part in anchor.proven]
        rest = [part for part in parts if id(part) not in proven]
        places_max //= _breadth(anchor)
        # Under an OR of several attributes the whole is tested, so there is nothing to be gained from going deeper.
        below = ANCHOR_DEPTH_MAX if anchor.overlapping else depth + 1
        left = [candidate for candidate in candidates if candidate is not anchor]
        for term in anchor.terms:
            if isinstance(term, Ranges):
                self._file_ranges(filing, branch, term, rest)
            elif isinstance(term, Bits):
                self._file_bits(filing, branch, term, rest)
            elif _is_long(term):
                self._file_list(filing, branch, term, rest)
            elif isinstance(term, Keys):
                keyed = branch.keyed(term.attribute)
                for key in term.keys:
                    self._descend(filing, keyed.below(key), rest, left, places_max, below)
            else:
                prefixed = branch.prefixed(term.attribute)
                for prefix in term.prefixes:
                    self._descend(filing, prefixed.below(prefix), rest, left, places_max, below)

    def _settle_down(self, filing: _Filing, branch: Branch, parts: list[Tree]) -> None:
        """The end of the way: what is left is tested."""
        if parts:
            scanned = branch.scanned(self.tally)
            place = Place(filing.condition, *_test(filing, parts))
            place.step = scanned
            scanned.put(place)
        else:
            ready = branch.ready()
            place = Place(filing.condition)
            place.step = ready
            ready.put(place)
        filing.places.append(place)

    def _file_ranges(self, filing: _Filing, branch: Branch, term: Ranges, rest: list[Tree]) -> None:
        if not term.ranges:
            return  # one side of an OR that cannot be
        ranged = branch.ranged(term.attribute, self.tally if rest else None)
        names, test = _test(filing, rest) if rest else ((), None)
        for low, high in term.ranges:
            place = Place(filing.condition, names, test, low, high)
            place.step = ranged
            ranged.put(place)
            filing.places.append(place)

    def _file_list(self, filing: _Filing, branch: Branch, term: Keys, rest: list[Tree]) -> None:
        listed = branch.listed(term.attribute, self.tally)
        place = Place(filing.condition, *_test(filing, rest)) if rest else Place(filing.condition)
        place.step = listed
        listed.put(place, term.keys)
        filing.places.append(place)

    def _file_bits(self, filing: _Filing, branch: Branch, term: Bits, rest: list[Tree]) -> None:
        filtered = branch.filtered(term.attribute, self.tally)
        place = Place(filing.condition, *_test(filing, rest)) if rest else Place(filing.condition)
        place.step = filtered
        filtered.put(place, term.bits)
        filing.places.append(place)

    def _choose(self, branch: Branch, candidates: list[Anchor], places_max: int) -> Anchor | None:
        """The anchor that lets the fewest rows through; one below which others can be used comes before a range."""
        candidates = [anchor for anchor in candidates if _breadth(anchor) <= places_max]
        if len(candidates) > 1:
            ranks = [_rank(anchor) for anchor in candidates]
            least = min(ranks)
            candidates = [anchor for anchor, rank in zip(candidates, ranks, strict=True) if rank == least]
        if len(candidates) < 2:
            return candidates[0] if candidates else None
        return min(candidates, key=lambda anchor: self._share(branch, anchor))

    def _share(self, branch: Branch, anchor: Anchor) -> float:
        attribute = anchor.terms[0].attribute
        in_use = [len(s.table) for s in branch.steps if isinstance(s, Keyed) and s.attribute == attribute]
        return self._traffic.share(anchor, in_use[0] if in_use else 0)

    # Corrections ----------------------------------------------------------------------------------------------------

    def _reconsider(self, rows: Sequence[int], columns: Columns) -> None:
        """File a few of the conditions anew that a row led to, if the traffic speaks for another anchor."""
        row = rows[-1]
        for step in list(self._root.steps):
            if isinstance(step, Keyed) and len(self._root.steps) > 1:
                branch = step.table.get(key_of(columns[step.attribute][row]))
                if branch is not None and self._improve(step, branch):
                    self._traffic.hurry()

    def _improve(self, step: Keyed, branch: Branch) -> bool:
        places = (place for below in branch.steps for place in below.places())
        conditions = dict.fromkeys(place.condition for place in islice(places, REFILED_CONDITIONS_MAX))
        improved = False
        for condition in conditions:
            tree = parse_condition(condition.text, CANONICAL_BYTES_MAX)
            candidates = anchors(parts_of(event_part(tree)))
            best = self._choose(self._root, candidates, PLACES_MAX)
            if best is not None and self._is_better(best, step.attribute, candidates):
                self._unfile(condition)
                self._file(condition, tree)
                improved = True
        return improved

    def _is_better(self, best: Anchor, attribute: str, candidates: list[Anchor]) -> bool:
        """Whether an anchor lets through less than half of what the one in use does; for less it is not worth it."""
        used = [a for a in candidates if not a.overlapping and a.terms[0].attribute == attribute]
        shares = [self._share(self._root, anchor) for anchor in used if isinstance(anchor.terms[0], Keys)]
        return bool(shares) and self._share(self._root, best) < min(shares) / 2

    # Questions ------------------------------------------------------------------------------------------------------

    def routes(self, condition: Condition) -> Iterator[str]:
        """In words, each way by which a row reaches a condition."""
        for place in condition.places:
            yield " -> ".join(_route(place))

    def validate(self) -> None:
        """Every condition is filed exactly where it says, and nowhere else."""
        for condition in self._unsettled:
            condition.settle()
        self._unsettled.clear()
        filed: dict[Place, None] = {}
        _validate_branch(self._root, filed)
        known: dict[Place, None] = {}
        for text, condition in self._conditions.items():
            assert condition.text == text and condition.size == len(condition.ids) > 0, "subscribers are miscounted"
            assert list(condition.ids) == sorted(set(condition.ids)), "ids not sorted"
            known.update(dict.fromkeys(condition.places))
        assert filed.keys() == known.keys(), "filed elsewhere than the conditions say"
        assert self.tally.places == len(filed), "places are miscounted"


@lru_cache(ATTRIBUTE_SETS_MAX)
def _one_of_equal(names: tuple[str, ...]) -> tuple[str, ...]:
    """One object for equal names: a million conditions ask for few combinations of attributes."""
    return names


def _test(filing: _Filing, parts: list[Tree]) -> tuple[tuple[str, ...], Callable[..., bool]]:
    """The compiled test of the parts that are left: the attributes it reads, and the code."""
    key = tuple(map(id, parts))
    found = filing.tests.get(key)
    if found is None:
        compiled = compile_condition(static_part(conjunction(parts)))
        found = compiled.attributes, compiled.test
        twigs = [part.twig for part in parts if isinstance(part, XPath)]
        if twigs:
            found = _with_filters(*found, Asked.of(*twigs))
        filing.tests[key] = found
    return found


def _with_filters(
    names: tuple[str, ...], test: Callable[..., bool], asked: Asked
) -> tuple[tuple[str, ...], Callable[..., bool]]:
    """A test that also compares filters, as `Columns` has them."""
    items, values = asked.items, asked.values
    if not values:
        return (*names, asked.shape.column), lambda *row: not items & ~row[-1] and test(*row[:-1])
    columns = (asked.shape.column, asked.shape.values_column)
    return (*names, *columns), lambda *row: not items & ~row[-2] and not values & ~row[-1] and test(*row[:-2])


def _is_impossible(anchor: Anchor) -> bool:
    """Ranges that exclude each other."""
    return not _breadth(anchor)


def _breadth(anchor: Anchor) -> int:
    """In how many places an anchor files a condition."""
    terms = anchor.terms
    return _term_breadth(terms[0]) if len(terms) == 1 else sum(map(_term_breadth, terms))


def _term_breadth(term: Term) -> int:
    if isinstance(term, Keys):
        return 1 if _is_long(term) else len(term.keys)
    if isinstance(term, Bits):
        return 1
    return len(term.ranges) if isinstance(term, Ranges) else len(term.prefixes)


def _is_long(term: Term) -> TypeGuard[Keys]:
    """Whether a term is a list of so many values that it has a step of its own."""
    return isinstance(term, Keys) and len(term.keys) >= LISTED_VALUES_MIN


def _rank(anchor: Anchor) -> int:
    """0 when others can be used below it, 1 when it is a leaf of its own, 2 when all will be tested anyway."""
    if anchor.overlapping:
        return 2
    return int(any(isinstance(term, Ranges | Bits) or _is_long(term) for term in anchor.terms))


def _route(place: Place) -> list[str]:
    """The steps from the root to a place."""
    step = place.step
    assert step is not None
    words: list[str] = []
    if isinstance(step, Ranged):
        words.append(f"{step.attribute} from {place.low!r} until before {place.high!r}")
    if isinstance(step, Listed):
        words.append(f"{step.attribute} is one of {len(step.lists[place])}")
    if isinstance(step, Filtered):
        words.append(f"{step.attribute} has {step.filters.filter_of(place).bit_count()} bits")
    branch: Branch = step.branch
    while branch.above is not None:
        words.append(_key_words(branch.above, branch.key))
        branch = branch.above.branch
    words.reverse()
    if not words:
        words.append("every row")
    return [*words, f"test of {', '.join(place.names) or 'a constant'}" if place.test else "match"]


def _key_words(above: Keyed | Prefixed, key: Key) -> str:
    if isinstance(above, Prefixed):
        return f"{above.attribute} begins with {key!r}"
    return f"{above.attribute} is {'NULL' if key is None else repr(key[0]) if isinstance(key, tuple) else repr(key)}"


def _validate_branch(branch: Branch, filed: dict[Place, None]) -> None:
    """Assert that a branch and all below it hang together; add the places to `filed`."""
    for step in branch.steps:
        assert not step.is_empty(), "empty step"
        if isinstance(step, Keyed | Prefixed):
            tables = [step.table] if isinstance(step, Keyed) else list(step.lengths.values())
            for table in tables:
                for key, below in table.items():
                    assert below.above is step and below.key == key and below.steps, "branch in the wrong place"
                    _validate_branch(below, filed)
            continue
        if isinstance(step, Ranged):
            step.table.validate()
        if isinstance(step, Filtered):
            step.filters.validate()
        if isinstance(step, Listed):
            pairs = {(key, place) for place, keys in step.lists.items() for key in keys}
            assert pairs == {(key, place) for key, places in step.table.items() for place in places}, "a list is torn"
        _validate_leaf(step, filed)


def _validate_leaf(step: Step, filed: dict[Place, None]) -> None:
    for place in step.places():
        assert place not in filed and place.step is step, "place filed twice"
        filed[place] = None
