"""Dimensions: names that travel, and the key and the place of every row of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.keyspace import (
    FLOOD,
    KBSP,
    Dimension,
    DimensionPlaces,
    KeyMemory,
    RowKeys,
    Step,
    count_dimension,
    cube_dimension,
    declared_domain,
    distance,
    equal_dimension,
    equality_key,
    key_of,
    parse_dimension,
    parse_step,
    prefix_key,
    range_dimension,
    topic_dimension,
)
from headgate.broker.core.keyspace.dimensions import REMEMBERED_BYTES
from headgate.matching import Value
from headgate.matching.structure import pack
from headgate.protocol.errors import ProtocolViolation

PRICE = declared_domain("quotes", "price", 0, 20, 0.01)
assert PRICE is not None
DIMENSIONS = (
    *(
        topic_dimension(1),
        topic_dimension(2),
        topic_dimension(3),
        equal_dimension("price"),
        equal_dimension("x"),
        range_dimension(PRICE),
    ),
    *(count_dimension("x"), count_dimension("price"), count_dimension("price", PRICE)),
)

values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.sampled_from([0.0, -0.0, 1.0, 8.3, 8.302, nan, inf, -inf, 2.0**53, 2**53, 2**53 + 1, 2**63, -(2**63) - 1, 21]),
    st.sampled_from(["", "1", "OTE", "😀", "\ud800"]),
)
topics = st.sampled_from(
    ["quotes", "quotes/NYSE", "quotes/NYSE/OTE", "quotes/NYSE/OTE/x", "quotes/N", "quotes/NYSE/IBM"]
)


# --- Names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dimension", "wire"),
    [
        (topic_dimension(2), ["topic", 2]),
        (equal_dimension("symbol"), ["equal", "symbol"]),
        (range_dimension(PRICE), ["range", "price", 0.0, 20.0, 0.01]),
        (count_dimension("symbol"), ["count", "symbol"]),
        (count_dimension("price", PRICE), ["count", "price", 0.0, 20.0, 0.01]),
        (cube_dimension("#structure/64/1", 4, KBSP, "fold"), ["cube", "#structure/64/1", 4, "kbsp", "fold"]),
        (cube_dimension("#structure/8/2", 4, FLOOD, "0a0b2d"), ["cube", "#structure/8/2", 4, "flood", "0a0b2d"]),
    ],
)
def test_a_dimension_travels_as_a_list(dimension: Dimension, wire: list[Any]) -> None:
    assert dimension.wire() == wire
    assert parse_dimension(wire) == dimension
    assert hash(parse_dimension(wire)) == hash(dimension)


def test_numbers_of_a_name_are_doubles_whatever_the_schema_wrote() -> None:
    assert parse_dimension(["range", "price", 0, 20, 0.01]) == range_dimension(PRICE)
    assert [type(one) for one in parse_dimension(["range", "price", 0, 20, 1])[3:6]] == [float] * 3


@pytest.mark.parametrize(
    "wire",
    [
        None, 7, "topic", {}, [], ["topic"], ["topic", 0], ["topic", 33], ["topic", True], ["topic", 1, 2],
        [b"topic", 1], ["topic", "1"], ["dimension", 1], ["equal"], ["equal", ""], ["equal", 5], ["equal", "x" * 257],
        ["equal", "x", 1], ["equal", "€" * 100], ["range", "x"], ["range", "x", 0, 1], ["range", "", 0, 1, 0.1],
        ["range", "x", 0, 1, 0.1, 1], ["range", "x", 1, 1, 0.1], ["range", "x", 2, 1, 0.1],
        ["range", "x", 0, 1, 0], ["range", "x", 0, 1, -1],
        ["range", "x", 0, inf, 1], ["range", "x", nan, 1, 1], ["range", "x", 0, 1, nan], ["range", "x", 0, 1, 1e-20],
        ["range", "x", 0, "1", 1], ["range", "x", 0, True, 1], ["range", "x", -1e308, 1e308, 1], ["dynamic", "x"],
        ["structure", 12], [["topic"], 1], ["count"], ["count", ""], ["count", 5], ["count", "x", 0],
        ["count", "x", 1, 1, 0.1], ["count", "x", 0, 1, 0], ["equal", "x", 0, 1, 0.1], ["topic", 1, 0, 1, 0.1],
        ["cube"], ["cube", "x", 4, "kbsp", "fold"], ["cube", "#values/64/1", 4, "kbsp", "fold"],
        ["cube", "#structure/64/1", 0, "kbsp", "fold"], ["cube", "#structure/64/1", 13, "kbsp", "fold"],
        ["cube", "#structure/64/1", True, "kbsp", "fold"], ["cube", "#structure/64/1", 4, "tree", "fold"],
        ["cube", "#structure/64/1", 4, "kbsp", "0123"], ["cube", "#structure/64/1", 4, "kbsp", 7],
        ["cube", "#structure/64/1", 4, "kbsp", "fold", 3, 1],
    ],
)  # fmt: skip
def test_nonsense_is_no_dimension(wire: object) -> None:
    with pytest.raises(ProtocolViolation, match="not a dimension"):
        parse_dimension(wire)


CUBE_OF_16 = cube_dimension("#structure/64/1", 4, KBSP, "fold")


def test_a_step_on_the_cube_travels_as_a_list() -> None:
    step = Step(CUBE_OF_16, 0b1011, 2)
    assert step.wire() == ["cube", "#structure/64/1", 4, "kbsp", "fold", 11, 2]
    assert parse_step(step.wire()) == step
    assert parse_step(["topic", 2]) == topic_dimension(2)


@pytest.mark.parametrize("end", [[], [16, 0], [-1, 0], [3, 5], [3, -1], [True, 0], [3, "1"], [3], [3, 1, 1]])
def test_nonsense_is_no_step(end: list[object]) -> None:
    with pytest.raises(ProtocolViolation):
        parse_step([*CUBE_OF_16.wire(), *end])


def test_vertices_lie_around_the_ring_in_order() -> None:
    vertices = CUBE_OF_16.vertices("quotes")
    keys = [vertices.key(vertex) for vertex in range(16)]
    assert [distance(keys[0], key) for key in keys] == [vertex << 60 for vertex in range(16)]
    assert [vertices.vertex_at(key) for key in keys] == list(range(16))
    assert vertices.start != CUBE_OF_16.vertices("library").start


def test_what_is_not_known_of_a_document_counts_as_all_bits_and_no_document_as_none() -> None:
    vertices = CUBE_OF_16.vertices("quotes")
    cells = [pack(0b101, 64), None, "text", b"x", b""]
    assert vertices.filters({"#structure/64/1": cells}, 5) == [0b101, *[2**64 - 1] * 3, 0]
    assert vertices.filters({}, 2) == [2**64 - 1] * 2
    event: dict[str, Any] = {"#structure/64/1": pack(1 << 7, 64)}
    assert key_of("quotes", CUBE_OF_16, "quotes", event) == vertices.key(1 << 3)
    assert key_of("quotes", CUBE_OF_16, "quotes", {"#structure/64/1": b""}) is None


def test_a_refusal_is_short() -> None:
    with pytest.raises(ProtocolViolation) as caught:
        parse_dimension(["equal", "x" * 10_000])
    assert len(str(caught.value)) < 250


def test_a_changed_domain_is_another_dimension() -> None:
    wider = declared_domain("quotes", "price", 0, 21, 0.01)
    assert wider is not None
    assert range_dimension(wider) != range_dimension(PRICE)


def test_dimensions_in_words() -> None:
    words = [
        str(dimension)
        for dimension in (topic_dimension(1), topic_dimension(2), equal_dimension("x"), range_dimension(PRICE))
    ]
    assert words == ["the stream", "the first 2 levels of the topic", "values of x", "ranges of price, 0 to 20 by 0.01"]
    counted = [str(dimension) for dimension in (count_dimension("x"), count_dimension("price", PRICE))]
    assert counted == ["lists of x", "lists of price, 0 to 20 by 0.01"]


def test_lists_of_values_and_of_cells_are_two_dimensions() -> None:
    event: dict[str, Value] = {"price": 8.302}
    assert count_dimension("price") != count_dimension("price", PRICE)
    assert key_of("quotes", count_dimension("price"), "quotes", event) == equality_key("quotes", "price", 8.302)
    assert key_of("quotes", count_dimension("price", PRICE), "quotes", event) == PRICE.key_of_cell(830)
    assert (
        not count_dimension("price").is_arc and count_dimension("price", PRICE).is_arc and range_dimension(PRICE).is_arc
    )


# --- Keys -------------------------------------------------------------------------------------------------------------


def test_the_key_of_an_event() -> None:
    event: dict[str, Value] = {"price": 8.302, "symbol": "OTE"}
    assert PRICE is not None
    assert key_of("quotes", topic_dimension(2), "quotes/NYSE/OTE", event) == prefix_key("quotes/NYSE")
    assert key_of("quotes", topic_dimension(3), "quotes/NYSE/OTE", event) == prefix_key("quotes/NYSE/OTE")
    assert key_of("quotes", topic_dimension(3), "quotes/NYSE", event) is None
    assert key_of("quotes", equal_dimension("symbol"), "quotes", event) == equality_key("quotes", "symbol", "OTE")
    assert key_of("quotes", equal_dimension("name"), "quotes", event) is None
    assert key_of("quotes", range_dimension(PRICE), "quotes", event) == PRICE.key_of_cell(830)
    assert key_of("quotes", range_dimension(PRICE), "quotes", {"price": "8.302"}) is None
    assert key_of("quotes", range_dimension(PRICE), "quotes", {"price": True}) is None


def plain(
    dimension: Dimension, names: Sequence[str], count: int, columns: Mapping[str, Sequence[Value]]
) -> list[int | None]:
    """The dumb twin: each row as an event of its own."""
    own = list(names) * count if len(names) == 1 else names
    rows = [{name: column[row] for name, column in columns.items()} for row in range(count)]
    return [key_of("quotes", dimension, topic, row) for topic, row in zip(own, rows, strict=True)]


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[str], int, dict[str, list[Value]]]:
    count = draw(st.integers(1, 6))
    names = draw(st.lists(topics, min_size=count, max_size=count)) if draw(st.booleans()) else [draw(topics)]
    columns = {name: draw(st.lists(values, min_size=count, max_size=count)) for name in ("price", "x")}
    for name in draw(st.sets(st.sampled_from(["price", "x"]))):
        del columns[name]
    return names, count, columns


@given(st.lists(batches(), max_size=4), st.sampled_from([REMEMBERED_BYTES * 3, 2**20]))
def test_the_keys_of_rows_are_those_of_events(
    given_batches: list[tuple[list[str], int, dict[str, list[Value]]]], bytes_max: int
) -> None:
    """Also after other batches with values that Python takes for the same, and when little can be remembered."""
    memory = KeyMemory(bytes_max + 64)
    all_keys = [RowKeys("quotes", dimension, memory) for dimension in DIMENSIONS]
    all_places = [DimensionPlaces("quotes", dimension, memory) for dimension in DIMENSIONS]
    for epoch, (names, count, columns) in enumerate(given_batches):
        for keys, places in zip(all_keys, all_places, strict=True):
            wanted = plain(keys.dimension, names, count, columns)
            assert keys.of(names, count, columns) == wanted
            asked = places.of(names, count, columns, epoch, lambda key: f"place of {key}")
            assert asked == [None if key is None else f"place of {key}" for key in wanted]
            memory.validate()
    for places in all_places:
        places.forget()
    for keys in all_keys:
        keys.forget()
    assert memory.spent == 0


def test_a_value_that_is_no_attribute_value_is_null() -> None:
    keys = RowKeys("quotes", equal_dimension("x"))
    odd: list[Any] = [[1], {}, (True,), b"x", 2**64, 1]
    assert keys.of(["quotes"], 6, {"x": odd}) == [None] * 5 + [equality_key("quotes", "x", 1)]


def test_an_absent_attribute_has_no_key_in_any_row() -> None:
    for dimension in (equal_dimension("x"), range_dimension(PRICE)):
        assert RowKeys("quotes", dimension).of(["quotes"], 3, {"y": [1, 2, 3]}) == [None] * 3


# --- Places -----------------------------------------------------------------------------------------------------------


def test_a_place_is_asked_for_once_a_value_and_epoch() -> None:
    places, asked = DimensionPlaces("quotes", equal_dimension("symbol")), []

    def place_of(key: int) -> int | None:
        asked.append(key)
        return None if key == equality_key("quotes", "symbol", "IBM") else len(asked)

    columns: dict[str, list[Value]] = {"symbol": ["OTE", "IBM", None, "OTE", "IBM"]}
    assert places.of(["quotes"], 5, columns, 1, place_of) == [1, None, None, 1, None]
    assert places.of(["quotes"], 5, columns, 1, place_of) == [1, None, None, 1, None]
    assert len(asked) == 2
    assert places.of(["quotes"], 5, columns, 2, place_of) == [3, None, None, 3, None]
    assert len(asked) == 4


def test_topics_that_share_a_prefix_share_its_key() -> None:
    keys = RowKeys("quotes", topic_dimension(1))
    first, second = keys.of(["quotes/a", "quotes/b"], 2, {})
    assert first is second
    assert first == prefix_key("quotes")
    assert keys.of(["quotes/a"], 3, {}) == [first] * 3


# --- Memory -----------------------------------------------------------------------------------------------------------


def test_over_the_bound_all_is_forgotten_and_stays_right() -> None:
    memory = KeyMemory(20 * REMEMBERED_BYTES)
    some, other = RowKeys("quotes", equal_dimension("x"), memory), RowKeys("quotes", equal_dimension("y"), memory)
    for number in range(100):
        assert some.of(["quotes"], 1, {"x": [number]}) == [equality_key("quotes", "x", number)]
        assert other.of(["quotes"], 1, {"y": ["OTE"]}) == [equality_key("quotes", "y", "OTE")]
        memory.validate()
        assert memory.spent <= 20 * REMEMBERED_BYTES


def test_long_values_count_by_their_size_and_nan_is_not_remembered() -> None:
    memory = KeyMemory()
    keys = RowKeys("quotes", equal_dimension("x"), memory)
    keys.of(["quotes"], 2, {"x": ["a" * 1000, "ü" * 1000]})
    assert memory.spent == 2 * REMEMBERED_BYTES + 5000
    keys.of(["quotes"], 2, {"x": [float("nan"), float("nan")]})
    assert memory.spent == 2 * REMEMBERED_BYTES + 5000


def test_a_new_epoch_gives_back_what_the_old_one_remembered() -> None:
    memory = KeyMemory()
    places = DimensionPlaces("quotes", equal_dimension("x"), memory)
    for epoch in range(100):
        places.of(["quotes"], 1, {"x": [1]}, epoch, lambda key: key)
    assert memory.spent == 2 * REMEMBERED_BYTES


@pytest.mark.parametrize("count", [1, 2])
def test_one_and_true_are_kept_apart_whichever_came_first(count: int) -> None:
    for dimension in (equal_dimension("price"), range_dimension(PRICE)):
        for order in ([1, True, 1.0], [True, 1], [0, False, -0.0], [False, 0]):
            keys = RowKeys("quotes", dimension)
            for value in order:
                wanted = key_of("quotes", dimension, "quotes", {"price": value})
                assert keys.of(["quotes"], count, {"price": [value] * count}) == [wanted] * count
