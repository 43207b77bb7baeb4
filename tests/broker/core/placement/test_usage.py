"""Usage: what our clients use is told before it counts, and what everybody's clients use is added up."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.delivery import Streams
from headgate.broker.core.keyspace import (
    RING_SIZE,
    Dimension,
    count_dimension,
    equal_dimension,
    parse_dimension,
    topic_dimension,
)
from headgate.broker.core.kv import Item
from headgate.broker.core.placement.interest import Usage
from headgate.protocol.limits import INTEREST_ATTRIBUTES_MAX
from headgate.protocol.messages import Interest, Unsubscribe
from tests.support.builders import quote_batch
from tests.support.node_cluster import NodeCluster

TOPIC, SYMBOL, PRICE = topic_dimension(1), equal_dimension("symbol"), equal_dimension("price")
LISTS = count_dimension("symbol"), count_dimension("price")


class Desk:
    """A Usage whose puts are held until the test answers them. It is its cluster, and that one's store, as well."""

    address = "me:7401"

    def __init__(self) -> None:
        self.streams = Streams()
        self.kv = self
        self.usage = Usage(7, 2, self.streams, self)  # type: ignore[arg-type]  # what a Usage asks of a Cluster
        self.changed: list[str] = []
        self.puts: list[list[Item]] = []
        self.homes: list[tuple[int, int, str]] = []
        self.heard: list[tuple[str, bool]] = []
        self._who: list[str] = []

    def put(self, items: list[Item], now: float) -> int:
        self.puts.append(items)
        return len(self.puts)

    def home_at(self, home: int, life: int, address: str) -> None:
        self.homes.append((home, life, address))

    def settle(self) -> None:
        self.changed += [stream.name for stream in self.usage.settle()]

    def use(self, who: str, dimension: Dimension, *names: str, stream: str = "quotes") -> None:
        self.use_all(who, (dimension,), *names, stream=stream)

    def use_all(self, who: str, dimensions: tuple[Dimension, ...], *names: str, stream: str = "quotes") -> None:
        self._who.append(who)
        if self.usage.use(stream, dimensions, names, len(self._who) - 1, 0.0):
            self.heard.append((who, True))
        self.usage.validate()

    def drop(self, dimension: Dimension, *names: str) -> None:
        self.usage.release("quotes", (dimension,), names)
        self.usage.shrink(0.0)

    def answer(self, done: bool = True, put: int = -1) -> None:
        waiting = self.usage.placed(range(1, len(self.puts) + 1)[put], done)
        self.heard += [(self._who[number], done) for number in waiting or ()]

    @property
    def told(self) -> Item:
        """What was said last."""
        return self.puts[-1][-1]


def said(item: Item) -> tuple[set[Dimension], set[str]] | None:
    return None if item.value is None else ({parse_dimension(one) for one in item.value[0]}, set(item.value[1]))


# --- What our own clients use -----------------------------------------------------------------------------------------


def test_the_first_use_is_told_on_the_whole_ring_and_waited_for() -> None:
    desk = Desk()
    desk.use("a", SYMBOL, "symbol", "price")
    item = desk.told
    assert (item.name, item.low, item.high) == (("use", 7, 2, "quotes"), 0, RING_SIZE - 1)
    assert said(item) == ({SYMBOL}, {"symbol", "price"})
    assert desk.heard == []
    desk.answer()
    assert desk.heard == [("a", True)]


def test_what_everybody_knows_is_not_told_again() -> None:
    desk = Desk()
    desk.use("a", SYMBOL, "symbol", "price")
    desk.answer()
    desk.use("b", SYMBOL, "price")
    assert len(desk.puts) == 1
    assert desk.heard == [("a", True), ("b", True)]
    assert desk.usage.dimensions_used("quotes") == {SYMBOL: 2}
    assert desk.usage.dimensions_used("other") == {}


def test_while_it_is_being_told_the_next_one_waits_for_the_same_word() -> None:
    desk = Desk()
    desk.use("a", SYMBOL, "symbol")
    desk.use("b", SYMBOL)
    assert len(desk.puts) == 1 and desk.heard == []
    desk.answer()
    assert desk.heard == [("a", True), ("b", True)]


