"""Attempts: their epochs, their producers, and what each kind of idempotence asks of the log before the first row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")

from headgate.protocol.errors import Fenced  # noqa: E402
from headgate.protocol.limits import CREDIT_MAX  # noqa: E402
from headgate.protocol.spark import attempts  # noqa: E402
from headgate.protocol.spark.attempts import Attempt, epoch_of, known_ids, publish_attempt  # noqa: E402
from headgate.protocol.spark.errors import NondeterministicInput  # noqa: E402
from headgate.protocol.spark.layout import Layout, plan_layout  # noqa: E402
from headgate.protocol.spark.limits import MISSING_PARTITIONS_MAX  # noqa: E402
from headgate.protocol.spark.options import WriteOptions, write_options  # noqa: E402
from tests.support.fake_log import FakeClient, FakeLog  # noqa: E402


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    fake = FakeClient(FakeLog())
    monkeypatch.setattr(attempts, "connected", fake.connected)
    return fake


def options(**more: str) -> WriteOptions:
    return write_options({"headgate.bootstrap.servers": "one:7400", "topic": "q/a"} | more)


def layout(chosen: WriteOptions) -> Layout:
    return plan_layout([("n", "bigint")], chosen)


def rows(*numbers: int) -> Iterator[Any]:
    yield pa.RecordBatch.from_pydict({"n": list(numbers)})


def attempt(epoch: int, partition: int = 0, rerun: bool = False) -> Attempt:
    return Attempt("job", partition, epoch, rerun)


def publish(chosen: WriteOptions, one: Attempt, *numbers: int) -> Any:
    return publish_attempt(chosen, layout(chosen), one, rows(*numbers))


def test_epochs_grow_with_attempts_and_with_applications() -> None:
    epochs = [epoch_of(1_763_492_000, 0), epoch_of(1_763_492_000, 1), epoch_of(1_763_492_001, 0)]
    assert epochs == sorted(set(epochs))
    assert epoch_of(4_000_000_000, 1 << 20) <= CREDIT_MAX


def test_an_attempt_names_its_producer() -> None:
    one = attempt(7, 3)
    assert one.producer("guarded") == one.producer("id") == "job/3"
    assert one.producer("none") == "job/3/7"


def test_guarded_goes_on_and_refuses_another_order(client: FakeClient) -> None:
    publish(options(), attempt(1), 1, 2)
    sent = publish(options(inflight="3"), attempt(2), 1, 2, 3)
    assert (sent.published, sent.skipped) == (1, 2)
    assert client.log.values("n") == [1, 2, 3]
    assert client.opened == [("job/0", 1, 8), ("job/0", 2, 3)]
    with pytest.raises(NondeterministicInput):
        publish(options(), attempt(3), 2, 1, 3)


def test_none_repeats_what_its_predecessor_sent(client: FakeClient) -> None:
    for epoch in (1, 2):
        publish(options(idempotence="none"), attempt(epoch), 1)
    assert client.log.values("n") == [1, 1]
    assert not client.asked


def test_ids_of_the_own_partition_are_asked_for_on_a_retry_alone(client: FakeClient) -> None:
    chosen = options(eventIdColumn="n")
    publish(chosen, attempt(1), 1, 2, 3, 4, 5)
    assert client.asked == []
    publish(chosen, attempt(2), 5, 6, 1, 2)
    assert client.log.values("n") == [1, 2, 3, 4, 5, 6]
    assert set(client.asked) == {"job/0"}


def test_a_rerun_with_other_partitions_asks_for_the_ids_of_all(client: FakeClient) -> None:
    chosen = options(eventIdColumn="n")
    publish(chosen, attempt(1, 0), 1, 2)
    publish(chosen, attempt(1, 40), 3, 4)
    sent = publish(chosen, attempt(2, 1, rerun=True), 1, 2, 3, 4, 5)
    assert (sent.published, sent.skipped) == (1, 4)
    assert sorted(client.log.values("n")) == [1, 2, 3, 4, 5]


def test_the_search_for_earlier_partitions_ends(client: FakeClient) -> None:
    assert known_ids(client, attempt(1, rerun=True), 0) == []  # type: ignore[arg-type]
    assert len(client.asked) == MISSING_PARTITIONS_MAX


def test_a_newer_attempt_shuts_the_older_one_out(client: FakeClient) -> None:
    publish(options(), attempt(2), 1)
    with pytest.raises(Fenced):
        publish(options(), attempt(1), 1)
