"""The conditions on one pattern: which of them does a row satisfy?

A condition is reached by an **anchor**: a conjunct `attribute = literal` or `attribute IN (literals)` on strings or
numbers, without which it cannot be true. The anchors of one attribute form a hash table from value to the conditions
to look at; what is left of a condition without its anchor (often a range) is its **rest**, a compiled test. Conditions
that have no anchor are tried on every row.

Subscriptions with the same condition share one `Condition`: it is evaluated once and stands for all their ids.

Matching goes by column, not by row: one pass over the column of each attribute that has a table, and only the rows it
finds cost more. This file knows neither topics nor subscriptions that have no condition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from matching.compiled import compile_condition
from matching.text import to_text
from matching.tree import Attribute, Compare, In, Literal, Or, Tree, attributes, conjunction, conjuncts, static_part
from matching.values import Value, hash_key, known

__all__ = ["Anchor", "Condition", "Found", "PredicateIndex", "anchors"]

Column: TypeAlias = Sequence[Value]

# Row -> the id tuples of the conditions it satisfies.
Found: TypeAlias = dict[int, list[tuple[int, ...]]]


_STRING: Final[frozenset[type]] = frozenset((str,))
_NUMBER: Final[frozenset[type]] = frozenset((int, float))


@dataclass(frozen=True, slots=True)
class Anchor:
    """A conjunct that a hash table can find: `attribute` has one of the `keys`."""

    attribute: str
    keys: tuple[Value, ...]
    conjunct: Tree


@dataclass(slots=True, eq=False)
class Condition:
    """One distinct condition with everybody who asked for it.

    `ids` is what `match` hands out: sorted, and the same object as long as nobody comes or goes. Who came and went
    since the last match is `pending`, so that 100,000 subscriptions to one condition do not copy the tuple each time.
    """

    text: str
    attributes: tuple[str, ...]
    anchor: Anchor | None
    rest: tuple[str, ...]
    test: Callable[..., bool]
    ids: tuple[int, ...] = ()
    size: int = 0
    pending: dict[int, bool] | None = None

    def note(self, identity: int, present: bool) -> None:
        """Somebody came or went."""
        self.size += 1 if present else -1
        if self.pending is None:
            self.pending = {}
        self.pending[identity] = present

    def settle(self) -> None:
        """Bring `ids` up to date."""
        if self.pending is not None:
            kept = [identity for identity in self.ids if identity not in self.pending]
            kept += [identity for identity, present in self.pending.items() if present]
            self.ids = tuple(sorted(kept))
            self.pending = None


# Conditions whose rests read the same attributes. The test stands beside its condition to save the hot loop a step.
Plan: TypeAlias = dict[Condition, Callable[..., bool]]


@dataclass(slots=True)
class _Bucket:
    """The conditions to look at for one key, by the attributes that their rests read.

    `kinds` are the types of the values that equal the key: Python would take True for 1, and a stranger's number too.
    """

    kinds: frozenset[type]
    plans: dict[tuple[str, ...], Plan] = field(default_factory=dict)

    def add(self, condition: Condition) -> None:
        self.plans.setdefault(condition.rest, {})[condition] = condition.test

    def remove(self, condition: Condition) -> None:
        plan = self.plans[condition.rest]
        del plan[condition]
        if not plan:
            del self.plans[condition.rest]


def anchors(tree: Tree) -> list[Anchor]:
    """The conjuncts by which a hash table could find the condition."""
    found = []
    for conjunct in conjuncts(tree):
        keys = _keys(conjunct)
        if keys is not None:
            found.append(Anchor(keys[0], keys[1], conjunct))
    return found


def _keys(tree: Tree) -> tuple[str, tuple[Value, ...]] | None:
    """The attribute and the values of which it must have one, or None."""
    match tree:
        case Compare("=", Attribute(name), Literal() as literal) | Compare("=", Literal() as literal, Attribute(name)):
            literals: Sequence[Literal] = (literal,)
        case In(Attribute(name), items):
            literals = items
        case Or(operands):
            parts = [_keys(operand) for operand in operands]
            names = {None if part is None else part[0] for part in parts}
            if len(names) != 1 or None in names:
                return None
            keys = [key for part in parts if part is not None for key in part[1]]
            return parts[0][0], tuple(dict.fromkeys(keys))  # type: ignore[index]
        case _:
            return None
    if any(isinstance(item.value, bool) or hash_key(item.value) is None for item in literals):
        return None
    return name, tuple(dict.fromkeys(item.value for item in literals))


class PredicateIndex:
    """The distinct conditions of one pattern. Ids are opaque integers."""

    def __init__(self) -> None:
        self._conditions: dict[str, Condition] = {}
        self._tables: dict[str, dict[Value, _Bucket]] = {}
        self._scanned = _Bucket(frozenset())
        self._unsettled: dict[Condition, None] = {}

    def __len__(self) -> int:
        return len(self._conditions)

    @property
    def scanned(self) -> int:
        """How many conditions are tried on every row."""
        return sum(len(plan) for plan in self._scanned.plans.values())

    def add(self, identity: int, tree: Tree) -> Condition:
        """Add one subscriber's condition."""
        text = to_text(tree)
        condition = self._conditions.get(text)
        if condition is None:
            condition = self._conditions[text] = self._place(text, tree)
        condition.note(identity, True)
        self._unsettled[condition] = None
        return condition

    def remove(self, identity: int, condition: Condition) -> None:
        """Take one subscriber out of a condition, and the condition with its last subscriber."""
        condition.note(identity, False)
        self._unsettled[condition] = None
        if condition.size:
            return
        del self._unsettled[condition]
        del self._conditions[condition.text]
        if condition.anchor is None:
            self._scanned.remove(condition)
            return
        table = self._tables[condition.anchor.attribute]
        for key in condition.anchor.keys:
            table[key].remove(condition)
            if not table[key].plans:
                del table[key]
        if not table:
            del self._tables[condition.anchor.attribute]

    def _place(self, text: str, tree: Tree) -> Condition:
        """Choose how a new condition is found, compile the rest, and file it."""
        anchor = self._choose(anchors(tree))
        rest = static_part(tree)
        if anchor is not None:
            rest = conjunction([part for part in conjuncts(rest) if part is not anchor.conjunct])
        compiled = compile_condition(rest)
        condition = Condition(text, attributes(tree), anchor, compiled.attributes, compiled.test)
        if anchor is None:
            self._scanned.add(condition)
            return condition
        table = self._tables.setdefault(anchor.attribute, {})
        for key in anchor.keys:
            bucket = table.get(key)
            if bucket is None:
                bucket = table[key] = _Bucket(_STRING if isinstance(key, str) else _NUMBER)
            bucket.add(condition)
        return condition

    def _choose(self, candidates: list[Anchor]) -> Anchor | None:
        """The anchor expected to let the fewest rows through: few keys of an attribute that has many."""
        if not candidates:
            return None
        return min(
            candidates, key=lambda anchor: len(anchor.keys) / max(1, len(self._tables.get(anchor.attribute, ())))
        )

    def match(self, rows: Sequence[int], columns: Mapping[str, Column], found: Found) -> None:
        """Add to `found`, for each of the rows, the ids of the conditions it satisfies."""
        if self._unsettled:
            self._settle()
        for attribute, table in self._tables.items():
            column = columns[attribute]
            values = column if isinstance(rows, range) else [column[row] for row in rows]
            try:
                buckets = list(map(table.get, values))
            except TypeError:  # something unhashable, which is no attribute value
                buckets = list(map(table.get, map(known, values)))
            for row, bucket in zip(rows, buckets, strict=True):
                if bucket is not None and type(column[row]) in bucket.kinds:
                    _try(bucket, row, columns, found)
        for names, plan in self._scanned.plans.items():
            _scan(names, plan, rows, columns, found)

    def _settle(self) -> None:
        for condition in self._unsettled:
            condition.settle()
        self._unsettled.clear()

    def validate(self) -> None:
        """Every condition is filed exactly where its anchor says, and nowhere else."""
        self._settle()
        filed: dict[str, int] = {}
        buckets = [self._scanned, *(bucket for table in self._tables.values() for bucket in table.values())]
        for bucket in buckets:
            assert bucket is self._scanned or bucket.plans, "empty bucket"
            for names, plan in bucket.plans.items():
                assert plan, "empty plan"
                for condition in plan:
                    assert condition.rest == names, "condition in the wrong plan"
                    assert self._conditions[condition.text] is condition, "condition that is not known"
                    filed[condition.text] = filed.get(condition.text, 0) + 1
        for text, condition in self._conditions.items():
            assert condition.size == len(condition.ids) > 0, "subscribers are miscounted"
            assert list(condition.ids) == sorted(set(condition.ids)), "ids not sorted"
            assert filed[text] == (1 if condition.anchor is None else len(condition.anchor.keys)), "filed wrongly"


