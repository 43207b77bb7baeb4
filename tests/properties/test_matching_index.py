"""The index answers as its dumb twin does, through any history of additions and removals."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headgate.matching.dumb import DumbIndex
from headgate.matching.index import Index, Matches, predicates, range_blocks, ranges, traffic
from headgate.matching.language import parse_condition
from headgate.matching.structure import DEFAULT_SHAPE, filter_of, pack, parse_twig
from headgate.matching.topics import Pattern
from headgate.matching.tree import Tree
from tests.matching.samples import NAMES, random_tree, random_value

ROOM = pytest.MonkeyPatch()
LEVELS = st.sampled_from(["x", "y", "z"])
TOPICS = st.lists(LEVELS, min_size=1, max_size=3).map("/".join)
PATTERNS = st.builds(
    lambda first, rest, exact: Pattern((first, *rest), exact),
    LEVELS,
    st.lists(st.one_of(LEVELS, st.just("*")), max_size=2),
    st.booleans(),
)
TEMPLATES = (
    "a = {0}",
    "a = {0} AND b BETWEEN {1} AND 9007199254740993",
    "a IN ({0}, {1}) AND b > {1}",
    "a IN ('a', 'ab') AND b = {0}",
    "a = {0} OR a = {1}",
    "b >= {0}",
    "b >= {0} AND a LIKE 'a%'",
    "b = TRUE AND a = {0}",
    "a = 9007199254740993",
    "a = {0} AND XPATH '/x' AND DELTA(b) > 1",
    "1 = 1",
    "1 = 2",
    "a = {0} AND b > {1} AND b <= {2}",
    "b BETWEEN {0} AND {1}",
    "b > {0} AND b < {1} AND a LIKE 'a%'",
    "a = 'a' AND b < {0}",
    "a = 'a' AND b < {0} AND b <> 1",
    "a = {0} OR b = {1}",
    "a = {0} OR b > {1} OR a LIKE 'ab%'",
    "(a = {0} OR b = {1}) AND (b <> {2} OR a = {1})",
    "NOT (a = {0} AND b > {1})",
    "NOT (a < {0} OR b IN ({1}, {2}))",
    "a IS NULL AND b = {0}",
    "a IS NOT NULL",
    "a LIKE 'ab%'",
    "a LIKE 'a%' AND b = {0}",
    "a LIKE 'a_c' OR b IS NULL",
    "a AND b >= {0}",
    "NOT a OR b = {0}",
    "a IN (0, 1, 2) AND b IN (0, 1, {0})",
    "a IN ('a', 'ab', 'b')",
    "a IN (0, 1, 2, 3) AND b > {0}",
    "a IN ('a', 'b', 'c') OR b IN (1.0, 2.5, -0.0)",
    "a IN (0, 1, 9007199254740993) AND b NOT IN (1, 2, 3)",
    "b = {0} AND a IN ('', 'a', 'abc') AND b < {1}",
    "b > -1e300 AND b <> {0}",
    "b NOT BETWEEN {0} AND {1}",
    "XPATH 'x/y'",
    "XPATH '/x[@id]' AND XPATH 'y=''1'''",
    "XPATH '/x' AND a = {0} AND b > {1}",
    "XPATH '/z/y[x]' AND (a = {0} OR b > {1})",
    "XPATH 'y' AND b BETWEEN {0} AND {1} AND a <> 'x'",
    "a IN ({0}, 'q') AND XPATH 'x=''2''' AND XPATH 'y/z'",
)


ITEMS = sorted({item for twig in ("/x[@id]/y/z", "/z/y/x") for item in parse_twig(twig).items()})
VALUES = ["v/y/1", "v/x/2"]


def random_filter(rng: Random, items: list[str]) -> object:
    """The filter of a document that has most of these items; or what says nothing of it."""
    if rng.random() < 0.2:
        return rng.choice((None, b"123", "text", 7))
    return pack(filter_of([item for item in items if rng.random() < 0.7], 1024, 1), 1024)


def pairs(matches: Matches) -> list[tuple[int, int]]:
    """All (subscription, row) of an answer, with repetitions."""
    return sorted((subscription, row) for ids, rows in matches for subscription in ids for row in rows)


class IndexAgainstTwin(RuleBasedStateMachine):
    """Two indexes of the same history."""

    def __init__(self) -> None:
        super().__init__()
        # Small enough that everything that splits, widens, overflows and is filed anew does so.
        ROOM.setattr(ranges, "BLOCK_SPANS_MAX", 3)
        ROOM.setattr(ranges, "COVERED_BLOCKS_MAX", 1)
        ROOM.setattr(traffic, "SAMPLED_ROWS_INTERVAL", 3)
        ROOM.setattr(predicates, "LISTED_VALUES_MIN", 3)
        self.index = Index(remembered_topics_max=4)
        self.twin = DumbIndex()
        self.next_subscription = 0
        self.present: list[int] = []

    @initialize(items=st.sampled_from([0, 2, 64]), blocks=st.sampled_from([1, 3]))
    def choose_what_is_amended(self, items: int, blocks: int) -> None:
        for module in (predicates, range_blocks, ranges):
            ROOM.setattr(module, "AMENDED_ITEMS_MAX", items)
        ROOM.setattr(ranges, "AMENDED_BLOCKS_MAX", blocks)

    def add(self, pattern: Pattern, condition: Tree | None) -> None:
        # Numbers are neither dense nor ascending.
        subscription = self.next_subscription * 7 % 1009
        self.next_subscription += 1
        for index in (self.index, self.twin):
            index.add(subscription, pattern, condition)
        self.present.append(subscription)

    @rule(pattern=PATTERNS)
    def add_plain(self, pattern: Pattern) -> None:
        self.add(pattern, None)

    @rule(pattern=PATTERNS, template=st.sampled_from(TEMPLATES), numbers=st.tuples(*[st.integers(0, 3)] * 3))
    def add_typical(self, pattern: Pattern, template: str, numbers: tuple[int, int, int]) -> None:
        self.add(pattern, parse_condition(template.format(*numbers)))

    @rule(pattern=PATTERNS, rng=st.randoms(use_true_random=False))
    def add_random(self, pattern: Pattern, rng: Random) -> None:
        self.add(pattern, random_tree(rng, 2))

    @precondition(lambda self: self.present)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        subscription = self.present.pop(data.draw(st.integers(0, len(self.present) - 1)))
        for index in (self.index, self.twin):
            index.remove(subscription)

    @rule(
        topics=st.lists(TOPICS, min_size=1, max_size=6),
        count=st.integers(0, 6),
        rng=st.randoms(use_true_random=False),
        strangers=st.booleans(),
    )
    def match(self, topics: list[str], count: int, rng: Random, strangers: bool) -> None:
        if len(topics) > 1:
            count = len(topics)
        columns: dict[str, list[object]] = {
            name: [rng.choice((0, 1, 2, 3, 1.0, True, "a", random_value(rng))) for _ in range(count)]
            for name in NAMES
            if rng.random() < 0.8
        }
        for name, items in ((DEFAULT_SHAPE.column, ITEMS), (DEFAULT_SHAPE.values_column, VALUES)):
            if rng.random() < 0.8:
                columns[name] = [random_filter(rng, items) for _ in range(count)]
        if strangers and count and "a" in columns:
            columns["a"][0] = rng.choice(([1], {}, b"a", 2**63))
        found = self.index.match(topics, count, columns)  # type: ignore[arg-type]
        assert pairs(found) == pairs(self.twin.match(topics, count, columns))  # type: ignore[arg-type]
        assert len({ids for ids, _ in found}) == len(found), "equal ids in two groups"
        for ids, rows in found:
            assert ids and len(rows) and list(ids) == sorted(ids) and list(rows) == sorted(rows)

    @invariant()
    def holds_together(self) -> None:
        self.index.validate()
        assert self.index.attributes() == self.twin.attributes()
        assert len(self.index) == len(self.twin) == len(self.present)

    def teardown(self) -> None:
        ROOM.undo()


TestIndexAgainstTwin = IndexAgainstTwin.TestCase
TestIndexAgainstTwin.settings = settings(max_examples=60, stateful_step_count=25)
