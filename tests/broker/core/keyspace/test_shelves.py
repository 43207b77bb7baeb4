"""Shelves: names that travel, and the key and the place of every row of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.keyspace import (
    KeyMemory,
    RowKeys,
    Shelf,
    ShelfPlaces,
    count_shelf,
    declared_domain,
    equal_shelf,
    equality_key,
    key_of,
    parse_shelf,
    prefix_key,
    range_shelf,
    topic_shelf,
)
from headgate.broker.core.keyspace.dimensions import REMEMBERED_BYTES
from headgate.matching import Value
from headgate.protocol.errors import ProtocolViolation

PRICE = declared_domain("quotes", "price", 0, 20, 0.01)
assert PRICE is not None
SHELVES = (
    *(topic_shelf(1), topic_shelf(2), topic_shelf(3), equal_shelf("price"), equal_shelf("x"), range_shelf(PRICE)),
    *(count_shelf("x"), count_shelf("price"), count_shelf("price", PRICE)),
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
    ("shelf", "wire"),
    [
        (topic_shelf(2), ["topic", 2]),
        (equal_shelf("symbol"), ["equal", "symbol"]),
        (range_shelf(PRICE), ["range", "price", 0.0, 20.0, 0.01]),
        (count_shelf("symbol"), ["count", "symbol"]),
        (count_shelf("price", PRICE), ["count", "price", 0.0, 20.0, 0.01]),
    ],
)
def test_a_shelf_travels_as_a_list(shelf: Shelf, wire: list[Any]) -> None:
    assert shelf.wire() == wire
    assert parse_shelf(wire) == shelf
    assert hash(parse_shelf(wire)) == hash(shelf)


def test_numbers_of_a_name_are_doubles_whatever_the_schema_wrote() -> None:
    assert parse_shelf(["range", "price", 0, 20, 0.01]) == range_shelf(PRICE)
    assert [type(one) for one in parse_shelf(["range", "price", 0, 20, 1])[3:]] == [float] * 3


@pytest.mark.parametrize(
    "wire",
    [
        None, 7, "topic", {}, [], ["topic"], ["topic", 0], ["topic", 33], ["topic", True], ["topic", 1, 2],
        [b"topic", 1], ["topic", "1"], ["shelf", 1], ["equal"], ["equal", ""], ["equal", 5], ["equal", "x" * 257],
        ["equal", "x", 1], ["equal", "€" * 100], ["range", "x"], ["range", "x", 0, 1], ["range", "", 0, 1, 0.1],
        ["range", "x", 0, 1, 0.1, 1], ["range", "x", 1, 1, 0.1], ["range", "x", 2, 1, 0.1],
        ["range", "x", 0, 1, 0], ["range", "x", 0, 1, -1],
        ["range", "x", 0, inf, 1], ["range", "x", nan, 1, 1], ["range", "x", 0, 1, nan], ["range", "x", 0, 1, 1e-20],
        ["range", "x", 0, "1", 1], ["range", "x", 0, True, 1], ["range", "x", -1e308, 1e308, 1], ["dynamic", "x"],
        ["structure", 12], [["topic"], 1], ["count"], ["count", ""], ["count", 5], ["count", "x", 0],
        ["count", "x", 1, 1, 0.1], ["count", "x", 0, 1, 0], ["equal", "x", 0, 1, 0.1], ["topic", 1, 0, 1, 0.1],
    ],
)  # fmt: skip
def test_nonsense_is_no_shelf(wire: object) -> None:
    with pytest.raises(ProtocolViolation, match="not a shelf"):
        parse_shelf(wire)


def test_a_refusal_is_short() -> None:
    with pytest.raises(ProtocolViolation) as caught:
        parse_shelf(["equal", "x" * 10_000])
    assert len(str(caught.value)) < 250


def test_a_changed_domain_is_another_shelf() -> None:
    wider = declared_domain("quotes", "price", 0, 21, 0.01)
    assert wider is not None
    assert range_shelf(wider) != range_shelf(PRICE)


def test_shelves_in_words() -> None:
    words = [str(shelf) for shelf in (topic_shelf(1), topic_shelf(2), equal_shelf("x"), range_shelf(PRICE))]
    assert words == ["the stream", "the first 2 levels of the topic", "values of x", "ranges of price, 0 to 20 by 0.01"]
    counted = [str(shelf) for shelf in (count_shelf("x"), count_shelf("price", PRICE))]
    assert counted == ["lists of x", "lists of price, 0 to 20 by 0.01"]


def test_lists_of_values_and_of_cells_are_two_shelves() -> None:
    event: dict[str, Value] = {"price": 8.302}
    assert count_shelf("price") != count_shelf("price", PRICE)
    assert key_of("quotes", count_shelf("price"), "quotes", event) == equality_key("quotes", "price", 8.302)
    assert key_of("quotes", count_shelf("price", PRICE), "quotes", event) == PRICE.key_of_cell(830)
    assert not count_shelf("price").is_arc and count_shelf("price", PRICE).is_arc and range_shelf(PRICE).is_arc


# --- Keys -------------------------------------------------------------------------------------------------------------


def test_the_key_of_an_event() -> None:
    event: dict[str, Value] = {"price": 8.302, "symbol": "OTE"}
    assert PRICE is not None
    assert key_of("quotes", topic_shelf(2), "quotes/NYSE/OTE", event) == prefix_key("quotes/NYSE")
    assert key_of("quotes", topic_shelf(3), "quotes/NYSE/OTE", event) == prefix_key("quotes/NYSE/OTE")
    assert key_of("quotes", topic_shelf(3), "quotes/NYSE", event) is None
    assert key_of("quotes", equal_shelf("symbol"), "quotes", event) == equality_key("quotes", "symbol", "OTE")
    assert key_of("quotes", equal_shelf("name"), "quotes", event) is None
    assert key_of("quotes", range_shelf(PRICE), "quotes", event) == PRICE.key_of_cell(830)
    assert key_of("quotes", range_shelf(PRICE), "quotes", {"price": "8.302"}) is None
    assert key_of("quotes", range_shelf(PRICE), "quotes", {"price": True}) is None


def plain(shelf: Shelf, names: Sequence[str], count: int, columns: Mapping[str, Sequence[Value]]) -> list[int | None]:
    """The dumb twin: each row as an event of its own."""
    own = list(names) * count if len(names) == 1 else names
    rows = [{name: column[row] for name, column in columns.items()} for row in range(count)]
    return [key_of("quotes", shelf, topic, row) for topic, row in zip(own, rows, strict=True)]


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
    all_keys = [RowKeys("quotes", shelf, memory) for shelf in SHELVES]
    all_places = [ShelfPlaces("quotes", shelf, memory) for shelf in SHELVES]
    for epoch, (names, count, columns) in enumerate(given_batches):
        for keys, places in zip(all_keys, all_places, strict=True):
            wanted = plain(keys.shelf, names, count, columns)
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
    keys = RowKeys("quotes", equal_shelf("x"))
    odd: list[Any] = [[1], {}, (True,), b"x", 2**64, 1]
    assert keys.of(["quotes"], 6, {"x": odd}) == [None] * 5 + [equality_key("quotes", "x", 1)]


def test_an_absent_attribute_has_no_key_in_any_row() -> None:
    for shelf in (equal_shelf("x"), range_shelf(PRICE)):
        assert RowKeys("quotes", shelf).of(["quotes"], 3, {"y": [1, 2, 3]}) == [None] * 3


# --- Places -----------------------------------------------------------------------------------------------------------


def test_a_place_is_asked_for_once_a_value_and_epoch() -> None:
    places, asked = ShelfPlaces("quotes", equal_shelf("symbol")), []

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
    keys = RowKeys("quotes", topic_shelf(1))
    first, second = keys.of(["quotes/a", "quotes/b"], 2, {})
    assert first is second
    assert first == prefix_key("quotes")
    assert keys.of(["quotes/a"], 3, {}) == [first] * 3


# --- Memory -----------------------------------------------------------------------------------------------------------


def test_over_the_bound_all_is_forgotten_and_stays_right() -> None:
    memory = KeyMemory(20 * REMEMBERED_BYTES)
    some, other = RowKeys("quotes", equal_shelf("x"), memory), RowKeys("quotes", equal_shelf("y"), memory)
    for number in range(100):
        assert some.of(["quotes"], 1, {"x": [number]}) == [equality_key("quotes", "x", number)]
        assert other.of(["quotes"], 1, {"y": ["OTE"]}) == [equality_key("quotes", "y", "OTE")]
        memory.validate()
        assert memory.spent <= 20 * REMEMBERED_BYTES


def test_long_values_count_by_their_size_and_nan_is_not_remembered() -> None:
    memory = KeyMemory()
    keys = RowKeys("quotes", equal_shelf("x"), memory)
    keys.of(["quotes"], 2, {"x": ["a" * 1000, "ü" * 1000]})
    assert memory.spent == 2 * REMEMBERED_BYTES + 5000
    keys.of(["quotes"], 2, {"x": [float("nan"), float("nan")]})
    assert memory.spent == 2 * REMEMBERED_BYTES + 5000


def test_a_new_epoch_gives_back_what_the_old_one_remembered() -> None:
    memory = KeyMemory()
    places = ShelfPlaces("quotes", equal_shelf("x"), memory)
    for epoch in range(100):
        places.of(["quotes"], 1, {"x": [1]}, epoch, lambda key: key)
    assert memory.spent == 2 * REMEMBERED_BYTES


@pytest.mark.parametrize("count", [1, 2])
def test_one_and_true_are_kept_apart_whichever_came_first(count: int) -> None:
    for shelf in (equal_shelf("price"), range_shelf(PRICE)):
        for order in ([1, True, 1.0], [True, 1], [0, False, -0.0], [False, 0]):
            keys = RowKeys("quotes", shelf)
            for value in order:
                wanted = key_of("quotes", shelf, "quotes", {"price": value})
                assert keys.of(["quotes"], count, {"price": [value] * count}) == [wanted] * count
