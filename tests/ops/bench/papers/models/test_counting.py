"""Counting: lists at keys, a match when an id is met often enough, and the same deliveries as plain evaluation."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.keyspace import Span, declared_domain, successor
from headgate.broker.core.placement import SubscriptionId, met
from headgate.matching.values import Value, equal
from headgate.ops.bench.papers.models import Collection, Constraint, CountingScheme, CountingStore, Entry, Placement
from headgate.ops.bench.papers.models.counting import ENTRIES_MAX, IdentifierLayout, OneOf, difference
from tests.support.rings import identifiers

PRICE = declared_domain("quotes", "price", 0.0, 4.0, 0.1)
VOLUME = declared_domain("quotes", "volume", 0, 10, 1)
assert PRICE is not None
assert VOLUME is not None
DOMAINS = {"price": PRICE, "volume": VOLUME}

SCHEMES = [CountingScheme("quotes", DOMAINS, placement) for placement in Placement]

ID = SubscriptionId(7, 1, 1)

on_grid = st.integers(-2, 42).map(lambda number: number / 10)
off_grid = st.floats(-1, 5)
symbols = st.sampled_from(["OTE", "IBM", "1", 1, 1.0, True, None])


@st.composite
def constraints(draw: st.DrawFn, prices: st.SearchStrategy[float]) -> dict[str, Constraint]:
    some: dict[str, Constraint] = {}
    if draw(st.booleans()):
        some["symbol"] = OneOf(tuple(draw(st.lists(symbols, min_size=1, max_size=3))))
    if draw(st.booleans()):
        some["volume"] = OneOf((draw(st.integers(0, 4)),))
    if not some or draw(st.booleans()):
        bound = st.one_of(st.none(), prices)
        some["price"] = Span(draw(bound), draw(bound), draw(st.booleans()), draw(st.booleans()))
    return some


@st.composite
def events(draw: st.DrawFn, prices: st.SearchStrategy[float]) -> dict[str, Value]:
    event: dict[str, Value] = {"symbol": draw(symbols), "price": draw(st.one_of(prices, st.sampled_from([None, "2"])))}
    if draw(st.booleans()):
        event["volume"] = draw(st.one_of(st.integers(0, 4), st.integers(0, 4).map(float)))
    return event


def satisfied(some: Mapping[str, Constraint], event: Mapping[str, Value]) -> bool:
    """The dumb twin: compare every value."""
    for name, constraint in some.items():
        value = event.get(name)
        if isinstance(constraint, Span):
            if not constraint.contains(value):
                return False
        elif not any(equal(value, one) for one in constraint.values):
            return False
    return True


class Ring:
    """Brokers that own keys, each with its store; messages are function calls."""

    def __init__(self, members: list[int], scheme: CountingScheme) -> None:
        self.members = members
        self.scheme = scheme
        self.stores = {broker: CountingStore() for broker in members}

    def owner(self, entry: Entry) -> CountingStore:
        return self.stores[successor(self.members, entry.key)]

    def subscribe(self, identity: SubscriptionId, some: Mapping[str, Constraint]) -> None:
        for entry in self.scheme.entries(some):
            self.owner(entry).store(entry, identity)

    def publish(self, event: Mapping[str, Value]) -> list[SubscriptionId]:
        questions = self.scheme.questions(event)
        collection = Collection(questions)
        for entry in reversed(questions):
            collection.add(entry, self.owner(entry).list_at(entry))
        return collection.matches()

    def validate(self) -> None:
        for broker, store in self.stores.items():
            store.validate()
            assert all(successor(self.members, entry.key) == broker for entry in store.entries())


def ring_with(
    members: set[int], scheme: CountingScheme, subscriptions: list[dict[str, Constraint]]
) -> tuple[Ring, dict[SubscriptionId, dict[str, Constraint]]]:
    ring = Ring(sorted(members), scheme)
    known = {SubscriptionId(number % 3, number, len(some)): some for number, some in enumerate(subscriptions)}
    for identity, some in known.items():
        ring.subscribe(identity, some)
    ring.validate()
    return ring, known


members_ = st.sets(identifiers, min_size=1, max_size=6)


@pytest.mark.parametrize("placement", Placement)
@given(members_, st.lists(constraints(on_grid), max_size=8), st.lists(events(on_grid), max_size=4))
def test_on_the_grid_counting_is_exact(
    placement: Placement,
    members: set[int],
    subscriptions: list[dict[str, Constraint]],
    published: list[dict[str, Value]],
) -> None:
    scheme = CountingScheme("quotes", DOMAINS, placement, on_grid=True)
    # values outside the declared range have no list of their own in the paper
    inside = [event for event in published if not isinstance(event["price"], float) or 0 <= event["price"] <= 4]
    ring, known = ring_with(members, scheme, subscriptions)
    for event in inside:
        assert ring.publish(event) == sorted(one for one, some in known.items() if satisfied(some, event))


@pytest.mark.parametrize("scheme", SCHEMES)
@given(members_, st.lists(constraints(off_grid), max_size=8), st.lists(events(off_grid), max_size=4))
def test_between_the_lines_counting_misses_nothing_and_the_condition_decides(
    scheme: CountingScheme,
    members: set[int],
    subscriptions: list[dict[str, Constraint]],
    published: list[dict[str, Value]],
) -> None:
    ring, known = ring_with(members, scheme, subscriptions)
    for event in published:
        candidates = ring.publish(event)
        delivered = [one for one in candidates if satisfied(known[one], event)]
        assert delivered == sorted(one for one, some in known.items() if satisfied(some, event))


@pytest.mark.parametrize("scheme", SCHEMES)
@given(constraints(off_grid), constraints(off_grid))
def test_an_update_touches_the_difference_and_leaves_what_a_new_subscription_would(
    scheme: CountingScheme, old: dict[str, Constraint], new: dict[str, Constraint]
) -> None:
    updated, fresh = Ring([1, 2**62, 2**63], scheme), Ring([1, 2**62, 2**63], scheme)
    updated.subscribe(ID, old)
    fresh.subscribe(ID, new)
    before, after = scheme.entries(old), scheme.entries(new)
    update = difference(before, after)
    assert set(update.store) == set(after) - set(before)
    assert set(update.remove) == set(before) - set(after)
    for entry in update.store:
        updated.owner(entry).store(entry, ID)
    for entry in update.remove:
        updated.owner(entry).remove(entry, ID)
    for broker, store in updated.stores.items():
        assert store.entries() == fresh.stores[broker].entries()


def test_a_range_that_moves_on_without_meeting_itself_fills_no_gap() -> None:
    scheme = CountingScheme("quotes", DOMAINS)
    update = difference(scheme.entries({"volume": Span(1, 2)}), scheme.entries({"volume": Span(5, 6)}))
    assert VOLUME is not None
    assert update.store == [Entry(VOLUME.key_of_cell(cell), "volume") for cell in (5, 6)]
    assert update.remove == [Entry(VOLUME.key_of_cell(cell), "volume") for cell in (1, 2)]


# --- What can be stored -----------------------------------------------------------------------------------------------


def test_a_span_of_an_attribute_that_nobody_declared_is_anchored_instead() -> None:
    scheme = CountingScheme("quotes", DOMAINS)
    assert scheme.accepts({"price": Span(1, 2), "symbol": OneOf(("OTE",))})
    assert not scheme.accepts({"weight": Span(1, 2)})
    assert not scheme.accepts({})
    with pytest.raises(AssertionError, match="accepts"):
        scheme.entries({"weight": Span(1, 2)})


def test_a_span_of_too_many_values_is_anchored_instead() -> None:
    wide = declared_domain("quotes", "time", 0, 2**40, 1)
    assert wide is not None
    scheme = CountingScheme("quotes", {"time": wide})
    assert scheme.accepts({"time": Span(1, ENTRIES_MAX)})
    assert not scheme.accepts({"time": Span(1, ENTRIES_MAX + 1)})
    assert not scheme.accepts({"time": Span(1, ENTRIES_MAX), "symbol": OneOf(("OTE",))})


def test_values_that_are_equal_are_stored_once_and_null_nowhere() -> None:
    scheme = CountingScheme("quotes", DOMAINS)
    assert len(scheme.entries({"symbol": OneOf((1, 1.0, None, "1"))})) == 2
    assert scheme.entries({"symbol": OneOf((None,))}) == []
    assert scheme.questions({"symbol": None, "price": None}) == []


def test_hashed_values_are_scattered_and_ordered_ones_side_by_side() -> None:
    hashed, ordered = ([entry.key for entry in scheme.entries({"price": Span(1, 2)})] for scheme in SCHEMES)
    start = DOMAINS["price"].start
    offsets = [(key - start) % 2**64 for key in ordered]
    assert offsets == sorted(offsets)
    scattered = [(key - start) % 2**64 for key in hashed]
    assert scattered != sorted(scattered)
    assert len(hashed) == len(ordered) == 11


# --- Identifiers, stores, collections ---------------------------------------------------------------------------------


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1), st.integers(1, 511))
def test_a_packed_identifier_keeps_its_parts(broker: int, number: int, attributes: int) -> None:
    identity, layout = SubscriptionId(broker, number, attributes), IdentifierLayout()
    assert layout.unpack(layout.pack(identity)) == identity


@pytest.mark.parametrize("identity", [(8, 1, 1), (1, 8, 1), (1, 1, 8), (1, 1, 0)])
def test_a_part_that_does_not_fit_is_our_mistake(identity: tuple[int, int, int]) -> None:
    with pytest.raises(AssertionError):
        IdentifierLayout(3, 3, 3).pack(SubscriptionId(*identity))


def test_a_store_keeps_a_list_an_attribute_and_key() -> None:
    store, other = CountingStore(), SubscriptionId(7, 2, 1)
    for entry in (Entry(5, "price"), Entry(5, "low"), Entry(6, "price"), Entry(5, "price")):
        store.store(entry, ID)
    store.store(Entry(5, "price"), other)
    assert len(store) == 4
    assert store.list_at(Entry(5, "price")) == [ID, other]
    assert store.list_at(Entry(5, "low")) == [ID]
    assert store.list_at(Entry(7, "low")) == []
    store.remove(Entry(5, "low"), ID)
    store.remove(Entry(5, "low"), ID)
    store.remove(Entry(6, "price"), other)
    assert store.entries() == [Entry(5, "price"), Entry(6, "price")]
    store.validate()


def test_a_collection_waits_for_every_list_and_counts_each_once() -> None:
    first, second, twice = Entry(1, "price"), Entry(2, "low"), SubscriptionId(7, 2, 2)
    collection = Collection([first, second])
    collection.add(first, [ID, twice, twice])
    assert not collection.complete
    with pytest.raises(AssertionError, match="missing"):
        collection.matches()
    collection.add(first, [twice])
    collection.add(Entry(9, "high"), [twice])
    collection.add(second, [twice, SubscriptionId(7, 3, 2)])
    assert collection.complete
    assert collection.matches() == [ID, twice]


def test_an_event_without_attributes_asks_nobody() -> None:
    collection = Collection(SCHEMES[0].questions({}))
    assert collection.complete
    assert collection.matches() == []


def test_met_is_who_is_on_as_many_lists_as_it_has_attributes() -> None:
    one, two, three = SubscriptionId(4, 1, 3), SubscriptionId(4, 2, 3), SubscriptionId(4, 3, 1)
    assert met([[one], [one, two], [one, three], [two]]) == [one, three]  # Figure 5, and one with a single attribute
    assert met([]) == met([[], []]) == []
    assert met([[one._replace(life=1)], [one], [one]]) == [], "lives of a broker are told apart"
