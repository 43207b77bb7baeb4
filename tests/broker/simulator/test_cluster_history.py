"""The twin of a cluster's answers: from which moment a subscription counts, what is expected of it, what is excused."""

from __future__ import annotations

from headgate.broker.core.effects import Send
from headgate.broker.core.inputs import LinkDown, Received
from headgate.broker.simulator.engine import Host
from headgate.broker.simulator.workloads import ClusterHistory, Event, Incidents, SubscriptionLog
from headgate.protocol import make_batch
from headgate.protocol.errors import ErrorCode
from headgate.protocol.messages import (
    Error,
    Hello,
    Mode,
    Puback,
    Publish,
    Scope,
    Suback,
    Subscribe,
    Unsubscribe,
    Welcome,
)
from tests.broker.simulator.test_cluster_world import new_world


class Case:
    """One broker, one client on link 1; time passes with every step."""

    def __init__(self) -> None:
        self.world = new_world(1)
        self.history = ClusterHistory()
        host = self.world.servers["broker-1"].host
        assert host is not None
        self.host: Host = host
        welcome = Welcome(2, "broker-1", b"k" * 16, False, 0, 256, 4.0)
        self.step(Received(1, [Hello(name="c")]), Send(1, welcome))

    def step(self, happened: Received | LinkDown, *effects: Send) -> None:
        self.world.now += 1.0
        self.history(self.host, happened, effects)

    def subscribe(self, request: int, number: int) -> SubscriptionLog:
        message = Subscribe(request, number, "quotes", "", {})
        log = self.history.subscribing("c", message)
        self.step(Received(1, [message]))
        return log

    def publish(self, sequence: int, name: str, spoiled: bool = False) -> None:
        batch = make_batch(["quotes/a"], {}, [f"{name}:0 ".encode()])
        self.history.published("c", batch, spoiled)
        self.step(Received(1, [Publish(sequence, Mode.ACCEPTED, batch)]))


def test_only_what_is_accepted_between_suback_and_unsubscribe_is_expected() -> None:
    case = Case()
    log = case.subscribe(1, 1)
    case.publish(1, "early")
    case.step(Received(9, []), Send(1, Suback(1, 1)))  # some other step brought the answer
    assert log.in_force
    case.publish(2, "in-time")
    case.publish(2, "twice")
    case.step(Received(1, [Unsubscribe(2, 1)]))
    case.publish(3, "late")
    assert log.expected == ["in-time:0"]
    assert case.history.accepted_events == 3
    assert case.history.events["in-time:0"].broker == "broker-1"


def test_what_waited_for_its_stream_and_was_refused_then_is_owed_to_nobody() -> None:
    case = Case()
    log = case.subscribe(1, 1)
    case.step(Received(9, []), Send(1, Suback(1, 1)))
    case.publish(1, "spoiled", spoiled=True)
    case.publish(2, "good")
    case.publish(3, "confirmed")
    assert log.expected == ["spoiled:0", "good:0", "confirmed:0"]
    bad = Error(ErrorCode.BAD_TOPIC, Scope.PUBLISH, 1, "a level may not be *")
    case.step(Received(9, []), Send(1, bad))
    assert log.expected == ["good:0", "confirmed:0"] and not case.history.refused
    assert case.history.accepted_events == 2
    full = Error(ErrorCode.LIMIT, Scope.PUBLISH, 2, "there is no room")
    case.step(Received(9, []), Send(1, full), Send(1, Puback(3)))
    assert log.expected == ["confirmed:0"]
    assert case.history.refused == ["good:0: LIMIT: there is no room"], "late or not, a good batch is refused by nobody"
    case.step(Received(9, []), Send(1, Error(ErrorCode.LIMIT, Scope.PUBLISH, 3, "no")))
    assert log.expected == ["confirmed:0"], "it was confirmed"


def test_a_crash_ends_its_sessions_and_excuses_what_was_on_its_way() -> None:
    case = Case()
    log = case.subscribe(1, 1)
    case.step(Received(9, []), Send(1, Suback(1, 1)))
    case.publish(1, "old")
    case.world.now += 10.0
    case.publish(2, "new")
    case.history.died(case.host)
    assert not log.in_force and not case.history.in_force
    excused = [case.history.incidents.excuse(case.history.events[name]) for name in ("old:0", "new:0")]
    assert excused == [False, True]


def test_a_client_that_goes_elsewhere_is_no_broken_resume() -> None:
    case = Case()
    case.step(LinkDown(1, "cut"))
    other = new_world(2).servers["broker-2"].host
    assert other is not None
    other.world.now = case.world.now + 1.0
    welcome = Welcome(2, "broker-2", b"l" * 16, False, 0, 256, 4.0)
    case.history(other, Received(2, [Hello(name="c", session=b"k" * 16)]), [Send(2, welcome)])
    assert not case.history.broken_resumes
    case.step(LinkDown(2, "cut"))
    third = Welcome(2, "broker-1", b"m" * 16, False, 0, 256, 4.0)
    case.history(other, Received(3, [Hello(name="c", session=b"l" * 16)]), [Send(3, third)])
    assert len(case.history.broken_resumes) == 1


def test_nothing_is_promised_while_brokers_are_apart_and_a_while_after() -> None:
    incidents = Incidents()
    assert not incidents.is_apart(5.0)
    incidents.parted()
    assert incidents.is_apart(1e9)
    incidents.apart(3.0, 20.0)
    assert incidents.is_apart(19.0) and not incidents.is_apart(20.0)
    event = Event("e", "c", 0, "quotes", b"", {}, accepted_at=4.0)
    assert incidents.excuse(event)
    event.accepted_at = 20.5
    assert not incidents.excuse(event)
