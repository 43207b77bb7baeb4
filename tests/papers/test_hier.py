"""HIER, "Enabling Hierarchical Dissemination of Streams in Content Distribution Networks": its claims, one by one.

Each test is named after a sentence of the paper and cites its section.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from headgate.matching.errors import PatternError
from headgate.matching.topics import Pattern, TopicHash, TopicMasks, TopicRegex, TopicTable, TopicTree, parse_pattern
from headgate.matching.topics.hash import _Values
from headgate.matching.topics.regex import expression

TABLES: list[Callable[[], TopicTable[str]]] = [TopicTree, TopicRegex, TopicHash, TopicMasks]
EVERY_TABLE = pytest.mark.parametrize("make", TABLES)

# Figure 1 and the examples of section I: a tree of sensor subscriptions.
SENSORS = (
    "Streams/Sensor",
    "Streams/Sensor/Fluid",
    "Streams/Sensor/Fluid/Pressure",
    "Streams/Sensor/*/Pressure",
    "Streams/Sensor/Fluid/*",
    "Streams/*/Fluid",
)


def filled(table: TopicTable[str], *texts: str) -> TopicTable[str]:
    for text in texts:
        table.put(parse_pattern(text), text)
    return table


@EVERY_TABLE
def test_1a_the_coarser_subscription_is_equivalent_to_one_with_a_trailing_wildcard(
    make: Callable[[], TopicTable[str]],
) -> None:
    table = filled(make(), "Streams/Sensor")
    assert table.resolve("Streams/Sensor/Fluid") == table.resolve("Streams/Sensor") == ["Streams/Sensor"]
    assert table.resolve("Streams") == table.resolve("Streams/Sensors") == []


@EVERY_TABLE
def test_1a_explicit_wildcards_can_appear_anywhere_in_the_constraint(make: Callable[[], TopicTable[str]]) -> None:
    table = filled(make(), "Streams/Sensor/*/Pressure")
    assert table.resolve("Streams/Sensor/Fluid/Pressure") and table.resolve("Streams/Sensor/Air/Pressure/Hourly")
    assert not table.resolve("Streams/Sensor/Fluid/Heat") and not table.resolve("Streams/Sensor/Pressure")


@EVERY_TABLE
def test_1a_the_scope_of_a_wildcard_is_demarcated_by_the_slash(make: Callable[[], TopicTable[str]]) -> None:
    assert not filled(make(), "A/*/D").resolve("A/B/C/D")


def test_1a_a_subscription_with_a_wildcard_on_the_first_attribute_is_disallowed() -> None:
    with pytest.raises(PatternError, match="first level is the stream"):
        parse_pattern("*/Sensor")


@EVERY_TABLE
def test_1a_hierarchical_streaming_can_be_disabled_for_a_subscription(make: Callable[[], TopicTable[str]]) -> None:
    table = make()
    table.put(parse_pattern("Streams/*", exact=True), "only here")
    assert table.resolve("Streams/Sensor") == ["only here"] and table.resolve("Streams/Sensor/Fluid") == []


@EVERY_TABLE
def test_figure_1_the_cumulative_list_is_the_union_over_all_paths(make: Callable[[], TopicTable[str]]) -> None:
    table = filled(make(), *SENSORS)
    assert sorted(table.resolve("Streams/Sensor/Fluid/Pressure")) == sorted(set(SENSORS))
    assert sorted(table.resolve("Streams/Sensor/Air/Pressure")) == ["Streams/Sensor", "Streams/Sensor/*/Pressure"]
    assert table.resolve("Streams/Camera/Fluid") == ["Streams/*/Fluid"]


def test_3a1_nodes_and_edges_are_reused_when_possible() -> None:
    tree: TopicTree[str] = TopicTree()
    nodes = []
    for text in SENSORS:
        tree.put(parse_pattern(text), text)
        nodes.append(tree.nodes())
    assert nodes == [2, 3, 4, 6, 7, 9]


def test_3a1_reference_counts_towards_the_root_are_greater_than_or_equal_to_those_of_the_child_edges() -> None:
    tree: TopicTree[str] = TopicTree()
    filled(tree, *SENSORS)
    streams = tree._root.named["Streams"]
    sensor = streams.named["Sensor"]
    assert (streams.routes, sensor.routes, sensor.named["Fluid"].routes) == (6, 5, 3)
    for node in tree._walk():
        below = [*node.named.values(), *([node.wildcard] if node.wildcard else [])]
        own = (node.below is not None) + (node.exact is not None)
        assert node.routes == own + sum(child.routes for child in below)


def test_3a1_an_edge_is_removed_if_its_reference_count_reduces_to_zero_and_pruning_stops_there() -> None:
    tree: TopicTree[str] = TopicTree()
    filled(tree, *SENSORS)
    tree.remove(parse_pattern("Streams/Sensor/*/Pressure"))
    assert tree.nodes() == 7, "the wildcard edge and the one below it"
    tree.remove(parse_pattern("Streams/Sensor/Fluid"))
    assert tree.nodes() == 7, "others are reached through it"
    for text in ("Streams/Sensor", "Streams/Sensor/Fluid/Pressure", "Streams/Sensor/Fluid/*", "Streams/*/Fluid"):
        tree.remove(parse_pattern(text))
    assert tree.nodes() == 0


def test_3b_a_wildcard_becomes_any_characters_within_its_scope() -> None:
    assert expression(parse_pattern("A/*/C.D")) == r"A/[^/]*/C\.D(?:/.*)?"
    assert filled(TopicRegex(), "A/*/C.D").resolve("A/x.y/C.D/E") and not filled(TopicRegex(), "A/C.D").resolve("A/CxD")


class Recording(dict[str, "_Values[str]"]):
    """A subscriptions table that notes which keys are looked up."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def get(self, key: str, default: object = None) -> object:  # type: ignore[override]
        self.asked.append(key)
        return super().get(key, default)  # type: ignore[arg-type]


