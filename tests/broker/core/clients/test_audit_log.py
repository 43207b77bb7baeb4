"""The audit log: every delivery with what became of it, every change of what is wanted, nothing of other streams."""

from __future__ import annotations

from typing import Any

from headgate.broker.core.clients.audit import ACKNOWLEDGED, AUDIT_ACKS, AUDIT_LINES, DROPPED, LOST, SENT
from headgate.broker.core.effects import Note
from headgate.broker.core.inputs import WallClock
from headgate.broker.core.limits import AUDIT_ACK_SECONDS, AUDIT_SECONDS, Limits
from headgate.protocol.data import LogKind, Row, decode_column
from headgate.protocol.messages import Credit, Deliver, Goodbye, Mode, Ping, Unsubscribe
from tests.support.builders import make_publish, make_subscribe, quote_batch
from tests.support.log_world import LogWorld

AUDITED = {"audit": True}


def lines(rows: list[Row]) -> list[dict[str, Any]]:
    """One map a line, with the row's `topics` as home and its `origin`."""
    found = []
    for row in rows:
        columns = {name: decode_column(column, row.count) for name, column in row.columns.items()}
        for place in range(row.count):
            line = {name: values[place] for name, values in columns.items()}
            found.append({"home": row.topics, "origin": row.origin} | line)
    return found


class Audit(LogWorld):
    """A world in which `quotes` is audited; lines are written whenever they are looked at."""

    def __init__(self, **config: Any) -> None:
        super().__init__(prompt=True, schema=AUDITED, **config)
        self.feed(WallClock(500.0))

    def settle(self) -> None:
        self.wake_at(self.now + AUDIT_SECONDS)

    @property
    def deliveries(self) -> list[dict[str, Any]]:
        self.settle()
        return lines(self.rows(LogKind.DELIVERIES))

    @property
    def changes(self) -> list[dict[str, Any]]:
        self.settle()
        return lines(self.rows(LogKind.SUBSCRIPTIONS))

    def quote(self, link: int, *prices: int, topic: str = "quotes/a", mode: Mode = Mode.STORED) -> None:
        session = self.node.subscribers.by_link[link]
        batch = quote_batch(topic, [str(price) for price in prices], price=list(prices))
        self.say(link, make_publish(session.accepted + 1, batch, mode))


def test_a_delivery_is_a_line_with_the_ids_of_subscription_and_event_and_its_times() -> None:
    world = Audit()
    subscriber, publisher = world.subscriber(("quotes", "price > 1")), world.connect()
    world.say(publisher, make_publish(1, quote_batch("memory"), Mode.ACCEPTED))
    world.now += 2.0
    world.quote(publisher, 1, 2, 3)
    portion = world.take_one(subscriber, Deliver).portion
    (row,) = world.rows()
    (identity,) = (one.identity for one in world.node.subscribers.by_identity.values())
    when = int((world.now + 500.0) * 1e6)
    one = {"home": world.config.origin, "origin": world.config.origin, "subscription": identity, "outcome": SENT}
    one |= {"sent_at": when, "published_at": row.time}
    assert world.deliveries == [one | {"sequence": row.base + place} for place in (1, 2)]
    assert [portion.base + place for place in portion.rows()] == [row.base + 1, row.base + 2]


def test_an_event_for_several_subscriptions_of_one_client_has_a_line_for_each() -> None:
    world = Audit()
    world.subscriber(("quotes", ""), ("quotes/a", ""), ("quotes/b", ""))
    world.quote(world.connect(), 1, 2)
    assert sorted((one["sequence"], one["subscription"]) for one in world.deliveries) == [
        (0, 1),
        (0, 2),
        (1, 1),
        (1, 2),
    ]


def test_other_streams_have_no_lines() -> None:
    world = Audit()
    world.node.streams.declare("stored", {"durability": "stored"})
    world.subscriber(("memory", ""), ("stored", ""))
    publisher = world.connect()
    world.quote(publisher, 1, topic="memory", mode=Mode.ACCEPTED)
    world.quote(publisher, 1, topic="stored")
    world.settle()
    assert {name.kind for name in world.disk.logs} == {LogKind.EVENTS}
    assert {world.node.timers.when(key) for key in (AUDIT_ACKS, AUDIT_LINES)} == {float("inf")}


