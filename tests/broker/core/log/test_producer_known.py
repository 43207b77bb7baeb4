"""What is known of a producer: pending, kept, undone, seen in copies and taken back."""

from __future__ import annotations

import pytest

from headgate.broker.core.log.fences import decode_fence
from headgate.broker.core.log.producers import KnownProducer, check_producer, fenced
from headgate.broker.core.log_state import ProducerState
from headgate.protocol.data import Row
from headgate.protocol.errors import ErrorCode, Refused
from headgate.protocol.limits import CREDIT_MAX


def row(number: int, count: int, digest: bytes = b"") -> Row:
    return Row(0, count, 5, "o", 0, b"", "quotes", b"", {}, False, b"", "p", 1, number, digest)


def test_what_is_undone_is_where_the_disk_says() -> None:
    one = KnownProducer("p", 1, 9, b"nine")
    one.undo()
    assert (one.next, one.digest, one.asked) == (0, b"", (0, 0))
    one.kept = ProducerState("p", 2, 4, b"four", 1)
    one.undo()
    assert (one.next, one.digest, one.asked) == (4, b"four", (2, 4))


def test_copies_wait_until_the_disk_knows_as_much() -> None:
    one = KnownProducer("p")
    assert not one.copies_wait
    one.saw_copy(row(3, 2))
    one.saw_copy(row(0, 1))
    assert one.copies_wait
    one.kept = ProducerState("p", 1, 5, b"", 1)
    assert not one.copies_wait


def test_rows_tell_whatever_the_table_says() -> None:
    one = KnownProducer("p", doubtful=True)
    assert one.rows_here == (0, b"")
    one.saw_tail(row(2, 2, b"tail"))
    one.saw_copy(row(1, 1, b"copy"))
    assert one.rows_here == (4, b"tail")
    one.saw_copy(row(9, 1, b"copy"))
    assert one.rows_here == (10, b"copy")


@pytest.mark.parametrize(("copied", "expected"), [(0, (7, b"")), (12, (12, b"d")), (1, (7, b""))])
def test_what_is_taken_back_leaves_what_came_here_otherwise_and_is_not_all_that_is_known(
    copied: int, expected: tuple[int, bytes]
) -> None:
    one = KnownProducer("p", 3, 20, b"own", is_open=True)
    one.saw_tail(row(0, 20, b"own"))
    if copied:
        one.saw_copy(row(0, copied, b"d"))
    state = one.take_back(7, 55)
    assert (state.next, state.digest, state.epoch, state.time) == (*expected, 3, 55)
    assert (one.next, one.digest, one.asked, one.is_open, one.tail) == (*expected, (3, expected[0]), False, (0, b""))
    assert one.kept is state and one.doubtful
    assert decode_fence(state.fence).is_unsure, "copies of earlier lives may have more of it, also after a restart"


@pytest.mark.parametrize(
    ("name", "epoch"), [("", 1), ("x" * 257, 1), (5, 1), ("p", -1), ("p", CREDIT_MAX + 1), ("p", "1")]
)
def test_what_is_no_producer_is_refused(name: object, epoch: object) -> None:
    check_producer("p", 0)
    with pytest.raises(Refused):
        check_producer(name, epoch)


def test_whoever_is_shut_out_hears_by_whom() -> None:
    refused = fenced("p", 2, 5)
    assert refused.code == ErrorCode.FENCED
    assert "5" in refused.text
