"""What DELTA means (matching/SPEC.md, 8), and that the trigger index agrees with it on everything."""

from __future__ import annotations

import math
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.matching import Delta, extensions, parse_condition
from headgate.matching.dynamic import DumbReferences, Tally, Triggers, band_of, moved, precision_of, reading

STREAM = (10, 16, 21, 25, 30, 25, 19, 13, 8)


def deltas(text: str) -> tuple[Delta, ...]:
    return tuple(one for one in extensions(parse_condition(text)) if isinstance(one, Delta))


def delivered(condition: str, values: object, precision: float | None = None, seconds: float = 1.0) -> list[object]:
    """What one subscription gets of a stream of one attribute, by the index and by its twin, which must agree."""
    asked = deltas(condition)
    both = Triggers(["p"] * len(asked), [precision] * len(asked)), DumbReferences([precision] * len(asked))
    for one in both:
        one.add(1, asked)
    got: list[object] = []
    for at, value in enumerate(values):  # type: ignore[arg-type]
        fired = [one.fire("t", [value] * len(asked), at * seconds) for one in both]
        assert fired[0] == fired[1]
        got += [value] * len(fired[0])
    return got


@pytest.mark.parametrize(("condition", "expected"), [
    ("DELTA(p) > 5", [10, 16, 25, 19, 13]),
    ("DELTA(p) > 10", [10, 21, 8]),
    ("DELTA(p) >= 5", [10, 16, 21, 30, 25, 19, 13, 8]),
    ("DELTA(p) > 0", list(STREAM)),
    ("DELTA(p) > 100", [10]),
    ("DELTA(p) > 5 AND DELTA(p) >= 10", [10, 21, 8]),
    ("RISE(p) > 5", [10, 16, 25]),
    ("RISE(p) >= 5", [10, 16, 21, 30]),
    ("FALL(p) > 5", [10]),
    ("FALL(p) >= 2", [10, 8]),
    ("DELTA(p) > 50 PERCENT", [10, 16, 25, 8]),
    ("DELTA(p) >= 60 PERCENT", [10, 16, 30, 8]),
    ("RISE(p) > 50 PERCENT", [10, 16, 25]),
    ("FALL(p) >= 20 PERCENT", [10, 8]),
])  # fmt: skip
def test_the_vectors_of_the_paper(condition: str, expected: list[int]) -> None:
    """8.2, 8.9; STATE 3.1, Figure 6: 21 after 16 is a change of exactly 5, which `>` does not deliver."""
    assert delivered(condition, STREAM) == expected
    assert delivered(condition, map(float, STREAM)) == expected


def test_what_is_no_number_delivers_nothing_and_changes_nothing() -> None:
    """8.4"""
    assert delivered("DELTA(p) > 1", [None, math.nan, "9", True, 2**63, 5, math.nan, None, 5.5, False, 7]) == [5, 7]


def test_infinity_is_one_value() -> None:
    """8.4: inf - inf is no number, and delivers nothing."""
    inf = math.inf
    assert delivered("DELTA(p) > 1", [inf, inf, 3, inf, -inf, -inf, 0]) == [inf, 3, inf, -inf, 0]
    assert delivered("DELTA(p) >= 0", [inf, inf, 3, 3]) == [inf, 3, 3]
    assert delivered("DELTA(p) > 1e308", [1e308, -1e308, inf, 1.7e308]) == [1e308, -1e308, inf, 1.7e308]
    assert delivered("DELTA(p) >= 1e308", [1.5e308, 1.7e308, inf]) == [1.5e308, inf]


