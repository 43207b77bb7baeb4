"""What brokers tell of their logs, put together; whom to ask; and what is no answer."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.protocol.client import (
    catalogue,
    kind_number,
    kind_word,
    open_chunk,
)
from headgate.protocol.data import LogName, encode_row
from headgate.protocol.errors import LocalError, ProtocolViolation
from headgate.protocol.messages import LogChunk
from tests.support.samples import row


def told(broker: str, following: int, **more: Any) -> dict[str, Any]:
    """A row of the answer to `logs`."""
    times = {"first": 3, "bytes": 10, "first_time": 100, "last_time": 200}
    return {"broker": broker, "epoch": 5, "kind": "events", "stream": "quotes", "next": following, **times, **more}


def test_a_log_is_read_from_who_wrote_it_then_from_who_has_most_of_it() -> None:
    answers = {
        "cyd": [told("ann", 8), told("dan", 4)],
        "bob": [told("ann", 9), told("dan", 7, first=1)],
        "ann": [told("ann", 6)],
    }
    ann, dan = catalogue(answers)
    assert ann.name == LogName("ann", 5, 0, "quotes") and ann.partition == "ann@5"
    assert (ann.holders, ann.next) == (("ann", "bob", "cyd"), 6)
    assert (dan.holders, dan.first, dan.next) == (("bob", "cyd"), 1, 7)
    assert (dan.bytes, dan.first_time, dan.last_time) == (10, 100, 200)
    assert catalogue({}) == []


def test_of_a_log_that_is_not_written_any_more_the_longest_copy_is_the_right_one() -> None:
    """Its broker came back with an older disk, and goes on in another epoch."""
    answers = {
        "ann": [told("ann", 6, own=True, open=False), told("ann", 2, epoch=6, own=True, open=True)],
        "bob": [told("ann", 9, own=False, open=False), told("ann", 3, epoch=6, own=False, open=False)],
        "cyd": [told("ann", 6, own=False, open=False)],
    }
    former, now = catalogue(answers)
    assert (former.holders, former.next) == (("bob", "ann", "cyd"), 9)
    assert (now.holders, now.next) == (("ann", "bob"), 2), "a copy that was looked at later"


NOT_ROWS = [None, 7, "ann", {}, told("ann", 9, kind="gossip"), told("ann", 9, first="x"), told("ann", 9, epoch=None)]


@pytest.mark.parametrize("row", NOT_ROWS, ids=repr)
def test_what_is_no_answer_is_a_violation(row: Any) -> None:
    with pytest.raises(ProtocolViolation, match="the answer to logs"):
        catalogue({"ann": [row]})


def test_kinds_have_words() -> None:
    assert [kind_word(number) for number in range(3)] == ["events", "deliveries", "subscriptions"]
    assert [kind_number(word) for word in ("events", "deliveries", "subscriptions", 2)] == [0, 1, 2, 2]
    for wrong in ("gossip", 3, -1):
        with pytest.raises(LocalError, match="events, deliveries, subscriptions"):
            kind_number(wrong)


def test_a_chunk_with_its_rows_open() -> None:
    chunk = open_chunk(LogChunk(1, 7, 122, 200, [encode_row(row())]))
    assert chunk.rows == [row()]
    assert (chunk.first, chunk.next, chunk.end) == (7, 122, 200)
    with pytest.raises(ProtocolViolation):
        open_chunk(LogChunk(1, 0, 0, 0, [b"no row"]))
