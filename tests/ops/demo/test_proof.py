"""The proof: it knows what should have come, and finds each kind of fault."""

from __future__ import annotations

import pytest

from headgate.matching import Index, parse_condition, parse_pattern
from headgate.ops.demo import QuoteFeed
from headgate.ops.demo.accident import NOTHING_EXCUSED, Excuse
from headgate.ops.demo.audience import WISHES, Listener, Wish
from headgate.ops.demo.proof import Verdict, expected_numbers, judge
from headgate.protocol.client import Event

WANTED = bytes([0, 1, 0, 1, 1])


def verdict(*numbers: int, excuse: Excuse = NOTHING_EXCUSED, ordered: bool = True) -> Verdict:
    listener = Listener(Wish("w", "quotes", ""))
    events = [Event("ab-1", number, 0.0, "quotes", {"number": number}, b"", "", 1) for number in numbers]
    if events:
        listener.take(events, [0.0] * 10, 0.0)
    return judge(listener, WANTED, excuse, ordered)


def test_exact() -> None:
    found = verdict(1, 3, 4)
    assert found.exact
    assert (found.expected, found.delivered, found.text) == (3, 3, "exact")


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((), "3 missing (quotes 1, 3, 4)"),
        ((1, 4), "1 missing (quotes 3)"),
        ((1, 2, 3, 4), "1 unexpected (quotes 2)"),
        ((1, 3, 4, 9), "1 unexpected (quotes 9)"),
        ((1, 3, 3, 4), "1 more than once, 1 out of order (quotes 3)"),
        ((3, 1, 4), "1 out of order (quotes 1)"),
        ((0, 1, 3), "1 missing (quotes 4), 1 unexpected (quotes 0)"),
    ],
)
def test_each_fault_is_found(numbers: tuple[int, ...], text: str) -> None:
    found = verdict(*numbers)
    assert not found.exact
    assert found.text == text


@pytest.mark.parametrize(
    ("numbers", "excuse", "text"),
    [
        ((1, 4), Excuse(gaps=(range(3, 4),)), "exact, with 1 missing in its announced gap"),
        ((1, 4), Excuse(unknown=(range(2, 4),)), "exact, with 1 missing of unknown outcome"),
        (
            (4,),
            Excuse(gaps=(range(2),), unknown=(range(3, 4),)),
            "exact, with 1 missing in its announced gap and 1 missing of unknown outcome",
        ),
        ((1, 3, 4), Excuse(gaps=(range(5),)), "exact"),
        ((3, 1, 4), Excuse(around=range(2)), "exact, with 1 out of order where order is not promised"),
    ],
)
def test_what_was_told_is_excused(numbers: tuple[int, ...], excuse: Excuse, text: str) -> None:
    found = verdict(*numbers, excuse=excuse)
    assert (found.exact, found.text) == (True, text)


@pytest.mark.parametrize(
    ("numbers", "excuse", "text"),
    [
        ((1, 4), Excuse(gaps=(range(2, 3),)), "1 missing (quotes 3)"),
        ((1, 3, 3, 4), Excuse(gaps=(range(5),), around=range(5)), "1 more than once"),
        ((1, 2, 3, 4), Excuse(gaps=(range(5),)), "1 unexpected (quotes 2)"),
        ((3, 1, 4), Excuse(around=range(2, 4)), "1 out of order (quotes 1)"),
        ((1, 3, 4), Excuse(in_force=False), "it was not told that its subscription is in force again"),
    ],
)
def test_nothing_else_is(numbers: tuple[int, ...], excuse: Excuse, text: str) -> None:
    found = verdict(*numbers, excuse=excuse)
    assert (found.exact, found.text) == (False, text)


def test_order_counts_only_where_it_was_promised() -> None:
    found = verdict(3, 1, 4, ordered=False)
    assert (found.exact, found.misordered, found.overtaken) == (True, 0, 1)
    assert "1 out of order where order is not promised" in found.text, "excused, but not in silence"


def test_many_examples_are_cut() -> None:
    listener = Listener(Wish("w", "quotes", ""))
    assert judge(listener, bytes([1]) * 100).text == "100 missing (quotes 0, 1, 2, 3, 4, …)"


def test_brute_force_agrees_with_the_index_on_the_demo_itself() -> None:
    count = 3000
    index = Index()
    for number, wish in enumerate(WISHES, start=1):
        index.add(number, parse_pattern(wish.pattern), parse_condition(wish.where) if wish.where else None)
    quotes = QuoteFeed(7).take(count)
    found = {number: bytearray(count) for number in range(1, len(WISHES) + 1)}
    for numbers, rows in index.match(quotes.topics, count, quotes.columns):
        for number in numbers:
            for row in rows:
                found[number][row] += 1
    for number, wish in enumerate(WISHES, start=1):
        wanted = expected_numbers(wish, 7, count)
        assert bytes(found[number]) == wanted
        assert 0 < sum(wanted) < count // 10, f"{wish.name} is neither empty nor everything"