def test_what_a_slow_subscriber_did_not_get_is_dropped_and_what_it_got_later_is_sent() -> None:
    world = Audit(outbox_bytes=2_000)
    subscriber, publisher = world.subscriber(("quotes", ""), credit=1), world.connect()
    for price in range(6):
        world.quote(publisher, price)
    world.grant(subscriber, 100, 1)
    outcomes = {one["sequence"]: one["outcome"] for one in world.deliveries if one["outcome"] != ACKNOWLEDGED}
    assert outcomes[0] == outcomes[5] == SENT
    assert outcomes[1] == DROPPED
    assert sorted(outcomes) == list(range(6))


def test_what_did_not_come_in_has_a_second_line() -> None:
    world = Audit()
    subscriber, publisher = world.subscriber(("quotes", "")), world.connect()
    for price in range(4):
        world.quote(publisher, price)
    world.say(subscriber, Credit(100, 1))
    key = world.key(subscriber)
    world.drop(subscriber)
    world.resume(key, received=2)
    assert [(one["sequence"], one["outcome"]) for one in world.deliveries] == [
        (0, SENT),
        (1, SENT),
        (2, SENT),
        (3, SENT),
        (2, LOST),
        (3, LOST),
    ]
    world.node.validate()


def test_what_the_client_has_taken_has_a_second_line_that_says_when() -> None:
    world = Audit()
    subscriber, publisher = world.subscriber(("quotes", ""), credit=50), world.connect()
    for price in range(3):
        world.quote(publisher, price)
    began = world.now
    world.now += 1.0
    world.say(subscriber, Credit(53, 3, taken=2))  # all came in, and two of them were taken
    found = world.deliveries
    assert [(one["sequence"], one["outcome"]) for one in found] == [
        (0, SENT),
        (1, SENT),
        (2, SENT),
        (0, ACKNOWLEDGED),
        (1, ACKNOWLEDGED),
    ]
    sent, acked = int((began + 500.0) * 1e6), int((began + 501.0) * 1e6)
    assert {(one["sent_at"], one["acked_at"]) for one in found[3:]} == {(sent, acked)}
    assert found[0].get("acked_at", 0) == 0
    world.say(subscriber, Credit(53, 3, taken=3))
    assert world.deliveries[-1]["sequence"] == 2
    world.node.validate()


def test_what_came_in_before_the_connection_was_lost_is_acknowledged_after_it() -> None:
    world = Audit()
    subscriber, publisher = world.subscriber(("quotes", ""), credit=50), world.connect()
    world.quote(publisher, 1)
    world.quote(publisher, 2)
    key = world.key(subscriber)
    world.drop(subscriber)
    link, _ = world.resume(key, received=1)
    world.say(link, Credit(world.node.subscribers.by_link[link].window + 1, 1, taken=1))
    assert [(one["sequence"], one["outcome"]) for one in world.deliveries[2:]] == [(1, LOST), (0, ACKNOWLEDGED)]


def test_who_does_not_acknowledge_is_asked_until_it_does() -> None:
    world = Audit()
    subscriber, publisher = world.subscriber(("quotes", ""), credit=50), world.connect()
    world.quote(publisher, 1)
    assert not [one for one in world.take(subscriber) if isinstance(one, Ping)]
    for _ in range(2):
        world.wake_at(world.now + AUDIT_ACK_SECONDS)
        assert [one for one in world.take(subscriber) if isinstance(one, Ping)] == [Ping(0)]
    world.say(subscriber, Credit(51, 1, taken=1))
    world.wake_at(world.now + AUDIT_ACK_SECONDS)
    world.wake_at(world.now + AUDIT_ACK_SECONDS)
    assert not [one for one in world.take(subscriber) if isinstance(one, Ping)]
    assert {world.node.timers.when(key) for key in (AUDIT_ACKS, AUDIT_LINES)} == {float("inf")}


