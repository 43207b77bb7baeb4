"""One partition's events are in the log once, however its attempts die, and in whatever order they come back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow")

from headgate.protocol.data import encode_column  # noqa: E402
from headgate.protocol.errors import Fenced  # noqa: E402
from headgate.protocol.spark.errors import BadRow, NondeterministicInput  # noqa: E402
from headgate.protocol.spark.layout import Layout  # noqa: E402
from headgate.protocol.spark.writing import (  # noqa: E402
    Mark,
    Sent,
    mark_of,
)
from headgate.protocol.spark.writing.sending import Guarded, WithIds, send_partition  # noqa: E402
from tests.support.fake_log import FakeLog, FakeProducer  # noqa: E402

LAYOUT = Layout("q/a", "", (), (("n", "int"),), "")
WITH_IDS = Layout("q/a", "", (), (("n", "int"),), "n")
NAME = "q/job/0"
BY_IDS = Mark(0, 1, "id", 0)


class Died(Exception):
    """A task was killed."""


def batches(numbers: list[int], size: int = 10) -> Iterator[Any]:
    for start in range(0, len(numbers), size):
        yield pa.RecordBatch.from_pydict({"n": numbers[start : start + size]})


def dying(after: int) -> Callable[[int], None]:
    def stop(published: int) -> None:
        if published >= after:
            raise Died

    return stop


def guard_of(accepted: int, digest: bytes, said: list[str] | None = None) -> Guarded:
    """A guard that writes down when it has compared, and when it waits."""
    words = [] if said is None else said
    mark = Mark(0, 1, "guarded", 0)
    return Guarded(
        *(NAME, accepted, digest, LAYOUT.topic, mark),
        lambda streams: words.append(f"compared {' '.join(streams)}"),
        lambda: words.append("waits"),
    )


def guarded(log: FakeLog, epoch: int, numbers: list[int], after: int | None = None, size: int = 10) -> Sent:
    producer = log.open(NAME, epoch)
    before = mark_of(producer.digest)
    guard = guard_of(producer.next, b"" if before is None else before.digest)
    stop = None if after is None else dying(after)
    return send_partition(batches(numbers, size), LAYOUT, 1 << 20, producer, guard, stop)


def with_ids(log: FakeLog, epoch: int, numbers: list[int], after: int | None = None, name: str = NAME) -> Sent:
    producer = log.open(name, epoch)
    known = [one for state in log.producers.values() for one in state.ids]
    stop = None if after is None else dying(after)
    return send_partition(batches(numbers), WITH_IDS, 1 << 20, producer, WithIds("n", [known], BY_IDS), stop)


def test_a_first_attempt_sends_everything() -> None:
    log = FakeLog()
    sent = guarded(log, 1, list(range(25)))
    assert log.values("n") == list(range(25))
    assert (sent.published, sent.skipped, sent.frames) == (25, 0, 3)
    assert sent.bytes == sum(len(batch.records) for batch in log.batches)


def test_a_retry_goes_on_where_the_log_ends() -> None:
    log = FakeLog()
    with pytest.raises(Died):
        guarded(log, 1, list(range(25)), after=10)
    sent = guarded(log, 2, list(range(25)))
    assert log.values("n") == list(range(25))
    assert (sent.published, sent.skipped) == (15, 10)


def test_a_retry_whose_batches_end_elsewhere_goes_on_within_one() -> None:
    log = FakeLog()
    with pytest.raises(Died):
        guarded(log, 1, list(range(25)), after=10)
    sent = guarded(log, 2, list(range(25)), size=7)
    assert log.values("n") == list(range(25))
    assert (sent.published, sent.skipped) == (15, 10)


def test_a_rerun_of_a_finished_job_sends_nothing() -> None:
    log = FakeLog()
    guarded(log, 1, list(range(25)))
    assert guarded(log, 2, list(range(25))).published == 0
    assert log.values("n") == list(range(25))


@pytest.mark.parametrize(
    "numbers",
    [
        [1, 0, *range(2, 25)],
        [*range(5), 99, *range(5, 25)],
        [*range(9), 99, *range(10, 25)],
    ],
)
def test_another_order_is_refused_and_nothing_is_repeated(numbers: list[int]) -> None:
    log = FakeLog()
    with pytest.raises(Died):
        guarded(log, 1, list(range(25)), after=10)
    with pytest.raises(NondeterministicInput, match="10 events"):
        guarded(log, 2, numbers)
    assert log.values("n") == list(range(10))
    guarded(log, 3, list(range(25)))  # the old order, met again by a later attempt
    assert log.values("n") == list(range(25))


def test_fewer_rows_than_are_in_the_log_are_refused() -> None:
    log = FakeLog()
    guarded(log, 1, list(range(25)))
    with pytest.raises(NondeterministicInput, match="only 12 rows"):
        guarded(log, 2, list(range(12)))


def test_without_the_guard_another_order_loses_and_repeats() -> None:
    """What the digest is for: numbers alone take the first of the new order for the first of the old one."""
    log = FakeLog()
    with pytest.raises(Died):
        guarded(log, 1, list(range(25)), after=10)
    producer = log.open(NAME, 2)
    numbers = list(range(24, -1, -1))
    send_partition(batches(numbers[producer.next :]), LAYOUT, 1 << 20, producer, None)
    assert sorted(set(log.values("n"))) != list(range(25))


def test_who_has_something_to_send_waits_once_after_it_has_compared() -> None:
    log = FakeLog()
    guarded(log, 1, list(range(25)))
    said: list[str] = []
    for numbers, wanted in ((range(25), ["compared q"]), (range(60), ["compared q", "waits"])):
        producer = log.open(NAME, 2)
        before = mark_of(producer.digest)
        assert before is not None
        said.clear()
        guard = guard_of(producer.next, before.digest, said)
        send_partition(batches(list(numbers)), LAYOUT, 1 << 20, producer, guard)
        assert said == wanted


def test_a_zombie_is_fenced() -> None:
    log = FakeLog()
    old = log.open(NAME, 1)
    guarded(log, 2, list(range(5)))
    with pytest.raises(Fenced):
        send_partition(batches([7]), LAYOUT, 1 << 20, old, guard_of(0, b""))
    assert log.values("n") == list(range(5))


def test_ids_are_exact_in_any_order_and_any_partitioning() -> None:
    log = FakeLog()
    with pytest.raises(Died):
        with_ids(log, 1, list(range(25)), after=10)
    sent = with_ids(log, 2, list(range(24, -1, -1)))
    assert (sent.published, sent.skipped) == (15, 10)
    with_ids(log, 3, list(range(10, 30)), name="job/1")
    assert sorted(log.values("n")) == list(range(30))


def test_ids_travel_beside_the_batch() -> None:
    log = FakeLog()
    taken: list[bytes] = []

    class Watching(FakeProducer):
        def publish(self, batch: Any, digest: bytes = b"", ids: bytes = b"") -> None:
            taken.append(ids)
            super().publish(batch, digest, ids)

    log.open(NAME, 1)
    producer = Watching(log, NAME, 1, log.producers[NAME], None)
    send_partition(batches([5, 6]), WITH_IDS, 1 << 20, producer, WithIds("n", [], BY_IDS))
    assert taken == [encode_column(["5", "6"])]


def test_a_row_without_an_id_is_refused() -> None:
    rows = [pa.RecordBatch.from_pydict({"n": [1, None]})]
    with pytest.raises(BadRow, match="'n'"):
        send_partition(rows, WITH_IDS, 1 << 20, FakeLog().open(NAME, 1), WithIds("n", [], BY_IDS))


def test_nothing_counts_as_sent_before_the_log_has_it() -> None:
    producer = FakeLog().open(NAME, 1)
    send_partition(batches([1]), LAYOUT, 1 << 20, producer, None)
    assert producer.flushed


def test_match_columns_follow_the_interest_of_the_stream() -> None:
    log = FakeLog(interest=["n"])
    guarded(log, 1, [1, 2])
    assert list(log.batches[0].columns) == ["n"]


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_any_history_of_attempts_is_exact(data: st.DataObject) -> None:
    """Attempts die anywhere, come back in the same order with other batch sizes or in another order, or are twins."""
    count = data.draw(st.integers(1, 60))
    numbers = list(range(count))
    by_id = data.draw(st.booleans())
    log = FakeLog()
    randomness = Random(data.draw(st.integers(0, 1000)))
    for epoch in range(data.draw(st.integers(0, 4))):
        order = list(numbers)
        if data.draw(st.booleans()):
            randomness.shuffle(order)
        after = data.draw(st.integers(0, count))
        try:
            if by_id:
                with_ids(log, epoch, order, after)
            else:
                guarded(log, epoch, order, after, data.draw(st.integers(1, 20)))
        except (Died, NondeterministicInput):
            pass
    assert len(set(log.values("n"))) == len(log.events), "an event is there twice"
    if by_id:
        with_ids(log, 9, numbers)
    else:
        try:
            guarded(log, 9, numbers)
        except NondeterministicInput:
            assert log.values("n") != numbers[: len(log.events)]
            return
        assert log.values("n") == numbers
    assert sorted(log.values("n")) == numbers