def test_3c2_the_subscriptions_constructed_when_wildcards_are_at_the_second_and_third_attribute() -> None:
    table: TopicHash[str] = TopicHash()
    filled(table, "A/*/C/D", "A/B/*/D", *(f"A/B/C/{i}" for i in range(20)))
    recording = Recording()
    recording.update(table._streams["A"].table)
    table._streams["A"].table = recording
    assert sorted(table.resolve("A/B/C/D")) == ["A/*/C/D", "A/B/*/D"]
    whole = ["A/B/C/D", "A/*/C/D", "A/B/*/D", "A/*/*/D"]
    partial = ["A", "A/B", "A/*", "A/B/C", "A/*/C", "A/B/*", "A/*/*"]
    assert sorted(recording.asked) == sorted(whole + partial), "no key with an empty level, none beyond the last"
    assert len(recording.asked) == table.lookups("A/B/C/D")


def test_3c1_the_wildcard_counts_snapshot_where_wildcards_are_and_are_reclaimed_with_the_last_subscription() -> None:
    table: TopicHash[str] = TopicHash()
    filled(table, "A/*/C", "A/*/*", "A/B", "Z")
    assert table._streams["A"].counts[:4] == [3, 2, 1, 0] and table._streams["Z"].counts[0] == 1
    table.remove(parse_pattern("A/*/*"))
    assert table._streams["A"].counts[:4] == [2, 1, 0, 0]
    for text in ("A/*/C", "A/B"):
        table.remove(parse_pattern(text))
    assert list(table._streams) == ["Z"] and table.lookups("A/B/C") == 0


@pytest.mark.parametrize(("levels", "lookups"), [(1, 1), (2, 3), (4, 15), (10, 1023)])
def test_3c3_in_the_worst_case_two_to_the_power_of_m_keys_would_be_made(levels: int, lookups: int) -> None:
    table: TopicHash[str] = TopicHash()
    table.put(Pattern(("A", *["*"] * 31)), "all")
    assert table.lookups("/".join(["A"] * levels)) == lookups


def test_3c3_but_not_by_us() -> None:
    table: TopicHash[str] = TopicHash()
    filled(table, *("/".join(["A"] * place + ["*"] + ["A"] * (31 - place)) for place in range(1, 32)))
    topic = "/".join(["A"] * 32)
    assert table.lookups(topic) == 2**32 - 1
    assert len(table.resolve(topic)) == 31


@EVERY_TABLE
def test_4b_the_algorithms_agree_on_the_papers_own_workload(make: Callable[[], TopicTable[str]]) -> None:
    rng = Random(7)
    table, kept = make(), dict[Pattern, str]()
    for _ in range(1500):
        levels = [str(rng.randrange(4)) for _ in range(7)]
        levels[rng.randrange(1, 7)] = "*"
        pattern = Pattern(tuple(levels[: rng.randint(2, 7)]))
        if pattern not in kept:
            kept[pattern] = str(pattern)
            table.put(pattern, str(pattern))
    for pattern in list(kept)[::3]:
        del kept[pattern]
        table.remove(pattern)
    for _ in range(20):
        topic = "/".join(str(rng.randrange(4)) for _ in range(7))
        assert sorted(table.resolve(topic)) == sorted(text for pattern, text in kept.items() if pattern.matches(topic))


def test_4b2_the_entries_of_the_hash_scheme_are_fewer_by_an_order_than_the_nodes_of_the_tree() -> None:
    rng = Random(3)
    tree: TopicTree[str] = TopicTree()
    hashed: TopicHash[str] = TopicHash()
    for _ in range(2000):
        levels = [str(rng.randrange(50)) for _ in range(10)]
        levels[rng.randrange(1, 10)] = "*"
        for table in (tree, hashed):
            table.put(Pattern(tuple(levels)), "x")
    entries = sum(len(stream.table) for stream in hashed._streams.values())
    assert entries == 2000 and tree.nodes() > 7.5 * entries
    assert tree.memory_bytes() > 5 * hashed.memory_bytes()


def test_ours_looks_a_topic_up_once_for_each_mask_in_use() -> None:
    table: TopicMasks[str] = TopicMasks()
    filled(table, *(f"A/*/C{i}" for i in range(50)), *(f"A/B{i}" for i in range(50)))
    assert len(table._streams["A"]) == 2
    assert table.resolve("A/B7/C9") == ["A/*/C9", "A/B7"]