def test_what_is_remembered_of_deliveries_on_their_way_is_bounded() -> None:
    world = Audit(limits=Limits(audit_flight_events=2))
    subscriber, publisher = world.subscriber(("quotes", "")), world.connect()
    for price in range(4):
        world.quote(publisher, price)
    key = world.key(subscriber)
    world.drop(subscriber)
    world.resume(key, received=0)
    assert [one["sequence"] for one in world.deliveries if one["outcome"] == LOST] == [2, 3]


def test_subscriptions_are_told_with_their_condition_in_both_languages() -> None:
    world = Audit()
    subscriber = world.subscriber(("quotes/*/a", "price >= 8.3 AND symbol IN ('x')"), name="ann")
    began = int((world.now + 500.0) * 1e6)
    world.now += 1.0
    world.say(subscriber, make_subscribe(2, "quotes/a", exact=True))
    first, second = world.changes
    assert first == {
        "home": world.config.origin,
        "origin": "",
        "subscription": 1,
        "subscriber": "ann",
        "pattern": "quotes/*/a",
        "exact": False,
        "condition": world.node.subscribers.by_identity[1].condition,
        "spark": first["spark"],
        "action": "subscribe",
        "effective_at": began,
        "reason": "",
    }
    assert "8.3D" in first["spark"]
    assert (second["pattern"], second["exact"], second["spark"]) == ("quotes/a", True, "")
    assert second["effective_at"] == began + 1_000_000


def test_the_end_of_a_subscription_is_told_with_its_reason() -> None:
    world = Audit()
    subscriber = world.subscriber(("quotes", ""), ("quotes/a", ""))
    world.say(subscriber, Unsubscribe(9, 1))
    world.say(subscriber, Goodbye(0, ""))
    ended = [(one["subscription"], one["action"], one["reason"]) for one in world.changes[2:]]
    assert ended == [(1, "unsubscribe", ""), (2, "unsubscribe", "client left")]


def test_what_comes_before_a_subscription_is_in_force_has_a_wish_in_the_log() -> None:
    world = Audit()
    subscriber, publisher = world.subscriber(("quotes", "price > 1")), world.connect()
    session = world.node.subscribers.by_link[subscriber]
    session.placing[1] = make_subscribe(1)
    world.quote(publisher, 2)
    world.quote(publisher, 3)
    _, asked = world.changes
    assert (asked["action"], asked["pattern"], asked["condition"]) == ("asked", "quotes", "`price` > 1")
    assert len(world.deliveries) == 2
    del session.placing[1]


def test_what_waited_for_a_session_that_ended_is_dropped() -> None:
    world = Audit()
    subscriber, publisher = world.subscriber(("quotes", ""), credit=0), world.connect()
    world.quote(publisher, 1, 2)
    world.say(subscriber, Goodbye(0, ""))
    assert [(one["sequence"], one["outcome"]) for one in world.deliveries] == [(0, DROPPED), (1, DROPPED)]


def test_an_audit_that_is_switched_on_and_off_tells_what_is_in_force() -> None:
    world = LogWorld(prompt=True)
    subscriber, publisher = world.subscriber(("quotes", "")), world.connect()
    world.say(publisher, make_publish(1, mode=Mode.STORED))
    world.node.audit.now = world.now
    world.node.streams.declare("quotes", AUDITED)
    world.say(publisher, make_publish(2, mode=Mode.STORED))
    world.node.streams.declare("quotes", {"durability": "stored"})
    world.say(publisher, make_publish(3, mode=Mode.STORED))
    world.wake_at(world.now + AUDIT_SECONDS)
    assert [one["sequence"] for one in lines(world.rows(LogKind.DELIVERIES))] == [1]
    changes = lines(world.rows(LogKind.SUBSCRIPTIONS))
    assert [(one["action"], one["reason"]) for one in changes] == [
        ("subscribe", ""),
        ("unsubscribe", "the stream is not audited any more"),
    ]
    assert len(world.delivered(subscriber)) == 3


