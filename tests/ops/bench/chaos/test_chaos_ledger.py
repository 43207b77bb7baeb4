"""The books of chaos: what is owed, what accounts for what is missing, and that each kind of fault is found."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.ops.bench.chaos.ledger import Account, Death, Fate, Published, Told, Watch, judge, unexplained
from headgate.ops.bench.limits import CHAOS_GAP_SECONDS_MAX


def accepted(at: float, broker: str = "b0") -> Published:
    return Published(at, Fate.ACCEPTED, at + 0.01, broker)


EVENTS = [accepted(float(second)) for second in range(100)]


def watching(*seen: int, first: float = -1.0) -> Watch:
    watch = Watch("reader.0")
    watch.seen.update(seen)
    watch.begins(first, "b0")
    return watch


def verdict(watch: Watch, wanted: list[int], deaths: list[Death] | None = None, calm_from: int = 1000) -> Account:
    return judge([watch], [wanted], EVENTS, deaths or [], calm_from)


def test_everything_came() -> None:
    account = verdict(watching(3, 5), [3, 5])
    assert account.kept
    assert (account.wanted, account.delivered, account.examples) == (2, 2, {})


def test_what_came_twice_or_unasked_is_a_fault() -> None:
    account = verdict(watching(3, 3, 5), [3])
    assert (account.repeated, account.unwanted, account.kept) == (1, 1, False)
    assert set(account.examples) == {"repeated", "unwanted"}
    assert not replace(account, repeated=0).kept and not replace(account, unwanted=0).kept


def test_what_is_missing_without_a_word_is_a_fault() -> None:
    account = verdict(watching(3), [3, 5])
    assert (account.silent, account.kept) == (1, False)
    (example,) = account.examples["silent"]
    assert "reader.0 event 5, accepted by b0" in example and "since -1.00 by b0; told of nothing" in example


@pytest.mark.parametrize("fate", [Fate.UNKNOWN, Fate.REFUSED, Fate.OPEN])
def test_an_event_that_was_not_accepted_is_owed_to_nobody(fate: Fate) -> None:
    account = judge([watching()], [[0]], [Published(3.0, fate, 3.1, "b0")], [], 1000)
    assert (account.not_owed, account.silent, account.kept) == (1, 0, True)


def test_nothing_is_owed_while_a_subscription_is_not_in_force() -> None:
    watch = watching(10, first=9.5)
    watch.ends(20.5)
    watch.begins(30.5, "b1")
    account = verdict(watch, list(range(5, 40)))
    # Up to 9 it had not begun; 20 may have been on its way when it ended; up to 30 it had not begun again.
    assert account.not_owed == 5 + 11
    assert account.silent == 9 + 9
    assert "in force 9.50 to 20.50 by b0, since 30.50 by b1" in account.examples["silent"][0]


def test_an_end_in_the_past_ends_nothing_before_the_beginning() -> None:
    watch = watching(first=10.0)
    watch.ends(5.0)
    assert watch.in_force == [(10.0, 10.0, "b0")]
    watch.ends(50.0)
    assert len(watch.in_force) == 1 and watch.since is None


def test_an_event_dies_with_the_broker_that_accepted_it_a_moment_before() -> None:
    assert verdict(watching(), [5], [Death("b0", 5.5)]).doomed == 1
    for death in (Death("b0", 7.0), Death("b0", 4.9), Death("b1", 5.5)):
        assert verdict(watching(), [5], [death]).silent == 1


def test_of_the_calm_nothing_may_be_missing_whatever_was_told() -> None:
    watch = watching(3)
    watch.told = [Told(6.0, 0)]
    account = verdict(watch, [3, 5], calm_from=4)
    assert (account.calm_wanted, account.calm_missing, account.kept) == (1, 1, False)


def test_a_gap_accounts_for_as_many_as_it_says() -> None:
    assert unexplained([1, 2, 3], EVENTS, [Told(4.0, 2)]) == [3]
    assert unexplained([1, 2, 3], EVENTS, [Told(4.0, 2), Told(5.0, 1)]) == []
    assert unexplained([1, 2, 3], EVENTS, []) == [1, 2, 3]


def test_a_gap_of_unknown_size_accounts_for_what_was_published_before_the_death_it_speaks_of() -> None:
    watch = watching()
    watch.told = [Told(8.0, 0)]
    account = verdict(watch, [1, 3, 5, 7, 9], [Death("b1", 4.5), Death("b1", 9.5)])
    assert (account.told_unknown, account.silent, account.told) == (2, 3, 0)
    assert verdict(watch, [1, 3]).silent == 2, "without a death there is nothing that it could mean"
    watch.told = [Told(4.0 + CHAOS_GAP_SECONDS_MAX, 0)]
    assert verdict(watch, [1, 5], [Death("b1", 30.0)]).told_unknown == 1


def test_a_gap_accounts_for_nothing_after_it_and_nothing_long_before() -> None:
    old = int(CHAOS_GAP_SECONDS_MAX) + 10
    assert unexplained([1, old - 1, old + 5], EVENTS, [Told(float(old), 9)]) == [1, old + 5]


@given(
    st.lists(st.integers(0, 99), unique=True, max_size=12),
    st.lists(st.builds(Told, st.floats(0, 110), st.integers(1, 4)), max_size=5),
)
def test_as_many_as_can_be_are_accounted_for(numbers: list[int], told: list[Told]) -> None:
    """The greedy way against the best matching of events to the places in gaps."""
    places = [gap for gap in told for _ in range(gap.count)]
    taken: dict[int, int] = {}

    def place(number: int, tried: set[int]) -> bool:
        for at, gap in enumerate(places):
            sent_at = EVENTS[number].sent_at
            if at not in tried and gap.at - CHAOS_GAP_SECONDS_MAX <= sent_at <= gap.at:
                tried.add(at)
                if at not in taken or place(taken[at], tried):
                    taken[at] = number
                    return True
        return False

    best = sum(place(number, set()) for number in numbers)
    assert len(unexplained(numbers, EVENTS, told)) == len(numbers) - best
