"""Key maps: monotone whatever they are, alike at all brokers by name, and better when they are chosen."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.matching.cube import covers, is_below
from headgate.matching.cube.keys import (
    BITS_MAX,
    NAME_LENGTH_MAX,
    SENT_MAX,
    KeyMap,
    chosen,
    folded,
    named,
    sampled,
    set_bits,
)

LENGTH = 24
TARGETS = st.lists(st.none() | st.integers(0, 5), min_size=LENGTH, max_size=LENGTH)
FILTER = st.integers(0, 2**LENGTH - 1)


@settings(max_examples=30)
@given(TARGETS, FILTER, FILTER)
def test_any_map_is_monotone(targets: list[int | None], one: int, other: int) -> None:
    phi = KeyMap(LENGTH, 6, targets.__getitem__)
    assert is_below(phi.key(one & other), phi.key(other))
    assert phi.key(one | other) == phi.key(one) | phi.key(other)


@settings(max_examples=30)
@given(TARGETS, FILTER)
def test_a_map_is_known_by_its_name(targets: list[int | None], one: int) -> None:
    phi = KeyMap(LENGTH, 6, [0, *targets[1:]].__getitem__)
    assert named(phi.name, LENGTH, 6).key(one) == phi.key(one)
    assert named(phi.name, LENGTH, 6).name == phi.name


def test_a_name_says_how_many_bits_go_nowhere_and_where_the_next_one_goes() -> None:
    phi = named("3a0c", LENGTH, 6)
    assert [phi.key(1 << bit) for bit in range(6)] == [0, 0, 0, 1, 4, 0]
    assert phi.name == "3a0c"


@given(FILTER)
def test_the_fold_takes_each_bit_modulo_the_set_bits_the_key(one: int) -> None:
    assert folded(LENGTH, 6).key(one) == sum(1 << to for to in {bit % 6 for bit in set_bits(one)})
    assert named("fold", LENGTH, 6).key(one) == folded(LENGTH, 6).key(one)


@pytest.mark.parametrize("name", ["", "folding", "3", "3a ", "3a0", "03a", "24a", "20a3a", "3g", "3A", "0a" * 25])
def test_a_name_that_is_no_map_of_this_size_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not a key map"):
        named(name, LENGTH, 6)


@pytest.mark.parametrize("bits", [0, -1, BITS_MAX + 1])
def test_a_key_has_few_bits(bits: int) -> None:
    with pytest.raises(ValueError, match="1 to 12 bits"):
        named("fold", LENGTH, bits)


def large_documents(seed: int) -> tuple[list[int], list[int]]:
    """Documents that share half of their 80 items, as those of one standard do, and twigs of what only some have."""
    random = Random(seed)
    common = [1 << random.randrange(1024) for _ in range(40)]
    rare = [1 << random.randrange(1024) for _ in range(200)]
    documents = [sum(set(common + random.sample(rare, 40))) for _ in range(60)]
    twigs = [sum(set(random.sample(common, 2) + random.sample(rare, 2))) for _ in range(100)]
    return documents, twigs


def test_a_chosen_map_tells_large_documents_apart_where_the_fold_does_not() -> None:
    documents, twigs = large_documents(1)
    halves = documents[::2], documents[1::2]
    maps = {"fold": folded(1024, 8), "sampled": sampled(1024, 8, 80), "chosen": chosen(1024, 8, halves[0], twigs)}
    busiest = {name: max(Counter(map(phi.key, halves[1])).values()) for name, phi in maps.items()}
    empty = {name: sum(phi.key(one) == 0 for one in twigs) for name, phi in maps.items()}
    assert busiest["fold"] == len(halves[1])  # all ones
    assert busiest["chosen"] < len(halves[1]) / 2
    assert empty["chosen"] < empty["sampled"]


@pytest.mark.parametrize("seed", range(3))
def test_whoever_wants_a_document_is_below_it_under_a_chosen_map_too(seed: int) -> None:
    documents, twigs = large_documents(seed)
    phi = chosen(1024, 8, documents[:20], twigs[:50])
    for document in documents:
        for one in twigs:
            assert not covers(one, document) or is_below(phi.key(one), phi.key(document))


def test_nothing_is_learned_from_nothing() -> None:
    assert chosen(64, 4, [], []).key(2**64 - 1) == 0


def test_a_learned_map_has_a_name_that_may_be_put_in_force() -> None:
    random = Random(5)
    twigs = [sum(1 << bit for bit in random.sample(range(65536), 4)) for _ in range(2 * SENT_MAX)]
    documents = [sum(set(random.sample(twigs, 40))) for _ in range(10)]
    phi = chosen(65536, 12, documents, twigs)
    assert phi.name.count("a") and SENT_MAX / 2 < len(phi.name) <= NAME_LENGTH_MAX
    assert named(phi.name, 65536, 12).name == phi.name