@pytest.mark.parametrize(("dimension", "names"), [(PRICE, ()), (SYMBOL, ("price",))])
def test_another_dimension_or_another_attribute_is_told_with_all_that_was_told_before(
    dimension: Dimension, names: tuple[str, ...]
) -> None:
    desk = Desk()
    desk.use("a", SYMBOL, "symbol")
    first = desk.told
    desk.use("b", dimension, *names)
    assert said(desk.told) == ({SYMBOL, dimension}, {"symbol", *names})
    assert desk.told.version > first.version
    desk.answer(put=0)
    assert desk.heard == []  # the newer word holds all of it, and only that one is looked at
    desk.answer()
    assert desk.heard == [("a", True), ("b", True)]


def test_streams_are_told_apart() -> None:
    desk = Desk()
    desk.use("a", SYMBOL, "symbol")
    desk.use("b", SYMBOL, "symbol", stream="trades")
    assert [put[0].name[3] for put in desk.puts] == ["quotes", "trades"]


def test_what_is_used_no_more_is_left_out_and_nobody_waits() -> None:
    desk = Desk()
    desk.use("a", SYMBOL, "symbol")
    desk.use("b", PRICE, "price")
    desk.answer()
    desk.drop(PRICE, "price")
    assert said(desk.told) == ({SYMBOL}, {"symbol"})
    desk.answer()
    assert len(desk.heard) == 2
    desk.use("c", PRICE)
    assert said(desk.told) == ({SYMBOL, PRICE}, {"symbol"})
    assert len(desk.heard) == 2


def test_one_of_several_that_ends_tells_nothing() -> None:
    desk = Desk()
    desk.use("a", SYMBOL, "symbol")
    desk.use("b", SYMBOL, "symbol")
    desk.answer()
    desk.drop(SYMBOL, "symbol")
    assert len(desk.puts) == 1
    assert desk.usage.dimensions_used("quotes") == {SYMBOL: 1}


def test_with_the_last_one_the_item_goes() -> None:
    desk = Desk()
    desk.use("a", SYMBOL, "symbol")
    desk.answer()
    version = desk.told.version
    desk.drop(SYMBOL, "symbol")
    assert desk.told.value is None and desk.told.version > version
    desk.use("b", SYMBOL, "symbol")
    assert desk.told.version > version + 1 and said(desk.told) == ({SYMBOL}, {"symbol"})


def test_a_refresh_says_the_same_word_in_the_same_version() -> None:
    desk = Desk()
    desk.use("a", SYMBOL, "symbol")
    desk.use("b", TOPIC, stream="trades")
    desk.usage.refresh(1.0)
    assert len(desk.puts) == 2, "what is being told is not refreshed"
    for put in (0, 1):
        desk.answer(put=put)
    desk.usage.refresh(1.0)
    assert desk.puts[2] == [desk.puts[0][0], desk.puts[1][0]]


def test_a_counted_subscription_uses_several_dimensions_and_all_of_them_are_known_before_it_hears_yes() -> None:
    desk = Desk()
    desk.use("a", LISTS[0], "symbol")
    desk.answer()
    desk.use_all("b", LISTS, "symbol", "price")
    assert desk.heard == [("a", True)] and said(desk.told) == (set(LISTS), {"symbol", "price"})
    desk.answer()
    assert desk.heard[1:] == [("b", True)]
    assert desk.usage.dimensions_used("quotes") == {LISTS[0]: 2, LISTS[1]: 1}
    desk.usage.release("quotes", LISTS, ("symbol", "price"))
    desk.usage.shrink(0.0)
    assert said(desk.told) == ({LISTS[0]}, {"symbol"})


# --- When it cannot be told -------------------------------------------------------------------------------------------


def test_when_it_could_not_be_told_all_who_wait_hear_that_and_the_next_one_tries_again() -> None:
    desk = Desk()
    desk.use("a", SYMBOL, "symbol")
    desk.use("b", SYMBOL, "symbol")
    desk.answer(False)
    assert desk.heard == [("a", False), ("b", False)]
    desk.drop(SYMBOL, "symbol")
    desk.use("c", SYMBOL, "symbol")
    assert desk.heard == [("a", False), ("b", False)]
    desk.answer()
    assert desk.heard[2:] == [("c", True)]


