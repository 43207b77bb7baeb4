"""Amending subscriptions while events are published: against the plain meaning, with one broker and with several."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from headgate.broker.core.delivery import Amendment, Version
from headgate.broker.core.keyspace import parse_dimension
from headgate.broker.core.limits import AMEND_SECONDS, AMEND_VERSIONS_MAX
from headgate.broker.core.safeguards import SAFEGUARDS, Safeguard
from headgate.matching import evaluate, parse_condition, parse_pattern
from headgate.matching.structure import DEFAULT_SHAPE, pack, parse_twig
from headgate.protocol.data import encode_column, make_batch
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import Answer, Ask, Credit, Deliver, Error, Hold, Suback, Unsubscribe
from tests.support.builders import deliveries_of, quote_batch
from tests.support.node_cluster import Client, NodeCluster

CONDITIONS = ["", "n > 5", "n BETWEEN 3 AND 12", "n < 9 AND side = 'x'", "side IN ('x', 'y')", "side = 'y' OR n = 7"]
COUNTED = [*CONDITIONS, "n IN (1, 5, 7)", "n IN (5, 7, 8)", "n > 11", "n BETWEEN 6 AND 14", "n < 12 AND side = 'y'"]
"""With many that are on the same lists."""
PATTERNS = ["quotes", "quotes/a", "quotes/*/deep"]
TOPICS = ["quotes/a", "quotes/b", "quotes/a/deep", "quotes/b/deep"]
SCHEMA = {
    "attributes": {"n": {"type": "int", "min": 0, "max": 20}, "side": {"type": "string"}},
    "placement": "counting",
}


def amend(client: Client, request: int, pattern: str, condition: str, number: int = 1) -> None:
    wish = {"subscription": number, "pattern": pattern, "where": condition}
    client.send(Ask(request, "amend", wish))


def subscribed(cluster: NodeCluster, client: Client, pattern: str, condition: str) -> None:
    client.subscribe(1, pattern, condition)
    cluster.until(lambda: bool(client.of(Suback)), 30.0)
    client.take()


class Run:
    """One subscription that is amended again and again while two others publish."""

    def __init__(self, seed: int, brokers: int, counting: bool, **config: Any) -> None:
        self.random = Random(seed)
        self.conditions = COUNTED if counting else CONDITIONS
        self.cluster = NodeCluster(brokers, seed=seed, check_every=10, **config)
        names = list(self.cluster.hosts)
        if counting:
            teller = self.cluster.connect(names[0])
            teller.send(Ask(1, "schema.put", {"stream": "quotes", "schema": SCHEMA}))
            self.cluster.until(lambda: bool(teller.of(Answer)), 30.0)
        self.reader = self.cluster.connect(self.random.choice(names))
        self.writers = [self.cluster.connect(name) for name in names[:3]]
        self.events: dict[str, tuple[str, dict[str, Any]]] = {}
        self.published_at: dict[str, float] = {}
        self.wishes = [self.wish()]
        self.asked_at: list[float] = []
        self.answered_at: list[float] = []

    def wish(self) -> tuple[str, str]:
        return self.random.choice(PATTERNS), self.random.choice(self.conditions)

    def publish(self) -> None:
        count = self.random.randint(1, 4)
        bodies = [f"e{len(self.events) + at}" for at in range(count)]
        topics = [self.random.choice(TOPICS) for _ in range(count)]
        numbers = [self.random.choice([None, *range(15)]) for _ in range(count)]
        sides = [self.random.choice(["x", "y", "z"]) for _ in range(count)]
        for body, topic, n, side in zip(bodies, topics, numbers, sides, strict=True):
            self.events[body] = topic, {"n": n, "side": side}
            self.published_at[body] = self.cluster.now
        self.random.choice(self.writers).publish(quote_batch(topics, bodies, n=numbers, side=sides))

    def wanted(self, wish: tuple[str, str], body: str) -> bool:
        topic, attributes = self.events[body]
        condition = parse_condition(wish[1]) if wish[1] else None
        true = condition is None or evaluate(condition, attributes) is True
        return true and parse_pattern(wish[0]).matches(topic)

    def run(self, amendments: int) -> None:
        subscribed(self.cluster, self.reader, *self.wishes[0])
        for request in range(amendments):
            for _ in range(self.random.randint(0, 6)):
                self.publish()
                self.cluster.run(self.random.choice([0.0, 0.0005, 0.002, 0.01]))
            self.wishes.append(self.wish())
            self.asked_at.append(self.cluster.now)
            amend(self.reader, request + 2, *self.wishes[-1])
            for _ in range(200):
                if self.random.random() < 0.8:
                    self.publish()
                self.cluster.run(self.random.choice([0.0, 0.0005, 0.001]))
                if len(self.reader.of(Answer)) > request:
                    break
            self.cluster.until(lambda request=request: len(self.reader.of(Answer)) > request, 30.0)
            self.answered_at.append(self.cluster.now)
        for _ in range(5):
            self.publish()
        self.cluster.run(AMEND_SECONDS + 1.0)
        for _ in range(5):
            self.publish()
        self.cluster.run(1.0)
        self.check()

    def check(self) -> None:
        wishes = iter(self.wishes)
        wish, delivered = next(wishes), []
        for message in self.reader.got:
            if isinstance(message, Answer):
                wish = next(wishes)
            elif isinstance(message, Deliver):
                for _, body in deliveries_of([message]):
                    assert self.wanted(wish, body), f"{body} {self.events[body]} came when {wish} was asked for"
                    delivered.append(body)
        assert len(delivered) == len(set(delivered)), "nothing comes twice"
        moments = [float("-inf"), *self.answered_at]
        for body, at in self.published_at.items():
            # A version may be the one by which it is decided from before its publishing until long after it.
            first = max(index for index, moment in enumerate(moments) if moment <= at)
            last = sum(asked <= at + 1.0 for asked in self.asked_at)
            if all(self.wanted(wish, body) for wish in self.wishes[first : last + 1]):
                assert body in delivered, (
                    f"{body} is wanted by all of {self.wishes[first : last + 1]}, and did not come"
                )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("brokers", "counting"), [(1, False), (3, False), (5, False), (5, True)])
def test_events_before_the_point_are_by_the_old_condition_and_after_it_by_the_new(
    seed: int, brokers: int, counting: bool
) -> None:
    Run(seed * 100 + brokers, brokers, counting).run(4)


def breaks(seed: int, without: Safeguard) -> bool:
    """Whether a run without this safeguard is not what was promised."""
    try:
        Run(seed, 5, False, safeguards=SAFEGUARDS - {without}).run(4)
    except AssertionError:
        return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("without", [Safeguard.AMENDED_DECIDED_ONCE, Safeguard.AMENDED_FORMER_RESTS])
def test_without_each_safeguard_some_run_breaks(without: Safeguard) -> None:
    assert any(breaks(seed, without) for seed in range(4, 24))


# --- One broker, one step at a time -----------------------------------------------------------------------------------


def stage(brokers: int = 1, **config: Any) -> tuple[NodeCluster, Client]:
    cluster = NodeCluster(brokers, **config)
    reader = cluster.connect("b0")
    subscribed(cluster, reader, "quotes", "n > 5")
    return cluster, reader


def answers(client: Client) -> list[Any]:
    return [message.value for message in client.take() if isinstance(message, Answer)]


def refusals(client: Client) -> list[int]:
    return [message.code for message in client.take() if isinstance(message, Error)]


def test_the_answer_says_how_many_places_were_told_and_the_same_words_tell_none() -> None:
    _, reader = stage()
    amend(reader, 1, "quotes", "n > 5")
    assert answers(reader) == [{"puts": 0, "kept": 1, "removed": 0}]
    amend(reader, 2, "quotes", "n IN (1, 2, 3)")
    assert answers(reader) == [{"puts": 3, "kept": 0, "removed": 1}]
    amend(reader, 3, "quotes", "n IN (1, 2, 3)")
    assert answers(reader) == [{"puts": 3, "kept": 0, "removed": 1}], "asked again, as after a lost connection"


class Puts:
    """What a broker puts and takes away, as (attribute, first value, last value); both ends of a stretch of cells."""

    def __init__(self, cluster: NodeCluster) -> None:
        self.node = cluster.node("b0")
        self.put: list[tuple[Any, ...]] = []
        self.removed: list[tuple[Any, ...]] = []
        self._put_items, self._values = self.node.cluster.kv.put, {}
        self.node.cluster.kv.put = self.note  # type: ignore[method-assign]

    def note(self, items: Any, now: float) -> int:
        for item in items:
            if item.name[0] == "count" and item.value is None:
                self.removed.append(self._values[item.name])
            elif item.name[0] == "count":
                dimension = parse_dimension(item.value[1])
                ends: tuple[int, ...] = ()
                if dimension.is_arc:
                    domain = dimension.domain("quotes")
                    ends = domain.cell_at(item.low), domain.cell_at(item.high)
                self._values[item.name] = (dimension.attribute, *ends)
                self.put.append(self._values[item.name])
        return self._put_items(items, now)

    def taken(self) -> tuple[list[Any], list[Any]]:
        taken = sorted(self.put), sorted(self.removed)
        self.put, self.removed = [], []
        return taken


@pytest.mark.parametrize("brokers", [1, 3])
def test_a_counted_subscription_puts_what_the_new_condition_adds_and_takes_away_what_it_does_not_need(
    brokers: int,
) -> None:
    """RANGE 3.1.2: an update stores and removes the difference of the entries alone."""
    cluster = NodeCluster(brokers)
    reader, writer = cluster.connect("b0"), cluster.connect(f"b{brokers - 1}")
    reader.send(Ask(1, "schema.put", {"stream": "quotes", "schema": SCHEMA}))
    cluster.until(lambda: bool(reader.of(Answer)), 30.0)
    subscribed(cluster, reader, "quotes", "n IN (1, 3, 5, 7) AND side IN ('x', 'y')")
    puts, registry = Puts(cluster), cluster.node("b0").registry
    for request, (condition, put, kept, removed) in enumerate(
        [
            ("n IN (3, 5, 7, 9, 11) AND side IN ('x', 'y')", [("n", 9, 9), ("n", 11, 11)], 5, [("n", 1, 1)]),
            ("n IN (5, 11) AND side IN ('x', 'y')", [], 4, [("n", cell, cell) for cell in (3, 7, 9)]),
            (
                "n BETWEEN 5 AND 11 AND side IN ('y', 'z')",
                [("n", 5, 11), ("side",)],
                1,
                [("n", 5, 5), ("n", 11, 11), ("side",)],
            ),
            ("n BETWEEN 7 AND 9 AND side IN ('y', 'z') AND m = 1", [("n", 7, 9)], 2, [("n", 5, 11)]),
        ]
    ):
        puts._values |= {
            item.name: ("n", 0, 0)
            for mine in registry._mine.values()
            for item in mine.items
            if item.name not in puts._values
        }
        amend(reader, request + 2, "quotes", condition)
        cluster.until(lambda: bool(reader.of(Answer)), 30.0)
        assert answers(reader) == [{"puts": len(put), "kept": kept, "removed": len(removed)}]
        assert puts.taken() == (sorted(put), [])
        publish_each(writer, range(12))
        cluster.run(AMEND_SECONDS + 1.0)
        assert len(puts.taken()[1]) == len(removed)
        assert len(registry._mine) == 1


@pytest.mark.parametrize(
    ("number", "pattern", "condition", "code"),
    [
        (2, "quotes", "", ErrorCode.NOT_FOUND),
        (1, "quotes", "n >", ErrorCode.BAD_CONDITION),
        (1, "", "", ErrorCode.BAD_PATTERN),
        (1, "quotes", "DELTA(n) > 1", ErrorCode.UNSUPPORTED),
        (1, "quotes", 7, ErrorCode.BAD_REQUEST),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_changes(
    number: int, pattern: str, condition: Any, code: ErrorCode
) -> None:
    cluster, reader = stage()
    amend(reader, 1, pattern, condition, number)
    assert refusals(reader) == [code]
    cluster.connect("b0").publish(quote_batch(bodies=["low", "high"], n=[1, 6]))
    assert [body for _, body in deliveries_of(reader.take())] == ["high"]


@pytest.mark.parametrize("brokers", [1, 5])
def test_a_twig_is_amended_and_the_answer_says_what_the_subscriber_asks_of_documents(brokers: int) -> None:
    """Filters are compared at the vertex of each version; who rested at another one leaves nothing there."""
    cluster, reader = stage(brokers)
    writer = cluster.connect(f"b{brokers - 1}")
    column = DEFAULT_SHAPE.column
    filters = [pack(parse_twig(twig).filter(1024, 1), 1024) for twig in ("a/b", "c/d", "a[b]/c/d")]
    for request, (twig, wanted) in enumerate([("a/b", ["ab", "both"]), ("d", ["cd", "both"]), ("", ["both"])]):
        amend(reader, request, "quotes", f"XPATH '{twig}'" if twig else "n > 6")
        cluster.until(lambda: bool(reader.of(Answer)), 30.0)
        (answer,) = answers(reader)
        assert [xpath for xpath, _ in answer.get("checks", [])] == ([parse_twig(twig).xpath()] if twig else [])
        cluster.run(AMEND_SECONDS + 1.0)
        batch = make_batch(["quotes"], {"n": [1, 5, 7]}, [b"ab", b"cd", b"both"], None)
        writer.publish(replace(batch, columns=batch.columns | {column: encode_column(filters)}))
        cluster.run(1.0)
        assert [body for _, body in deliveries_of(reader.take())] == wanted
    assert all(not node.registry.edges.kept("quotes") for node in cluster.nodes)


def test_filters_at_hand_decide_what_a_version_wants_and_without_them_it_may_want_it() -> None:
    """The wider version brings all, before the point as well; and what nobody else will bring is not waited for."""
    cluster, _ = stage(1)
    (subscription,) = cluster.node("b0").subscribers.by_identity.values()
    narrow = Version.of(subscription, parse_condition("XPATH 'a/b'"))
    amendment = Amendment(1, {1: narrow, 2: Version.of(subscription, None)})
    batch = make_batch(["quotes"], {}, [b"ab", b"cd", b"none"], None)
    assert amendment.decide(("b9", 1), [2], batch, ["quotes"], 0), "no filter says that it does not have the twig"
    filters = [pack(parse_twig(twig).filter(1024, 1), 1024) for twig in ("a/b", "c/d")]
    batch = replace(batch, columns={DEFAULT_SHAPE.column: encode_column([*filters, b""])})
    gets = [amendment.decide(("b0", row), [2], batch, ["quotes"], row) for row in range(3)]
    assert gets == [True, False, False]
    assert list(amendment.due) == [("b9", 1), ("b0", 0)]


def test_what_is_asked_before_suback_is_done_after_it() -> None:
    cluster = NodeCluster(3)
    reader = cluster.connect("b0")
    reader.subscribe(1, "quotes", "n > 5")
    amend(reader, 1, "quotes", "n < 5")
    assert not reader.got
    cluster.until(lambda: bool(reader.of(Answer)), 30.0)
    assert [type(message) for message in reader.take()] == [Suback, Answer]


def test_one_amendment_at_a_time_and_the_same_one_may_be_asked_for_again() -> None:
    cluster, reader = stage(3)
    amend(reader, 1, "quotes", "n < 5")
    amend(reader, 2, "quotes", "n < 5")
    amend(reader, 3, "quotes", "n < 4")
    assert [message.code for message in reader.of(Error)] == [ErrorCode.DUPLICATE]
    cluster.until(lambda: len(reader.of(Answer)) == 2, 30.0)


def test_former_versions_go_when_their_time_is_over_and_there_are_not_too_many() -> None:
    cluster, reader = stage()
    node = cluster.node("b0")
    for request in range(AMEND_VERSIONS_MAX + 1):
        amend(reader, request, "quotes", f"n = {request}")
    assert refusals(reader)[-1:] == [ErrorCode.UNAVAILABLE]
    assert node.registry.resting("quotes") == AMEND_VERSIONS_MAX
    cluster.run(AMEND_SECONDS + 0.1)
    assert node.registry.resting("quotes") == 1 and not node.subscribers.amendments


@pytest.mark.parametrize("brokers", [1, 3])
def test_with_its_subscription_all_versions_go(brokers: int) -> None:
    for ends in (lambda one: one.send(Unsubscribe(9, 1)), lambda one: one.cluster.disconnect(one)):
        cluster, reader = stage(brokers)
        amend(reader, 1, "quotes", "n < 5")
        cluster.run(1.0)
        amend(reader, 2, "quotes", "n < 4")
        ends(reader)
        cluster.run(15.0)
        node = cluster.node("b0")
        assert not node.subscribers.amendments and not node.subscribers.by_identity
        assert node.registry.resting("quotes") == 0


def test_the_answer_stands_behind_what_waits_for_credit() -> None:
    cluster = NodeCluster(1)
    reader = cluster.connect("b0", credit=1)
    subscribed(cluster, reader, "quotes", "n > 5")
    writer = cluster.connect("b0")
    writer.publish(quote_batch(bodies=["one"], n=[6]), quote_batch(bodies=["two"], n=[7]))
    amend(reader, 1, "quotes", "n < 5")
    writer.publish(quote_batch(bodies=["three"], n=[1]), quote_batch(bodies=["no"], n=[8]))
    reader.send(Credit(100, 1))
    seen = [body for message in reader.got if isinstance(message, Deliver) for _, body in deliveries_of([message])]
    assert seen == ["one", "two", "three"]
    kinds = [type(message) for message in reader.got if isinstance(message, Deliver | Answer)]
    assert kinds == [Deliver, Deliver, Answer, Deliver]


def seen_of(reader: Client) -> list[str]:
    """Bodies in order, and the word `answer` where ANSWER stands."""
    seen: list[str] = []
    for message in reader.take():
        if isinstance(message, Answer):
            seen.append("answer")
        elif isinstance(message, Deliver):
            seen += [body for _, body in deliveries_of([message])]
    return seen


def publish_each(writer: Client, numbers: range, *, wide: int = 0) -> None:
    """An event a batch; its body is its number, and as wide as is said."""
    for n in numbers:
        writer.publish(quote_batch(bodies=[f"{n}".ljust(wide, ".")], n=[n]))


def test_the_answer_goes_before_what_came_later_when_all_that_it_waited_for_was_dropped() -> None:
    cluster = NodeCluster(1, outbox_bytes=3_000)
    reader, writer = cluster.connect("b0", credit=1), cluster.connect("b0")
    subscribed(cluster, reader, "quotes", "n > 5")
    publish_each(writer, range(6, 9), wide=300)
    amend(reader, 1, "quotes", "n < 5")
    publish_each(writer, range(-20, 0), wide=300)
    reader.send(Credit(100, 1))
    seen = [one.rstrip(".") for one in seen_of(reader)]
    assert seen[:2] == ["6", "answer"] and seen[-1] == "-1" and not {"7", "8"}.intersection(seen)


def test_the_answer_keeps_its_place_while_newer_events_take_that_of_older_ones() -> None:
    cluster = NodeCluster(1)
    reader, writer = cluster.connect("b0", credit=1), cluster.connect("b0")
    reader.subscribe(1, "quotes", "n > 5", slow="conflate")
    cluster.until(lambda: bool(reader.of(Suback)), 30.0)
    reader.take()
    publish_each(writer, range(6, 9))
    amend(reader, 1, "quotes", "n < 5")
    publish_each(writer, range(-200, 0))
    reader.send(Credit(1_000, 1))
    seen = seen_of(reader)
    assert seen[:4] == ["6", "7", "8", "answer"] and seen[-1] == "-1"


def test_what_is_held_goes_out_around_the_answer() -> None:
    cluster = NodeCluster(1)
    reader, writer = cluster.connect("b0"), cluster.connect("b0")
    subscribed(cluster, reader, "quotes", "n > 5")
    reader.subscribe(2, "quotes", "n = 100")
    reader.send(Hold(1, True))
    reader.take()
    publish_each(writer, range(6, 9))
    amend(reader, 1, "quotes", "n < 5")
    amend(reader, 2, "quotes", "n = 101", 2)
    publish_each(writer, range(2))
    publish_each(writer, range(101, 102))
    assert seen_of(reader) == ["answer", "101"], "what is not held waits for nothing"
    reader.send(Hold(1, False))
    cluster.run(1.0)
    assert seen_of(reader) == ["6", "7", "8", "answer", "0", "1"]


@pytest.mark.parametrize("held", [False, True])
def test_an_answer_that_is_lost_with_its_connection_counts_no_more_as_one_that_is_awaited(held: bool) -> None:
    cluster = NodeCluster(1)
    reader = cluster.connect("b0", credit=9 if held else 0)
    subscribed(cluster, reader, "quotes", "n > 5")
    reader.send(Hold(1, held))
    cluster.connect("b0").publish(quote_batch(bodies=["waits"], n=[6]))
    amend(reader, 1, "quotes", "n < 5")
    (session,) = (one for one in cluster.node("b0").subscribers.by_key.values() if one.subscriptions)
    assert session.asking == 1 and not answers(reader)
    cluster.disconnect(reader)
    assert session.asking == 0


def test_subs_lists_what_is_asked_for_now_and_no_former_version() -> None:
    cluster, reader = stage(3)
    amend(reader, 1, "quotes", "n < 5")
    cluster.until(lambda: bool(reader.of(Answer)), 30.0)
    reader.take()
    reader.send(Ask(2, "subs", {}))
    (rows,) = answers(reader)
    assert [(row["subscription"], row["condition"]) for row in rows] == [(1, "`n` < 5")]
