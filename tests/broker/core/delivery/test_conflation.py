"""Conflation: of what waits for a slow subscription, the newest event of each topic."""

from __future__ import annotations

from random import Random

import pytest

from headgate.broker.core.delivery.conflation import conflated
from headgate.broker.core.inputs import Received
from headgate.protocol.messages import Deliver, Error, Gap, Hold, Unsubscribe
from tests.support.builders import deliveries_of, make_publish, make_subscribe, quote_batch
from tests.support.node_world import NodeWorld


def publish(world: NodeWorld, link: int, *rows: tuple[str, float]) -> None:
    """One event a batch: its topic and its price."""
    for topic, price in rows:
        accepted = world.node.subscribers.by_link[link].accepted
        batch = quote_batch(f"quotes/{topic}", [f"{topic}{price}"], price=[price])
        world.feed(Received(link, [make_publish(accepted + 1, batch)]))


def stalled(*conditions: tuple[str, str], **config: object) -> tuple[NodeWorld, int, int]:
    """A world with a subscriber that takes one event and no more, and a publisher."""
    world = NodeWorld(**config)
    link = world.connect(credit=1)
    for number, (condition, slow) in enumerate(conditions, 1):
        world.say(link, make_subscribe(number, "quotes", condition, slow=slow))
    publisher = world.connect()
    publish(world, publisher, ("first", 0.0))
    world.take(link)
    return world, link, publisher


def test_the_newest_of_each_topic_is_kept_and_the_rest_is_counted() -> None:
    world, link, publisher = stalled(("", "conflate"))
    rows = [(f"t{at % 5}", float(at)) for at in range(1000)]
    publish(world, publisher, *rows)
    session = world.node.subscribers.by_link[link]
    assert session.outbox_events < 64, "bounded by topics, not by events"
    messages = world.grant(link, 2000, 1)
    got = [body for _, body in deliveries_of(messages)]
    (gap,) = [message for message in messages if isinstance(message, Gap)]
    assert gap.count + len(got) == 1000 and gap.reason.startswith("conflated")
    assert {body[:2]: body for body in got} == {f"t{at % 5}": f"t{at % 5}{float(at)}" for at in range(995, 1000)}
    assert world.node.subscribers.drops["conflated"] == gap.count


def test_who_wakes_is_within_the_band_of_every_source() -> None:
    """A reference is the newest event, and that is what is kept."""
    world, link, publisher = stalled(("DELTA(price) > 2", "conflate"))
    random, source = Random(4), dict.fromkeys("abcdef", 0.0)
    for _ in range(1500):
        topic = random.choice("abcdef")
        source[topic] += random.choice((-1.5, 0.5, 1.5))
        publish(world, publisher, (topic, source[topic]))
    assert world.node.subscribers.by_link[link].outbox_events < 64
    has = {body[0]: float(body[1:]) for _, body in deliveries_of(world.grant(link, 9999, 1))}
    assert has.keys() == source.keys() and all(abs(has[topic] - source[topic]) <= 2 for topic in source)


def test_others_of_the_same_client_lose_nothing() -> None:
    world, link, publisher = stalled(("price > 0", "conflate"), ("price > 100", "drop"), ("", "conflate"))
    publish(world, publisher, *((("x"), float(at)) for at in range(1, 201)))
    got = deliveries_of(world.grant(link, 999, 1))
    assert [body for number, body in got if number == 2] == [f"x{float(at)}" for at in range(101, 201)]
    assert [body for number, body in got if number == 1][-1] == "x200.0"
    assert [body for number, body in got if number == 1] == [body for number, body in got if number == 3]


def test_what_was_withdrawn_stays_withdrawn() -> None:
    world, link, publisher = stalled(("", "conflate"), ("", "drop"))
    publish(world, publisher, *((("x"), float(at)) for at in range(40)))
    world.say(link, Unsubscribe(9, 2))
    publish(world, publisher, *((("x"), float(at)) for at in range(40, 300)))
    assert {number for number, _ in deliveries_of(world.grant(link, 999, 1))} == {1}


def test_a_subscription_that_is_held_is_conflated_too() -> None:
    world, link, publisher = stalled(("", "conflate"), ("", "drop"))
    world.grant(link, 10_000, 1)
    world.say(link, Hold(1, True))
    publish(world, publisher, *(("xy"[at % 2], float(at)) for at in range(500)))
    held = world.node.subscribers.by_link[link].held[1]
    assert held.events < 64
    got = deliveries_of(world.take(link))
    assert len([body for number, body in got if number == 2]) == 500
    last = [body for number, body in deliveries_of(world.say(link, Hold(1, False))) if number == 1]
    assert last[-2:] == ["x498.0", "y499.0"]


def test_without_it_the_oldest_go() -> None:
    world, link, publisher = stalled(("", "drop"), outbox_bytes=5_000)
    publish(world, publisher, *((("x"), float(at)) for at in range(100)))
    got = [body for _, body in deliveries_of(world.grant(link, 999, 1))]
    assert got == [f"x{float(at)}" for at in range(100 - len(got), 100)] and 1 < len(got) < 100


def test_an_unknown_way_is_refused() -> None:
    world = NodeWorld()
    (answer,) = world.say(world.connect(), make_subscribe(1, slow="widen"))
    assert isinstance(answer, Error) and "conflate:symbol and widen:0.5" in answer.text