def test_one_side_of_a_move_does_not_move_the_reference() -> None:
    """8.8: a fall by any amount is no rise, and the next rise is counted from what was delivered."""
    assert delivered("RISE(p) > 5", [10, 3, 12, 15, 16, 1, 21, 22]) == [10, 16, 22]
    assert delivered("FALL(p) > 5", [10, 30, 6, 4, 9, -2]) == [10, 4, -2]
    inf = math.inf
    assert delivered("RISE(p) > 1", [-inf, 0, -inf, inf, 5, inf]) == [-inf, 0, inf]
    assert delivered("FALL(p) > 1", [inf, inf, 0, inf, -inf, 5]) == [inf, 0, -inf]
    assert delivered("RISE(p) > 5 HEARTBEAT 3", [10, 3, 3, 3, 16]) == [10, 3, 16]


def test_hundredths_are_of_what_was_delivered_last() -> None:
    """8.9: of 0 every move is beyond them; a precision does not change them."""
    assert delivered("DELTA(p) > 10 PERCENT", [100, 110, 111, 122, 123]) == [100, 111, 123]
    assert delivered("DELTA(p) > 10 PERCENT", [-100, -110, -111, -99]) == [-100, -111, -99]
    assert delivered("DELTA(p) > 10 PERCENT", [0, 0, 0.001, 0.0011, 0.00111]) == [0, 0.001, 0.00111]
    assert delivered("DELTA(p) >= 10 PERCENT", [1.0, 1.1]) == [1.0, 1.1]
    assert delivered("DELTA(p) >= 10 PERCENT", [1.0, 1.1, 1.2], 0.01) == [1.0, 1.1]
    assert delivered("DELTA(p) > 9e18 PERCENT", [1e308, -1e308, math.inf]) == [1e308, math.inf]


def test_a_declared_precision_makes_ten_cents_ten_cents() -> None:
    """8.5: in doubles 0.10 + 0.05 is more than 0.15."""
    assert delivered("DELTA(p) >= 0.05", [0.1, 0.15]) == [0.1]
    assert delivered("DELTA(p) >= 0.05", [0.1, 0.15], 0.01) == [0.1, 0.15]
    assert delivered("DELTA(p) >= 0.10", [8.3, 8.4, 8.5, 8.59], 0.01) == [8.3, 8.4, 8.5]
    assert delivered("DELTA(p) > 0.10", [8.3, 8.4, 8.41, 8.51], 0.01) == [8.3, 8.41]
    assert delivered("DELTA(p) > 1", [1, 2.4, 2.6], 1) == [1, 2.6]
    assert reading(1e300, 0.01) == 1e302 and reading(math.inf, 0.01) == math.inf


def test_a_heartbeat_delivers_the_next_event_after_silence() -> None:
    """8.6: silence is counted from the last delivery, and ends with an event."""
    assert delivered("DELTA(p) > 5 HEARTBEAT 3", [1, 2, 3, 4, 5, 6, 20, 21, 22, 23]) == [1, 4, 20, 23]
    assert delivered("DELTA(p) > 5 HEARTBEAT 3", [1, 2, 3, None, 5]) == [1, 5]


def test_several_attributes_must_all_have_moved() -> None:
    """8.3"""
    for made in (Triggers(["p", "v"]), DumbReferences([None, None])):
        made.add(1, deltas("DELTA(p) > 1 AND DELTA(v) > 10"))
        rows = [(1, 0), (3, 5), (3, 11), (1, 12), (9, None), (1, 22), (1, 30)]
        assert [bool(made.fire("t", row, 0.0)) for row in rows] == [True, False, True, False, False, True, False]


def test_topics_are_apart_and_a_fresh_subscription_gets_the_next_event_of_each() -> None:
    """8.1, 8.7"""
    triggers = Triggers(["p"])
    triggers.add(1, deltas("DELTA(p) > 5"))
    assert [triggers.fire(topic, [value], 0.0) for topic, value in (("a", 1), ("b", 2), ("a", 5))] == [[1], [1], []]
    triggers.add(2, deltas("DELTA(p) > 5"))
    assert [triggers.fire(topic, [value], 0.0) for topic, value in (("a", 5), ("b", 8), ("b", 8))] == [[2], [1, 2], []]
    # Each has its own reference: 1 stands at 1 of topic a, and 2 at 5.
    assert triggers.fire("a", [7], 0.0) == [1] and triggers.fire("a", [11], 0.0) == [2]
    triggers.validate()


