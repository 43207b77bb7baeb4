"""matching/structure/filters.py: filters, their bytes, and how often they err. (matching/SPEC.md, 7.6 to 7.8.)"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.matching.structure import (
    DEFAULT_SHAPE,
    Shape,
    best_hashes,
    bits_of,
    estimate,
    exact,
    filter_of,
    pack,
    parse_twig,
    unpack,
)

ITEMS = st.frozensets(st.text(max_size=5), max_size=40)


def test_vectors_of_the_page() -> None:
    assert bits_of("n/book", 1024, 4) == (813, 959, 699, 59)
    assert parse_twig("book").filter(1024, 1) == 1 << 813
    assert pack(1 << 813, 1024) == bytes.fromhex("032d")
    assert pack((1 << 64) - 1, 64) == b"\xff" * 8
    assert pack(0b1_0000_0001, 16) == b"\x01\x01"


@pytest.mark.parametrize(("length", "items", "chance"), [(256, 57, 0.20), (256, 93, 0.305), (1024, 93, 0.087)])
def test_false_positives_by_chance(length: int, items: int, chance: float) -> None:
    """BLOOM 3.2.4 and 3.3.4: P = (1 - e^(-kn/l))^k, with 93 pairs and a filter of 256 bits."""
    assert estimate(length, 1, items) == pytest.approx(chance, abs=0.001)
    assert exact(length, 1, items) == pytest.approx(estimate(length, 1, items), abs=0.001)


def test_the_best_number_of_hashes() -> None:
    """BLOOM 3.3.4: k = (l/n) ln 2 is the least; for 256 bits and 93 pairs that is two, as in Figure 3.17."""
    assert round(best_hashes(256, 93)) == 2
    assert min(range(1, 5), key=lambda k: exact(256, k, 93)) == 2


def test_what_is_counted_is_what_is_estimated() -> None:
    rng = Random(3)
    document = filter_of([f"s/{rng.random()}" for _ in range(93)], 256, 1)
    passed = sum(not filter_of([f"n/{rng.random()}"], 256, 1) & ~document for _ in range(4000))
    assert passed / 4000 == pytest.approx(document.bit_count() / 256, abs=0.03)


@given(ITEMS, ITEMS, st.sampled_from([4, 8, 64, 1000, 1024]), st.integers(1, 4))
def test_a_part_has_a_part_of_the_bits(items: frozenset[str], others: frozenset[str], length: int, hashes: int) -> None:
    whole = filter_of(items | others, length, hashes)
    assert not filter_of(items, length, hashes) & ~whole
    assert whole == filter_of(items, length, hashes) | filter_of(others, length, hashes)
    assert whole < 1 << length


@given(st.sampled_from([8, 64, 128, 1024]).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1)))))
def test_bytes_and_back(drawn: tuple[int, set[int]]) -> None:
    length, positions = drawn
    made = sum(1 << position for position in positions)
    packed = pack(made, length)
    assert unpack(packed, length) == made
    assert len(packed) == min(length // 8, 2 * len(positions))


@pytest.mark.parametrize("packed", ["01", "0001 0001", "0002 0001", "0400", "000102", "00" * 129, "00" * 130])
def test_bytes_that_are_no_filter(packed: str) -> None:
    assert unpack(bytes.fromhex(packed), 1024) is None


def test_columns_say_their_shape() -> None:
    assert DEFAULT_SHAPE.column == "#structure/1024/1"
    assert DEFAULT_SHAPE.values_column == "#values/1024/1"
    for shape in (DEFAULT_SHAPE, Shape(8, 4), Shape(65536, 1)):
        assert Shape.of_column(shape.column) == Shape.of_column(shape.values_column) == shape
    for name in ("price", "#structure/1023/1", "#structure/65544/1", "#structure/0/1", "#structure/8/5", "#other/8/1"):
        assert Shape.of_column(name) is None
    assert not Shape(4, 1).is_sendable
