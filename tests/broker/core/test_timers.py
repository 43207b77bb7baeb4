"""The queue of timers against a dictionary: what is due, in which order, and when the next one is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.broker.core.timers import NEVER, Timers

KEYS = st.integers(0, 5)
TIMES = st.sampled_from([0.0, 1.0, 2.0, 3.0, 4.0, NEVER])
STEPS = st.lists(st.one_of(st.tuples(st.just("at"), KEYS, TIMES), st.tuples(st.just("due"), KEYS, TIMES)), max_size=300)


@given(STEPS)
def test_the_queue_does_what_a_dictionary_would(steps: list[tuple[str, int, float]]) -> None:
    timers, plain = Timers(), dict[int, float]()
    for verb, key, time in steps:
        if verb == "at":
            timers.at(key, time)
            plain[key] = time
        elif time < NEVER:
            due = timers.due(time)
            assert sorted(due) == sorted(one for one, when in plain.items() if when <= time)
            assert [plain[one] for one in due] == sorted(plain[one] for one in due)  # type: ignore[index]
            plain = {one: when for one, when in plain.items() if when > time}
        timers.validate()
        assert timers.next == min(plain.values(), default=NEVER)
        assert all(timers.when(one) == plain.get(one, NEVER) for one in range(6))


@given(STEPS)
def test_a_queue_below_another_is_one_timer_there(steps: list[tuple[str, int, float]]) -> None:
    above = Timers()
    below = above.below("parts")
    above.at("other", 2.5)
    for verb, key, time in steps:
        if verb == "at":
            below.at(key, time)
        elif time < NEVER and "parts" in above.due(time):
            assert below.due(time)
        below.validate()
        assert above.when("parts") == below.next


def test_a_part_that_asks_for_now_while_it_is_woken_waits_for_the_next_call() -> None:
    timers = Timers()
    timers.at("a", 1.0)
    woken = []
    for key in timers.due(2.0):
        woken.append(key)
        timers.at(key, 2.0)
    assert woken == ["a"] and timers.next == 2.0


def test_moved_timers_do_not_fill_the_heap() -> None:
    timers = Timers()
    timers.at("still", 5.0)
    for time in range(10_000):
        timers.at("moving", float(time))
    assert len(timers._heap) < 200 and timers.due(1e6) == ["still", "moving"]