def test_what_was_forgotten_is_delivered_once_more() -> None:
    """8.7"""
    triggers = Triggers(["p"])
    triggers.add(1, deltas("DELTA(p) > 5"))
    triggers.add(2, deltas("DELTA(p) > 5"))
    triggers.fire("a", [1], 0.0)
    triggers.fire("b", [1], 0.0)
    triggers.forget(1, "a")
    triggers.forget(1, "elsewhere")
    assert [triggers.fire(topic, [1], 0.0) for topic in "aab"] == [[1], [], []]
    triggers.forget_all(2)
    assert [triggers.fire(topic, [1], 0.0) for topic in "ab"] == [[2], [2]]
    triggers.validate()


def test_of_too_many_topics_the_oldest_is_forgotten() -> None:
    """8.7: which costs a delivery, and never misses one."""
    tally = Tally()
    triggers = Triggers(["p"], topics_max=2, tally=tally)
    triggers.add(1, deltas("DELTA(p) > 5"))
    for topic in ("a", "b"):
        triggers.fire(topic, [1], 0.0)
    triggers.fire("a", [9], 0.0)
    assert triggers.fire("c", [1], 0.0) == [1] and tally == Tally(2, 1) and triggers.references == 2
    assert triggers.topics_of(1) == ["a", "c"]
    assert triggers.fire("b", [1], 0.0) == [1] and triggers.fire("c", [2], 0.0) == []
    triggers.validate()


def test_a_reference_and_its_triggers_are_shown_in_units_of_the_attribute() -> None:
    triggers = Triggers(["p"], [0.01])
    triggers.add(1, deltas("DELTA(p) > 0.05"))
    assert triggers.reference(1, "a") is None
    triggers.fire("a", [8.3], 4.0)
    shown = triggers.reference(1, "a")
    assert shown is not None and (shown.time, *shown.values) == (4.0, pytest.approx(8.3))
    assert (shown.lower, shown.upper) == (pytest.approx(8.25), pytest.approx(8.35))


def test_a_precision_is_a_positive_number() -> None:
    schema = {"attributes": {"p": {"type": "float", "precision": 0.01}, "q": {"precision": 0}, "r": {}, "s": 3}}
    assert [precision_of(schema, name) for name in "pqrst"] == [0.01, None, None, None, None]
    assert precision_of(None, "p") is None


NUMBERS = st.one_of(
    st.integers(-20, 20),
    st.sampled_from([0.1, 0.15, -0.0, 8.3, 8.4, 2.5, 1e308, -1e308, 2**53 + 1, math.inf, -math.inf, math.nan]),
    st.sampled_from([None, "7", True]),
    st.floats(),
)
THRESHOLDS = st.one_of(st.integers(0, 9), st.sampled_from([0.05, 0.1, 2.5, 1e308]))
SIDES = st.sampled_from(["DELTA", "DELTA", "RISE", "FALL"])
SECONDS = st.none() | st.integers(1, 5)
BANDS = st.builds(Delta, st.just("p"), THRESHOLDS, st.booleans(), SECONDS, st.booleans(), SIDES)
STEPS = st.one_of(
    st.tuples(st.just("event"), st.sampled_from("abc"), st.lists(NUMBERS, min_size=2, max_size=2), st.integers(0, 2)),
    st.tuples(st.just("add"), st.lists(BANDS, min_size=2, max_size=2)),
    st.tuples(st.just("remove"), st.integers(0, 9)),
    st.tuples(st.just("forget"), st.integers(0, 9), st.sampled_from("abc")),
)