@pytest.mark.parametrize("seed", range(20))
def test_conflation_keeps_what_a_plain_walk_keeps(seed: int) -> None:
    """Compared with a list of (subscription, topic, body), of which the last of each is kept."""
    random, world = Random(seed), NodeWorld()
    link = world.connect(credit=0)
    for number in (1, 2, 3):
        world.say(link, make_subscribe(number, "quotes", "" if number == 1 else f"n >= {number}"))
    publisher = world.connect()
    for at in range(1, random.randint(2, 8)):
        count = random.randint(1, 6)
        topics = [f"quotes/{random.choice('abc')}" for _ in range(count)]
        batch = quote_batch(topics, [f"{at}.{row}" for row in range(count)], n=[random.randint(0, 4) for _ in topics])
        world.feed(Received(publisher, [make_publish(at, batch)]))
    from headgate.broker.core.delivery.subscribers import cut

    waiting = world.node.subscribers.by_link[link].outbox
    numbers = {one: "" for one in (1, 2, 3) if random.random() < 0.7}
    plain = [pair for message in waiting for pair in _triples(message)]
    newest = {(number, topic): body for number, topic, body in plain if number in numbers}
    expected = [one for one in plain if one[0] not in numbers or newest[one[0], one[1]] == one[2]]
    left, gone = conflated(waiting, numbers, cut)
    assert [one for message in left for one in _triples(message)] == expected
    assert sorted(one for message in (*left, *gone) for one in _triples(message)) == sorted(plain)


def _triples(message: Deliver) -> list[tuple[int, str, str]]:
    topics = message.portion.topics.split("\n")
    topics = topics * message.portion.count if len(topics) == 1 else topics
    bodies = deliveries_of([Deliver([1, message.portion.count], message.portion)])
    rows = [(numbers, row) for numbers, count in message.runs() for row in range(count)]
    return [(number, topics[at], bodies[at][1]) for at, (numbers, _) in enumerate(rows) for number in numbers]


def test_the_newest_of_each_key_is_kept_whatever_its_topic() -> None:
    world, link, publisher = stalled(("", "conflate:k"), ("", "conflate"))
    session = world.node.subscribers.by_link[link]
    keys: list[object] = [1, 1.5, True, "x", None]
    for at in range(300):
        accepted = world.node.subscribers.by_link[publisher].accepted
        batch = quote_batch(f"quotes/t{at % 3}", [str(at)], k=[keys[at % 5]])
        world.feed(Received(publisher, [make_publish(accepted + 1, batch)]))
    got = deliveries_of(world.grant(link, 9999, 1))
    first = [int(body) for number, body in got if number == 1 and body.isdigit()]
    assert first[-5:] == [295, 296, 297, 298, 299], "each key has its newest"
    assert sum(at % 5 == 4 for at in first) == 60, "what has no key gives way to nothing"
    assert len(first) < 60 + 4 + 64 and not session.outbox
    assert [int(body) % 3 for number, body in got if number == 2][-3:] == [0, 1, 2]


def test_bands_grow_while_a_subscriber_is_slow_and_shrink_when_it_keeps_up() -> None:
    """Announced with the band; then what it asked for holds at once."""
    world, link, publisher = stalled(("DELTA(price) > 1", "widen:6"))
    session = world.node.subscribers.by_link[link]
    price = 0.0
    for _ in range(2000):
        price += 1.2
        publish(world, publisher, *((f"t{at}", price + at) for at in range(3)))
    assert session.widened == {1: "an event is delivered when price moves by 6"}
    assert world.node.subscribers.widened == 3, "2, 4, 6"
    slow = world.node.dissemination.suppression.suppressed
    assert slow > 2 * 2000, "most of what moves by less than 6 is not even queued"
    messages = world.grant(link, 9999, 1)
    (gap,) = [message for message in messages if isinstance(message, Gap)]
    assert gap.reason.startswith("conflated") and gap.reason.endswith("price moves by 6") and gap.count > 60
    has = {body[:2]: float(body[2:]) for _, body in deliveries_of(messages)}
    assert all(abs(has[f"t{at}"] - price - at) <= 6 for at in range(3))
    assert not session.widened
    publish(world, publisher, ("t0", price), ("t0", price + 0.5), ("t0", price + 1.5))
    assert [body for _, body in deliveries_of(world.take(link))] == [f"t0{price}", f"t0{price + 1.5}"]


def test_what_gives_way_has_to_make_sense() -> None:
    world = NodeWorld()
    link = world.connect()
    for number, (condition, slow, words) in enumerate(
        [
            ("", "widen:1", "the band of DELTA, and the condition has none"),
            ("DELTA(price) > 1", "widen", "as in conflate:symbol and widen:0.5"),
            ("DELTA(price) > 1", "widen:-1", "as in conflate:symbol and widen:0.5"),
            ("DELTA(price) > 1", "widen:inf", "as in conflate:symbol and widen:0.5"),
            ("DELTA(price) > 1", "conflate:symbol", "topic by topic"),
            ("", "conflate:", "as in conflate:symbol"),
            ("", "drop:1", "option slow is drop, conflate"),
        ],
        1,
    ):
        (error,) = world.say(link, make_subscribe(number, "quotes", condition, slow=slow))
        assert isinstance(error, Error) and words in error.text
