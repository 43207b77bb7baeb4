"""What brokers tell of their logs, put together; whom to ask; and what is no answer."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.errors import LocalError, ProtocolViolation
from protocol.log_catalogue import catalogue, client_addresses, kind_number, kind_word, open_chunk
from protocol.log_rows import LogName, encode_row
from protocol.messages import LogChunk
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


def test_brokers_that_are_up_have_addresses() -> None:
    rows = [
        {"name": "ann", "client_address": "a:7400", "state": "up"},
        {"name": "bob", "client_address": "b:7400", "state": "down"},
        {"name": "cyd", "client_address": "", "state": "up"},
        {"name": None, "client_address": "d:7400"},
        "nonsense",
    ]
    assert client_addresses({"brokers": rows}) == {"ann": "a:7400"}
    assert client_addresses(None) == client_addresses({}) == {}


def test_a_chunk_with_its_rows_open() -> None:
    chunk = open_chunk(LogChunk(1, 7, 122, 200, {"ann": 42}, [encode_row(row())]))
    assert chunk.rows == [row()]
    assert (chunk.first, chunk.next, chunk.end, chunk.covered) == (7, 122, 200, {"ann": 42})
    with pytest.raises(ProtocolViolation):
        open_chunk(LogChunk(1, 0, 0, 0, {}, [b"no row"]))