@pytest.mark.slow
@settings(max_examples=200)
@given(st.integers(1, 2), st.sampled_from([None, 0.01, 1]), st.lists(STEPS, max_size=60))
def test_the_index_fires_what_the_plain_meaning_fires(width: int, precision: float | None, steps: list[tuple]) -> None:  # type: ignore[type-arg]
    index, twin = Triggers(["p", "v"][:width], [precision] * width), DumbReferences([precision] * width)
    numbers, there, now = count(1), list[int](), 0.0
    for step in steps:
        match step:
            case ("event", topic, values, pause):
                now += pause
                assert index.fire(topic, values[:width], now) == twin.fire(topic, values[:width], now)
            case ("add", asked):
                there.append(next(numbers))
                for one in (index, twin):
                    one.add(there[-1], asked[:width])
            case ("remove", at) if there:
                gone = there.pop(at % len(there))
                for one in (index, twin):
                    one.remove(gone)
            case ("forget", at, topic) if there:
                for one in (index, twin):
                    one.forget(there[at % len(there)], topic)
        index.validate()


@pytest.mark.slow
@settings(max_examples=100)
@given(st.lists(st.floats(-1e6, 1e6) | st.integers(-1000, 1000), max_size=60), st.lists(BANDS, min_size=1, max_size=9))
def test_after_every_event_the_reference_is_within_the_band(values: list[float], asked: list[Delta]) -> None:
    """8.2, the promise."""
    triggers, last = Triggers(["p"]), dict[int, float]()
    for number, delta in enumerate(asked, 1):
        triggers.add(number, [delta])
    for at, value in enumerate(values):
        last.update(dict.fromkeys(triggers.fire("t", [value], float(at)), value))
        assert all(not moved(value, last[number], band_of(delta)) for number, delta in enumerate(asked, 1)
                   if not delta.inclusive or band_of(delta).width_at(last[number]) > 0)  # fmt: skip


def test_what_ended_leaves_its_places() -> None:
    triggers = Triggers(["p"])
    for number in range(500):
        triggers.add(number, deltas("DELTA(p) > 5"))
    triggers.fire("a", [1], 0.0)
    for number in range(400):
        triggers.remove(number)
    triggers.validate()
    assert triggers.references < 250 and triggers.fire("a", [9], 0.0) == list(range(400, 500))


def test_a_batch_goes_in_the_order_of_its_rows() -> None:
    triggers = Triggers(["p"])
    triggers.add(1, deltas("DELTA(p) > 5"))
    assert triggers.match(["t"], range(9), {"p": STREAM}, 0.0) == [(row, [1]) for row in (0, 1, 3, 6, 7)]
    assert triggers.match(["t", "u"], [0, 1], {"p": [8, 8]}, 0.0) == [(1, [1])]
    assert triggers.match(["t"], [0], {}, 0.0) == []


def test_bands_grow_up_to_a_bound_and_shrink_again() -> None:
    triggers = Triggers(["p", "q"], [0.01, None])
    triggers.add(1, deltas("DELTA(p) > 0.05 AND RISE(q) > 0 PERCENT"))
    triggers.add(2, deltas("DELTA(p) > 9 AND DELTA(q) > 9"))
    assert triggers.widen(1, 0.16) == "an event is delivered when p moves by 0.1 and q moves by 0.02 PERCENT"
    assert triggers.widen(1, 0.16) == "an event is delivered when p moves by 0.16 and q moves by 0.04 PERCENT"
    assert triggers.widen(2, 0.16) == "", "it is wider already"
    triggers.fire("t", [1.0, 1.0], 0.0)
    triggers.forget_all(1)
    assert triggers.fire("t", [1.0, 1.0], 0.0) == [1] and triggers.fire("t", [1.1, 2.0], 0.0) == []
    triggers.validate()
    triggers.narrow(1)
    assert triggers.fire("t", [1.1, 2.0], 0.0) == [1] and triggers.fire("t", [1.2, 2.1], 0.0) == [1]
    triggers.narrow(1)
    triggers.narrow(2)
    triggers.remove(1)
    triggers.validate()