def test_a_summary_is_never_too_small_after_a_failure() -> None:
    """Some brokers may hold the word that was not confirmed, and a refresh must not take from it what is in force."""
    desk = Desk()
    desk.use("a", SYMBOL, "symbol")
    desk.answer()
    desk.use("b", PRICE, "price")
    failed = desk.told
    desk.answer(False)
    desk.usage.refresh(1.0)
    assert desk.told == failed
    desk.use("c", SYMBOL, "symbol")
    assert said(desk.told) == ({SYMBOL, PRICE}, {"symbol", "price"})
    assert desk.heard == [("a", True), ("b", False)], "who comes now waits until everybody knows"


def test_who_fails_and_lets_go_leaves_the_newer_word_under_way() -> None:
    desk = Desk()
    desk.use("a", SYMBOL, "symbol")
    desk.answer()
    desk.use("gone", PRICE)
    desk.answer(False)
    desk.drop(PRICE)
    assert said(desk.told) == ({SYMBOL}, {"symbol"})
    puts = len(desk.puts)
    desk.usage.refresh(0.0)
    assert len(desk.puts) == puts, "what is being told is not refreshed"
    desk.use("b", SYMBOL)
    assert desk.heard == [("a", True), ("gone", False)], "not before the newer word is known"
    desk.answer()
    assert desk.heard[2:] == [("b", True)]


def test_as_many_attributes_as_clients_may_name_make_a_small_item() -> None:
    desk = Desk()
    for number in range(1_000):
        desk.use("a", TOPIC, f"attribute {number:04}" + "x" * 200)
        desk.answer()
    assert desk.told.value is not None
    names = desk.told.value[1]
    assert len(names) == INTEREST_ATTRIBUTES_MAX + 1, "more than publishers are told of, so they send all they have"
    desk.usage.add(desk.told, 0.0)
    desk.settle()
    assert desk.streams.by_name["quotes"].interest is None


# --- What everybody uses ----------------------------------------------------------------------------------------------


def word(home: int, dimensions: list[Dimension], names: list[str], life: int = 1, stream: str = "quotes") -> Item:
    value = [[dimension.wire() for dimension in dimensions], names, f"b{home}:7401"]
    return Item(("use", home, life, stream), 0, RING_SIZE - 1, 1, value)


def test_the_summary_is_the_union_and_publishers_hear_of_a_change() -> None:
    desk = Desk()
    desk.usage.add(word(1, [TOPIC], []), 0.0)
    desk.usage.add(word(2, [SYMBOL], ["symbol", "price"]), 0.0)
    desk.usage.add(word(2, [PRICE], ["price"], life=2), 0.0)
    desk.settle()
    summary = desk.usage.summaries["quotes"]
    assert list(summary.dimensions) == [TOPIC, SYMBOL, PRICE]
    assert summary.attributes == ("price", "symbol")
    assert desk.streams.by_name["quotes"].interest == ("price", "symbol")
    assert desk.changed == ["quotes"]
    desk.settle()
    assert desk.changed == ["quotes"]


def test_a_word_says_where_its_home_is_reached() -> None:
    desk = Desk()
    desk.use("a", SYMBOL)
    assert desk.told.value is not None and desk.told.value[2] == "me:7401"
    desk.usage.add(word(9, [SYMBOL], [], life=3), 0.0)
    assert desk.homes == [(9, 3, "b9:7401")]
    desk.settle()


def test_lists_are_kept_apart_from_dimensions_where_events_are_matched() -> None:
    desk = Desk()
    desk.usage.add(word(1, [SYMBOL, *LISTS], ["symbol"]), 0.0)
    desk.usage.add(word(2, [TOPIC], [], stream="trades"), 0.0)
    desk.settle()
    summary = desk.usage.summaries["quotes"]
    assert list(summary.dimensions) == [SYMBOL] and list(summary.counted) == list(LISTS)
    assert desk.usage.beside_index == {"quotes": None}
    keys = summary.counted[LISTS[0]]
    assert keys.of(["quotes"], 1, {"symbol": ["OTE"]}) and desk.usage._memory.spent
    desk.usage.add(word(1, [SYMBOL, LISTS[0]], ["symbol"]), 0.0)
    desk.settle()
    assert summary.counted == {LISTS[0]: keys}
    desk.usage.add(word(1, [SYMBOL], ["symbol"]), 0.0)
    desk.settle()
    assert summary.counted == {} == desk.usage.beside_index and not desk.usage._memory.spent
    desk.usage.add(word(1, list(LISTS), ["symbol"]), 0.0)
    desk.settle()
    desk.usage.remove(word(1, list(LISTS), ["symbol"]), 0.0)
    desk.settle()
    assert desk.usage.beside_index == {}
    desk.usage.validate()


