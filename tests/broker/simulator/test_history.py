"""The history: the dumb twin decides from inputs and answers alone what every subscription must get."""

from __future__ import annotations

from headgate.broker.core import NodeConfig
from headgate.broker.core.inputs import Input, LinkDown, Received
from headgate.broker.simulator.engine import Host, World
from headgate.broker.simulator.workloads import History, SubscriptionLog
from headgate.protocol.data import Batch
from headgate.protocol.messages import Goodbye, Hello, Message, Mode, Publish, Subscribe, Unsubscribe, Welcome
from tests.support.builders import quote_batch


class Story:
    """A Host with a history; client `c` is on link 1 first."""

    def __init__(self) -> None:
        self.history = History()
        self.host = Host(World(1), NodeConfig("broker-1", 1), [self.history, self])
        self.answers: list[Message] = []
        self.say(1, Hello(name="c"))

    def __call__(self, host: Host, happened: Input, effects: object) -> None:
        """Keep the answers; it is a watcher too."""
        self.answers = [effect.message for effect in effects if hasattr(effect, "message")]  # type: ignore[attr-defined]

    def say(self, link: int, *messages: Message) -> None:
        self.host.feed(Received(link, list(messages)))

    def subscribe(self, request: int, number: int, condition: str = "", client: str = "c") -> SubscriptionLog:
        message = Subscribe(request, number, "quotes", condition)
        log = self.history.subscribing(client, message)
        self.say(1, message)
        return log

    def batch(self, *names: str, spoiled: bool = False, topic: str = "quotes/x") -> Batch:
        batch = quote_batch(topic, list(names), price=[float(place) for place in range(len(names))])
        self.history.published("c", batch, spoiled)
        return batch

    def publish(self, sequence: int, *names: str) -> None:
        mode = Mode.ACCEPTED if sequence else Mode.FIRE
        self.say(1, Publish(sequence, mode, self.batch(*names)))


def test_a_subscription_expects_what_comes_after_it_and_matches() -> None:
    story = Story()
    story.publish(1, "early")
    log = story.subscribe(1, 1, "price > 0")
    story.publish(2, "a", "b", "c")
    assert log.in_force
    assert log.expected == ["b", "c"]


def test_a_batch_that_is_sent_again_counts_once_and_fire_always() -> None:
    story = Story()
    log = story.subscribe(1, 1)
    batch = story.batch("a")
    story.say(1, Publish(1, Mode.ACCEPTED, batch), Publish(1, Mode.ACCEPTED, batch))
    story.publish(0, "b")
    assert log.expected == ["a", "b"]
    assert story.history.accepted_events == 2


def test_a_refused_batch_counts_for_nothing_and_is_remembered_unless_it_was_spoiled() -> None:
    story = Story()
    log = story.subscribe(1, 1)
    story.say(1, Publish(1, Mode.ACCEPTED, story.batch("a", spoiled=True, topic="quotes//x")))
    assert story.history.refused == []
    story.say(1, Publish(2, Mode.ACCEPTED, story.batch("b", topic="quotes//x")))
    assert log.expected == []
    assert len(story.history.refused) == 1
    assert "BAD_TOPIC" in story.history.refused[0]


def test_of_what_a_client_said_before_it_was_sent_away_the_broker_keeps_the_refusals() -> None:
    story = Story()
    log = story.subscribe(1, 1)
    story.host.node.subscribers.by_link[1].close()
    looked_at = story.batch("spoiled", spoiled=True, topic="quotes//x")
    never_looked_at = story.batch("overlooked", spoiled=True)
    good = story.batch("good")
    batches = enumerate((looked_at, never_looked_at, good), 1)
    story.say(1, *(Publish(sequence, Mode.ACCEPTED, batch) for sequence, batch in batches))
    assert story.answers == [], "nothing is said on that link"
    assert (log.expected, story.history.accepted_events) == (["overlooked", "good"], 2)
    assert story.history.refused == []


def test_after_unsubscribing_and_after_goodbye_nothing_is_expected() -> None:
    story = Story()
    first, second = story.subscribe(1, 1), story.subscribe(2, 2)
    story.say(1, Unsubscribe(3, 1))
    story.publish(1, "a")
    story.say(1, Goodbye(0, ""))
    story.say(2, Hello(name="c"))
    story.say(2, Publish(1, Mode.ACCEPTED, story.batch("b")))
    assert (first.expected, second.expected) == ([], ["a"])


def test_a_session_that_is_resumed_goes_on() -> None:
    story = Story()
    log = story.subscribe(1, 1)
    key = next(iter(story.history.sessions))
    story.host.feed(LinkDown(1, "cut"))
    story.say(2, Hello(name="c", session=key))
    story.say(2, Publish(1, Mode.ACCEPTED, story.batch("a")))
    assert log.expected == ["a"]
    assert story.history.broken_resumes == []


def test_a_stranger_within_the_grace_is_noticed() -> None:
    story = Story()
    key = next(iter(story.history.sessions))
    story.host.feed(LinkDown(1, "cut"))
    session = story.host.node.subscribers.by_key[key]
    story.host.node.clients.end(session, "expired", story.host.world.now)
    story.host.node.effects.clear()
    story.say(2, Hello(name="c", session=key))
    assert isinstance(story.answers[0], Welcome)
    assert story.history.broken_resumes == ["c came back within its grace and was a stranger"]


def test_a_stranger_after_the_grace_is_none() -> None:
    story = Story()
    key = next(iter(story.history.sessions))
    story.host.feed(LinkDown(1, "cut"))
    story.host.world.run_for(20.0)
    story.say(2, Hello(name="c", session=key))
    assert story.history.broken_resumes == []


def test_events_are_numbered_by_publisher() -> None:
    story = Story()
    story.batch("a", "b")
    story.batch("c")
    assert [story.history.events[name].ordinal for name in "abc"] == [0, 1, 2]
    assert story.history.events["b"].attributes == {"price": 1.0}
