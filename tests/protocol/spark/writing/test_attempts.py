"""Attempts: their epochs, their producers, and what each kind of idempotence asks of the log before the first row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")

from headgate.protocol.data import make_batch  # noqa: E402
from headgate.protocol.errors import Fenced  # noqa: E402
from headgate.protocol.limits import CREDIT_MAX, DIGEST_LENGTH_MAX  # noqa: E402
from headgate.protocol.spark.errors import IdsUnknown, NondeterministicInput, OtherWrite  # noqa: E402
from headgate.protocol.spark.layout import Layout, plan_layout  # noqa: E402
from headgate.protocol.spark.options import WriteOptions, write_options  # noqa: E402
from headgate.protocol.spark.writing import Attempt, Run, attempts, publish_attempt, rerun  # noqa: E402  # noqa: E402
from tests.support.fake_log import FakeClient, FakeLog  # noqa: E402

SECOND = 1_000_000


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    fake = FakeClient(FakeLog())
    monkeypatch.setattr(attempts, "connected", fake.connected)
    monkeypatch.setattr(rerun, "_known", (None, frozenset()))
    monkeypatch.setattr(rerun, "_shut_job", None)
    return fake


def options(**more: str) -> WriteOptions:
    return write_options({"headgate.bootstrap.servers": "one:7400", "topic": "q/a", "ackTimeout": "1ms"} | more)


def layout(chosen: WriteOptions) -> Layout:
    return plan_layout([("n", "bigint")], chosen)


def rows(*numbers: int) -> Iterator[Any]:
    yield pa.RecordBatch.from_pydict({"n": list(numbers)})


def attempt(identity: int, partition: int = 0, rerun: bool = False, run: int = 1) -> Attempt:
    """Of a run of the same job; `run` is the second in which it was planned."""
    return Attempt(Run("job", run * SECOND, rerun), partition, identity)


def publish(chosen: WriteOptions, one: Attempt, *numbers: int) -> Any:
    return publish_attempt(chosen, layout(chosen), one, rows(*numbers))


def first_run(chosen: WriteOptions, *partitions: list[int]) -> None:
    """A run that has published so much."""
    for partition, numbers in enumerate(partitions):
        publish(chosen, attempt(partition, partition, rerun=True), *numbers)


def again(chosen: WriteOptions, partition: int, *numbers: int, identity: int = 0) -> Any:
    """A task of the second run."""
    return publish(chosen, attempt(identity, partition, rerun=True, run=2), *numbers)


def test_epochs_grow_with_attempts_and_with_applications() -> None:
    epochs = [attempt(0, run=1_763_492_000), attempt(1, run=1_763_492_000), attempt(0, run=1_763_492_001)]
    assert [one.epoch for one in epochs] == sorted({one.epoch for one in epochs})
    assert attempt(1 << 20, run=4_000_000_000).epoch <= CREDIT_MAX


def test_an_attempt_names_its_producer_after_stream_job_and_partition() -> None:
    one = attempt(7, 3)
    assert one.producer("guarded", "q/a") == one.producer("id", "q") == "q/job/3"
    assert one.producer("guarded", "") == "*/job/3"
    assert one.producer("none", "q/a") == f"q/job/3/{one.epoch}"


def test_a_mark_fits_into_a_stamp(client: FakeClient) -> None:
    publish(options(), attempt(1), 1)
    assert 0 < len(client.log.producers["q/job/0"].digest) <= DIGEST_LENGTH_MAX


def test_guarded_goes_on_and_refuses_another_order(client: FakeClient) -> None:
    publish(options(), attempt(1), 1, 2)
    sent = publish(options(inflight="3"), attempt(2), 1, 2, 3)
    assert (sent.published, sent.skipped) == (1, 2)
    assert client.log.values("n") == [1, 2, 3]
    assert client.opened == [("q/job/0", attempt(1).epoch, 8), ("q/job/0", attempt(2).epoch, 3)]
    with pytest.raises(NondeterministicInput):
        publish(options(), attempt(3), 2, 1, 3)
    assert client.listed == 0, "a job without a name has no earlier run"


def test_none_repeats_what_its_predecessor_sent(client: FakeClient) -> None:
    for identity in (1, 2):
        publish(options(idempotence="none"), attempt(identity), 1)
    assert client.log.values("n") == [1, 1]
    assert not client.asked


def test_a_newer_attempt_shuts_the_older_one_out(client: FakeClient) -> None:
    publish(options(), attempt(2), 1)
    with pytest.raises(Fenced):
        publish(options(), attempt(1), 1)


# --- guarded, run again ------------------------------------------------------------------------------------------


def test_the_same_partitions_go_on_as_soon_as_all_were_compared(client: FakeClient) -> None:
    first_run(options(), [1, 2], [5])
    again(options(), 1, 5)  # which has nothing to send, and so waits for nobody
    again(options(), 0, 1, 2, 3)
    again(options(), 1, 5, 6, identity=1)
    again(options(), 2, 9)
    assert sorted(client.log.values("n")) == [1, 2, 3, 5, 6, 9]


def test_fewer_partitions_are_refused_before_anything_is_sent(client: FakeClient) -> None:
    first_run(options(), [1, 2], [3, 4], [5])
    with pytest.raises(OtherWrite, match=r"partitions 1, 2 in the log.*has published nothing"):
        again(options(), 0, 1, 2, 3, 4, 5)
    assert client.log.values("n") == [1, 2, 3, 4, 5]


def test_more_partitions_are_refused_before_anything_is_sent(
    client: FakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rerun, "COMPARE_SECONDS_MAX", 0.0)
    first_run(options(), [1, 2, 3, 4])
    with pytest.raises(NondeterministicInput, match="only 2 rows"):
        again(options(), 0, 1, 2)
    with pytest.raises(OtherWrite, match="partitions 0"):
        again(options(), 1, 3, 4)
    assert client.log.values("n") == [1, 2, 3, 4]


def test_a_task_that_is_compared_later_is_waited_for(client: FakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    first_run(options(), [1], [5])
    looks: list[float] = []

    def other_task(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 3:
            again(options(), 1, 5)

    monkeypatch.setattr(rerun.Patience, "pause", lambda patience: other_task(0.1))
    publish(options(ackTimeout="30s"), attempt(0, 0, rerun=True, run=2), 1, 2)
    assert len(looks) == 3
    assert client.log.values("n") == [1, 5, 2]


def test_a_task_that_outlives_its_run_does_not_go_on_when_a_later_run_has_compared(
    client: FakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark does not wait for tasks that it kills: one of two partitions, refused, is still there when one follows."""
    first_run(options(), [1, 2, 3, 4])

    def later_run(patience: Any) -> None:
        publish(options(), attempt(9, 0, rerun=True, run=3), 1, 2, 3, 4)

    monkeypatch.setattr(rerun.Patience, "pause", later_run)
    with pytest.raises(OtherWrite, match="a later run of it has begun"):
        publish(options(ackTimeout="30s"), attempt(1, 1, rerun=True, run=2), 3, 4)
    assert client.log.values("n") == [1, 2, 3, 4]


