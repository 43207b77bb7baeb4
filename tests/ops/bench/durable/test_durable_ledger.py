"""The verdict over journals of durable clients: each fault is found, and what is allowed is none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pytest

from headgate.ops.bench.durable.ledger import (
    Amendment,
    Entry,
    Kind,
    Report,
    Wish,
    bucket_of,
    entries_of,
    judge,
    key_of,
)

MINE = [number for number in range(400) if bucket_of(number) == 3][:6]
OTHER = next(number for number in range(400) if bucket_of(number) == 4)


def taken(number: int, delivery: int, times: int = 1, upto: Kind = Kind.CONFIRMED) -> list[Entry]:
    """An event is handed out, about to be acknowledged, and confirmed; or less."""
    kinds = [kind for kind in (Kind.HANDED, Kind.SAID, Kind.CONFIRMED) if kind <= upto]
    return [Entry(kind, 0, number, delivery, times) for kind in kinds]


def verdict(
    *entries: Iterable[Entry],
    sharing: str = "exclusive",
    amendments: Mapping[int, Amendment] | None = None,
    numbers: Iterable[int] = MINE[:2],
) -> dict[str, int]:
    """The faults, when these events are in one log in this order."""
    report = Report()
    logs = {number: ("b0@1", place) for place, number in enumerate(numbers)}
    wish = Wish(0, sharing, (3,), 1, "each", 8.0)
    judge(report, [wish], amendments or {}, [one for some in entries for one in some], numbers, logs)
    return dict(report.faults)


def test_each_once_and_in_order_is_kept() -> None:
    assert verdict(taken(MINE[0], 1), taken(MINE[1], 2)) == {}


def test_an_event_that_never_came_is_missing() -> None:
    assert verdict(taken(MINE[0], 1)) == {"missing": 1}


def test_an_event_that_nobody_acknowledged_was_settled_by_nobody() -> None:
    assert verdict(taken(MINE[0], 1), taken(MINE[1], 2, upto=Kind.HANDED)) == {"settled by nobody": 1}


def test_again_is_allowed_where_it_was_not_confirmed_and_is_flagged() -> None:
    again = taken(MINE[0], 1, upto=Kind.SAID) + taken(MINE[0], 3, times=2)
    assert verdict(again, taken(MINE[1], 2)) == {}
    assert verdict(taken(MINE[0], 1, upto=Kind.SAID), taken(MINE[0], 3), taken(MINE[1], 2)) == {
        "again without a flag": 1
    }
    assert verdict(taken(MINE[0], 1), taken(MINE[0], 3, times=2), taken(MINE[1], 2)) == {"again though confirmed": 1}


def test_a_confirmed_delivery_may_be_the_last_of_several() -> None:
    """It was taken earlier by a client that is slower."""
    late = taken(MINE[0], 3, times=2) + taken(MINE[0], 1, upto=Kind.SAID)
    assert verdict(taken(MINE[1], 2), late) == {}


@pytest.mark.parametrize(
    ("sharing", "faults"), [("exclusive", {"out of order": 1}), ("failover", {"out of order": 1}), ("shared", {})]
)
def test_first_deliveries_are_in_order(sharing: str, faults: dict[str, int]) -> None:
    assert verdict(taken(MINE[0], 2), taken(MINE[1], 1), sharing=sharing) == faults


def test_of_keys_each_has_its_order() -> None:
    first = MINE[0]
    same = next(
        number for number in range(first + 1, 20_000) if (bucket_of(number), key_of(number)) == (3, key_of(first))
    )
    assert key_of(MINE[1]) != key_of(first)
    assert verdict(taken(first, 2), taken(MINE[1], 1), sharing="key:key") == {}
    numbers = [first, same]
    assert verdict(taken(first, 2), taken(same, 1), sharing="key:key", numbers=numbers) == {"out of order": 1}


def test_what_does_not_match_is_not_asked_for() -> None:
    numbers = [MINE[0], OTHER]
    assert verdict(taken(MINE[0], 1), numbers=numbers) == {}
    assert verdict(taken(MINE[0], 1), taken(OTHER, 2), numbers=numbers) == {"not asked for": 1}


def test_a_change_from_now_on_adds_nothing_that_was_stored_before() -> None:
    numbers = [MINE[0], OTHER]
    change = Amendment((3, 4), "now", frozenset([OTHER]), answered=OTHER + 1000)
    assert verdict(taken(MINE[0], 1), numbers=numbers, amendments={0: change}) == {}
    came = taken(MINE[0], 1), taken(OTHER, 2)
    assert verdict(*came, numbers=numbers, amendments={0: change}) == {"not asked for": 1}
    change = Amendment((3, 4), "ack", frozenset([OTHER]), answered=OTHER + 1000)
    assert verdict(*came, numbers=numbers, amendments={0: change}) == {}


def test_what_is_published_behind_a_change_has_to_come() -> None:
    change = Amendment((3, 4), "now", answered=OTHER)
    numbers = [MINE[0], OTHER]
    assert verdict(taken(MINE[0], 1), numbers=numbers, amendments={0: change}) == {"missing": 1}
    change = Amendment((4,), "now", answered=MINE[0])
    assert verdict(taken(MINE[0], 1), numbers=MINE[:1], amendments={0: change}) == {"not asked for": 1}


def test_a_gap_and_an_acknowledged_event_that_is_in_no_log_are_faults() -> None:
    assert verdict([Entry(Kind.GAP, 0, 5, 0, 0)], numbers=[]) == {"announced as lost": 1}
    report = Report()
    judge(report, [], {}, [], [7], {})
    assert dict(report.faults) == {"not stored": 1}


def test_a_journal_that_was_cut_is_read_up_to_there() -> None:
    first, second = taken(MINE[0], 1)[:2]
    assert list(entries_of(first.packed() + second.packed()[:-1])) == [first]
