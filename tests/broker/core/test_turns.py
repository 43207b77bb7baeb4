"""A turn: what several clients publish in one turn of the host's loop is matched, delivered and acknowledged together.

The dumb twin hands in the same reads one by one, each a turn of its own: every subscriber gets the same events in the
same order, and every publisher the same answers.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.inputs import Received, Wake
from headgate.protocol.data import Batch, make_batch
from headgate.protocol.messages import Deliver, Error, Message, Mode, Puback, Publish, Subscribe
from tests.support.builders import deliveries_of
from tests.support.node_world import NodeWorld

TOPICS = ("quotes/a", "quotes/b", "quotes", "orders/a")
WANTS = (
    ("quotes", ""),
    ("quotes/a", ""),
    ("quotes", "price > 5"),
    ("quotes", "symbol = 'x' AND price < 5"),
    ("orders", "price IS NULL"),
    ("quotes/b", "symbol IS NOT NULL OR price >= 3"),
)
PUBLISHERS = 3

events = st.tuples(
    st.sampled_from(TOPICS), st.none() | st.integers(0, 9), st.none() | st.sampled_from("xy"), st.booleans()
)
batches = st.lists(events, min_size=1, max_size=3)
reads = st.tuples(st.integers(0, PUBLISHERS - 1), st.lists(batches, min_size=1, max_size=3), st.booleans())
changes = st.tuples(st.integers(0, len(WANTS) - 1), st.booleans())


def batch_of(rows: list[tuple[str, int | None, str | None, bool]], number: int = 0) -> Batch:
    """The rows of the first one's stream; publishers send the columns that are asked for, or all of them."""
    rows = [row for row in rows if row[0].partition("/")[0] == rows[0][0].partition("/")[0]]
    columns = {"price": [row[1] for row in rows], "symbol": [row[2] for row in rows]}
    interest = ("price", "symbol") if rows[0][3] else None
    return make_batch(
        [row[0] for row in rows], columns, [b"%d/%d" % (number, row) for row in range(len(rows))], interest
    )


def bad(batch: Batch) -> Batch:
    """The same with a column that nobody can read."""
    return Batch(batch.topics, batch.count, batch.lengths, batch.records, {"price": b"m\xc1"}, batch.complete)


class Run:
    """A broker with publishers and one subscriber, and all that each was told."""

    def __init__(self, in_turns: bool) -> None:
        self.world = NodeWorld()
        self.in_turns = in_turns
        self.subscriber = self.world.connect(credit=1_000_000)
        self.publishers = [self.world.connect() for _ in range(PUBLISHERS)]
        self.sequences = [0] * PUBLISHERS
        self.requests = 0

    def subscribe(self, number: int) -> None:
        pattern, condition = WANTS[number]
        self.requests += 1
        self.world.feed(Received(self.subscriber, [Subscribe(self.requests, self.requests, pattern, condition)]))

    def publish(self, publisher: int, several: list[Batch], more: bool) -> None:
        messages: list[Message] = []
        for batch in several:
            self.sequences[publisher] += 1
            messages.append(Publish(self.sequences[publisher], Mode.ACCEPTED, batch))
        self.world.feed(Received(self.publishers[publisher], messages, more=more and self.in_turns))

    def told(self) -> tuple[list[Any], list[Any]]:
        """What the subscriber got, and what publishers were answered in the end."""
        self.world.feed(Wake())
        got = deliveries_of(self.world.take(self.subscriber))
        answers: list[Any] = []
        for link in self.publishers:
            said = self.world.take(link)
            refused = [(one.code, one.reference) for one in said if isinstance(one, Error)]
            answers.append((refused, [one.sequence for one in said if isinstance(one, Puback)][-1:]))
        return got, answers


@given(st.lists(reads | changes, min_size=2, max_size=12), st.integers(0, 40))
def test_a_turn_delivers_what_its_reads_would_alone(steps: list[Any], broken: int) -> None:
    together, alone = Run(True), Run(False)
    for run in (together, alone):
        count = 0
        for step in steps:
            if len(step) == 2:
                run.subscribe(step[0])
                continue
            publisher, several, more = step
            made = []
            for rows in several:
                count += 1
                batch = batch_of(rows, count)
                made.append(bad(batch) if count == broken else batch)
            run.publish(publisher, made, more)
    assert together.told() == alone.told()


def test_a_turn_goes_out_as_one_delivery_and_a_lone_read_at_once() -> None:
    run = Run(True)
    run.subscribe(2)
    run.world.take(run.subscriber)
    one = batch_of([("quotes/a", 7, "x", True)])
    for publisher in range(PUBLISHERS):
        run.publish(publisher, [one], more=True)
    assert not run.world.take(run.subscriber) and run.world.node.next_deadline() == float("-inf")
    run.world.feed(Wake())
    (delivery,) = run.world.take(run.subscriber)
    assert isinstance(delivery, Deliver) and delivery.portion.count == PUBLISHERS
    assert run.world.node.next_deadline() > run.world.now
    run.publish(0, [one], more=False)
    assert len(run.world.take(run.subscriber)) == 1


def test_a_small_batch_that_cannot_be_read_is_refused_alone() -> None:
    run = Run(True)
    run.subscribe(2)
    good = batch_of([("quotes/a", 7, "x", True)])
    run.publish(0, [good], more=True)
    run.publish(1, [bad(good)], more=True)
    run.publish(2, [good], more=True)
    got, answers = run.told()
    assert len(got) == 2
    assert [bool(refused) for refused, _ in answers] == [False, True, False]
    assert [sequence for _, sequence in answers] == [[1], [1], [1]]
