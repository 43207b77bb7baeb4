"""A producer of the blocking client: each event is in the log once, whatever happens to connection and broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from headgate.protocol.blocking import connect_blocking
from headgate.protocol.client import ClientLimits
from headgate.protocol.data import Batch, encode_column, make_batch, row_batch
from headgate.protocol.errors import ErrorCode, Fenced, LocalError, OutOfSequence, Refused, UnknownOutcome
from tests.support.fake_broker import FakeBroker, fake_broker
from tests.support.limited import connect_blocking_limited
from tests.support.threaded import Threaded, in_thread

Fake = Threaded[FakeBroker]


@pytest.fixture
def fake() -> Iterator[Fake]:
    with in_thread(fake_broker) as threaded:
        yield threaded


def batch(*numbers: int) -> Batch:
    return make_batch(["jobs"], {"n": list(numbers)}, [b""] * len(numbers))


def logged(fake: Fake) -> list[int]:
    """What is in the log, in order."""
    numbers: list[int] = []
    for row in fake.thing.log.rows.get("jobs", []):
        numbers += row_batch(row).column("n")  # type: ignore[arg-type]
    return numbers


def test_batches_are_stored_under_name_epoch_and_number(fake: Fake) -> None:
    with connect_blocking(fake.thing.address) as client, client.producer("job/0", 7) as producer:
        assert (producer.name, producer.epoch, producer.next, producer.digest) == ("job/0", 7, 0, b"")
        producer.publish(batch(0, 1), b"first", encode_column(["a", "b"]))
        producer.publish(batch(2), b"second")
        producer.flush()
        assert (producer.next, producer.digest, producer.waiting, producer.failure) == (3, b"second", 0, None)
    first, second = fake.thing.log.rows["jobs"]
    assert (first.producer, first.epoch, first.number, first.digest) == ("job/0", 7, 0, b"first")
    assert (first.ids, second.number, second.ids) == (encode_column(["a", "b"]), 2, b"")


def test_the_next_one_of_that_name_hears_how_far_it_came(fake: Fake) -> None:
    with connect_blocking(fake.thing.address) as client:
        first = client.producer("job", 1)
        first.publish(batch(0, 1), b"digest")
        first.flush()
        second = client.producer("job", 2)
        assert (second.next, second.digest) == (2, b"digest")
        first.publish(batch(9))
        with pytest.raises(Fenced) as caught:
            first.flush()
        assert (caught.value.producer, caught.value.epoch) == ("job", 1)
        with pytest.raises(Fenced):
            first.publish(batch(9))
        with pytest.raises(Fenced):
            client.producer("job", 1)
        second.publish(batch(2))
        second.close()
    assert logged(fake) == [0, 1, 2]


def test_no_more_than_so_many_batches_are_under_way(fake: Fake) -> None:
    fake.thing.acknowledging = False
    with connect_blocking(fake.thing.address) as client:
        producer = client.producer("job", 1, inflight=3)
        for number in range(3):
            producer.publish(batch(number))
        fake.run(fake.thing.until(lambda: len(fake.thing.published) == 3))
        assert producer.waiting == 3
        fake.call(FakeBroker.acknowledge)
        producer.publish(batch(3))
        assert producer.waiting <= 3
        producer.close()
    assert logged(fake) == [0, 1, 2, 3]


def test_a_lost_connection_loses_and_doubles_nothing(fake: Fake) -> None:
    with connect_blocking(fake.thing.address) as client, client.producer("job", 1) as producer:
        producer.publish(batch(0))
        fake.call(FakeBroker.drop)
        producer.publish(batch(1))
        producer.flush()
        assert client.reconnects == 1
    assert logged(fake) == [0, 1]


def test_a_lost_session_leaves_no_outcome_unknown(fake: Fake) -> None:
    fake.thing.acknowledging = False
    with connect_blocking(fake.thing.address) as client:
        producer = client.producer("job", 1)
        for number in range(3):
            producer.publish(batch(number, number + 10))
        fake.run(fake.thing.until(lambda: len(fake.thing.published) == 3))

        def misfortune(broker: FakeBroker) -> None:
            broker.drop()
            broker.forget()
            broker.log.forget()
            broker.acknowledging = True

        fake.call(misfortune)
        producer.publish(batch(5))
        producer.close()
    assert logged(fake) == [0, 10, 1, 11, 2, 12, 5]
    assert fake.thing.log.duplicates == 3, "they were sent again and recognised"


@pytest.mark.parametrize("what", ["full", "kept"])
def test_what_was_not_stored_is_sent_again(fake: Fake, what: str) -> None:
    fake.thing.log.misfortunes = [(what, ErrorCode.NOT_STORED)] * 2
    with connect_blocking(fake.thing.address) as client, client.producer("job", 1) as producer:
        for number in range(5):
            producer.publish(batch(number))
        producer.flush()
    assert logged(fake) == [0, 1, 2, 3, 4]


def test_a_disk_that_stays_full_is_told(fake: Fake) -> None:
    fake.thing.log.misfortunes = [("full", ErrorCode.NOT_STORED)] * 100
    with connect_blocking_limited(fake.thing.address, ClientLimits(store_try_seconds=0.2)) as client:
        producer = client.producer("job", 1)
        producer.publish(batch(0))
        with pytest.raises(Refused) as caught:
            producer.close()
        assert caught.value.code == ErrorCode.NOT_STORED
        with pytest.raises(Refused), client.producer("job", 1) as again:
            again.publish(batch(0))
        with pytest.raises(ValueError, match="says more"), client.producer("job", 1) as again:
            again.publish(batch(0))
            raise ValueError("says more than what is left behind")


def test_a_broker_that_forgot_it_is_told_again(fake: Fake) -> None:
    with connect_blocking(fake.thing.address) as client, client.producer("job", 1) as producer:
        producer.publish(batch(0))
        producer.flush()
        fake.call(lambda broker: broker.log.forget())
        for number in range(1, 4):
            producer.publish(batch(number))
    assert logged(fake) == [0, 1, 2, 3]


def test_a_cluster_that_lost_events_is_found_out(fake: Fake) -> None:
    with connect_blocking(fake.thing.address) as client:
        producer = client.producer("job", 1)
        producer.publish(batch(0, 1))
        producer.flush()

        def misfortune(broker: FakeBroker) -> None:
            broker.log.producers["job"] = (1, 0, b"")
            broker.log.forget()

        fake.call(misfortune)
        producer.publish(batch(2))
        with pytest.raises(OutOfSequence) as caught:
            producer.flush()
        assert (caught.value.producer, caught.value.number) == ("job", 0)


def test_nobody_to_be_reached(fake: Fake) -> None:
    fake.thing.acknowledging = False
    client = connect_blocking(fake.thing.address, retry_seconds=0.05)
    producer = client.producer("job", 1)
    producer.publish(batch(0))
    fake.run(fake.thing.close())
    with pytest.raises(UnknownOutcome):
        producer.close()
    client.close()


def test_what_is_no_batch_is_our_own_error(fake: Fake) -> None:
    with connect_blocking(fake.thing.address) as client, client.producer("job", 1) as producer:
        with pytest.raises(LocalError):
            producer.publish(batch(0), ids=bytes(4 * 1024 * 1024))
        with pytest.raises(LocalError):
            client.producer("x" * 300, 1)
        with pytest.raises(LocalError):
            client.producer("", 1)
        with pytest.raises(LocalError):
            client.producer("x", -1)
        producer.publish(batch(0))
    assert logged(fake) == [0]


def test_a_cluster_that_is_being_repaired_is_waited_for(fake: Fake) -> None:
    fake.thing.log.unavailable = 2
    with connect_blocking(fake.thing.address) as client, client.producer("job", 1) as producer:
        assert fake.thing.log.unavailable == 0
        fake.call(lambda broker: broker.log.forget())
        fake.thing.log.unavailable = 1
        producer.publish(batch(0))
    assert logged(fake) == [0]