def test_an_attempt_whose_predecessor_went_on_does_not_wait_again(client: FakeClient) -> None:
    first_run(options(), [1])
    again(options(), 0, 1, 2, identity=1)
    listed = client.listed
    publish(options(), attempt(9, 3, rerun=True, run=2), 7)
    publish(options(), attempt(10, 3, rerun=True, run=2), 7, 8)
    assert client.listed == listed + 1, "its first attempt has"


@pytest.mark.parametrize("mode", [{}, {"eventIdColumn": "n"}])
def test_a_task_of_an_earlier_run_that_has_sent_nothing_yet_is_shut_out(client: FakeClient, mode: Any) -> None:
    """It was opened, and killed too late: what it sends would be in another partition now."""
    zombie = client.log.open("q/job/5", attempt(1, 5).epoch)
    again(options(**mode), 0, 1, 2)
    with pytest.raises(Fenced):
        client.log.append(zombie, make_batch(["q/a"], {"n": [2]}, [b""]), 0, b"", b"")
    listed = client.listed
    again(options(**mode), 1, 3)
    assert client.listed <= listed + 1, "once for all tasks of a worker"


# --- ids ---------------------------------------------------------------------------------------------------------


def test_ids_of_the_own_partition_are_asked_for_on_a_retry_alone(client: FakeClient) -> None:
    chosen = options(eventIdColumn="n")
    publish(chosen, attempt(1), 1, 2, 3, 4, 5)
    assert client.asked == []
    publish(chosen, attempt(2), 5, 6, 1, 2)
    assert client.log.values("n") == [1, 2, 3, 4, 5, 6]
    assert set(client.asked) == {"q/job/0"}


def test_a_rerun_with_other_partitions_asks_for_the_ids_of_all(client: FakeClient) -> None:
    chosen = options(eventIdColumn="n")
    publish(chosen, attempt(1, 0), 1, 2)
    publish(chosen, attempt(1, 4000), 3, 4)  # however many were empty between
    sent = again(chosen, 1, 1, 2, 3, 4, 5)
    assert (sent.published, sent.skipped) == (1, 4)
    assert sorted(client.log.values("n")) == [1, 2, 3, 4, 5]


