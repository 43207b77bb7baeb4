"""Promises: a row that the opener of its producer was not told of is contested for as long as he can be asked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from headgate.broker.core.log.producers import Fences
from headgate.broker.core.safeguards import SAFEGUARDS
from headgate.protocol.data import Row

OPENER, OWNER = 7, 8


def fences(producers_max: int = 9) -> tuple[Fences, Any]:
    """And the opener, as he is known."""
    opener = SimpleNamespace(link=1)
    peers = SimpleNamespace(by_identifier={OPENER: opener})
    return Fences(SimpleNamespace(peers=peers, safeguards=SAFEGUARDS), producers_max), opener  # type: ignore[arg-type]  # no more is asked of a cluster


def row(number: int, count: int = 1, producer: str = "p") -> Row:
    return Row(0, count, 5, "o", 0, b"", "quotes", b"", {}, False, b"", producer, 1, number, b"")


def test_a_row_behind_what_was_told_is_contested() -> None:
    made, opener = fences()
    assert made.contested(row(5), OWNER) is None, "nobody was told anything"
    made.make("p", OPENER, 5)
    assert made.contested(row(4), OWNER) is None
    assert made.contested(row(4, 2), OWNER) is opener
    assert made.contested(row(5), OPENER) is None, "it is his own"
    assert made.contested(row(5, producer="q"), OWNER) is None


def test_it_ends_with_the_link_or_when_he_lets_it_go_or_when_we_open_it_ourselves() -> None:
    made, opener = fences()
    made.make("p", OPENER, 5)
    opener.link = None
    assert made.contested(row(5), OWNER) is None
    opener.link = 2
    made.release("p", OWNER)
    assert made.contested(row(5), OWNER) is opener
    made.release("p", OPENER)
    assert made.contested(row(5), OWNER) is None
    made.make("p", OPENER, 5)
    made.end("p")
    assert made.contested(row(5), OWNER) is None


def test_what_was_said_in_the_end_is_what_counts_unless_somebody_else_has_asked() -> None:
    made, opener = fences()
    made.make("p", OPENER, 5)
    made.amend("p", OPENER, 9)
    assert made.contested(row(8), OWNER) is None
    assert made.contested(row(9), OWNER) is opener
    made.make("p", OWNER, 20)
    made.amend("p", OPENER, 3)
    assert made.contested(row(9), OPENER) is None


def test_there_is_a_bound() -> None:
    made, _ = fences(producers_max=2)
    for name in "abc":
        made.make(name, OPENER, 1)
    assert len(made) == 2
