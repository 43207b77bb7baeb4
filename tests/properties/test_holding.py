"""Credit by subscription: whoever takes everything gets everything, whatever other subscriptions of its client do.

The real conversation of a client and the real Node of a broker, with windows of a few events, random takes, random lost
connections, and an outbox that is sometimes too small.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.broker.core.inputs import Wake
from headgate.protocol.client import ClientOptions, Conversation, Inbox, Outcome
from tests.support.builders import make_publish, quote_batch
from tests.support.node_world import NodeWorld

TOPICS = ("a/x", "a/y", "b/x")
PATTERNS = ("a", "a/x", "b", "b")


class Pair:
    """A client with some subscriptions at a broker, and a publisher there."""

    def __init__(self, window: int, window_bytes: int, outbox_bytes: int) -> None:
        self.world = NodeWorld(outbox_bytes=outbox_bytes)
        self.publisher = self.world.connect()
        self.sequence = 0
        options = ClientOptions(credit=window, credit_bytes=window_bytes)
        self.conversation = Conversation(options, Outcome)
        self.connect()
        self.inboxes = [self.conversation.inbox(pattern, "", {}) for pattern in PATTERNS]
        for inbox in self.inboxes:
            self.conversation.subscribe(inbox)
        self.settle()
        assert all(inbox.confirmed for inbox in self.inboxes)
        self.wanted: list[list[int]] = [[] for _ in PATTERNS]
        self.taken: list[list[int]] = [[] for _ in PATTERNS]

    def connect(self) -> None:
        self.link, answers = self.world.dial(self.conversation.hello())
        for message in answers:
            self.conversation.handle(message)

    def reconnect(self) -> None:
        self.world.drop(self.link)
        self.conversation.interrupted("cut")
        self.connect()
        self.settle()

    def settle(self) -> None:
        """Until nobody has anything to say."""
        while True:
            said = list(self.conversation.outgoing())
            messages = self.world.say(self.link, *said) if said else self.world.take(self.link)
            if self.world.node.next_deadline() == float("-inf"):
                self.world.feed(Wake())
                messages += self.world.take(self.link)
            for message in messages:
                self.conversation.handle(message)
            if not said and not messages:
                return

    def publish(self, topic: str, count: int, size: int) -> None:
        bodies = [f"{self.sequence + row}:".ljust(size, "x") for row in range(count)]
        for place, pattern in enumerate(PATTERNS):
            if f"{topic}/".startswith(f"{pattern}/"):
                self.wanted[place] += range(self.sequence, self.sequence + count)
        self.batches = getattr(self, "batches", 0) + 1
        self.world.say(self.publisher, make_publish(self.batches, quote_batch(topic, bodies)))
        self.sequence += count
        self.settle()
        self.world.node.validate()

    def take(self, place: int) -> bool:
        events = self.inboxes[place].take()
        self.taken[place] += [int(event.text.split(":")[0]) for event in events]
        self.settle()
        return bool(events)

    def take_all(self, place: int) -> None:
        while self.take(place):
            pass


def missing(pair: Pair, place: int) -> list[int]:
    return sorted(set(pair.wanted[place]) - set(pair.taken[place]))


acts = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.sampled_from(TOPICS), st.integers(1, 6), st.integers(1, 60)),
        st.tuples(st.just("take"), st.integers(0, 3)),
        st.tuples(st.just("reconnect")),
    ),
    max_size=60,
)


@settings(deadline=None)
@given(acts, st.integers(1, 12), st.integers(1, 400), st.sets(st.integers(0, 3)))
def test_a_subscription_that_is_taken_from_gets_everything_at_once(
    story: list[tuple[object, ...]], window: int, window_bytes: int, busy: set[int]
) -> None:
    pair = Pair(window, window_bytes, 1 << 20)
    for act, *words in story:
        if act == "publish":
            pair.publish(*words)  # type: ignore[arg-type]
        elif act == "reconnect":
            pair.reconnect()
        elif act == "take":
            pair.take(*words)  # type: ignore[arg-type]
        for place in busy:
            pair.take_all(place)
            assert pair.taken[place] == pair.wanted[place], "nothing is kept from whoever takes"
        for inbox in pair.inboxes:
            assert inbox.events_waiting <= 2 * (window + 6)
    for place in range(len(PATTERNS)):
        pair.take_all(place)
    for place in range(len(PATTERNS)):
        pair.take_all(place)
        assert pair.taken[place] == pair.wanted[place], "and nothing was lost"
        assert not pair.inboxes[place].gaps and not pair.inboxes[place].held
    assert not pair.world.node.statistics(0.0).outbox_bytes


@settings(deadline=None)
@given(acts, st.integers(1, 12), st.integers(600, 3000))
def test_what_does_not_fit_is_counted_against_whoever_was_full(
    story: list[tuple[object, ...]], window: int, outbox_bytes: int
) -> None:
    """Nobody takes from any but the last, which loses nothing while the outbox has room for one publication."""
    pair = Pair(window, 1 << 20, outbox_bytes)
    for act, *words in story:
        if act == "publish":
            pair.publish(*words)  # type: ignore[arg-type]
        pair.take_all(3)
    for place in (0, 1, 2):
        pair.take_all(place)
    for place, inbox in enumerate(pair.inboxes):
        pair.take_all(place)
        assert pair.taken[place] == sorted(set(pair.taken[place])), "in order, none twice"
        assert inbox.lost == len(missing(pair, place)), "every one that is missing was told"


def lost(inboxes: list[Inbox]) -> list[int]:
    return [inbox.lost for inbox in inboxes]


def test_one_that_is_full_pays_alone() -> None:
    pair = Pair(4, 1 << 20, 3000)
    for _ in range(50):
        pair.publish("a/y", 2, 20)
        pair.publish("b/x", 1, 20)
        pair.take_all(2)
        pair.take_all(3)
    assert pair.inboxes[0].held and pair.inboxes[0].stalls == 1
    assert pair.taken[2] == pair.taken[3] == pair.wanted[2]
    first, *others = lost(pair.inboxes)
    assert first > 50 and others == [0, 0, 0]
    pair.take_all(0)
    assert len(pair.taken[0]) + pair.inboxes[0].lost == 100 and pair.taken[0][-1] == pair.wanted[0][-1]