def _try(bucket: _Bucket, row: int, columns: Mapping[str, Column], found: Found) -> None:
    """The conditions of one bucket on one row."""
    for names, plan in bucket.plans.items():
        if len(names) == 1:
            value = columns[names[0]][row]
            hits = [condition.ids for condition, test in plan.items() if test(value)]
        else:
            values = [columns[name][row] for name in names]
            hits = [condition.ids for condition, test in plan.items() if test(*values)]
        if hits:
            if row in found:
                found[row] += hits
            else:
                found[row] = hits


def _scan(names: tuple[str, ...], plan: Plan, rows: Sequence[int], columns: Mapping[str, Column], found: Found) -> None:
    """Conditions that read the same attributes and have no anchor, on all the rows."""
    chosen = [columns[name] for name in names]
    if not isinstance(rows, range):
        chosen = [[column[row] for row in rows] for column in chosen]
    for condition, test in plan.items():
        if len(chosen) == 1:
            hits = [row for row, value in zip(rows, chosen[0], strict=True) if test(value)]
        elif chosen:
            hits = [row for row, values in zip(rows, zip(*chosen, strict=True), strict=True) if test(*values)]
        else:
            hits = list(rows) if test() else []
        for row in hits:
            found.setdefault(row, []).append(condition.ids)
