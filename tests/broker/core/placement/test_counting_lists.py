"""The lists of a broker: what a stretch puts on them, and the plain form that writes out every list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.keyspace import count_dimension, declared_domain, equal_dimension, range_dimension
from headgate.broker.core.placement import SubscriptionId
from headgate.broker.core.placement.counting_lists import CountingLists
from headgate.ops.bench.papers.models import CountingStore, Entry

DOMAINS = [declared_domain("quotes", "price", 0, cells - 1, 1) for cells in (2, 3, 8, 13)]
SYMBOL = count_dimension("symbol")
ID, OTHER = SubscriptionId(7, 1, 2), SubscriptionId(7, 2, 1)


def test_values_have_a_list_each() -> None:
    lists = CountingLists()
    lists.add("quotes", SYMBOL, 5, 5, ID)
    lists.add("quotes", SYMBOL, 5, 5, OTHER)
    lists.add("quotes", SYMBOL, 6, 6, OTHER)
    assert lists.at("quotes", SYMBOL, 5) == [ID, OTHER] and lists.at("quotes", SYMBOL, 6) == [OTHER]
    for stream, dimension, key in (
        ("quotes", SYMBOL, 7),
        ("trades", SYMBOL, 5),
        ("quotes", count_dimension("name"), 5),
    ):
        assert lists.at(stream, dimension, key) == []
    lists.remove("quotes", SYMBOL, 5, 5, OTHER)
    lists.remove("quotes", SYMBOL, 9, 9, OTHER)
    lists.remove("trades", SYMBOL, 5, 5, ID)
    assert lists.at("quotes", SYMBOL, 5) == [ID]
    assert (lists.subscriptions("quotes"), lists.subscriptions("trades")) == (2, 0)
    lists.validate()


def test_what_is_no_list_is_refused() -> None:
    domain = DOMAINS[2]
    assert domain is not None
    lists = CountingLists()
    for dimension, high in ((SYMBOL, 6), (equal_dimension("symbol"), 5), (range_dimension(domain), 5)):
        with pytest.raises(ValueError, match="no lists from 5"):
            lists.add("quotes", dimension, 5, high, ID)
    lists.validate()
    assert not len(lists)


def test_a_long_stretch_takes_few_places_and_is_on_all_its_lists() -> None:
    domain = declared_domain("quotes", "price", 0, 2**40, 1)
    assert domain is not None
    dimension, lists = count_dimension("price", domain), CountingLists()
    low, high = domain.key_of_cell(1), domain.key_of_cell(2**40 - 1)
    lists.add("quotes", dimension, low, high, ID)
    assert len(lists) <= 2 * 40
    assert all(lists.at("quotes", dimension, domain.key_of_cell(cell)) == [ID] for cell in (1, 2, 77, 2**39, 2**40 - 1))
    assert not any(lists.at("quotes", dimension, domain.key_of_cell(cell)) for cell in (0, 2**40))
    lists.remove("quotes", dimension, low, high, ID)
    assert not len(lists)


@given(
    st.sampled_from(range(len(DOMAINS))),
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=6),
    st.data(),
)
def test_a_subscription_is_once_on_the_list_of_a_cell_that_any_of_its_items_covers(
    place: int, ends: list[tuple[int, int]], data: st.DataObject
) -> None:
    """As while it is amended. The dumb twin is a list of stretches."""
    scale = DOMAINS[place]
    assert scale is not None
    dimension, lists = count_dimension("price", scale), CountingLists()
    held = [tuple(sorted((one % scale.cells, other % scale.cells))) for one, other in ends]
    for first, last in held:
        lists.add("quotes", dimension, scale.key_of_cell(first), scale.key_of_cell(last), ID)
    while held:
        for cell in range(scale.cells):
            covered = any(first <= cell <= last for first, last in held)
            assert lists.at("quotes", dimension, scale.key_of_cell(cell)) == [ID] * covered
        first, last = held.pop(data.draw(st.integers(0, len(held) - 1)))
        lists.remove("quotes", dimension, scale.key_of_cell(first), scale.key_of_cell(last), ID)
        lists.validate()
    assert not len(lists)


stretches = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12), st.integers(1, 5)), max_size=12)


@given(st.sampled_from(range(len(DOMAINS))), stretches)
def test_they_are_those_of_the_paper(place: int, some: list[tuple[int, int, int]]) -> None:
    """The dumb twin is the store of `counting.py`, with an entry for every cell."""
    scale = DOMAINS[place]
    assert scale is not None
    dimension, lists, plain = count_dimension("price", scale), CountingLists(), CountingStore()
    held: dict[int, tuple[int, int]] = {}
    for one, other, number in some:
        if number in held:
            first, last = held.pop(number)
            change, change_plain = lists.remove, plain.remove
        else:
            first, last = sorted((one % scale.cells, other % scale.cells))
            held[number] = first, last
            change, change_plain = lists.add, plain.store
        identity = SubscriptionId(1, number, 1)
        change("quotes", dimension, scale.key_of_cell(first), scale.key_of_cell(last), identity)
        for cell in range(first, last + 1):
            change_plain(Entry(scale.key_of_cell(cell), "price"), identity)
        for cell in range(scale.cells):
            key = scale.key_of_cell(cell)
            assert sorted(lists.at("quotes", dimension, key)) == sorted(plain.list_at(Entry(key, "price")))
        lists.validate()
