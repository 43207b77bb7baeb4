"""matching/values.py: how two values compare and combine."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.matching import values
from headgate.matching.limits import INTEGER_MAX, INTEGER_MIN
from headgate.matching.values import ARITHMETIC, COMPARISONS, Value, hash_key, is_null, known, order

NAN = math.nan
ANY = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(INTEGER_MIN, INTEGER_MAX),
    st.sampled_from([2**53, 2**53 + 1, -(2**53) - 1, 0, 1]),
    st.floats(),
    st.text(max_size=4),
)


@pytest.mark.parametrize(
    ("left", "right", "place"),
    [
        (1, 2, -1),
        (2, 2.0, 0),
        (-0.0, 0.0, 0),
        (0, -0.0, 0),
        (NAN, NAN, 0),
        (NAN, math.inf, 1),
        (INTEGER_MAX, NAN, -1),
        (2**53 + 1, 2**53, 1),
        (2**53 + 1, float(2**53), 0),
        (INTEGER_MAX, float(2**63), 0),
        (INTEGER_MIN, float(-(2**63)), 0),
        ("a", "b", -1),
        ("Z", "a", -1),
        ("\uffff", "\U00010000", -1),
        ("é", "e\u0301", 1),
        ("a ", "a", 1),
        (False, True, -1),
    ],
)
def test_like_values_are_in_a_total_order(left: Value, right: Value, place: int) -> None:
    assert order(left, right) == place
    assert order(right, left) == -place


@pytest.mark.parametrize(
    ("left", "right"),
    [(1, "1"), (True, 1), (False, 0.0), (None, None), (None, 1), ("true", True), (2**63, 1), (2**63, 2**63), ([], [])],
)
def test_unlike_values_do_not_compare(left: object, right: object) -> None:
    assert order(left, right) is None
    assert all(compare(left, right) is None for compare in COMPARISONS.values())


@given(ANY, ANY, ANY)
def test_the_order_is_total_and_transitive(a: Value, b: Value, c: Value) -> None:
    if order(a, b) is not None and order(b, c) is not None and order(a, b) == order(b, c):
        # Doubles swallow the last bits of large integers, so three mixed numbers may be "equal" in a chain only.
        mixed = len({type(a), type(b), type(c)}) > 1
        assert order(a, c) == order(a, b) or (mixed and order(a, c) is not None)
    if order(a, b) is not None:
        assert order(b, a) == -order(a, b)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("operator", "verdicts"),
    [
        ("=", (False, True, False)),
        ("<>", (True, False, True)),
        ("<", (True, False, False)),
        ("<=", (True, True, False)),
        (">", (False, False, True)),
        (">=", (False, True, True)),
    ],
)
def test_the_six_comparisons_follow_the_order(operator: str, verdicts: tuple[bool, bool, bool]) -> None:
    assert tuple(COMPARISONS[operator](left, 2) for left in (1, 2, 3)) == verdicts


@pytest.mark.parametrize(
    ("operator", "left", "right", "result"),
    [
        ("+", 1, 2, 3),
        ("+", INTEGER_MAX, 1, None),
        ("+", INTEGER_MAX, 1.0, float(2**63)),
        ("-", INTEGER_MIN, 1, None),
        ("*", 2**62, 2, None),
        ("*", 1e308, 10, math.inf),
        ("/", 1, 2, 0.5),
        ("/", 6, 3, 2.0),
        ("/", 1, 0, None),
        ("/", 1.0, 0.0, None),
        ("/", 1e308, 1e-308, math.inf),
        ("%", -7, 3, -1),
        ("%", 7, -3, 1),
        ("%", INTEGER_MIN, -1, 0),
        ("%", -7.5, 2, -1.5),
        ("%", 7, 0, None),
        ("%", 7.0, -0.0, None),
        ("%", 5.0, math.inf, 5.0),
        ("+", "1", 2, None),
        ("+", True, 2, None),
        ("+", None, 2, None),
        ("*", 2**63, 1, None),
    ],
)
def test_arithmetic_is_sparks_and_gives_null_where_it_cannot_go_on(
    operator: str, left: Value, right: Value, result: Value
) -> None:
    found = ARITHMETIC[operator](left, right)
    assert found == result and type(found) is type(result)


def test_the_remainder_of_infinity_is_not_a_number() -> None:
    assert math.isnan(values.remainder(math.inf, 2.0) or 0.0)


@given(ANY, ANY)
def test_nothing_raises_and_every_result_is_a_value(left: Value, right: Value) -> None:
    for calculate in ARITHMETIC.values():
        result = calculate(left, right)
        assert result is None or not is_null(result)


def test_unary_minus() -> None:
    assert values.negate(5) == -5
    assert values.negate(INTEGER_MIN) is None
    assert values.negate("5") is None
    assert str(values.negate(0.0)) == "-0.0"


def test_what_is_no_attribute_value_is_read_as_null() -> None:
    for stranger in (b"x", [1], {}, 2**63, -(2**63) - 1, 1j, object()):
        assert is_null(stranger) and known(stranger) is None
    for value in ("", 0, False, 0.0, NAN, INTEGER_MAX, INTEGER_MIN):
        assert not is_null(value) and known(value) is value


@given(ANY, ANY)
def test_a_hash_key_finds_exactly_what_equals_it(key: Value, value: Value) -> None:
    if hash_key(key) is not None and type(key) is not bool and type(value) is not bool:
        assert (key in {value}) == (values.equal(key, value) is True)


def test_large_numbers_nan_and_null_are_no_hash_keys() -> None:
    assert [hash_key(value) for value in (2**53, 2.0**53, NAN, math.inf, None)] == [None] * 5
    assert hash_key(2**53 - 1) == 2**53 - 1
