"""Publications: batching, the window, outcomes; and a dumb twin that is told the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.protocol.client import ClientLimits, Outcome
from headgate.protocol.client.publishing import Publications
from headgate.protocol.data import Batch
from headgate.protocol.errors import ConnectionLost, LocalError, Refused, UnknownOutcome
from headgate.protocol.limits import PUBLISH_LENGTH_MAX
from headgate.protocol.messages import Publish
from headgate.protocol.wire import encode


def made(batch_events: int = 500, window: int = 256, limits: ClientLimits | None = None) -> Publications:
    publications = Publications(Outcome, batch_events, limits=limits or ClientLimits())
    publications.window = window
    return publications


def sent(publications: Publications) -> list[Publish]:
    publications.seal_all()
    return list(publications.release())


def bodies_of(batch: Batch) -> list[bytes]:
    return [piece[-1:] for piece in batch.pieces()]


def test_columns_are_the_union_of_what_occurs() -> None:
    publications = made()
    publications.add("a/1", {"x": 1}, b"", "", 1)
    publications.add("a/2", {"y": "s"}, b"", "", 1)
    (message,) = sent(publications)
    batch = message.batch
    assert (batch.topics, batch.complete) == ("a/1\na/2", True)
    assert (batch.column("x"), batch.column("y"), batch.column("z")) == ([1, None], [None, "s"], None)
    batch.check()


@pytest.mark.parametrize(
    ("interest", "names", "complete"),
    [
        (None, ["x", "y"], True),
        ([], [], False),
        (["x"], ["x"], False),
        (["y", "x"], ["y", "x"], True),
        (["x", "y", "z"], ["x", "y"], True),
        (["x", "z"], ["x", "z"], False),
    ],
)
def test_interest_decides_the_columns(interest: list[str] | None, names: list[str], complete: bool) -> None:
    publications = made()
    publications.interest["a"] = interest
    publications.add("a", {"x": 1, "y": 2}, b"", "", 1)
    (message,) = sent(publications)
    assert (list(message.batch.columns), message.batch.complete) == (names, complete)
    assert [message.batch.column(name) for name in ("x", "y", "z")] == [[1], [2], message.batch.column("z")]
    assert message.batch.column("z") in (None, [None])


def test_nothing_to_filter_by_is_complete_with_any_interest() -> None:
    publications = made()
    publications.interest["a"] = []
    publications.add("a", None, b"", "", 1)
    assert sent(publications)[0].batch.complete


def test_more_attributes_than_a_batch_may_have_columns_are_derived() -> None:
    publications = made()
    for part in range(3):
        publications.add("a", {f"x{part}.{number}": 1 for number in range(100)}, b"", "", 1)
    (message,) = sent(publications)
    assert (len(message.batch.columns), message.batch.complete) == (256, False)
    message.batch.check()
    assert message.batch.column("x2.99") == [None, None, 1]


def test_a_batch_ends_at_its_events_its_bytes_and_a_change_of_mode() -> None:
    publications = made(batch_events=2)
    for mode in (1, 1, 1, 0):
        publications.add("a", None, b"", "", mode)
    assert [(one.mode, one.sequence, one.batch.count) for one in sent(publications)] == [
        (1, 1, 2),
        (1, 2, 1),
        (0, 0, 1),
    ]
    for _ in range(3):
        publications.add("a", None, b"x" * 200_000, "", 1)
    assert [one.batch.count for one in sent(publications)] == [1, 1, 1]
    publications.acknowledged(99)
    assert publications.idle


def test_bad_batch_sizes_are_refused() -> None:
    for count in (0, 4097):
        with pytest.raises(LocalError):
            made(count)


def test_the_window_holds_back_and_lets_go() -> None:
    publications = made(batch_events=1, window=2)
    outcomes = [publications.add("a", None, b"", "", 1) for _ in range(5)]
    assert [one.sequence for one in publications.release()] == [1, 2]
    assert not publications.releasable
    publications.acknowledged(1)
    assert [outcome.settled for outcome in outcomes] == [True, False, False, False, False]
    assert [one.sequence for one in publications.release()] == [3]
    assert publications.pending() == outcomes[1:]


def test_full_and_roomy() -> None:
    publications = made(batch_events=1, limits=ClientLimits(queue_bytes=3000))
    while not publications.full:
        publications.add("a", None, b"x" * 400, "", 1)
    assert not publications.roomy
    list(publications.release())
    publications.acknowledged(3)
    assert publications.roomy and not publications.full
    publications.acknowledged(99)
    assert publications.bytes_waiting == 0


def test_a_refusal_is_told_once_and_kept_when_nobody_awaits() -> None:
    publications = made(batch_events=1)
    awaited, other = (publications.add("a", None, b"", "", 1) for _ in range(2))
    awaited.awaiters += 1
    list(publications.release())
    for sequence in (1, 2):
        publications.refused(sequence, Refused(100, str(sequence)))
    publications.acknowledged(2)
    assert isinstance(awaited.error, Refused) and isinstance(other.error, Refused)
    assert (publications.failure_count, list(publications.failures)) == (1, [other.error])
    assert publications.take_unreported() is other.error
    assert publications.take_unreported() is None
    publications.refused(0, Refused(100, "fired"))
    assert isinstance(publications.take_unreported(), Refused)


def test_who_awaits_late_is_told_and_flush_need_not_say_it_again() -> None:
    publications = made(batch_events=1)
    outcome = publications.add("a", None, b"", "", 1)
    list(publications.release())
    publications.refused(1, Refused(100, "no"))
    outcome.awaiters += 1
    assert publications.take_unreported() is None


def test_resumed_drops_what_is_accepted_and_sends_the_rest_again_in_order() -> None:
    publications = made(batch_events=1)
    outcomes = [publications.add("a", None, b"", "", 1) for _ in range(4)]
    publications.window = 3
    list(publications.release())
    publications.resumed(1, 2)
    assert [outcome.settled for outcome in outcomes] == [True, False, False, False]
    assert [one.sequence for one in publications.release()] == [2, 3]
    publications.resumed(2, 10)
    assert [one.sequence for one in publications.release()] == [3, 4]


def test_restarted_leaves_unknown_what_was_sent_and_keeps_the_rest() -> None:
    publications = made(batch_events=1, window=2)
    publications.interest["a"] = []
    outcomes = [publications.add("a", None, b"", "", 1) for _ in range(3)]
    list(publications.release())
    publications.resumed(0, 1)
    publications.restarted(5, "gone")
    assert [type(outcome.error) for outcome in outcomes] == [UnknownOutcome, UnknownOutcome, type(None)]
    assert [one.sequence for one in publications.release()] == [1]
    assert publications.interest == {}


def test_abandon_tells_everybody() -> None:
    publications = made()
    first = publications.add("a", None, b"", "", 1)
    sent(publications)
    second = publications.add("a", None, b"", "", 1)
    publications.abandon(ConnectionLost("gone"), "gone")
    assert (type(first.error), type(second.error)) == (UnknownOutcome, ConnectionLost)
    assert publications.idle and publications.bytes_waiting == 0


def test_columns_come_after_what_their_stream_had_open() -> None:
    publications = made()
    publications.add("a", None, b"1", "", 1)
    publications.add("b", None, b"9", "", 1)
    outcomes = list(publications.add_columns("a", {}, [b"2", b"3"], "", 1))
    assert [outcome.events for outcome in outcomes] == [2]
    assert [bodies_of(one.batch) for one in sent(publications)] == [[b"1"], [b"2", b"3"], [b"9"]]


def test_large_columns_are_cut_to_fit_a_frame() -> None:
    publications = made()
    sizes = [1_000_000] * 7 + [10] * 50 + [900_000] * 3
    list(publications.add_columns("a", {"s": ["y" * 1000] * 60}, [b"x" * size for size in sizes], "", 1))
    messages = sent(publications)
    assert sum(one.batch.count for one in messages) == 60
    assert all(len(one.batch.records) < 4_000_000 for one in messages)
    wide = {f"c{number}": ["y" * 10_000] * 1000 for number in range(5)}
    list(publications.add_columns("a", wide, [b""] * 1000, "", 1))
    for one in sent(publications):
        assert len(one.batch.records) + sum(map(len, one.batch.columns.values())) < 4 * 1024 * 1024


steps = st.one_of(
    st.tuples(st.just("add"), st.sampled_from("ab"), st.integers(0, 1)),
    st.sampled_from([("release",), ("seal",), ("ack",), ("refuse",), ("resume",), ("restart",)]),
)


@given(st.lists(steps, max_size=60), st.integers(1, 3), st.integers(1, 3))
def test_any_history_agrees_with_a_broker_that_counts(
    history: list[tuple[str, ...]], batch_events: int, window: int
) -> None:
    """The twin is a broker that takes each number once, and a list of what it must have taken from each stream."""
    publications = made(batch_events, window)
    taken: dict[str, list[int]] = {"a": [], "b": []}
    outcomes: list[Outcome] = []
    accepted = 0
    added = 0
    for step in [*history, ("resume",), ("seal",), *[("release",), ("ack",)] * 60]:
        if step[0] == "add":
            outcomes.append(publications.add(step[1], {"n": added}, b"", "", int(step[2])))
            added += 1
        elif step[0] == "release":
            for message in publications.release():
                assert message.sequence <= accepted + 1, "a hole"
                if message.sequence == 0 or message.sequence == accepted + 1:
                    accepted = max(accepted, message.sequence)
                    taken[message.batch.topic_list()[0]] += message.batch.column("n") or []  # type: ignore[arg-type]
        elif step[0] == "seal":
            publications.seal_all()
        elif step[0] == "ack":
            publications.acknowledged(accepted)
        elif step[0] == "refuse":
            publications.refused(accepted, Refused(100, "no"))
        elif step[0] == "resume":
            publications.resumed(accepted, window)
        else:
            publications.restarted(window, "gone")
            accepted = 0
    assert all(outcome.settled for outcome in outcomes)
    assert publications.idle and publications.bytes_waiting == 0
    assert sorted(taken["a"] + taken["b"]) == list(range(added)), "each was taken once"
    assert all(numbers == sorted(numbers) for numbers in taken.values()), "in the order of its stream"


def test_columns_become_batches_that_a_broker_takes() -> None:
    publications = made()
    text = "y" * 485
    list(publications.add_columns("a/x", {"text": [text] * 4096}, [b""] * 4096, "", 1))
    batches = [encode(message) for message in publications.release()]
    assert len(batches) > 1
    assert all(len(batch) <= PUBLISH_LENGTH_MAX for batch in batches)


def test_a_refusal_that_is_said_again_is_one_failure() -> None:
    publications = made()
    publications.add("a", {}, b"", "", 1)
    (message,) = sent(publications)
    for _ in range(2):
        publications.refused(message.sequence, Refused(102, "no"))
    assert publications.failure_count == 1