def test_the_tasks_of_a_worker_ask_once_for_the_ids_of_earlier_runs(client: FakeClient) -> None:
    chosen = options(eventIdColumn="n")
    first_run(chosen, [1, 2], [3, 4], [5])
    client.asked.clear()
    for partition in range(8):
        again(chosen, partition, 1, 2, 3, 4, 5, 10 + partition, identity=partition)
    assert sorted(client.log.values("n")) == [1, 2, 3, 4, 5, *range(10, 18)]
    assert client.asked.count("q/job/2") == 2, "once for all, and by its own task"


def test_ids_that_nobody_has_fail_the_attempt(client: FakeClient) -> None:
    chosen = options(eventIdColumn="n")
    publish(chosen, attempt(1), 1, 2, 3)
    del client.log.producers["q/job/0"].ids[1:]
    with pytest.raises(IdsUnknown, match="events 0 to 2 the ids from 1 on"):
        publish(chosen, attempt(2), 1, 2, 3)
    with pytest.raises(IdsUnknown):
        again(chosen, 1, 1, 2, 3)
    assert client.log.values("n") == [1, 2, 3]


def test_an_earlier_run_is_shut_out_before_its_ids_are_asked_for(client: FakeClient) -> None:
    chosen = options(eventIdColumn="n")
    publish(chosen, attempt(1, 5), 1)
    again(chosen, 0, 1, 2)
    with pytest.raises(Fenced):
        publish(chosen, attempt(2, 5), 2)


# --- what does not go together -----------------------------------------------------------------------------------


@pytest.mark.parametrize("partition", [0, 1])
@pytest.mark.parametrize("ids_first", [False, True])
def test_another_mode_under_the_same_name_is_refused(client: FakeClient, partition: int, ids_first: bool) -> None:
    both = [options(), options(eventIdColumn="n")]
    first, second = reversed(both) if ids_first else both
    first_run(first, [1, 2])
    with pytest.raises(OtherWrite, match="an earlier run wrote it with 'idempotence'"):
        again(second, partition, 1, 2, 3)
    assert client.log.values("n") == [1, 2]


def test_events_of_something_else_under_the_same_name_are_refused(client: FakeClient) -> None:
    publish(options(), attempt(1), 1)
    client.log.producers["q/job/0"].digest = b"somebody else's"
    with pytest.raises(OtherWrite, match="this source has not written"):
        publish(options(), attempt(2), 1)


def test_another_stream_is_another_job(client: FakeClient) -> None:
    for topic in ("q/a", "r/a"):
        publish(options(topic=topic, eventIdColumn="n"), attempt(1, rerun=True), 1, 2)
    assert client.log.values("n") == [1, 2, 1, 2]


# --- rows of several streams -------------------------------------------------------------------------------------


def mixed(one: Attempt, *topics: str) -> Any:
    """Publish rows that name their topics."""
    chosen = write_options({"headgate.bootstrap.servers": "one:7400", "ackTimeout": "1ms"})
    columns = {"n": list(range(len(topics))), "topic": list(topics)}
    planned = plan_layout([("n", "bigint"), ("topic", "string")], chosen)
    return publish_attempt(chosen, planned, one, iter([pa.RecordBatch.from_pydict(columns)]))


@pytest.mark.parametrize("more", [[], ["orders/c"]])
def test_a_purge_of_one_of_its_streams_shuts_out_what_ran_before_it(client: FakeClient, more: list[str]) -> None:
    first = attempt(1, rerun=True)
    mixed(first, "quotes/a", "orders/b")
    client.log.open("quotes/*/purged", first.epoch)
    with pytest.raises(OtherWrite, match=r"stream 'quotes', which was purged.*has published nothing") as caught:
        mixed(attempt(0, rerun=True, run=2), "quotes/a", "orders/b", *more)
    assert caught.value.job == "job"
    assert client.log.values("n") == [0, 1]
    opened = attempt(0, rerun=True, run=2).epoch
    assert client.opened[-1][:2] == ("*/job/0", opened), "nor has it said that its rows are the same"


def test_purges_of_other_streams_and_before_its_run_do_not_matter(client: FakeClient) -> None:
    client.log.open("quotes/*/purged", attempt(9).epoch)
    client.log.open("trades/*/purged", attempt(9, run=3).epoch)
    mixed(attempt(1, rerun=True, run=2), "quotes/a", "orders/b")
    assert mixed(attempt(0, rerun=True, run=4), "quotes/a", "orders/b", "orders/c").published == 1


def test_a_job_of_one_stream_does_not_ask_for_purges(client: FakeClient) -> None:
    publish(options(), attempt(1), 1)
    publish(options(), attempt(2), 1)
    assert client.listed == 0