def test_what_was_lost_between_brokers_is_a_gap_for_whoever_wants_some_of_the_stream() -> None:
    world = Audit()
    world.subscriber(("quotes", ""), ("memory", ""), ("quotes/a", ""))
    subscribers = world.node.subscribers
    subscribers.lost_in_stream("quotes", 3)
    subscribers.lost_on_the_way(subscribers.by_identity[3], 2)
    subscribers.lost_on_the_way(None, 0)
    world.node.effects.clear()
    gaps = [(one["subscription"], one["reason"].split(":")[0]) for one in world.changes if one["action"] == "gap"]
    assert gaps == [(1, "3 lost"), (3, "3 lost"), (3, "2 lost"), (1, "0 lost"), (3, "0 lost")]


def test_the_next_life_ends_what_the_last_one_left_open() -> None:
    world = Audit()
    first = world.subscriber(("quotes", "price > 1"), ("quotes/a", ""), name="ann")
    world.say(first, make_subscribe(3, "quotes/b"))
    world.say(first, Unsubscribe(9, 2))
    assert len(world.changes) == 4
    world.now += 100.0
    world.restart()
    world.feed(WallClock(500.0))
    restarted, *ended = world.changes[4:]
    assert (restarted["home"], restarted["action"]) == (world.config.origin, "restarted")
    assert [(one["subscription"], one["action"], one["reason"]) for one in ended] == [
        (1, "unsubscribe", "broker restarted"),
        (3, "unsubscribe", "broker restarted"),
    ]
    assert {one["home"] for one in ended} == {world.config.origin}
    assert ended[0]["condition"] == world.changes[0]["condition"] != ""
    assert ended[0]["effective_at"] > world.changes[0]["effective_at"] + 99_000_000
    world.restart()
    world.feed(WallClock(900.0))
    assert [one["action"] for one in world.changes[7:]] == ["restarted"], "nothing is open any more"


def test_damage_of_the_log_is_told_where_it_concerns_the_audit() -> None:
    world = Audit()
    world.subscriber(("quotes", ""))
    world.settle()
    world.disk.damage = ["positions 1 to 2 of deliveries 'quotes' in b@1: cut", "positions 1 to 2 of events 'x' in b@1"]
    world.restart()
    world.feed(WallClock(500.0))
    assert [one["reason"] for one in world.changes if one["action"] == "damaged"] == [world.disk.damage[0]]


def test_what_the_disk_does_not_take_is_written_again() -> None:
    world = Audit()
    world.subscriber(("quotes", ""))
    world.quote(world.connect(), 1)
    world.prompt = False
    world.settle()
    world.tell(world.disk.refuse())
    assert world.rows(LogKind.DELIVERIES) == []
    world.prompt = True
    assert [one["sequence"] for one in world.deliveries] == [0]
    assert [one["action"] for one in world.changes] == ["subscribe"]


def test_what_cannot_be_kept_either_is_said_with_alarm() -> None:
    world = Audit(limits=Limits(audit_rows_kept=0))
    world.subscriber(("quotes", ""))
    world.prompt = False
    world.settle()
    world.tell(world.disk.refuse("full"))
    (note,) = (one for one in world.notes if isinstance(one, Note) and one.event == "audit incomplete")
    assert note.alarming
    assert note.facts == {"stream": "quotes", "lines": 1, "reason": "full"}
    assert world.node.audit.missing == 1
    world.prompt = True
    world.subscriber(("quotes", ""))
    world.settle()
    (hole,) = (one for one in world.changes if one["action"] == "damaged")
    assert "could not be written: full" in hole["reason"]


def test_without_a_disk_nothing_is_gathered() -> None:
    world = Audit()
    world.node.log.available = False
    world.subscriber(("quotes", ""))
    world.settle()
    assert world.rows(LogKind.SUBSCRIPTIONS) == []
    world.node.validate()


def test_many_lines_are_several_rows() -> None:
    world = Audit(limits=Limits(batch_events=32))
    world.subscriber(*[("quotes", "")] * 5)
    world.quote(world.connect(), *range(20))
    world.settle()
    assert [row.count for row in world.rows(LogKind.DELIVERIES)] == [32, 32, 32, 4]
    assert [row.count for row in world.rows(LogKind.SUBSCRIPTIONS)] == [2, 2, 1]
    assert len(world.deliveries) == 100