def test_a_word_that_replaces_another_never_shows_nothing_between() -> None:
    desk = Desk()
    desk.usage.add(word(1, [SYMBOL], ["symbol"]), 0.0)
    desk.settle()
    places = desk.usage.summaries["quotes"].dimensions[SYMBOL]
    desk.usage.remove(word(1, [SYMBOL], ["symbol"]), 0.0)
    desk.usage.add(word(1, [SYMBOL, TOPIC], ["symbol"]), 0.0)
    desk.settle()
    assert desk.changed == ["quotes"], "the attributes are the same"
    assert desk.usage.summaries["quotes"].dimensions[SYMBOL] is places, "and so is what was remembered of the dimension"


def test_what_nobody_uses_any_more_is_forgotten() -> None:
    desk = Desk()
    desk.usage.add(word(1, [SYMBOL], ["symbol"]), 0.0)
    desk.settle()
    places = desk.usage.summaries["quotes"].dimensions[SYMBOL]
    assert places.of(["quotes"], 2, {"symbol": ["OTE", "IBM"]}, 1, lambda key: 5) == [5, 5]
    assert desk.usage._memory.spent
    desk.usage.remove(word(1, [SYMBOL], ["symbol"]), 0.0)
    desk.usage.remove(word(9, [SYMBOL], ["symbol"], stream="never heard of"), 0.0)
    desk.settle()
    assert desk.usage.summaries == {} and not desk.usage._memory.spent
    assert desk.streams.by_name["quotes"].interest == ()
    assert desk.changed == ["quotes", "quotes"]
    desk.usage.validate()


@given(st.randoms(use_true_random=False))
def test_whatever_comes_and_goes_the_word_under_way_is_at_least_what_is_in_force(random: Random) -> None:
    """The dumb twin counts: nobody who heard yes and did not let go may be missing from any word said since."""
    desk = Desk()
    live: dict[int, tuple[Dimension, tuple[str, ...]]] = {}
    known: set[int] = set()
    open_puts: list[int] = []

    def hear() -> None:
        for who, done in desk.heard:
            if done:
                known.add(int(who))
            else:
                dimension, names = live.pop(int(who))
                desk.drop(dimension, *names)
        desk.heard.clear()

    for number in range(30):
        before = len(desk.puts)
        match random.choice(["begin", "begin", "end", "answer", "refresh"]):
            case "begin":
                live[number] = random.choice([TOPIC, SYMBOL, PRICE]), tuple(random.sample("abc", random.randrange(3)))
                desk.use(str(number), live[number][0], *live[number][1])
            case "end" if known:
                ended = random.choice(sorted(known))
                known.remove(ended)
                dimension, names = live.pop(ended)
                desk.drop(dimension, *names)
            case "answer" if open_puts:
                desk.answer(random.random() < 0.7, open_puts.pop(random.randrange(len(open_puts))))
            case "refresh":
                desk.usage.refresh(0.0)
        hear()
        desk.usage.validate()
        open_puts += range(before, len(desk.puts))
        for items in desk.puts[before:]:
            dimensions, attributes = said(items[-1]) or (set(), set())
            assert all(live[one][0] in dimensions and attributes.issuperset(live[one][1]) for one in known)


# --- Among brokers ----------------------------------------------------------------------------------------------------


def test_publishers_anywhere_are_told_what_subscribers_anywhere_filter_on() -> None:
    cluster = NodeCluster(5)
    publisher, subscriber = cluster.connect("b0"), cluster.connect("b3")
    publisher.publish(quote_batch(price=[1]))
    assert publisher.of(Interest) == [Interest("quotes", [])]
    subscriber.subscribe(1, "quotes", "price > 1 AND symbol = 'OTE'")
    cluster.run(0.1)
    assert publisher.of(Interest)[1:] == [Interest("quotes", ["price", "symbol"])]
    subscriber.send(Unsubscribe(2, 1))
    cluster.run(0.1)
    assert publisher.of(Interest)[2:] == [Interest("quotes", [])]
    assert all(node.registry.usage.summaries == {} for node in cluster.nodes)
