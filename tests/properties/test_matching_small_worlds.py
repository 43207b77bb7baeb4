"""Every row of a small world against deep conditions on two attributes.

Where few values and few attributes meet, sides of an OR share an attribute, ranges touch and negations cancel: what an
index may wrongly take as proven by the way that led to a condition shows here.
"""

from __future__ import annotations

from itertools import product
from math import nan

from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.matching import Index, Value, evaluate, parse_condition, parse_pattern

NUMBERS = ("0", "1", "1.5", "2", "-1")
LEAVES = st.one_of(
    st.builds("price {} {}".format, st.sampled_from(["<", "<=", ">", ">=", "=", "<>"]), st.sampled_from(NUMBERS)),
    st.builds("price BETWEEN {} AND {}".format, st.sampled_from(NUMBERS), st.sampled_from(NUMBERS)),
    st.builds("price IN ({}, {})".format, st.sampled_from(NUMBERS), st.sampled_from(NUMBERS)),
    st.sampled_from(
        [
            "symbol = 'a'",
            "symbol <> 'a'",
            "symbol IN ('a', 'ab')",
            "symbol NOT IN ('a', 'b')",
            "symbol LIKE 'a%'",
            "symbol LIKE 'a%b'",
            "symbol LIKE '%'",
            "symbol > 'a'",
            "symbol = 1",
            "symbol IS NULL",
            "price IS NOT NULL",
            "price",
            "price = symbol",
        ]
    ),
)
CONDITIONS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("NOT ({})".format, inner),
    ),
    max_leaves=6,
)
PRICES: tuple[Value, ...] = (None, -1, 0, 0.5, 1, 1.0, 1.5, 2, 3.5, nan, "1", True, False)
SYMBOLS: tuple[Value, ...] = (None, "a", "ab", "aab", "b", "", 1, True)
WORLD = tuple(product(PRICES, SYMBOLS))
COLUMNS = {"price": [price for price, _ in WORLD], "symbol": [symbol for _, symbol in WORLD]}


@given(st.lists(CONDITIONS, min_size=1, max_size=4))
@settings(max_examples=500, deadline=None)
def test_an_index_agrees_with_the_meaning_on_every_row(texts: list[str]) -> None:
    index = Index()
    trees = {number: parse_condition(text) for number, text in enumerate(texts, 1)}
    for number, tree in trees.items():
        index.add(number, parse_pattern("s"), tree)
    got = {
        (number, row) for numbers, rows in index.match(["s"], len(WORLD), COLUMNS) for number in numbers for row in rows
    }
    wanted = {
        (number, row)
        for number, tree in trees.items()
        for row, (price, symbol) in enumerate(WORLD)
        if evaluate(tree, {"price": price, "symbol": symbol}) is True
    }
    assert {(texts[number - 1], WORLD[row]) for number, row in got ^ wanted} == set()
    index.validate()
