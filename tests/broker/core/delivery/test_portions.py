"""Portions that wait: what they hold, what sending them takes, and what is left when some of it is cut out."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.delivery.subscribers import cut, effort_of, size_of, without
from headgate.protocol.data import Portion
from headgate.protocol.messages import Deliver
from tests.support.builders import deliveries_of, quote_batch


def portion_of(rows: list[int], base: int) -> Portion:
    batch = quote_batch([f"quotes/{row}" for row in range(12)], [f"body {row}" for row in range(12)])
    return batch.portion(rows, "origin", base, 5)


@given(st.sets(st.integers(0, 11), min_size=1), st.integers(0, 1000), st.integers(0, 2**32))
def test_a_cut_portion_has_the_rows_it_was_cut_to(rows: set[int], base: int, seed: int) -> None:
    portion = portion_of(sorted(rows), base)
    kept = sorted(Random(seed).sample(range(len(rows)), Random(seed).randint(1, len(rows))))
    part = cut(portion, kept)
    chosen = [sorted(rows)[place] for place in kept]
    assert [part.base + row for row in part.rows()] == [base + row for row in chosen]
    assert part.topics.split("\n") == [f"quotes/{row}" for row in chosen]
    assert deliveries_of([Deliver([[1], len(chosen)], part)]) == [(1, f"body {row}") for row in chosen]


@given(
    st.lists(st.tuples(st.lists(st.integers(1, 3), min_size=1, max_size=3, unique=True), st.integers(1, 3)), max_size=4)
)
def test_without_a_subscription_the_others_have_what_they_had(runs: list[tuple[list[int], int]]) -> None:
    count = sum(run for _, run in runs)
    if not count:
        return
    message = Deliver([part for run in runs for part in run], portion_of(list(range(count)), 0))
    left = without(message, {2})
    expected = [delivery for delivery in deliveries_of([message]) if delivery[0] != 2]
    assert deliveries_of([left] if left else []) == expected
    assert (left is None) == (not expected)


# --- Invariants -------------------------------------------------------------------------------------------------------


def test_a_portion_holds_its_records_and_everything_else_twice() -> None:
    portion = portion_of([0, 1, 2], 0)
    longer = Portion(
        *[getattr(portion, name) for name in ("origin", "base", "time", "offsets")],
        "x" * 100,
        *[getattr(portion, name) for name in ("lengths", "records", "count")],
    )
    assert size_of(longer) - size_of(portion) == 2 * (100 - len(portion.topics))
    assert size_of(portion) > len(portion.records)


def test_looking_through_numbers_is_an_effort_only_when_it_has_to_be_done() -> None:
    portion = portion_of([0, 1], 0)
    message = Deliver([[1, 2, 3], 2], portion)
    assert effort_of(message, False) == len(portion.records) < effort_of(message, True)
