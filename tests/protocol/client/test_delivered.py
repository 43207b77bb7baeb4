"""The delivered set: positions of a log that came live, against a set of numbers; and what grows old."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.protocol.client.delivered import DeliveredOfLog, DeliveredSet
from headgate.protocol.limits import DELIVERED_RUNS_MAX, REPLAY_LATE_SECONDS

LATE_US = int(REPLAY_LATE_SECONDS * 1e6)

acts = st.one_of(
    st.tuples(st.just("came"), st.sets(st.integers(0, 60), min_size=1, max_size=6)),
    st.tuples(st.just("read_to"), st.integers(0, 60)),
)


class Twin:
    """Every number by itself."""

    def __init__(self) -> None:
        self.handed: set[int] = set()
        self.cursor = 0

    def advance(self, position: int) -> None:
        self.handed |= set(range(position))
        while self.cursor in self.handed:
            self.cursor += 1


@given(st.lists(acts, max_size=25), st.integers(0, 60), st.integers(1, 20))
def test_it_agrees_with_a_set_of_numbers(done: list[tuple[str, set[int] | int]], first: int, count: int) -> None:
    log, twin = DeliveredOfLog(), Twin()
    for act, value in done:
        if act == "read_to":
            assert isinstance(value, int)
            log.read_to(value)
            twin.advance(value)
        else:
            assert isinstance(value, set)
            log.came(sorted(value), 0, False)
            twin.handed |= value
            twin.advance(0)
        assert log.cursor == twin.cursor
        runs = log.runs
        assert {one for start, stop in runs for one in range(start, stop)} == {
            one for one in twin.handed if one >= twin.cursor
        }
        flat = [log.cursor, *(place for run in runs for place in run)]
        assert flat == sorted(set(flat)), "runs ascend and do not touch"
    positions = range(first, first + count)
    assert [positions[at] for at in log.missing(positions)] == [one for one in positions if one not in twin.handed]
    some = positions[::3]
    assert [some[at] for at in log.missing(some)] == [one for one in some if one not in twin.handed]
    assert log.holes(first) == sum(one not in twin.handed for one in range(first))


def test_what_follows_without_a_hole_takes_no_room() -> None:
    log = DeliveredOfLog()
    log.read_to(10)
    for first in range(10, 1000, 10):
        log.came(range(first, first + 10), first, False)
    assert (log.cursor, log.runs, log.seen) == (1000, [], 10)


def test_behind_a_hole_it_waits_until_the_hole_is_old() -> None:
    log = DeliveredOfLog()
    log.came([5], 0, False)
    log.came([7], LATE_US // 4, False)
    assert (log.cursor, log.runs) == (0, [(5, 6), (7, 8)])
    log.came([9], LATE_US, False)
    assert log.cursor == 0, "a late one may have been accepted a moment before"
    log.came([11], LATE_US + LATE_US // 8, False)
    assert (log.cursor, log.runs) == (6, [(7, 8), (9, 10), (11, 12)])
    log.came([3], LATE_US, False)
    assert log.runs[0] == (7, 8) and log.seen == 0, "who comes even later is handed out all the same"


def test_while_a_broker_is_away_nothing_grows_old() -> None:
    log = DeliveredOfLog()
    for place in range(0, 200, 2):
        log.came([place + 1], place * LATE_US, True)
    assert log.cursor == 0 and len(log.runs) == 100
    log.came([300], 300 * LATE_US, False)
    assert (log.cursor, log.runs) == (200, [(300, 301)])


def test_a_clock_that_was_put_back_makes_nothing_old_before_its_time() -> None:
    log = DeliveredOfLog()
    log.came([1], 100 * LATE_US, False)
    log.came([3], 0, False)
    log.came([5], 50 * LATE_US, False)
    assert log.cursor == 0
    log.came([7], 102 * LATE_US, False)
    assert (log.cursor, log.runs) == (6, [(7, 8)])


def test_of_more_than_it_may_hold_the_older_half_counts_as_old() -> None:
    log = DeliveredOfLog()
    for place in range(DELIVERED_RUNS_MAX + 1):
        log.came([2 * place + 1], 0, True)
    assert len(log.runs) == DELIVERED_RUNS_MAX // 2 and log.cursor == DELIVERED_RUNS_MAX + 2


def test_what_was_read_is_not_fresh_and_what_is_only_old_is() -> None:
    heard = DeliveredSet()
    heard.of("ann@1").read_to(10)
    assert heard.fresh("ann@1", 0, [7, 9, 10, 12]) == [10, 12]
    assert heard.fresh("ann@1", 0, [8, 9]) == []
    assert heard.fresh("bob@1", 0, range(3)) == range(3)
    assert (heard.of("ann@1").runs, heard.of("ann@1").cursor) == ([(12, 13)], 11)
    heard.of("ann@1").advance(20)
    assert heard.fresh("ann@1", 0, [13, 14]) == [13, 14]
